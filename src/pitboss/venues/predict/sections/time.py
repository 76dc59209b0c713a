"""`## Time`: the instant of the tick."""

from pitboss.prompt.render import time
from pitboss.venues.predict.observation import PredictObservation

PLACE = 10


def render(observation: PredictObservation) -> str:
    """Return the section; it is always present."""
    return f"## Time\n{time(observation.at)} UTC"
