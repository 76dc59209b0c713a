"""Merges new rows with the rows of one file of the lake, in memory.

Rows are held in segments that do not overlap in time, so that a year imported from 365 files is merged once, not 365
times: only rows in the span of the new ones are compared. Used by `staging`; it reads and writes no file.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np
import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.data.series import SeriesKind

_UNBOUNDED = 2**62


@dataclass(frozen=True, slots=True)
class RowChanges:
    """How many rows a put added, replaced and left as they were."""

    added: int
    replaced: int
    unchanged: int


class RowMerger:
    """Rows of one kind, unique and sorted by their key."""

    def __init__(self, shape: SeriesKind, frame: pl.DataFrame | None = None) -> None:
        self._shape = shape
        self._parts: list[pl.DataFrame] = []
        self._lows: list[int] = []
        self._highs: list[int] = []
        self.changed = False
        self.size = 0
        """Approximate bytes in memory."""
        if frame is not None and frame.height:
            self._set(0, 0, [_sorted(shape, frame)])

    def add(self, new: pl.DataFrame, replace: bool = False) -> RowChanges:
        """Merge rows with unique keys. Rows that differ from stored ones are refused unless `replace`."""
        if not new.height:
            return RowChanges(0, 0, 0)
        new = _sorted(self._shape, new)
        low, high = _span(self._shape, new)
        first, end = bisect_left(self._highs, low), bisect_right(self._lows, high)
        if first >= end:
            self._set(first, first, [new])
            self.changed = True
            return RowChanges(new.height, 0, 0)
        before, old, after = self._split(pl.concat(self._parts[first:end]), low, high)
        if old.height == new.height and old.equals(new):
            return RowChanges(0, 0, new.height)
        merged, changes = _merged(self._shape, old, new, replace)
        if changes.added or changes.replaced:
            self._set(first, end, [before, merged, after])
            self.changed = True
        return changes

    def frame(self) -> pl.DataFrame:
        """All rows."""
        if not self._parts:
            return pl.DataFrame(schema=dict(self._shape.columns))
        if len(self._parts) > 1:
            self._parts = [pl.concat(self._parts).rechunk()]
            self._lows, self._highs = self._lows[:1], self._highs[-1:]
        return self._parts[0]

    def _split(self, frame: pl.DataFrame, low: int, high: int) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        if _is_undivided(self._shape, frame):
            return frame.head(0), frame, frame.head(0)
        times = frame[self._shape.time or ""].to_physical().to_numpy()
        begin, end = np.searchsorted(times, low, side="left"), np.searchsorted(times, high, side="right")
        return frame[: int(begin)], frame[int(begin) : int(end)], frame[int(end) :]

    def _set(self, first: int, end: int, parts: list[pl.DataFrame]) -> None:
        filled = [part for part in parts if part.height]
        spans = [_span(self._shape, part) for part in filled]
        self.size += sum(part.estimated_size() for part in filled)
        self.size -= sum(part.estimated_size() for part in self._parts[first:end])
        self._parts[first:end] = filled
        self._lows[first:end] = [low for low, _ in spans]
        self._highs[first:end] = [high for _, high in spans]


def _merged(shape: SeriesKind, old: pl.DataFrame, new: pl.DataFrame, replace: bool) -> tuple[pl.DataFrame, RowChanges]:
    key = list(shape.key)
    differing = _differing(shape, old, new)
    if differing.height and not replace:
        raise UserError(_conflict(shape, differing), "--replace stores the new rows instead")
    fresh = new.join(old, on=key, how="anti", nulls_equal=True)
    changes = RowChanges(fresh.height, differing.height, new.height - fresh.height - differing.height)
    if not fresh.height and not differing.height:
        return old, changes
    remaining = old.join(differing, on=key, how="anti", nulls_equal=True) if differing.height else old
    return pl.concat([remaining, differing, fresh]).sort(key), changes


def _differing(shape: SeriesKind, old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    values = [name for name in shape.columns if name not in shape.key]
    both = new.join(old, on=list(shape.key), how="inner", suffix="_old", nulls_equal=True)
    changed = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_old")) for name in values)
    return both.filter(changed).select(list(shape.columns)).sort(list(shape.key))


def _conflict(shape: SeriesKind, differing: pl.DataFrame) -> str:
    first = differing.row(0, named=True)
    key = first["symbol"] if shape.time is None else iso(differing[shape.time].dt.epoch("ms")[0])
    return f"{key} is already stored with other values (rows in conflict: {differing.height})"


def _sorted(shape: SeriesKind, frame: pl.DataFrame) -> pl.DataFrame:
    if len(shape.key) == 1 and frame[shape.key[0]].is_sorted():
        return frame
    return frame.sort(list(shape.key))


def _is_undivided(shape: SeriesKind, frame: pl.DataFrame) -> bool:
    # a file edited by another program may lack times; such rows cannot be ordered, so the file is not split
    return shape.time is None or frame[shape.time].null_count() > 0


def _span(shape: SeriesKind, frame: pl.DataFrame) -> tuple[int, int]:
    if _is_undivided(shape, frame):
        return -_UNBOUNDED, _UNBOUNDED
    times = frame[shape.time or ""].to_numpy()  # not `to_physical`: a polars expression costs more than a small file
    return int(times[0].astype(np.int64)), int(times[-1].astype(np.int64))
