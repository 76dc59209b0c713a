"""Reads an action of a request strictly: the few types that are ever signed, each with exactly its keys. Everything else is refused.

The result is typed values; the bytes that are signed are written from them anew (`actions.py`), so that nothing unread is ever signed.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, cast

from pitboss.core.noun import noun
from pitboss.signer.hyperliquid.actions import (
    CLOID,
    GROUPINGS,
    TIMES_IN_FORCE,
    TRIGGER_KINDS,
    Action,
    LimitWire,
    OrderWire,
    TriggerWire,
    cancel_action,
    cancel_by_cloid_action,
    noop_action,
    order_action,
    schedule_cancel_action,
    update_leverage_action,
)
from pitboss.signer.hyperliquid.verdict_terms import MOST_ASSET, read_number
from pitboss.signer.protocol import ACTION_TYPE, MALFORMED, SigningRefusal, refuse

MOST_ORDERS = 20
MOST_CANCELS = 200


@noun
class ExchangeAction:
    """An action that was read: its type, the orders or the leverage in it, and the dictionary that is signed."""

    type: str
    wire: Action
    orders: tuple[OrderWire, ...] = ()
    assets: frozenset[int] = frozenset()
    leverage: int = 0

    @property
    def opens(self) -> tuple[OrderWire, ...]:
        """The orders that can take risk."""
        return tuple(order for order in self.orders if not order.reduce_only)

    @property
    def reduces_risk(self) -> bool:
        """Whether it is signed while the process is halted: reduce-only orders and cancels."""
        if self.type == "scheduleCancel":
            return "time" in self.wire
        return self.type in ("cancel", "cancelByCloid") or (self.type == "order" and not self.opens)


class _Unreadable(Exception):
    """A part of an action that is not as it must be."""


def read_action(content: Any) -> ExchangeAction | SigningRefusal:
    """Read an action. Never raises."""
    if not isinstance(content, dict):
        return refuse(MALFORMED, "the action is not an object")
    fields = cast("dict[str, Any]", content)
    kind = fields.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        return refuse(ACTION_TYPE)
    try:
        return reader(fields)
    except _Unreadable as error:
        return refuse(MALFORMED, str(error))


def _keys(content: Any, *names: str, optional: str | None = None) -> Mapping[str, Any]:
    if not isinstance(content, dict):
        raise _Unreadable("a part of the action is not an object")
    keys = set(cast("dict[str, Any]", content))
    if keys - {optional} != set(names):
        raise _Unreadable("keys of the action are missing or unknown")
    return cast("dict[str, Any]", content)


def _rows(content: Any, most: int) -> list[Any]:
    if not isinstance(content, list) or not 1 <= len(cast("list[Any]", content)) <= most:
        raise _Unreadable(f"a list of the action does not have 1 to {most} entries")
    return cast("list[Any]", content)


def _integer(value: Any, bound: int) -> int:
    if type(value) is not int or not 0 <= value < bound:
        raise _Unreadable("a whole number of the action is out of range")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise _Unreadable("a flag of the action is neither true nor false")
    return value


def _amount(value: Any) -> Decimal:
    number = read_number(value)
    if not number:
        raise _Unreadable("a price or size is not a positive number in its shortest text")
    return number


def _one_of(value: Any, choices: tuple[Any, ...]) -> Any:
    if not isinstance(value, str) or value not in choices:
        raise _Unreadable("a word of the action is unknown")
    return value


def _cloid(value: Any) -> str:
    if not isinstance(value, str) or not CLOID.fullmatch(value):
        raise _Unreadable("a cloid is not 0x and 32 hexadecimal digits in lower case")
    return value


def _kind(content: Any) -> LimitWire | TriggerWire:
    if isinstance(content, dict) and "limit" in content:
        limit = _keys(_keys(content, "limit")["limit"], "tif")
        return LimitWire(_one_of(limit["tif"], TIMES_IN_FORCE))
    trigger = _keys(_keys(content, "trigger")["trigger"], "isMarket", "triggerPx", "tpsl")
    return TriggerWire(
        _flag(trigger["isMarket"]), _amount(trigger["triggerPx"]), _one_of(trigger["tpsl"], TRIGGER_KINDS)
    )


def _order(content: Any) -> OrderWire:
    order = _keys(content, "a", "b", "p", "s", "r", "t", optional="c")
    return OrderWire(
        _integer(order["a"], MOST_ASSET),
        _flag(order["b"]),
        _amount(order["p"]),
        _amount(order["s"]),
        _flag(order["r"]),
        _kind(order["t"]),
        _cloid(order["c"]) if "c" in order else "",
    )


def _read_order(fields: Mapping[str, Any]) -> ExchangeAction:
    _keys(fields, "type", "orders", "grouping")
    orders = tuple(map(_order, _rows(fields["orders"], MOST_ORDERS)))
    grouping = _one_of(fields["grouping"], GROUPINGS)
    return ExchangeAction("order", order_action(orders, grouping), orders, frozenset(order.asset for order in orders))


def _read_cancel(fields: Mapping[str, Any]) -> ExchangeAction:
    _keys(fields, "type", "cancels")
    rows = [_keys(row, "a", "o") for row in _rows(fields["cancels"], MOST_CANCELS)]
    cancels = [(_integer(row["a"], MOST_ASSET), _integer(row["o"], 2**63)) for row in rows]
    return ExchangeAction("cancel", cancel_action(cancels), assets=frozenset(asset for asset, _ in cancels))


def _read_cancel_by_cloid(fields: Mapping[str, Any]) -> ExchangeAction:
    _keys(fields, "type", "cancels")
    rows = [_keys(row, "asset", "cloid") for row in _rows(fields["cancels"], MOST_CANCELS)]
    cancels = [(_integer(row["asset"], MOST_ASSET), _cloid(row["cloid"])) for row in rows]
    assets = frozenset(asset for asset, _ in cancels)
    return ExchangeAction("cancelByCloid", cancel_by_cloid_action(cancels), assets=assets)


def _read_update_leverage(fields: Mapping[str, Any]) -> ExchangeAction:
    _keys(fields, "type", "asset", "isCross", "leverage")
    asset, leverage = _integer(fields["asset"], MOST_ASSET), _integer(fields["leverage"], 1_001)
    if not leverage:
        raise _Unreadable("the leverage is 0")
    wire = update_leverage_action(asset, _flag(fields["isCross"]), leverage)
    return ExchangeAction("updateLeverage", wire, assets=frozenset([asset]), leverage=leverage)


def _read_schedule_cancel(fields: Mapping[str, Any]) -> ExchangeAction:
    _keys(fields, "type", optional="time")
    at = _integer(fields["time"], 2**63) if "time" in fields else None
    return ExchangeAction("scheduleCancel", schedule_cancel_action(at))


def _read_noop(fields: Mapping[str, Any]) -> ExchangeAction:
    _keys(fields, "type")
    return ExchangeAction("noop", noop_action())


_READERS: Mapping[str, Callable[[Mapping[str, Any]], ExchangeAction]] = {
    "order": _read_order,
    "cancel": _read_cancel,
    "cancelByCloid": _read_cancel_by_cloid,
    "updateLeverage": _read_update_leverage,
    "scheduleCancel": _read_schedule_cancel,
    "noop": _read_noop,
}
