"""What a spend would buy now: the ask for that size, after the trade. The ask counts as shown to the model."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pitboss.core.errors import ToolFailed
from pitboss.core.money import exact
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.predict import formatting
from pitboss.venues.predict.aborts import Abort
from pitboss.venues.predict.quote import ask_bounds
from pitboss.venues.predict.state import SIDES, binary, contracts
from pitboss.venues.predict.svi import FLOAT
from pitboss.venues.predict.tool_market import MARKET, market_of, observation_of
from pitboss.venues.predict.trade import preview, quote_spend

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["market_id", "side", "strike", "spend"],
    "properties": {
        "market_id": MARKET,
        "side": {"type": "string", "enum": list(SIDES), "description": "YES or NO."},
        "strike": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 100_000_000,
            "description": "Strike in USD, on the market's grid.",
        },
        "spend": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 1_000_000,
            "description": "How much you would spend, in DUSDC; more than the cap of a tick is quoted for the cap.",
        },
    },
}


@exact
def _answer(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    observation = observation_of(context)
    market = market_of(observation, arguments["market_id"])
    units = Decimal(arguments["strike"]) * FLOAT
    if units != units.to_integral_value():
        raise ToolFailed(f"strike {arguments['strike']} is not on the grid of {formatting.name(market.id)}")
    contract = binary(market.id, arguments["side"], int(units))
    world, cap = observation.desk.world, observation.caps.max_spend_per_tick
    requested = int(Decimal(arguments["spend"]).scaleb(6))
    spend = min(requested, cap)
    current = preview(world, contract, observation.at)
    trade = quote_spend(world, contract, spend, observation.at)
    if isinstance(current, Abort) or isinstance(trade, Abort):
        abort = current if isinstance(current, Abort) else trade
        assert isinstance(abort, Abort)
        raise ToolFailed(
            f"{contract.side} {formatting.strike(int(units))} does not quote: {abort.reason} ({abort.name})"
        )
    observation.shown.note(contract, trade.price)
    lowest, highest = ask_bounds(world.terms, market.ask_bounds)
    within = "mintable" if lowest <= trade.price <= highest else "outside the ask bounds, not mintable"
    reduction = f" (cut to the cap of a tick, {render.size(contracts(cap))})" if spend < requested else ""
    return "\n".join(
        (
            f"{contract.side} {formatting.strike(int(units))} in {formatting.name(market.id)}, spot {formatting.strike(market.spot)}",
            f"spend {render.size(contracts(spend))} DUSDC{reduction} buys {render.size(contracts(trade.quantity))} contracts"
            f" at ask {formatting.chance(trade.price)}, cost {render.size(contracts(trade.amount))}: {within}",
            f"ask of one contract {formatting.chance(current.ask)}, bid {formatting.chance(current.bid)},"
            f" fair {formatting.chance(current.fair)}; break-even probability {formatting.chance(trade.price)}",
        )
    )


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return three lines: the contract, the trade for this size, the prices of one contract."""
    return _answer(context, arguments)


TOOL = define_tool(
    name="quote",
    category="market_data",
    description="Quote one contract for your size: how many your spend buys, at which ask, and the break-even probability.",
    ui_hint="A larger size is never cheaper; the engine quotes again at execution.",
    schema=SCHEMA,
    example={"market_id": "BTC-2026-05-27T13:00:00Z", "side": "YES", "strike": 63500, "spend": 2},
    look=look,
)
