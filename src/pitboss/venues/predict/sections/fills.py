"""`## Since your last decision`: fills, payouts and late refusals since that decision."""

from pitboss.venues.predict import formatting as words
from pitboss.venues.predict.observation import PredictObservation

PLACE = 50
MOST = 12


def render(observation: PredictObservation) -> str | None:
    """Return the section; None if nothing happened."""
    found = observation.since()[-MOST:]
    return "\n".join(("## Since your last decision", *map(words.fill, found))) if found else None
