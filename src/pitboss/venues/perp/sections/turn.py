"""`## Your turn`: what is asked for now."""

from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo

PLACE = 120


def render(observation: Observation, memo: Memo) -> str:
    """Always there, always last."""
    return "## Your turn\nEvaluate against your strategy. Call propose_order exactly once."
