"""`## Notes`: notes about the agent's own resources, such as a source that does not respond."""

from pitboss.prompt.render import fence
from pitboss.venues.predict.observation import PredictObservation

PLACE = 80


def render(observation: PredictObservation) -> str | None:
    """Return the section; None without notes. Notes may include untrusted text, so they are rendered as data."""
    if not observation.notes:
        return None
    return "\n".join(["## Notes", *(f"- {fence(note)}" for note in observation.notes)])
