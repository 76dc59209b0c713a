"""`## Notes`: what the agent should know about its own means, such as an outside server that does not answer today."""

from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo, fenced

PLACE = 115


def render(observation: Observation, memo: Memo) -> str | None:
    """Only if there are any. Part of them may be a stranger's words, so they come as data."""
    if not observation.notes:
        return None
    return "\n".join(["## Notes", *(f"- {fenced(note)}" for note in observation.notes)])
