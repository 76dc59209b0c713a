"""The account of a deployment after its newest record: its value, its positions and its open orders, of any venue."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.source import number
from pitboss.report.table import LEFT, RIGHT, facts, table
from pitboss.server.pages.deployment_parts import money

Plain = Mapping[str, Any]
TOTALS = ("equity_usd", "equity", "cash_usd", "cash", "spent")
FIRST = ("market_id", "side", "size", "quantity", "cost", "mark", "stop", "take_profit", "leverage")
"""The order in which fields of a position are shown; others follow."""
ORDER = ("order", "kind", "symbol", "side", "size", "limit")
"""What an order that is written as a list holds."""
FORMATS: Mapping[str, Callable[[object], str]] = {
    "mark": figures.price,
    "stop": figures.price,
    "take_profit": figures.price,
    "limit": figures.price,
    "cost": figures.plain,
    "leverage": lambda value: figures.with_unit(value, "x"),
}


def account_view(account: Plain | None, venue: str) -> Html:
    """The account, or the sentence that there is none yet."""
    if not account:
        return tag("p", "The account is known after the first tick.", class_="note")
    totals = [
        (name.removesuffix("_usd").capitalize(), money(account[name], venue)) for name in TOTALS if name in account
    ]
    positions, orders = _positions(account.get("positions")), _orders(account.get("orders") or account.get("waiting"))
    halts = ", ".join(map(str, account.get("halts") or ()))
    return join(
        [
            facts([*totals, *([("Halts of the engine", halts)] if halts else [])]),
            tag("h3", "Positions"),
            _rows("Positions", positions) if positions else tag("p", "None.", class_="note"),
            tag("h3", "Open orders"),
            _rows("Open orders", orders) if orders else tag("p", "None.", class_="note"),
        ]
    )


def _positions(positions: Any) -> list[dict[str, Any]]:
    if isinstance(positions, Mapping):
        return [{"symbol": symbol, **_mapping(position)} for symbol, position in positions.items()]
    return [_mapping(position) for position in positions or ()]


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {"value": value}


def _orders(orders: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for order in orders or ():
        if isinstance(order, list | tuple) and len(order) == len(ORDER):
            row = dict(zip(ORDER, order, strict=True))
            rows.append({**row, "side": {1: "buy", -1: "sell"}.get(row["side"], row["side"])})
        else:
            rows.append(dict(order) if isinstance(order, Mapping) else {"order": order})
    return rows


def _rows(name: str, rows: Sequence[Plain]) -> Html:
    names = list(dict.fromkeys(key for row in rows for key in row))
    head = [key for key in names[:1] if key not in FIRST]
    names = [*head, *[key for key in FIRST if key in names], *[key for key in names if key not in (*head, *FIRST)]]
    columns = [
        (key.replace("_", " ").capitalize(), RIGHT if any(number(row.get(key)) is not None for row in rows) else LEFT)
        for key in names
    ]
    return table(name, columns, [tuple(_cell(key, row.get(key)) for key in names) for row in rows], style="holdings")


def _cell(name: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if number(value) is None:
        return figures.NONE if value is None else str(value)
    return FORMATS.get(name, figures.amount)(value)
