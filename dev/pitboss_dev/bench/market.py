"""Markets to measure on: seeded random walks, written as a venue of their own and marked as generated.

Not the demo market: that one is made to be looked at, this one to have the same amount of work in every part of it.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.random import PCG64, Generator

from pitboss.core.instant import DAY_MS, HOUR_MS, INTERVALS, Instant, parse_instant
from pitboss.core.market import Bars, Floats
from pitboss.data.lake import Lake
from pitboss.data.series import TIME

VENUE = "bench"
INTERVAL = "5m"
STEP_MS = INTERVALS[INTERVAL]
BARS_A_DAY = DAY_MS // STEP_MS
START_AT: Instant = parse_instant("2024-01-01")
PRICES = {
    "SOL": 150.0,
    "AVAX": 35.0,
    "BNB": 600.0,
    "BTC": 60_000.0,
    "DOGE": 0.2,
    "ETH": 3_000.0,
    "HYPE": 30.0,
    "XRP": 0.6,
}
"""Eight of the shipped symbols with a price to start from."""

SYMBOLS = tuple(PRICES)
_VOLATILITY = 0.0012
_SUBSTEPS = 4


@dataclass(frozen=True, slots=True)
class MarketShape:
    """Which market: the same shape gives the same bytes.

    `period` repeats the first so many days again and again, price level included, so that a month and a year of it
    have the same events in them and differ in their length only.
    """

    days: int
    symbols: tuple[str, ...] = ("SOL",)
    funding: bool = False
    period: int | None = None
    seed: int = 11

    @property
    def name(self) -> str:
        """A name for a folder."""
        words = [
            str(self.days),
            *self.symbols,
            "funding" if self.funding else "",
            str(self.period or ""),
            str(self.seed),
        ]
        return "-".join(word for word in words if word)

    @property
    def end_at(self) -> Instant:
        """The close of its last bar."""
        return START_AT + self.days * DAY_MS


def write_market(lake: Lake, shape: MarketShape) -> None:
    """Put a generated market into a lake."""
    lake.mark_synthetic(
        VENUE, f"SYNTHETIC: random walks of `pitboss bench` ({shape}). No price in this venue is real.\n"
    )
    for number, symbol in enumerate(shape.symbols):
        bars = walk(symbol, shape, number)
        lake.put("bars", VENUE, symbol, INTERVAL, frame(bars), replace=True)
        if shape.funding:
            hours = bars.open_at[:: HOUR_MS // STEP_MS]
            rates = np.round(1.25e-5 + 1e-5 * _random(shape, number + 100).standard_normal(len(hours)), 8)
            lake.put("funding", VENUE, symbol, None, pl.DataFrame({"at": _times(hours), "value": rates}), replace=True)


def walk(symbol: str, shape: MarketShape, number: int = 0) -> Bars:
    """One symbol's bars."""
    count = (shape.period or shape.days) * BARS_A_DAY
    steps = _random(shape, number).standard_normal((count, _SUBSTEPS)) * (_VOLATILITY / math.sqrt(_SUBSTEPS))
    if shape.period:
        steps -= steps.mean()  # ends where it began, so that the next round goes on without a jump
    path: Floats = PRICES[symbol] * np.exp(np.cumsum(steps.ravel()).reshape(count, _SUBSTEPS))
    rounds = -(-shape.days * BARS_A_DAY // count)
    path = np.tile(path, (rounds, 1))[: shape.days * BARS_A_DAY]
    opening: Floats = np.concatenate(([PRICES[symbol]], path[:-1, -1]))
    places = max(0, 4 - math.floor(math.log10(PRICES[symbol])))
    opens, closes = np.round(opening, places), np.round(path[:, -1], places)
    highs = np.maximum(np.round(path.max(axis=1), places), np.maximum(opens, closes))
    lows = np.minimum(np.round(path.min(axis=1), places), np.minimum(opens, closes))
    open_at = START_AT + np.arange(len(path), dtype=np.int64) * STEP_MS
    volumes = np.asarray(
        np.round(1_000 * np.exp(0.3 * _random(shape, number + 200).standard_normal(len(path))), 2), np.float64
    )
    return Bars(symbol, INTERVAL, STEP_MS, open_at, opens, highs, lows, closes, volumes)


def frame(bars: Bars) -> pl.DataFrame:
    """Bars as the lake stores them."""
    columns: dict[str, Floats] = {name: getattr(bars, name) for name in ("open", "high", "low", "close", "volume")}
    return pl.DataFrame({"open_at": _times(bars.open_at), **columns})


def _random(shape: MarketShape, stream: int) -> Generator:
    return Generator(PCG64([shape.seed, stream]))


def _times(at: "np.typing.NDArray[np.int64]") -> pl.Series:
    return pl.Series(at).cast(pl.Datetime("ms")).dt.replace_time_zone("UTC").cast(TIME)
