"""`## Since your last decision`: fills, payouts and late refusals since that decision."""

from pitboss.venues.predict import formatting
from pitboss.venues.predict.observation import PredictObservation

PLACE = 50
MOST = 12


def render(observation: PredictObservation) -> str | None:
    """Return the section; None if nothing happened."""
    fills = observation.since()[-MOST:]
    return "\n".join(("## Since your last decision", *map(formatting.fill_line, fills))) if fills else None
