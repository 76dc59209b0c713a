"""Strikes of one market with live prices, outward from spot. The asks count as shown to the model."""

from collections.abc import Mapping
from typing import Any

from pitboss.core.instant import iso
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.predict import formatting
from pitboss.venues.predict.ladder import ladder
from pitboss.venues.predict.state import SIDES, binary
from pitboss.venues.predict.svi import FLOAT
from pitboss.venues.predict.tool_market import MARKET, market_of, observation_of

STEP, FEW, MOST = 50, 8, 40
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["market_id"],
    "properties": {
        "market_id": MARKET,
        "step": {
            "type": "integer",
            "minimum": 1,
            "maximum": 5_000,
            "description": f"USD between two strikes; {STEP} when left out.",
        },
        "count": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST,
            "description": f"How many strikes on either side of spot; {FEW} when left out.",
        },
    },
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return one line per strike, highest first: ask and bid of both sides, and which can be minted."""
    observation = observation_of(context)
    market = market_of(observation, arguments["market_id"])
    scale, count = observation.price_scale, arguments.get("count", FEW)
    # A step in the prices of a blind run is rounded to the grid, whose steps are as long as its factor.
    step = max(scale, arguments["step"] // scale * scale) if "step" in arguments else STEP * scale
    rungs = ladder(observation.desk.world, market.id, observation.at, step * FLOAT, count)
    if not rungs:
        return f"{formatting.name(market.id)} has no quotes at {iso(observation.at)}"
    lines = [
        f"{formatting.name(market.id)}, spot {formatting.strike(market.spot)}, prices of one contract",
        "strike | YES ask | YES bid | NO ask | NO bid | mintable",
    ]
    for rung in sorted(rungs, key=lambda rung: -rung.strike):
        for side in SIDES:
            observation.shown.note(binary(market.id, side, rung.strike), rung.ask(side))
        yes, no = rung.quote, rung.quote.opposite
        prices = " | ".join(formatting.chance(units) for units in (yes.ask, yes.bid, no.ask, no.bid))
        lines.append(f"{formatting.strike(rung.strike)} | {prices} | {' '.join(rung.sides) or 'neither'}")
    return "\n".join(lines)


TOOL = define_tool(
    name="list_strikes",
    category="market_data",
    description="List strikes of a market around spot with the live ask and bid of YES and NO.",
    ui_hint="Any strike on the market's grid can be minted, not only those listed.",
    schema=SCHEMA,
    example={"market_id": "BTC-2026-05-27T13:00:00Z", "count": 5},
    look=look,
)
