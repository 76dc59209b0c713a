"""`## Last decision`: what was decided at the tick before and what the engine did with it, reductions included."""

from pitboss.agent.predict.observation import PredictObservation
from pitboss.prompt.render import fence, time

PLACE = 70
_PROPOSAL_LIMIT = 600


def render(observation: PredictObservation) -> str | None:
    """From the second tick on."""
    last = observation.last
    if last is None:
        return None
    if last.outcome == "noop":
        return f"## Last decision\nhold ({last.flag})" if last.flag else "## Last decision\nhold"
    lines = [
        "## Last decision",
        f"decided at {time(last.tick_at)} UTC: {fence(last.proposal, _PROPOSAL_LIMIT)}",
        f"engine: {last.outcome} {last.code}" if last.code else f"engine: {last.outcome}",
    ]
    if last.detail:
        # Details of the venue and of a malformed decision can quote a stranger or a model.
        lines.append(f"detail: {fence(last.detail)}")
    return "\n".join(lines)
