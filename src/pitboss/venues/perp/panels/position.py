"""Positions reconstructed from fills: which fills open and close, and the periods in which a side was held."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pitboss.core.instant import Instant
from pitboss.report.source import Plain, instant, number

_FORCED = {"stop": "stop", "take_profit": "take_profit", "liquidation": "liquidation"}
_DUST = 1e-9


@dataclass(frozen=True, slots=True)
class FillEvent:
    """A fill with its role: entry, exit, stop, take-profit or liquidation."""

    kind: str
    at: Instant
    price: float
    fill: Plain


@dataclass(frozen=True, slots=True)
class HoldingPeriod:
    """A period with one side held; `end` is None for an open position."""

    side: str
    start: Instant
    end: Instant | None


def read_positions(fills: Sequence[Plain], symbol: str) -> tuple[list[FillEvent], list[HoldingPeriod]]:
    """The fills and holding periods of a symbol, from its fills in time order."""
    events: list[FillEvent] = []
    holds: list[HoldingPeriod] = []
    size_before, since = 0.0, 0
    for fill in fills:
        if fill.get("symbol") != symbol:
            continue
        at, size, price = instant(fill.get("at")), number(fill.get("size")), number(fill.get("price"))
        if at is None or size is None or price is None:
            continue
        change = abs(size) if fill.get("side") == "buy" else -abs(size)
        after = size_before + change
        if abs(after) < _DUST * max(1.0, abs(size)):
            after = 0.0
        events.append(FillEvent(_kind(fill, size_before, change), at, price, fill))
        if size_before and after * size_before <= 0:
            holds.append(HoldingPeriod("long" if size_before > 0 else "short", since, at))
        if after and after * size_before <= 0:
            since = at
        size_before = after
    if size_before:
        holds.append(HoldingPeriod("long" if size_before > 0 else "short", since, None))
    return events, holds


def _kind(fill: Plain, size_before: float, change: float) -> str:
    forced = _FORCED.get(str(fill.get("reason")))
    if forced:
        return forced
    if size_before * change < 0:
        return "exit"
    return "enter_long" if change > 0 else "enter_short"


def active_symbols(fills: Iterable[Plain], decisions: Iterable[Plain]) -> set[str]:
    """Symbols with a fill or a refusal."""
    symbols: set[Any] = {row.get("symbol") for row in fills}
    symbols |= {row.get("symbol") for row in decisions if row.get("outcome") == "refused"}
    return {name for name in symbols if isinstance(name, str)}
