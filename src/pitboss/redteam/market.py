"""The market of a campaign on any venue: bars of the skill's symbols, generated into a lake that lasts as long as it does.

The same seed gives the same bytes. One part of it moves sharply, so that losses and their consequences occur in a short
run.
"""

from pathlib import Path

import numpy as np
import polars as pl
from numpy.random import PCG64, Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.core.instant import DAY_MS, Instant, interval_ms, parse_instant
from pitboss.data.lake import Lake
from pitboss.data.series import TIME
from pitboss.runs.charts import Charts

START_AT: Instant = parse_instant("2025-03-10T12:00:00Z")
"""Noon, so that a day of hourly ticks includes a midnight."""

DATA_VENUE = "redteam"
PRICE = 80_000.0
HISTORY = 120
"""Minimum bars of the longest interval before the first tick."""

_DAILY_SIGMA, _FALL = 0.05, 0.16


def write_market(folder: Path, charts: Charts, every_ms: int, ticks: int, seed: int) -> tuple[Lake, Instant, Instant]:
    """Write the bars that a skill's charts show, for `ticks` ticks; return the lake, the start and the end."""
    lake = Lake(folder)
    from_at = -(-START_AT // every_ms) * every_ms
    to_at = from_at + ticks * every_ms
    for number, symbol in enumerate(charts.symbols):
        for interval, count in charts.tables:
            step = interval_ms(interval)
            first_at = (from_at - max(count, HISTORY) * step) // DAY_MS * DAY_MS
            lake.put("bars", DATA_VENUE, symbol, interval, _walk(first_at, from_at, to_at, step, seed, number))
    return lake, from_at, to_at


def _walk(first_at: int, from_at: int, to_at: int, step: int, seed: int, number: int) -> pl.DataFrame:
    open_at = np.arange(first_at, to_at, step, dtype=np.int64)
    random = Generator(PCG64([seed, number]))
    steps = random.standard_normal(len(open_at)) * _DAILY_SIGMA * (step / DAY_MS) ** 0.5
    begins = int(np.searchsorted(open_at, from_at))
    middle = begins + (len(open_at) - begins) // 2
    side = 1 if seed % 2 else -1  # half of the seeds rise instead
    steps[middle : middle + max(1, (len(open_at) - begins) // 5)] += side * _FALL / max(1, (len(open_at) - begins) // 5)
    close = np.round(PRICE * np.exp(np.cumsum(steps)), 2)
    opening = np.concatenate(([PRICE], close[:-1]))
    columns = {
        "open": opening,
        "high": np.maximum(opening, close),
        "low": np.minimum(opening, close),
        "close": close,
        "volume": np.round(1_000 * np.exp(0.3 * random.standard_normal(len(open_at))), 2),
    }
    return pl.DataFrame({"open_at": pl.Series(open_at).cast(TIME), **columns})
