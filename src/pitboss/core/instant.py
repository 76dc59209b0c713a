"""Instants (UTC milliseconds as plain integers), durations and bar intervals: constants, parsing and printing.

The current time is not read here; that is the `Clock` port.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite

from pitboss.core.errors import UserError
from pitboss.core.suggestion import did_you_mean, suggestion

Instant = int
"""Milliseconds since 1970-01-01T00:00:00Z."""

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

INTERVALS: dict[str, int] = {
    "1m": MINUTE_MS,
    "3m": 3 * MINUTE_MS,
    "5m": 5 * MINUTE_MS,
    "15m": 15 * MINUTE_MS,
    "30m": 30 * MINUTE_MS,
    "1h": HOUR_MS,
    "2h": 2 * HOUR_MS,
    "4h": 4 * HOUR_MS,
    "8h": 8 * HOUR_MS,
    "12h": 12 * HOUR_MS,
    "1d": DAY_MS,
}
"""The supported bar intervals, shortest first."""

_UNITS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
_WORDY_INTERVAL = re.compile(r"(\d{1,6})\s*([smhd])[a-z]*")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def interval_ms(name: str) -> int:
    """Length of a bar interval such as `15m`."""
    try:
        return INTERVALS[name]
    except KeyError:
        raise UserError(f"unknown interval {name!r}", interval_hint(name)) from None


def interval_hint(name: str) -> str:
    """The hint for an unknown interval: the one of the same length (`1h` for `60m` or `1hour`), else a similar one or all."""
    match = _WORDY_INTERVAL.fullmatch(name.strip().lower())
    length = int(match[1]) * _UNITS[match[2]] if match else None
    if length is None:
        return suggestion(name, INTERVALS)
    same = next((interval for interval in INTERVALS if INTERVALS[interval] == length), None)
    return did_you_mean(same, f"one of {', '.join(INTERVALS)}")


def parse_duration(text: str) -> int:
    """Read a duration such as `90s`, `5m` or `1.5h` as milliseconds."""
    match = _DURATION.fullmatch(text.strip())
    if not match:
        raise UserError(f"cannot read {text!r} as a duration", "write a number and a unit, such as 30s, 5m or 1h")
    length_ms = float(match[1]) * _UNITS[match[2]]
    if not isfinite(length_ms):
        raise UserError(f"{text[:40]!r} is too long a duration", "write a shorter one, such as 30s, 5m or 1h")
    return round(length_ms)


def duration_text(length_ms: int) -> str:
    """A duration as `parse_duration` reads it, in the largest unit that divides it."""
    unit = next(unit for unit in reversed(_UNITS) if length_ms % _UNITS[unit] == 0)
    return f"{length_ms // _UNITS[unit]}{unit}"


def parse_instant(text: str) -> Instant:
    """Read ISO-8601 text as an instant. A date alone is its midnight; text without a time zone is UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # overflow: in UTC it is not in the years 1 to 9999
        raise UserError(f"cannot read {text!r} as a time", "write 2025-06-01 or 2025-06-01T12:30:00Z (UTC)") from None
    return round(moment.timestamp() * 1000)


@dataclass(frozen=True, slots=True)
class BeforeEnd:
    """A time that is counted back from an end, such as `-30d`. What the end is depends on what the time is used for."""

    length_ms: int


def parse_range_end(text: str) -> Instant | BeforeEnd:
    """Read a time as `parse_instant` does, or one before an end, such as `-30d` or `-12h`."""
    text = text.strip()
    if not text.startswith("-"):
        return parse_instant(text)
    try:
        return BeforeEnd(parse_duration(text[1:]))
    except UserError:
        raise UserError(
            f"cannot read {text[:40]!r} as a time", "write -30d, -12h or a date, such as 2025-06-01"
        ) from None


def resolved(time: Instant | BeforeEnd, end: Callable[[], Instant]) -> Instant:
    """The instant of a time; `end` is called only if the time is counted back from it."""
    if not isinstance(time, BeforeEnd):
        return time
    at = end() - time.length_ms
    if at < 0:
        raise UserError(f"-{duration_text(time.length_ms)} is before 1970", "write a shorter time, such as -30d")
    return at


def iso(at: Instant) -> str:
    """The printed form `2025-06-01T12:30:00Z`, with milliseconds only if they are not zero."""
    seconds = datetime.fromtimestamp(at // SECOND_MS, UTC).isoformat()[:19]
    return f"{seconds}.{at % SECOND_MS:03d}Z" if at % SECOND_MS else f"{seconds}Z"


def date_range(first: str, last: str) -> str:
    """A range in dates, from two printed instants; with the times of day if it begins and ends on the same date."""
    if first[:10] == last[:10]:
        return f"{first[:10]} {first[11:16]}-{last[11:16]}"
    return f"{first[:10]} to {last[:10]}"


def day_of(at: Instant) -> int:
    """The number of the UTC day, counted from 1970-01-01, that contains the instant."""
    return at // DAY_MS
