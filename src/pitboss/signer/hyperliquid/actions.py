"""Builds Hyperliquid's actions as dictionaries in the exact key order that is hashed and signed.

The order of keys is part of the signature: the exchange hashes the msgpack encoding of the dictionary. Numbers are text, made by
`wire_decimal`. Rounding to what an asset allows belongs to the asking venue; what does not fit is an error here.
"""

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Literal

from pitboss.core.instant import Instant
from pitboss.core.money import CONTEXT, text
from pitboss.core.noun import noun

Action = dict[str, Any]
TimeInForce = Literal["Alo", "Ioc", "Gtc"]
TriggerKind = Literal["tp", "sl"]
Grouping = Literal["na", "normalTpsl", "positionTpsl"]

TIMES_IN_FORCE: tuple[TimeInForce, ...] = ("Alo", "Ioc", "Gtc")
TRIGGER_KINDS: tuple[TriggerKind, ...] = ("tp", "sl")
GROUPINGS: tuple[Grouping, ...] = ("na", "normalTpsl", "positionTpsl")
NOOP = "noop"

CLOID = re.compile(r"0x[0-9a-f]{32}")
"""A client order id: 128 bits, in lower case."""
_STEP = Decimal("1e-8")
_MOST_CHANGE = Decimal("1e-12")


def wire_decimal(value: Decimal) -> str:
    """Return a number as the exchange reads it: at most 8 decimals, without trailing zeros and without an exponent.

    Raises ValueError if the number is not finite, or if 8 decimals would change it by 1e-12 or more.
    """
    if not value.is_finite():
        raise ValueError("a number on the wire is finite")
    rounded = value.quantize(_STEP, rounding=ROUND_HALF_EVEN, context=CONTEXT)
    if CONTEXT.abs(CONTEXT.subtract(rounded, value)) >= _MOST_CHANGE:
        raise ValueError(f"{value} has more than 8 decimals")
    return text(rounded)


@noun
class LimitWire:
    """How a limit order rests: post only, immediate or cancel, good till cancelled."""

    tif: TimeInForce

    def wire(self) -> Action:
        """The value of `t`."""
        return {"limit": {"tif": self.tif}}


@noun
class TriggerWire:
    """A stop loss or take profit, which waits for the mark price and then becomes a market or a limit order."""

    is_market: bool
    trigger_price: Decimal
    tpsl: TriggerKind

    def wire(self) -> Action:
        """The value of `t`."""
        return {
            "trigger": {"isMarket": self.is_market, "triggerPx": wire_decimal(self.trigger_price), "tpsl": self.tpsl}
        }


@noun
class OrderWire:
    """One order of an action. `asset` is the index in the universe; an empty cloid is left out."""

    asset: int
    is_buy: bool
    price: Decimal
    size: Decimal
    reduce_only: bool
    kind: LimitWire | TriggerWire
    cloid: str = ""

    @property
    def notional(self) -> Decimal:
        """The most that the order can trade, in dollars: a market trigger is bound by its price too."""
        return CONTEXT.multiply(self.price, self.size)

    def wire(self) -> Action:
        """The order as the exchange reads it."""
        order: Action = {
            "a": self.asset,
            "b": self.is_buy,
            "p": wire_decimal(self.price),
            "s": wire_decimal(self.size),
            "r": self.reduce_only,
            "t": self.kind.wire(),
        }
        if self.cloid:
            if not CLOID.fullmatch(self.cloid):
                raise ValueError("a cloid is 0x and 32 hexadecimal digits in lower case")
            order["c"] = self.cloid
        return order


def order_action(orders: Sequence[OrderWire], grouping: Grouping = "na") -> Action:
    """Place orders. `normalTpsl` ties triggers to the first order, `positionTpsl` to the position."""
    return {"type": "order", "orders": [order.wire() for order in orders], "grouping": grouping}


def cancel_action(cancels: Sequence[tuple[int, int]]) -> Action:
    """Cancel orders by asset and the exchange's order id."""
    return {"type": "cancel", "cancels": [{"a": asset, "o": oid} for asset, oid in cancels]}


def cancel_by_cloid_action(cancels: Sequence[tuple[int, str]]) -> Action:
    """Cancel orders by asset and client order id."""
    return {"type": "cancelByCloid", "cancels": [{"asset": asset, "cloid": cloid} for asset, cloid in cancels]}


def update_leverage_action(asset: int, is_cross: bool, leverage: int) -> Action:
    """Set the leverage of one asset."""
    return {"type": "updateLeverage", "asset": asset, "isCross": is_cross, "leverage": leverage}


def schedule_cancel_action(at: Instant | None) -> Action:
    """Have all orders cancelled at an instant; without one, drop what was scheduled."""
    return {"type": "scheduleCancel"} if at is None else {"type": "scheduleCancel", "time": at}


def noop_action() -> Action:
    """Do nothing but use a nonce."""
    return {"type": NOOP}
