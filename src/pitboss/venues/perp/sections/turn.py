"""`## Your turn`: the instruction that ends the message."""

from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo

PLACE = 120


def render(observation: Observation, memo: Memo) -> str:
    """Return the section; it is always present and always last."""
    return "## Your turn\nEvaluate against your strategy. Call propose_order exactly once."
