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
from pitboss.venues.perp.tools.get_portfolio import position_facts

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
    return codec.dumps(_positions(observation.portfolio(), observation.at, symbol)).decode()


@exact
def _positions(account: PerpPortfolio, at: Instant, symbol: str | None) -> dict[str, Any]:
    positions = [position for position in account.positions if symbol in (None, position.symbol)]
    working = [order for order in account.orders if symbol in (None, order.symbol)]
    answer: dict[str, Any] = {
        "at": iso(at),
        "equity_usd": render.amount(account.equity_usd),
        "positions": [_position(position, account.equity_usd, at) for position in positions],
        "working_orders": [f"{order.id} {order.kind} {order.side} {order.symbol}" for order in working],
    }
    if symbol is not None:
        answer["symbol"] = symbol
    return answer if positions else answer | {"note": "flat: no position is open"}


def _position(position: PositionView, equity: Decimal, at: Instant) -> dict[str, Any]:
    change_pct = (position.mark - position.entry) * HUNDRED / position.entry
    return position_facts(position) | {
        "price_since_entry": render.percent(change_pct),
        "of_equity": render.percent(position.notional_usd * HUNDRED / equity) if equity > 0 else "n/a",
        "held_for": render.age(at - position.opened_at),
    }


TOOL = define_tool(
    name="get_current_position",
    category="introspection",
    description="Get the open position in a symbol, or all of them: side, size, entry, result, stop, thesis, age.",
    ui_hint="Shorter than get_portfolio when only the positions matter.",
    schema=SCHEMA,
    example={"symbol": "BTC"},
    look=look,
)
