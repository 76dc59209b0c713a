"""Coverage of a series by day: how many rows each day has, and which part of it is missing. For calendars of the data."""

from dataclasses import dataclass

import numpy as np

from pitboss.core.instant import DAY_MS, Instant, interval_ms
from pitboss.data.lake import Lake
from pitboss.data.series import series
from pitboss.data.series_files import SeriesFiles
from pitboss.data.series_info import find_holes


@dataclass(frozen=True, slots=True)
class DayCoverage:
    """One UTC day of a series. `missing` is the share of the day, 0 to 1, that lies in gaps."""

    day_at: Instant
    rows: int
    missing: float


@dataclass(frozen=True, slots=True)
class Gap:
    """A span without rows, from where the next row was due to the row that came."""

    from_at: Instant
    to_at: Instant


@dataclass(frozen=True, slots=True)
class Coverage:
    """The days from the first row to the last, and every gap between them."""

    days: tuple[DayCoverage, ...]
    gaps: tuple[Gap, ...]


NO_COVERAGE = Coverage((), ())


def coverage(lake: Lake, kind: str, venue: str, symbol: str | None, interval: str | None) -> Coverage:
    """The coverage of a series; that of a series without rows or times is empty."""
    time = series(kind).time
    frame = lake.stored_rows(kind, venue, symbol, interval) if time is not None else None
    if time is None or frame is None or not frame.height:
        return NO_COVERAGE
    moments = np.sort(frame[time].dt.epoch("ms").to_numpy())
    step = interval_ms(interval) if interval else 0
    gaps = tuple(
        Gap(int(moments[index]) + step, int(moments[index + 1]))
        for index in find_holes(SeriesFiles(kind, venue, symbol, interval, ()), moments).tolist()
    )
    first_day, last_day = int(moments[0]) // DAY_MS, int(moments[-1]) // DAY_MS
    rows = np.bincount((moments // DAY_MS - first_day).astype(np.int64), minlength=last_day - first_day + 1)
    missing = np.zeros(len(rows))
    for gap in gaps:
        for day in range(gap.from_at // DAY_MS, (gap.to_at - 1) // DAY_MS + 1):
            begin, end = max(gap.from_at, day * DAY_MS), min(gap.to_at, (day + 1) * DAY_MS)
            missing[day - first_day] += (end - begin) / DAY_MS
    return Coverage(
        tuple(
            DayCoverage((first_day + index) * DAY_MS, int(count), round(min(1.0, float(share)), 4))
            for index, (count, share) in enumerate(zip(rows, missing, strict=True))
        ),
        gaps,
    )
