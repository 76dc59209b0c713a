"""`## Time`: the instant of the tick."""

from pitboss.prompt.render import time
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo

PLACE = 10


def render(observation: Observation, memo: Memo) -> str:
    """Return the section; it is always present."""
    return f"## Time\n{time(observation.at)} UTC"
