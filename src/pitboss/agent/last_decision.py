"""What a prompt tells of the tick before: what was decided then, and what the engine did with it.

Of a hold it tells nothing but its flag: a prompt that repeated when or why nothing was done could never be foreseen. The
words of the model and of a broker come back as data. Where it stands in the message is the section's own affair.
"""

from functools import lru_cache

from pitboss.core.state import LastDecision
from pitboss.prompt.render import fence, time

_PROPOSAL_LIMIT = 600
_fenced = lru_cache(maxsize=512)(fence)


def told(last: LastDecision | None, decided: str, held: str) -> str | None:
    """The section, from the second tick on. `decided` and `held` are the venue's words for it."""
    if last is None:
        return None
    if last.outcome == "noop":
        return f"## Last decision\n{held} ({last.flag})" if last.flag else f"## Last decision\n{held}"
    lines = [
        "## Last decision",
        f"{decided} at {time(last.tick_at)} UTC: {_fenced(last.proposal, _PROPOSAL_LIMIT)}",
        f"engine: {last.outcome} {last.code}" if last.code else f"engine: {last.outcome}",
    ]
    if last.detail:
        lines.append(f"detail: {_fenced(last.detail)}")  # it can quote a stranger or a model
    return "\n".join(lines)
