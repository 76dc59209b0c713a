"""The newest trades of one market: the agent's own, and those of all accounts if recorded."""

from collections.abc import Mapping
from typing import Any

from pitboss.core.instant import iso
from pitboss.tools.define import ToolContext, define_tool
from pitboss.tools.history_text import count_of
from pitboss.venues.predict import formatting
from pitboss.venues.predict.tool_market import MARKET, market_of, observation_of

FEW, MOST = 20, 100
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["market_id"],
    "properties": {"market_id": MARKET, "count": count_of("fills", MOST, FEW)},
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return one line per fill, newest first."""
    observation = observation_of(context)
    market = market_of(observation, arguments["market_id"])
    fills = observation.fills(market.id)[-arguments.get("count", FEW) :]
    if not fills:
        return f"no fills are known in {formatting.name(market.id)} by {iso(observation.at)}"
    return "\n".join(formatting.fill_line(fill) for fill in reversed(fills))


TOOL = define_tool(
    name="recent_fills",
    category="market_data",
    description="List the most recent fills of a market, newest first: side, strike, size and price.",
    ui_hint="In a replay without recorded trades these are the agent's own.",
    schema=SCHEMA,
    example={"market_id": "BTC-2026-05-27T13:00:00Z", "count": 10},
    look=look,
)
