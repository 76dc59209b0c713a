"""`## Your turn`: what is asked for now."""

from pitboss.agent.predict.observation import PredictObservation
from pitboss.venues.predict.intents import TERMINAL

PLACE = 90


def render(observation: PredictObservation) -> str:
    """Always there, always last."""
    return (
        f"## Your turn\nWeigh the markets against your mandate. Call {TERMINAL} exactly once; hold is a valid answer."
    )
