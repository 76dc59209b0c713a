"""Downsampling of long series to the resolution of a chart, keeping every extreme.

A chart has a few hundred columns and a year has a hundred thousand bars; each column keeps its lowest, its highest and
its last point, so that no spike disappears.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def as_arrays(points: Sequence[tuple[int, float]]) -> tuple[Floats, Floats]:
    """Times and values as arrays, without rows that are not finite."""
    table = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    table = table[np.isfinite(table).all(axis=1)]
    return table[:, 0], table[:, 1]


def buckets(at: Floats, start: float, end: float, columns: int) -> NDArray[np.int64]:
    """The column of each instant, for ascending instants between `start` and `end`."""
    width = max(end - start, 1.0) / columns
    return np.clip(((at - start) / width).astype(np.int64), 0, columns - 1)


def downsample(at: Floats, values: Floats, start: float, end: float, columns: int) -> NDArray[np.int64]:
    """Indices to draw: lowest, highest and last of every column, in time order."""
    if len(at) <= 2 * columns:
        return np.arange(len(at))
    column = buckets(at, start, end, columns)
    ends = np.flatnonzero(np.diff(column, append=column[-1] + 1))
    starts = np.concatenate(([0], ends[:-1] + 1))
    order = np.lexsort((values, column))
    return np.unique(np.concatenate((order[starts], order[ends], ends)))


def value_at(at: Floats, values: Floats, moments: Floats) -> Floats:
    """The last value at or before each moment; before the first point, its value."""
    return values[np.clip(np.searchsorted(at, moments, side="right") - 1, 0, len(values) - 1)]


def drawdown(values: Floats, initial: float) -> Floats:
    """Percent below the highest point so far, the initial equity included."""
    peak = np.maximum(np.maximum.accumulate(values), initial)
    return np.where(peak > 0, 100.0 * (peak - values) / np.where(peak > 0, peak, 1.0), 0.0)


def merge_bars(bars: Floats, start: float, end: float, columns: int) -> Floats:
    """Bars `(open_at, o, h, l, c)` merged into at most `columns` rows of the same shape."""
    if len(bars) <= columns:
        return bars
    column = buckets(bars[:, 0], start, end, columns)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(column)) + 1))
    lasts = np.concatenate((starts[1:] - 1, [len(bars) - 1]))
    return np.column_stack(
        (
            bars[starts, 0],
            bars[starts, 1],
            np.maximum.reduceat(bars[:, 2], starts),
            np.minimum.reduceat(bars[:, 3], starts),
            bars[lasts, 4],
        )
    )
