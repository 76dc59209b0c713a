"""Hyperliquid's candles, asset contexts and best bids and asks, from WebSocket messages and `/info` replies, read strictly.

A value of a wrong type or form raises `MalformedMessage`. Whether a price is plausible is judged in `price_checks`, so a
price of zero is read here and refused there.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, interval_ms
from pitboss.core.market import Bar
from pitboss.core.noun import noun

EARLIEST, LATEST = 1_262_304_000_000, 4_102_444_800_000
"""2010 and 2100: a time outside is not one."""
MOST_TRADES = 10**12
_NUMBER = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,18})?")


class MalformedMessage(Exception):
    """A message that does not have the documented form."""


@noun
class CandleUpdate:
    """One candle as it was sent: final if its interval is over, otherwise the state of the running interval."""

    symbol: str
    interval: str
    open_at: Instant
    open: float
    high: float
    low: float
    close: float
    volume: float
    trades: int

    @property
    def closes_at(self) -> Instant:
        """When the interval ends."""
        return self.open_at + interval_ms(self.interval)

    def bar(self) -> Bar:
        """Return the candle as a bar."""
        return Bar(self.closes_at, self.open, self.high, self.low, self.close, self.volume)


@noun
class AssetContext:
    """Mark, oracle and middle price of a symbol, its open interest, and the prices for the impact notional."""

    symbol: str
    mark: Decimal
    oracle: Decimal
    mid: Decimal | None
    open_interest: float
    impact: tuple[Decimal, Decimal] | None


@noun
class BestPrices:
    """Best bid and ask of a symbol at a venue time; None for an empty side."""

    symbol: str
    at: Instant
    bid: Decimal | None
    ask: Decimal | None


def read_candle(value: Any) -> CandleUpdate:
    """Read a candle of a message or of a reply."""
    row = _mapping(value, "a candle")
    symbol, interval, open_at = _text(row, "s"), _text(row, "i"), read_time(row.get("t"))
    try:
        step = interval_ms(interval)
    except UserError:
        raise MalformedMessage("a candle has an unknown interval") from None
    if open_at % step:
        raise MalformedMessage(f"a candle of {symbol} does not begin at a multiple of {interval}")
    if read_time(row.get("T")) != open_at + step - 1:
        raise MalformedMessage(f"a candle of {symbol} does not end {interval} after its beginning")
    trades = row.get("n")
    if isinstance(trades, bool) or not isinstance(trades, int) or not 0 <= trades <= MOST_TRADES:
        raise MalformedMessage(f"a candle of {symbol} has no number of trades")
    opened, high, low, close, volume = (float(_number(row, name)) for name in ("o", "h", "l", "c", "v"))
    return CandleUpdate(symbol, interval, open_at, opened, high, low, close, volume, trades)


def read_context(symbol: str, value: Any) -> AssetContext:
    """Read the context of a symbol."""
    row = _mapping(value, "an asset context")
    impact = row.get("impactPxs")
    if impact is not None and (not isinstance(impact, list) or len(impact) != 2):
        raise MalformedMessage("impactPxs is not a pair")
    return AssetContext(
        symbol,
        _number(row, "markPx"),
        _number(row, "oraclePx"),
        None if row.get("midPx") is None else _number(row, "midPx"),
        float(_number(row, "openInterest")),
        None if impact is None else (read_number(impact[0]), read_number(impact[1])),
    )


def read_active_context(value: Any) -> AssetContext:
    """Read the data of an `activeAssetCtx` message."""
    row = _mapping(value, "an asset context")
    return read_context(_text(row, "coin"), row.get("ctx"))


def read_best_prices(value: Any) -> BestPrices:
    """Read the data of a `bbo` message."""
    row = _mapping(value, "a best bid and ask")
    sides = row.get("bbo")
    if not isinstance(sides, list) or len(sides) != 2:
        raise MalformedMessage("a best bid and ask is not a pair")
    bid, ask = (None if side is None else _number(_mapping(side, "a level"), "px") for side in sides)
    return BestPrices(_text(row, "coin"), read_time(row.get("time")), bid, ask)


def read_contexts(value: Any) -> dict[str, AssetContext]:
    """Read a `metaAndAssetCtxs` reply; a context that cannot be read is left out."""
    try:
        universe, contexts = value
        symbols = [asset["name"] for asset in universe["universe"]]
        pairs = list(zip(symbols, contexts, strict=True))
    except (KeyError, TypeError, ValueError):
        raise MalformedMessage("the asset contexts have an unknown form") from None
    read: dict[str, AssetContext] = {}
    for symbol, context in pairs:
        try:
            read[symbol] = read_context(symbol, context)
        except MalformedMessage:
            continue  # those of delisted symbols have empty fields
    return read


def read_time(value: Any) -> Instant:
    """Read a time in milliseconds."""
    if isinstance(value, bool) or not isinstance(value, int) or not EARLIEST <= value <= LATEST:
        raise MalformedMessage("a time is missing or impossible")
    return value


def read_number(value: Any) -> Decimal:
    """Read a decimal text."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        raise MalformedMessage("a value is not a decimal text")
    return Decimal(value)


def _number(row: Mapping[str, Any], name: str) -> Decimal:
    return read_number(row.get(name))


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= 64:
        raise MalformedMessage(f"{name} is missing")
    return value


def _mapping(value: Any, label: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise MalformedMessage(f"{label} is not an object")
    return value
