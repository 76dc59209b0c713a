"""Tool `get_current_position`: one position, or all of them, at the tick."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pitboss.core import codec
from pitboss.core.instant import Instant, iso
from pitboss.core.money import HUNDRED, exact
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.perp.portfolio import PerpPortfolio, PositionView
from pitboss.venues.perp.tool_symbols import SYMBOL, one_of_yours

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": [],
    "properties": {"symbol": {**SYMBOL, "description": "Only this symbol; all positions when left out."}},
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return one JSON object with rounded amounts."""
    observation, symbol = context.observation, arguments.get("symbol")
    if symbol is not None:
        one_of_yours(observation, symbol)
    return codec.dumps(_told(observation.portfolio(), observation.at, symbol)).decode()


@exact
def _told(account: PerpPortfolio, at: Instant, symbol: str | None) -> dict[str, Any]:
    held = [one for one in account.positions if symbol in (None, one.symbol)]
    working = [order for order in account.orders if symbol in (None, order.symbol)]
    told: dict[str, Any] = {
        "at": iso(at),
        "equity_usd": render.amount(account.equity_usd),
        "positions": [_position(one, account.equity_usd, at) for one in held],
        "working_orders": [f"{order.id} {order.kind} {order.side} {order.symbol}" for order in working],
    }
    if symbol is not None:
        told["symbol"] = symbol
    return told if held else told | {"note": "flat: no position is open"}


def _position(held: PositionView, equity: Decimal, at: Instant) -> dict[str, Any]:
    moved = (held.mark - held.entry) * HUNDRED / held.entry
    return {
        "symbol": held.symbol,
        "side": held.side,
        "size": render.size(held.size),
        "entry": render.price(held.entry),
        "mark": render.price(held.mark),
        "price_since_entry": render.percent(moved),
        "notional_usd": render.amount(held.notional_usd),
        "of_equity": render.percent(held.notional_usd * HUNDRED / equity) if equity > 0 else "n/a",
        "unrealised_usd": render.amount(held.unrealised_usd),
        "leverage": held.leverage,
        "stop": _price(held.stop),
        "take_profit": _price(held.take_profit),
        "liquidation": "unreachable" if held.liquidation is None else render.price(held.liquidation),
        "opened_at": iso(held.opened_at),
        "held_for": render.age(at - held.opened_at),
        # A model wrote it and may have repeated untrusted text, so it is fenced as data.
        "thesis": render.fence(held.thesis) if held.thesis else None,
    }


def _price(value: Decimal | None) -> str | None:
    return None if value is None else render.price(value)


TOOL = define_tool(
    name="get_current_position",
    category="introspection",
    description="Get the open position in a symbol, or all of them: side, size, entry, result, stop, thesis, age.",
    ui_hint="Shorter than get_portfolio when only the positions matter.",
    schema=SCHEMA,
    example={"symbol": "BTC"},
    look=look,
)
