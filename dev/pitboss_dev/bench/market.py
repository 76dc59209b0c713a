"""Generated markets for the benchmarks: seeded random walks, stored as a venue of their own and marked as synthetic.

Unlike the demo market, which is made for readable reports, every part of these has the same amount of work.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.random import PCG64, Generator

from pitboss.core.instant import DAY_MS, HOUR_MS, INTERVALS, Instant, parse_instant
from pitboss.core.market import Bars, Floats, Ints
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
"""Eight of the shipped symbols with their first price."""

SYMBOLS = tuple(PRICES)
_VOLATILITY = 0.0012
_SUBSTEPS = 4


@dataclass(frozen=True, slots=True)
class MarketShape:
    """The parameters of a market: the same shape gives the same bytes.

    `period` repeats the first `period` days, price level included, so that a month and a year differ in length only and
    have the same events.
    """

    days: int
    symbols: tuple[str, ...] = ("SOL",)
    funding: bool = False
    period: int | None = None
    seed: int = 11

    @property
    def name(self) -> str:
        """The name of its folder."""
        funding, period = "funding" if self.funding else "", str(self.period or "")
        parts = [str(self.days), *self.symbols, funding, period, str(self.seed)]
        return "-".join(part for part in parts if part)

    @property
    def end_at(self) -> Instant:
        """The close of its last bar."""
        return START_AT + self.days * DAY_MS


def write_market(lake: Lake, shape: MarketShape) -> None:
    """Write a generated market into a lake."""
    lake.mark_synthetic(
        VENUE, f"SYNTHETIC: random walks of `pitboss bench` ({shape}). No price in this venue is real.\n"
    )
    for number, symbol in enumerate(shape.symbols):
        bars = random_walk(symbol, shape, number)
        lake.put("bars", VENUE, symbol, INTERVAL, bars_frame(bars), replace=True)
        if shape.funding:
            hours = bars.open_at[:: HOUR_MS // STEP_MS]
            rates = np.round(1.25e-5 + 1e-5 * _random(shape, number + 100).standard_normal(len(hours)), 8)
            lake.put("funding", VENUE, symbol, None, pl.DataFrame({"at": _times(hours), "value": rates}), replace=True)


def random_walk(symbol: str, shape: MarketShape, number: int = 0) -> Bars:
    """The bars of one symbol."""
    count = (shape.period or shape.days) * BARS_A_DAY
    steps = _random(shape, number).standard_normal((count, _SUBSTEPS)) * (_VOLATILITY / math.sqrt(_SUBSTEPS))
    if shape.period:
        steps -= steps.mean()  # the last price is the first, so that the next repetition starts without a jump
    path: Floats = PRICES[symbol] * np.exp(np.cumsum(steps.ravel()).reshape(count, _SUBSTEPS))
    repetitions = -(-shape.days * BARS_A_DAY // count)
    path = np.tile(path, (repetitions, 1))[: shape.days * BARS_A_DAY]
    opening: Floats = np.concatenate(([PRICES[symbol]], path[:-1, -1]))
    decimals = max(0, 4 - math.floor(math.log10(PRICES[symbol])))
    opens, closes = np.round(opening, decimals), np.round(path[:, -1], decimals)
    highs = np.maximum(np.round(path.max(axis=1), decimals), np.maximum(opens, closes))
    lows = np.minimum(np.round(path.min(axis=1), decimals), np.minimum(opens, closes))
    open_at = START_AT + np.arange(len(path), dtype=np.int64) * STEP_MS
    volumes = np.asarray(
        np.round(1_000 * np.exp(0.3 * _random(shape, number + 200).standard_normal(len(path))), 2), np.float64
    )
    return Bars(symbol, INTERVAL, STEP_MS, open_at, opens, highs, lows, closes, volumes)


def bars_frame(bars: Bars) -> pl.DataFrame:
    """Bars in the columns of the lake."""
    columns: dict[str, Floats] = {name: getattr(bars, name) for name in ("open", "high", "low", "close", "volume")}
    return pl.DataFrame({"open_at": _times(bars.open_at), **columns})


def _random(shape: MarketShape, stream: int) -> Generator:
    return Generator(PCG64([shape.seed, stream]))


def _times(at: Ints) -> pl.Series:
    return pl.Series(at).cast(pl.Datetime("ms")).dt.replace_time_zone("UTC").cast(TIME)
