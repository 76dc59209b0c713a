"""Tool `get_position_risk`: distance of open positions to stop and liquidation, margin, and loss at given moves."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pitboss.core import codec
from pitboss.core.instant import iso
from pitboss.core.money import HUNDRED, ZERO, exact
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.portfolio import PositionView
from pitboss.venues.perp.state import maintenance
from pitboss.venues.perp.tool_symbols import SYMBOL, one_of_yours

MOVES = (1, 5, 10)
"""Moves against every position, in percent."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": [],
    "properties": {"symbol": {**SYMBOL, "description": "Only this symbol; all positions when left out."}},
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return one JSON object with rounded amounts."""
    symbol = arguments.get("symbol")
    if symbol is not None:
        one_of_yours(context.observation, symbol)
    return codec.dumps(_risk(context.observation, symbol)).decode()


@exact
def _risk(observation: Observation, symbol: str | None) -> dict[str, Any]:
    account = observation.portfolio()
    positions = [position for position in account.positions if symbol in (None, position.symbol)]
    equity, needed = account.equity_usd, maintenance(observation.world, observation.terms)
    risk: dict[str, Any] = {
        "at": iso(observation.at),
        "equity_usd": render.amount(equity),
        "margin_used_usd": render.amount(account.margin_used_usd),
        "free_margin_usd": render.amount(account.free_margin_usd),
        "maintenance_margin_usd": render.amount(needed),
        "left_before_liquidation_usd": render.amount(equity - needed),
        "positions": [_position(position, equity) for position in positions],
    }
    if len(positions) > 1:
        total = sum((position.notional_usd for position in positions), ZERO)
        risk["loss_if_all_move_against"] = [f"{move}%: {_loss(total * move / HUNDRED, equity)}" for move in MOVES]
    return risk if positions else risk | {"note": "flat: nothing is at risk"}


def _position(position: PositionView, equity: Decimal) -> dict[str, Any]:
    away = 1 if position.side == "long" else -1
    return {
        "symbol": position.symbol,
        "side": position.side,
        "notional_usd": render.amount(position.notional_usd),
        "of_equity": render.percent(position.notional_usd * HUNDRED / equity) if equity > 0 else "n/a",
        "margin_usd": render.amount(position.margin_usd),
        "mark": render.price(position.mark),
        "liquidation": "unreachable" if position.liquidation is None else render.price(position.liquidation),
        "to_liquidation": None if position.liquidation is None else _distance(position, position.liquidation),
        "stop": None if position.stop is None else render.price(position.stop),
        "to_stop": None if position.stop is None else _distance(position, position.stop),
        "loss_at_stop": None
        if position.stop is None
        else _loss(away * position.size * (position.mark - position.stop), equity),
        "loss_if_it_moves_against": [
            f"{move}%: {_loss(position.notional_usd * move / HUNDRED, equity)}{_ends(position, away, move)}"
            for move in MOVES
        ],
    }


def _distance(position: PositionView, price: Decimal) -> str:
    """Return the distance from the mark to a price in percent of the mark, signed like the move towards it."""
    return render.percent((price - position.mark) * HUNDRED / position.mark)


def _loss(usd: Decimal, equity: Decimal) -> str:
    share = f" ({render.percent(usd * HUNDRED / equity)} of equity)" if equity > 0 else ""
    return f"{render.amount(usd)} USD{share}"


def _ends(position: PositionView, away: int, move: int) -> str:
    """Return what would happen before such a move completes and so limit the loss."""
    there = position.mark * (HUNDRED - away * move) / HUNDRED
    if position.stop is not None and (position.stop - there) * away >= 0:
        return ", but the stop comes first"
    if position.liquidation is not None and (position.liquidation - there) * away >= 0:
        return ", but liquidation comes first"
    return ""


TOOL = define_tool(
    name="get_position_risk",
    category="introspection",
    description=(
        "Get what the open positions risk: distance to stop and liquidation, margin used, loss if prices move against "
        "them by 1, 5 or 10 %."
    ),
    ui_hint="Lets an agent or a person see what a position can cost before adding to it.",
    schema=SCHEMA,
    example={},
    look=look,
)
