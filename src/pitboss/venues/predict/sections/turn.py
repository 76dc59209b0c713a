"""`## Your turn`: what is asked for now."""

from pitboss.venues.predict.intents import TERMINAL
from pitboss.venues.predict.observation import PredictObservation

PLACE = 90


def render(observation: PredictObservation) -> str:
    """Always there, always last."""
    return (
        f"## Your turn\nWeigh the markets against your mandate. Call {TERMINAL} exactly once; hold is a valid answer."
    )
