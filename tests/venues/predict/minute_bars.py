"""Writes one-minute bars of BTC into a lake, for a few hours of the predict venue."""

from pathlib import Path

import numpy as np
import polars as pl

from pitboss.core.instant import HOUR_MS, MINUTE_MS, parse_instant
from pitboss.data.lake import Lake
from pitboss.data.series import TIME

FROM = parse_instant("2026-02-22")


def write_minute_bars(home: Path) -> None:
    """Write three hours before `FROM` and four after it."""
    at = np.arange(FROM - 3 * HOUR_MS, FROM + 4 * HOUR_MS, MINUTE_MS)
    price = np.round(97_000 * np.exp(np.cumsum(np.random.default_rng(3).normal(0, 6e-4, len(at)))), 2)
    columns = {"open": price, "high": price + 20, "low": price - 20, "close": price + 7.5, "volume": at * 0.0 + 5}
    bars = pl.DataFrame({"open_at": pl.Series(at).cast(TIME), **columns})
    Lake(home / "lake").put("bars", "minutes", "BTC", "1m", bars)
