"""`## Notes`: about the agent's own means, such as a source that does not answer."""

from pitboss.prompt.render import fence
from pitboss.venues.predict.observation import PredictObservation

PLACE = 80


def render(observation: PredictObservation) -> str | None:
    """Left out when there is nothing to say. Part of them may be a stranger's words, so they come as data."""
    if not observation.notes:
        return None
    return "\n".join(["## Notes", *(f"- {fence(note)}" for note in observation.notes)])
