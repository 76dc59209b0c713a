"""Summaries of stored series: rows, time span, gaps. A file is read for them once and again when it has changed.

Every page and every run asks which time the bars of a symbol cover, many of them several times.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, interval_ms
from pitboss.core.market import Ints
from pitboss.core.order_book import MAX_AGE_MS
from pitboss.data.series import POINT_KINDS, epoch_ms, series
from pitboss.data.series_files import SeriesFiles
from pitboss.data.staging import read_parquet
from pitboss.data.time_columns import EARLIEST, LATEST

_ROLLING = 25
_MOST_SERIES = 4096

FileState = tuple[int, int, int]
"""Changes whenever a file does: a write to the lake replaces its files."""


@dataclass(frozen=True, slots=True)
class SeriesInfo:
    """A summary of one series. `interval` and `symbol` are None where the kind has none."""

    venue: str
    kind: str
    symbol: str | None
    interval: str | None
    rows: int
    first_at: Instant | None
    last_at: Instant | None
    gaps: int


def series_info(files: SeriesFiles) -> SeriesInfo:
    """The summary of the series in these files."""
    return _info(files, tuple(_state(path) for path in files.paths))


def extent_of(paths: Sequence[Path], time: str) -> tuple[Instant, Instant] | None:
    """First and last time of a column in files, oldest first; reads only the first and the last file."""
    if not paths:
        return None
    first = _extent(paths[0], time, _state(paths[0]))
    last = first if len(paths) == 1 else _extent(paths[-1], time, _state(paths[-1]))
    return None if first is None or last is None else (first[0], last[1])


def find_holes(files: SeriesFiles, moments: Ints) -> Ints:
    """Positions after which rows are missing.

    Bars are measured by their interval. Values are measured by the local median step, because venues change their pace
    (8-hourly funding became hourly): a step of more than one and a half times that is a gap.
    """
    steps = np.diff(moments)
    if files.interval:
        return np.flatnonzero(steps > interval_ms(files.interval))
    if files.kind == "l2":  # books come at any pace: a gap is where the last one is too old to be used
        return np.flatnonzero(steps > MAX_AGE_MS)
    if files.kind not in POINT_KINDS or len(steps) < 2:
        return np.empty(0, dtype=np.int64)
    usual = pl.Series(steps).cast(pl.Float64).rolling_median(_ROLLING, min_samples=1, center=True).to_numpy()
    return np.flatnonzero(steps > 1.5 * usual)


def instants(column: pl.Series) -> Ints:
    """A stored column of times; times that no import accepts are a `UserError`."""
    values = epoch_ms(column)
    if values.dtype != np.int64 or (len(values) and not EARLIEST <= values.min() <= values.max() <= LATEST):
        raise UserError("a stored file holds invalid times", "see `pitboss data check`")
    values.setflags(write=False)
    return values


def _state(path: Path) -> FileState | None:
    try:
        stat = path.stat()
    except OSError:  # reading the file reports what is wrong
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


@lru_cache(maxsize=_MOST_SERIES)
def _info(files: SeriesFiles, states: tuple[FileState | None, ...]) -> SeriesInfo:
    del states
    time = series(files.kind).time
    if time is None:
        rows = sum(read_parquet(path, ["symbol"]).height for path in files.paths)
        return SeriesInfo(files.venue, files.kind, None, None, rows, None, None, 0)
    moments = instants(pl.concat([read_parquet(path, [time]) for path in files.paths])[time].rechunk())
    first, last = (int(moments[0]), int(moments[-1])) if len(moments) else (None, None)
    holes = len(find_holes(files, moments))
    return SeriesInfo(files.venue, files.kind, files.symbol, files.interval, len(moments), first, last, holes)


@lru_cache(maxsize=_MOST_SERIES)
def _extent(path: Path, time: str, state: FileState | None) -> tuple[Instant, Instant] | None:
    del state
    moments = read_parquet(path, [time])[time].dt.epoch("ms")
    first, last = moments.min(), moments.max()
    return (first, last) if isinstance(first, int) and isinstance(last, int) else None
