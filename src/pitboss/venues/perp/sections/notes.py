"""`## Notes`: messages about the agent's own tools, such as an external server that does not answer today."""

from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo, fenced

PLACE = 115


def render(observation: Observation, memo: Memo) -> str | None:
    """Return the section if there are notes, fenced as data because parts of them may be untrusted text."""
    if not observation.notes:
        return None
    return "\n".join(["## Notes", *(f"- {fenced(note)}" for note in observation.notes)])
