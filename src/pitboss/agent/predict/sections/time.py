"""`## Time`: the instant of the tick."""

from pitboss.agent.predict.observation import PredictObservation
from pitboss.prompt.render import time

PLACE = 10


def render(observation: PredictObservation) -> str:
    """Always there."""
    return f"## Time\n{time(observation.at)} UTC"
