"""Where prices come from: a seeded random walk, prices that a test sets, or rows of a file.

A path is asked for the price of a coin at rising instants. It says nothing about spreads or marks; `market.py` does.
"""

import json
from bisect import bisect_right
from decimal import Decimal
from math import isqrt
from pathlib import Path
from typing import Protocol

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.money import decimal
from pitboss.testing.hyperliquid.seeded import SeededNumbers
from pitboss.testing.hyperliquid.universe import ListedPerp


class PricePath(Protocol):
    """Prices of one coin, asked for step by step."""

    def price(self, at: Instant) -> Decimal:
        """The middle price at an instant, never earlier than the last one asked for."""
        ...


class RandomWalkPrices:
    """A walk in steps of a few hundredths of a percent a second, pulled back so that it stays within a factor of four."""

    def __init__(self, perp: ListedPerp, seed: int, volatility_bp: int = 3) -> None:
        self._numbers = SeededNumbers(seed, f"path {perp.name}")
        self._start = perp.start_price
        self._level = 0
        self._volatility = volatility_bp * 100
        self._at: Instant | None = None

    def price(self, at: Instant) -> Decimal:
        """One step on, if time has moved."""
        if self._at is not None and at > self._at and self._volatility:
            step = self._numbers.between(-self._volatility, self._volatility) * isqrt(max((at - self._at) // 1_000, 1))
            self._level += step - self._level // 4096  # in millionths
        self._at = at
        return self._start * (1_000_000 + max(-750_000, self._level)) / 1_000_000


class SetPrices:
    """The price that was set last."""

    def __init__(self, start: Decimal) -> None:
        self.current = start

    def price(self, at: Instant) -> Decimal:
        """The price that was set last."""
        del at
        return self.current


class RecordedPrices:
    """Prices of a file by time, each holding until the next; counted from the start of the exchange."""

    def __init__(self, rows: list[tuple[int, Decimal]], start: Instant) -> None:
        if not rows:
            raise UserError("no prices for a coin", "give rows [milliseconds, price]")
        self._times = [time - rows[0][0] + start for time, _ in rows]
        self._prices = [price for _, price in rows]

    def price(self, at: Instant) -> Decimal:
        """The newest price at or before the instant; the first one before the start."""
        return self._prices[max(0, bisect_right(self._times, at) - 1)]


def read_prices(path: Path) -> dict[str, list[tuple[int, Decimal]]]:
    """Read `{"BTC": [[ms, price], ...]}` or bars `{"BTC": [{"t":, "o":, "h":, "l":, "c":, "T":}, ...]}`.

    A bar becomes four prices: open, the nearer extreme, the other extreme, close, spread over its length.
    """
    try:
        content = json.loads(path.read_text("utf-8"), parse_float=Decimal)
        return {coin: _points(rows) for coin, rows in content.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, ArithmeticError) as error:
        raise UserError(f"cannot read prices from {path}: {error}", 'write {"BTC": [[ms, price], ...]}') from None


def _points(rows: list[object]) -> list[tuple[int, Decimal]]:
    points: list[tuple[int, Decimal]] = []
    for row in rows:
        if isinstance(row, dict):
            opened, closed = int(row["t"]), int(row["T"])
            first, high, low, last = (decimal(row[key]) for key in ("o", "h", "l", "c"))
            extremes = (low, high) if abs(first - low) <= abs(high - first) else (high, low)
            quarter = (closed - opened) // 4
            points += [(opened + i * quarter, price) for i, price in enumerate((first, *extremes, last))]
        elif isinstance(row, list):
            points.append((int(row[0]), decimal(row[1])))
        else:
            raise ValueError("a row is neither a pair nor a bar")
    return points
