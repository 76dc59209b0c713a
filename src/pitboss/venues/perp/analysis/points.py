"""Point series (funding rates, open interest) as known at the tick, and their tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from pitboss.core.asof import View
from pitboss.core.instant import HOUR_MS, Instant
from pitboss.core.market import PointKind
from pitboss.prompt import render

MOST_ROWS = 168
"""Maximum rows of a table: a week of hours. A finer series shows its newest rows."""

_MOST_POINTS = 168 * 60 + 1
"""A week of minutes: the longest range that a tool shows."""

HOURS: dict[str, Any] = {
    "type": "integer",
    "minimum": 0,
    "maximum": 168,
    "description": "Hours of history to show as a table; 0 or left out for none.",
}


@dataclass(frozen=True, slots=True)
class KnownPoints:
    """The known values of a series, oldest first, at least one."""

    at: Sequence[Instant]
    value: Sequence[float]

    @property
    def last_at(self) -> Instant:
        return self.at[-1]

    @property
    def last(self) -> float:
        return self.value[-1]

    def step_ms(self) -> int | None:
        """The usual time between two values (of the newest 24), to the minute; None for a single value."""
        newest = self.at[-25:]
        gaps = [later - earlier for earlier, later in pairwise(newest)]
        return max(60_000, round(median(gaps) / 60_000) * 60_000) if gaps else None

    def before(self, at: Instant) -> float | None:
        """The newest value known at `at`; None if the series does not reach that far back."""
        for moment, value in zip(reversed(self.at), reversed(self.value), strict=True):
            if moment <= at:
                return value
        return None

    def since(self, at: Instant) -> "KnownPoints | None":
        """The values after `at`."""
        first = next((index for index, moment in enumerate(self.at) if moment > at), None)
        return None if first is None else KnownPoints(self.at[first:], self.value[first:])


def known_points(view: View, kind: PointKind, symbol: str) -> KnownPoints | None:
    """The newest week or more of a series; None if there is no series or no value is known yet."""
    points = view.points(kind, symbol, _MOST_POINTS)
    if points is None or not len(points):
        return None
    stale = int(points.at[-1]) - 9 * 24 * HOUR_MS
    first = int(points.at.searchsorted(stale, side="left"))
    return KnownPoints(points.at[first:].tolist(), points.value[first:].tolist())


def why_none(view: View, kind: PointKind, symbol: str) -> str:
    """A phrase that says whether a series is missing or has not begun."""
    return "is not in this run" if view.points(kind, symbol, 1) is None else "has no value yet"


def table(title: str, rows: Sequence[str]) -> list[str]:
    """A title and rows newest first, at most `MOST_ROWS`; the title says how many were left out."""
    newest = rows[-MOST_ROWS:]
    omitted = f"; {len(rows) - len(newest)} older ones left out" if len(newest) < len(rows) else ""
    return [title + omitted, *reversed(newest)]


def moment(at: Instant) -> str:
    """The instant as `06-01 12:30`, as in tables of bars."""
    return render.time(at)[5:]
