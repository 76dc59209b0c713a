"""The rows of one file of the lake in memory, while new ones are put to them.

Kept as segments that do not overlap in time, so that a year that comes as 365 files is merged once, not 365 times: only
rows in the span of what is new are compared. Beneath `staging`; it reads and writes no file.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np
import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.data.series import SeriesKind

_EVER = 2**62


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What a put did to the lake."""

    added: int
    replaced: int
    unchanged: int


class RowMerger:
    """Rows of one kind, unique by key and sorted by it whenever they are asked for."""

    def __init__(self, shape: SeriesKind, frame: pl.DataFrame | None = None) -> None:
        self._shape = shape
        self._parts: list[pl.DataFrame] = []
        self._lows: list[int] = []
        self._highs: list[int] = []
        self.changed = False
        self.size = 0
        """Bytes in memory, about."""
        if frame is not None and frame.height:
            self._set(0, 0, [_sorted(shape, frame)])

    def add(self, new: pl.DataFrame, replace: bool = False) -> RowChanges:
        """Put rows with unique keys to the others. Differing ones are refused unless `replace`."""
        if not new.height:
            return RowChanges(0, 0, 0)
        new = _sorted(self._shape, new)
        low, high = _span(self._shape, new)
        first, end = bisect_left(self._highs, low), bisect_right(self._lows, high)
        if first >= end:
            self._set(first, first, [new])
            self.changed = True
            return RowChanges(new.height, 0, 0)
        before, old, after = self._cut(pl.concat(self._parts[first:end]), low, high)
        if old.height == new.height and old.equals(new):
            return RowChanges(0, 0, new.height)
        merged, did = _merged(self._shape, old, new, replace)
        if did.added or did.replaced:
            self._set(first, end, [before, merged, after])
            self.changed = True
        return did

    def frame(self) -> pl.DataFrame:
        """All rows, in one piece."""
        if not self._parts:
            return pl.DataFrame(schema=dict(self._shape.columns))
        if len(self._parts) > 1:
            self._parts = [pl.concat(self._parts).rechunk()]
            self._lows, self._highs = self._lows[:1], self._highs[-1:]
        return self._parts[0]

    def _cut(self, frame: pl.DataFrame, low: int, high: int) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        if _whole(self._shape, frame):
            return frame.head(0), frame, frame.head(0)
        times = frame[self._shape.time or ""].to_physical().to_numpy()
        begin, end = np.searchsorted(times, low, side="left"), np.searchsorted(times, high, side="right")
        return frame[: int(begin)], frame[int(begin) : int(end)], frame[int(end) :]

    def _set(self, first: int, end: int, parts: list[pl.DataFrame]) -> None:
        kept = [part for part in parts if part.height]
        spans = [_span(self._shape, part) for part in kept]
        self.size += sum(part.estimated_size() for part in kept)
        self.size -= sum(part.estimated_size() for part in self._parts[first:end])
        self._parts[first:end] = kept
        self._lows[first:end] = [low for low, _ in spans]
        self._highs[first:end] = [high for _, high in spans]


def _merged(shape: SeriesKind, old: pl.DataFrame, new: pl.DataFrame, replace: bool) -> tuple[pl.DataFrame, RowChanges]:
    key = list(shape.key)
    differing = _differing(shape, old, new)
    if differing.height and not replace:
        raise UserError(_conflict(shape, differing), "--replace takes the new rows instead of the stored ones")
    fresh = new.join(old, on=key, how="anti", nulls_equal=True)
    did = RowChanges(fresh.height, differing.height, new.height - fresh.height - differing.height)
    if not fresh.height and not differing.height:
        return old, did
    keep = old.join(differing, on=key, how="anti", nulls_equal=True) if differing.height else old
    return pl.concat([keep, differing, fresh]).sort(key), did


def _differing(shape: SeriesKind, old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    values = [name for name in shape.columns if name not in shape.key]
    both = new.join(old, on=list(shape.key), how="inner", suffix="_old", nulls_equal=True)
    changed = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_old")) for name in values)
    return both.filter(changed).select(list(shape.columns)).sort(list(shape.key))


def _conflict(shape: SeriesKind, differing: pl.DataFrame) -> str:
    first = differing.row(0, named=True)
    where = first["symbol"] if shape.time is None else iso(differing[shape.time].dt.epoch("ms")[0])
    return f"{where} is already stored with other values (rows in conflict: {differing.height})"


def _sorted(shape: SeriesKind, frame: pl.DataFrame) -> pl.DataFrame:
    if len(shape.key) == 1 and frame[shape.key[0]].is_sorted():
        return frame
    return frame.sort(list(shape.key))


def _whole(shape: SeriesKind, frame: pl.DataFrame) -> bool:
    # a file edited by someone else may lack times; such rows stand nowhere, so nothing is cut there
    return shape.time is None or frame[shape.time].null_count() > 0


def _span(shape: SeriesKind, frame: pl.DataFrame) -> tuple[int, int]:
    if _whole(shape, frame):
        return -_EVER, _EVER
    times = frame[shape.time or ""].to_numpy()  # not `to_physical`: an expression costs more than a small file does
    return int(times[0].astype(np.int64)), int(times[-1].astype(np.int64))
