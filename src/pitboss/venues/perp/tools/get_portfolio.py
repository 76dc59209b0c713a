"""Tool `get_portfolio`: the account at the tick: equity, margin, positions, working orders, halts."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pitboss.core import codec
from pitboss.core.instant import iso
from pitboss.core.money import HUNDRED, ZERO, exact
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.tools.history_text import NO_ARGUMENTS
from pitboss.venues.perp.portfolio import OrderView, PerpPortfolio, PositionView


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return one JSON object with rounded amounts."""
    return codec.dumps(_account(context.observation.portfolio()) | {"at": iso(context.observation.at)}).decode()


@exact
def _account(account: PerpPortfolio) -> dict[str, Any]:
    return {
        "equity_usd": render.amount(account.equity_usd),
        "cash_usd": render.amount(account.cash_usd),
        "margin_used_usd": render.amount(account.margin_used_usd),
        "free_margin_usd": render.amount(account.free_margin_usd),
        "since_midnight": render.percent(_change_pct(account.day_start_usd, account.equity_usd)),
        "from_peak": render.percent(_change_pct(account.peak_usd, account.equity_usd)),
        "positions": [position_facts(position) for position in account.positions],
        "orders": [_order(order) for order in account.orders],
        "halts": list(account.halts),
    } | _fees(account)


def _fees(account: PerpPortfolio) -> dict[str, Any]:
    """Return the fee rates of an account at an exchange."""
    if account.fees_bps is None:
        return {}
    maker, taker = account.fees_bps
    return {"maker_fee": f"{render.size(maker)} bps", "taker_fee": f"{render.size(taker)} bps"}


def _change_pct(reference: Decimal, value: Decimal) -> Decimal:
    return (value - reference) * HUNDRED / reference if reference > 0 else ZERO


def position_facts(position: PositionView) -> dict[str, Any]:
    """Return one open position as the JSON fields that tools show."""
    return {
        "symbol": position.symbol,
        "side": position.side,
        "size": render.size(position.size),
        "entry": render.price(position.entry),
        "mark": render.price(position.mark),
        "notional_usd": render.amount(position.notional_usd),
        "unrealised_usd": render.amount(position.unrealised_usd),
        "leverage": position.leverage,
        "liquidation": "unreachable" if position.liquidation is None else render.price(position.liquidation),
        "stop": _price(position.stop),
        "take_profit": _price(position.take_profit),
        "opened_at": iso(position.opened_at),
        # A model wrote it and may have repeated untrusted text, so it is fenced as data.
        "thesis": render.fence(position.thesis) if position.thesis else None,
    }


def _order(order: OrderView) -> dict[str, Any]:
    return {
        "order_id": order.id,
        "kind": order.kind,
        "symbol": order.symbol,
        "side": order.side,
        "size": render.size(order.size),
        "limit": _price(order.limit),
        "stop": _price(order.stop),
        "take_profit": _price(order.take_profit),
        "submitted_at": iso(order.submitted_at),
    }


def _price(value: Decimal | None) -> str | None:
    return None if value is None else render.price(value)


TOOL = define_tool(
    name="get_portfolio",
    category="portfolio",
    description="Get your account now: equity, free margin, positions with their stops, working orders, halts.",
    ui_hint="The prompt already shows the portfolio; useful for chat and for a second look within a tick.",
    schema=NO_ARGUMENTS,
    example={},
    look=look,
)
