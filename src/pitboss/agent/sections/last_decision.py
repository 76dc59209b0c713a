"""`## Last decision`: what was proposed at the tick before and what the engine did with it.

Of a no-op it tells nothing but its flag: a prompt that repeated when or why nothing was done could never be foreseen.
"""

from pitboss.agent.observation import Observation
from pitboss.agent.sections import Memo, fenced
from pitboss.prompt.render import time

PLACE = 110

_PROPOSAL_LIMIT = 600


def render(observation: Observation, memo: Memo) -> str | None:
    """From the second tick on."""
    last = observation.last
    if last is None:
        return None
    if last.outcome == "noop":
        return f"## Last decision\nnoop ({last.flag})" if last.flag else "## Last decision\nnoop"
    lines = [
        "## Last decision",
        f"proposed at {time(last.tick_at)} UTC: {fenced(last.proposal, _PROPOSAL_LIMIT)}",
        f"engine: {last.outcome} {last.code}" if last.code else f"engine: {last.outcome}",
    ]
    if last.detail:
        # Broker and validation details can quote a stranger or a model.
        lines.append(f"detail: {fenced(last.detail)}")
    return "\n".join(lines)
