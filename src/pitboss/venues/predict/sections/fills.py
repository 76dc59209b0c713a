"""`## Since your last decision`: what was carried out, paid or refused at execution after it was made."""

from pitboss.venues.predict import formatting as words
from pitboss.venues.predict.observation import PredictObservation

PLACE = 50
MOST = 12


def render(observation: PredictObservation) -> str | None:
    """Left out when nothing happened."""
    found = observation.since()[-MOST:]
    return "\n".join(("## Since your last decision", *map(words.fill, found))) if found else None
