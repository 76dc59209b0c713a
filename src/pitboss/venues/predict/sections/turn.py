"""`## Your turn`: the request for a decision."""

from pitboss.venues.predict.intents import TERMINAL
from pitboss.venues.predict.observation import PredictObservation

PLACE = 90


def render(observation: PredictObservation) -> str:
    """Return the section; it is always present, as the last one."""
    return (
        f"## Your turn\nWeigh the markets against your mandate. Call {TERMINAL} exactly once; hold is a valid answer."
    )
