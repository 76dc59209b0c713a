"""What the rows of sound series say about their feed: bars that stand still, wild bars, changes of pace, silence.

Numbers in, numbers out: `quality` turns them into findings. None of it makes a file unusable.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, Instant
from pitboss.core.market import Floats, Ints

WILD = 10.0
"""A bar's return is an outlier above so many times the median absolute return of its day."""
STILL = 12
"""So many rows in a row that repeat the one before make a stale feed."""
_SETTLED = 3
"""A pace counts once so many steps in a row have it: a single missed row is a hole, not a new pace."""


@dataclass(frozen=True, slots=True)
class RowRange:
    """A run of rows, by their positions, both ends included."""

    first: int
    last: int

    @property
    def length(self) -> int:
        """How many rows."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class PaceChange:
    """A series that goes on at another pace from a row on."""

    row: int
    before_ms: int
    after_ms: int


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing from `from_at` up to `to_at`, though so many symbols were listed before and after."""

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
    """A bar's return: from the close before to its own; where that bar is missing, from its own open."""
    reference = opens.copy()
    reference[1:][joined[1:]] = closes[:-1][joined[1:]]
    return closes / reference - 1.0


def outliers(moments: Ints, moves: Floats) -> tuple["np.typing.NDArray[np.bool_]", Floats]:
    """Bars whose return is above `WILD` × the median absolute return of their UTC day, and that median for each bar."""
    size = np.abs(moves)
    days = moments // DAY_MS
    starts = np.flatnonzero(np.diff(days, prepend=days[:1] - 1))
    medians = np.array([np.median(part) for part in np.split(size, starts[1:])])
    usual = np.repeat(medians, np.diff(np.append(starts, len(days))))
    return size > WILD * usual, usual


def changes(moments: Ints) -> list[PaceChange]:
    """Where the steps between rows change for good. Times of venues are off by seconds: whole minutes count."""
    steps = np.rint(np.diff(moments) / MINUTE_MS).astype(np.int64)
    steps = np.where(steps >= 45, np.rint(steps / 60).astype(np.int64) * 60, steps)  # hours where it is about hours
    if not len(steps):
        return []
    begins = np.concatenate(([0], np.flatnonzero(np.diff(steps)) + 1))
    lengths = np.diff(np.append(begins, len(steps)))
    found: list[PaceChange] = []
    pace: int | None = None
    for begin, length in zip(begins.tolist(), lengths.tolist(), strict=True):
        step = int(steps[begin]) * MINUTE_MS
        if length < _SETTLED or step <= 0:
            continue
        if pace is not None and step != pace:
            found.append(PaceChange(begin, pace, step))
        pace = step
    return found


def silences(series: Sequence[Ints], step: int) -> list[Silence]:
    """When all symbols of a venue were silent at once, of those listed by then and heard again later: two at least."""
    if len(series) < 2:
        return []
    heard = np.unique(np.concatenate(list(series)))
    found: list[Silence] = []
    for row in np.flatnonzero(np.diff(heard) > step).tolist():
        last, back = int(heard[row]), int(heard[row + 1])
        listed = sum(1 for each in series if each[0] <= last and each[-1] >= back)
        if listed > 1:
            found.append(Silence(last + step, back, listed))
    return found


def pace_text(step_ms: int) -> str:
    """`8h`, `30m`."""
    return f"{step_ms // HOUR_MS}h" if step_ms % HOUR_MS == 0 else f"{step_ms // MINUTE_MS}m"
