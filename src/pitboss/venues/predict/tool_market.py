"""What tools of the predict venue share: their observation, the market argument, and the answer to a wrong one."""

from collections.abc import Mapping
from typing import Any, cast

from pitboss.core.errors import ToolFailed
from pitboss.tools.define import ToolContext
from pitboss.venues.predict import formatting as words
from pitboss.venues.predict.observation import PredictObservation
from pitboss.venues.predict.state import Oracle

MARKET: Mapping[str, Any] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "description": "The market's id, as list_btc_markets gives it.",
}
MOST_NAMED = 6


def seen(context: ToolContext) -> PredictObservation:
    """The observation of a tick on this venue; tools of its folder are built with no other."""
    return cast("PredictObservation", context.observation)


def market_of(observation: PredictObservation, market_id: str) -> Oracle:
    """The market of that id, or words that help to ask again."""
    found = observation.market(market_id)
    if found is None:
        known = [words.name(market.id) for market in observation.markets()[:MOST_NAMED]]
        raise ToolFailed(f"no market {market_id[:80]!r}; open: {', '.join(known) if known else 'none'}")
    return found
