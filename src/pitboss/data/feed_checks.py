"""Checks of sound series for problems of their feed: repeated rows, outliers, changes of pace, silence.

Pure functions on arrays; `quality` turns their results into findings. None of them makes a file unusable.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, Instant
from pitboss.core.market import Floats, Ints

WILD = 10.0
"""A bar's return is an outlier above so many times the median absolute return of its day."""
STILL = 12
"""So many consecutive rows that repeat the one before make a stale feed."""
_SETTLED = 3
"""A pace counts once so many consecutive steps have it: a single missing row is a gap, not a new pace."""


@dataclass(frozen=True, slots=True)
class RowRange:
    """Consecutive rows, by their positions, both ends included."""

    first: int
    last: int

    @property
    def length(self) -> int:
        """The number of rows."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class PaceChange:
    """A change of the step between rows, from a row on."""

    row: int
    before_ms: int
    after_ms: int


@dataclass(frozen=True, slots=True)
class Silence:
    """No bars from `from_at` up to `to_at`, although so many symbols have bars before and after."""

    from_at: Instant
    to_at: Instant
    symbols: int


def still(columns: Sequence[Floats], joined: "np.typing.NDArray[np.bool_]") -> list[RowRange]:
    """Where every column repeats the row before for `STILL` rows or more. `joined`: the row follows without a hole."""
    same = joined.copy()
    for column in columns:
        same[1:] &= column[1:] == column[:-1]
    same[:1] = False
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    begins, ends = edges[::2], edges[1::2]
    return [
        RowRange(int(begin) - 1, int(end) - 1) for begin, end in zip(begins, ends, strict=True) if end - begin >= STILL
    ]


def returns(opens: Floats, closes: Floats, joined: "np.typing.NDArray[np.bool_]") -> Floats:
    """A bar's return: from the close before to its own; where that bar is missing, from its own open.

    It is infinite where it is larger than any number, as between prices of 1e-320 and 1.
    """
    reference = opens.copy()
    reference[1:][joined[1:]] = closes[:-1][joined[1:]]
    with np.errstate(over="ignore"):
        return closes / reference - 1.0


def outliers(moments: Ints, moves: Floats) -> tuple["np.typing.NDArray[np.bool_]", Floats]:
    """Bars whose return is above `WILD` × the median absolute return of their UTC day, and that median for each bar."""
    size = np.abs(moves)
    days = moments // DAY_MS
    starts = np.flatnonzero(np.diff(days, prepend=days[:1] - 1))
    with np.errstate(over="ignore"):
        medians = np.array([np.median(part) for part in np.split(size, starts[1:])])
        usual = np.repeat(medians, np.diff(np.append(starts, len(days))))
        return size > WILD * usual, usual


def changes(moments: Ints) -> list[PaceChange]:
    """Where the steps between rows change permanently. Times of venues are off by seconds: steps are rounded to minutes."""
    steps = np.rint(np.diff(moments) / MINUTE_MS).astype(np.int64)
    steps = np.where(steps >= 45, np.rint(steps / 60).astype(np.int64) * 60, steps)  # rounded to hours if about hours
    if not len(steps):
        return []
    begins = np.concatenate(([0], np.flatnonzero(np.diff(steps)) + 1))
    lengths = np.diff(np.append(begins, len(steps)))
    pace_changes: list[PaceChange] = []
    pace: int | None = None
    for begin, length in zip(begins.tolist(), lengths.tolist(), strict=True):
        step = int(steps[begin]) * MINUTE_MS
        if length < _SETTLED or step <= 0:
            continue
        if pace is not None and step != pace:
            pace_changes.append(PaceChange(begin, pace, step))
        pace = step
    return pace_changes


def silences(series: Sequence[Ints], step: int) -> list[Silence]:
    """Spans without bars of any symbol, if at least two symbols have bars both before and after."""
    if len(series) < 2:
        return []
    times = np.unique(np.concatenate(list(series)))
    spans: list[Silence] = []
    for row in np.flatnonzero(np.diff(times) > step).tolist():
        last, back = int(times[row]), int(times[row + 1])
        listed = sum(1 for each in series if each[0] <= last and each[-1] >= back)
        if listed > 1:
            spans.append(Silence(last + step, back, listed))
    return spans


def pace_text(step_ms: int) -> str:
    """`8h`, `30m`."""
    return f"{step_ms // HOUR_MS}h" if step_ms % HOUR_MS == 0 else f"{step_ms // MINUTE_MS}m"
