"""Shared by the predict tools: their observation, the market argument, and the error for an unknown market."""

from collections.abc import Mapping
from typing import Any, cast

from pitboss.core.errors import ToolFailed
from pitboss.tools.define import ToolContext
from pitboss.venues.predict import formatting
from pitboss.venues.predict.observation import PredictObservation
from pitboss.venues.predict.state import Oracle

MARKET: Mapping[str, Any] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "description": "The market's id, as list_btc_markets gives it.",
}
MOST_NAMED = 6


def observation_of(context: ToolContext) -> PredictObservation:
    """Return the observation of the tick; the tools of this venue always get a `PredictObservation`."""
    return cast("PredictObservation", context.observation)


def market_of(observation: PredictObservation, market_id: str) -> Oracle:
    """Return the market with this id. Raises `ToolFailed` that lists open markets."""
    market = observation.market(market_id)
    if market is None:
        names = [formatting.name(open_market.id) for open_market in observation.markets()[:MOST_NAMED]]
        raise ToolFailed(f"no market {market_id[:80]!r}; open: {', '.join(names) if names else 'none'}")
    return market
