"""The open BTC markets by expiry: one per expiry, excluding stale twins."""

from collections.abc import Mapping
from typing import Any

from pitboss.core.instant import iso
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.predict import formatting
from pitboss.venues.predict.tool_market import observation_of

SCHEMA: dict[str, Any] = {"type": "object", "additionalProperties": False, "required": [], "properties": {}}
MOST = 40


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return one line per market: id, expiry, time left, spot, forward, age of the price, grid."""
    observation = observation_of(context)
    markets = observation.markets()
    if not markets:
        return f"no market is open at {iso(observation.at)}"
    lines = ["market_id | expires | time left | spot | forward | price age | strikes"]
    for market in markets[:MOST]:
        grid = market.grid
        if market.priced_at is None:
            priced = "no price yet | - | -"
        else:
            age = (observation.at - market.priced_at) // 1000
            priced = f"{formatting.strike(market.spot)} | {formatting.strike(market.forward)} | {age}s"
        strikes = f"{formatting.strike(grid.min_strike)} to {formatting.strike(grid.max_strike)} in steps of {formatting.strike(grid.tick)}"
        expiry = f"{iso(market.expiry_at)} | {formatting.time_left(market.expiry_at, observation.at)}"
        lines.append(f"{formatting.name(market.id)} | {expiry} | {priced} | {strikes}")
    return "\n".join(lines)


TOOL = define_tool(
    name="list_btc_markets",
    category="market_data",
    description="List the open BTC markets by expiry, with the spot and forward price each is quoted on.",
    ui_hint="The prompt has most of it; useful for the forward and the grid of strikes.",
    schema=SCHEMA,
    example={},
    look=look,
)
