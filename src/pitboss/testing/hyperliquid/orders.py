"""Orders of the fake exchange: what a request asks for, read strictly, and the record of an order with its status over time."""

import re
from decimal import Decimal, InvalidOperation
from typing import Any

from pitboss.core.instant import Instant
from pitboss.core.money import ZERO
from pitboss.core.noun import noun

CLOID = re.compile(r"0x[0-9a-fA-F]{32}")
NUMBER = re.compile(r"\d+(\.\d+)?")
TIFS = ("Alo", "Ioc", "Gtc")


class MalformedRequest(Exception):
    """The body is not what the exchange can deserialise: HTTP 422."""


@noun
class WireOrder:
    """One order of a request. `trigger_price` is None for limit orders."""

    asset: int
    is_buy: bool
    price: Decimal
    size: Decimal
    reduce_only: bool
    tif: str
    cloid: str | None
    trigger_price: Decimal | None = None
    is_market: bool = False
    tpsl: str = ""


class PlacedOrder:
    """An order as the exchange keeps it. `status` is `open` while it rests."""

    __slots__ = (
        "account",
        "children",
        "cloid",
        "coin",
        "filled",
        "is_position_tpsl",
        "notional",
        "oid",
        "parent",
        "placed_at",
        "request",
        "size",
        "status",
        "status_at",
        "tif",
        "was_accepted",
        "was_triggered",
    )

    def __init__(self, oid: int, account: str, coin: str, request: WireOrder, at: Instant) -> None:
        self.oid = oid
        self.account = account
        self.coin = coin
        self.request = request
        self.cloid = request.cloid
        self.size = request.size
        self.tif = request.tif
        self.filled = ZERO
        self.notional = ZERO
        self.placed_at = at
        self.status = "open"
        self.status_at = at
        self.was_accepted = False
        """Whether the exchange took it: it rested, waited or traded at some time."""
        self.was_triggered = False
        self.is_position_tpsl = False
        self.parent: PlacedOrder | None = None
        self.children: list[PlacedOrder] = []

    @property
    def remaining(self) -> Decimal:
        """What is not filled yet."""
        return self.size - self.filled

    @property
    def is_trigger(self) -> bool:
        """Whether it waits for its trigger price."""
        return self.request.trigger_price is not None and not self.was_triggered

    @property
    def is_open(self) -> bool:
        """Whether it rests or waits."""
        return self.status == "open"

    def average_price(self) -> Decimal:
        """The average price of its fills."""
        return self.notional / self.filled if self.filled else ZERO


def read_order(fields: Any) -> WireOrder:
    """Read one order of the wire; unknown or missing keys are an error, as the exchange's own deserialiser has it."""
    if not isinstance(fields, dict) or not {"a", "b", "p", "s", "r", "t"} <= set(fields) <= {*"abpsrtc"}:
        raise MalformedRequest("an order has the keys a, b, p, s, r, t and perhaps c")
    kind = fields["t"]
    if not (isinstance(kind, dict) and len(kind) == 1):
        raise MalformedRequest("t has one key")
    cloid = fields.get("c")
    if cloid is not None and not (isinstance(cloid, str) and CLOID.fullmatch(cloid)):
        raise MalformedRequest("c is 0x and 32 hex digits")
    first = (
        _integer(fields["a"]),
        _flag(fields["b"]),
        wire_number(fields["p"]),
        wire_number(fields["s"]),
        _flag(fields["r"]),
    )
    name = cloid.lower() if cloid else None
    if "limit" in kind:
        limit = kind["limit"]
        if not isinstance(limit, dict) or set(limit) != {"tif"} or limit["tif"] not in TIFS:
            raise MalformedRequest("limit has tif Alo, Ioc or Gtc")
        return WireOrder(*first, limit["tif"], name)
    trigger = kind.get("trigger")
    if not isinstance(trigger, dict) or set(trigger) != {"isMarket", "triggerPx", "tpsl"}:
        raise MalformedRequest("t has limit or trigger")
    if trigger["tpsl"] not in ("tp", "sl"):
        raise MalformedRequest("tpsl is tp or sl")
    return WireOrder(
        *first, "", name, wire_number(trigger["triggerPx"]), _flag(trigger["isMarket"]), str(trigger["tpsl"])
    )


def wire_number(value: Any) -> Decimal:
    """A number of the wire: decimal digits in a string, without sign and exponent."""
    if not isinstance(value, str) or not NUMBER.fullmatch(value):
        raise MalformedRequest("a number is a string of digits")
    try:
        return Decimal(value)
    except InvalidOperation:
        raise MalformedRequest("a number is a string of digits") from None


def _integer(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise MalformedRequest("an asset is an integer")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise MalformedRequest("a flag is true or false")
    return value
