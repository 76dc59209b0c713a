"""The prompt section about the previous tick: its decision, and what the engine did with it.

A hold is described by its flag alone: a prompt that repeated when or why nothing was done could not be speculated.
Text of the model and of a broker is fenced as data. The venue places the section in its message.
"""

from functools import lru_cache

from pitboss.core.state import LastDecision
from pitboss.prompt.render import fence, time

_PROPOSAL_LIMIT = 600
_fenced = lru_cache(maxsize=512)(fence)


def last_decision_section(last: LastDecision | None, proposal_label: str, hold_label: str) -> str | None:
    """The section; None at the first tick. The labels are the venue's words for a proposal and for a hold."""
    if last is None:
        return None
    if last.outcome == "noop":
        return f"## Last decision\n{hold_label} ({last.flag})" if last.flag else f"## Last decision\n{hold_label}"
    lines = [
        "## Last decision",
        f"{proposal_label} at {time(last.tick_at)} UTC: {_fenced(last.proposal, _PROPOSAL_LIMIT)}",
        f"engine: {last.outcome} {last.code}" if last.code else f"engine: {last.outcome}",
    ]
    if last.detail:
        lines.append(f"detail: {_fenced(last.detail)}")  # may quote untrusted text or a model
    return "\n".join(lines)
