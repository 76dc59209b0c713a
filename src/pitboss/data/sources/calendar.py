"""Calendars of scheduled events, downloaded as CSV or iCalendar: FOMC, inflation, jobs, token unlocks.

An event counts as known from the first download that contains it, and at the latest when it happens: a calendar fetched
today proves nothing about what was known a year ago, unless its own `known_at` column says so.
"""

import re
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Any

import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.data.fetch import Fetcher, Query, Reply, address, host_of
from pitboss.data.news_rows import KNOWN_TIMES, events_of
from pitboss.data.series import TIME, count_noun, series
from pitboss.data.source import DataSource, DownloadRequest, SeriesRows, Single, StoredState, Task
from pitboss.data.sources.rss import clean
from pitboss.data.staging import first_line
from pitboss.data.table import Table
from pitboss.data.time_columns import EARLIEST, LATEST

if TYPE_CHECKING:
    from icalendar import Component

MOST_BYTES = 4 * 2**20
MOST_EVENTS = 20_000
MOST_LINE_CHARS = 20_000
_USED_LINES = re.compile(r"(?:BEGIN|END|SUMMARY|DTSTART|CATEGORIES|STATUS|RRULE|RDATE)[:;]", re.IGNORECASE)
"""The lines that are parsed. Definitions of time zones are not among them: a TZID must be a name that the system knows,
and the parser expands the rules of a definition without a bound."""


def read_calendar(content: bytes, asked_at: Instant, host: str) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The events of a calendar in the lake's columns, and notes on what was assumed."""
    text = content.decode("utf-8-sig", "replace").lstrip()
    if text.startswith("BEGIN:VCALENDAR"):
        # as times, not numbers: the unit of numbers is inferred from the largest of them
        schema = {"scheduled_at": pl.Int64, "kind": pl.String, "title": pl.String}
        raw = pl.DataFrame(_ical_rows(text, host), schema=schema).cast({"scheduled_at": TIME})
    else:
        try:
            raw = pl.read_csv(text.encode(), infer_schema=False)
        except pl.exceptions.PolarsError:
            raise UserError(f"{host}: neither a CSV nor an iCalendar file") from None
    if raw.is_empty():
        raise UserError(f"{host}: the calendar has no events")
    _check_count(raw.height, host)
    table = Table(host, raw)
    frame = events_of(table, None, asked_at)
    if table.find(*KNOWN_TIMES) is None:
        table.notes.append(
            "no known_at: an event counts as known from its first download, at the latest when it happens"
        )
    return frame, tuple(table.notes)


def _ical_rows(text: str, host: str) -> list[dict[str, Any]]:
    """The events of an iCalendar file that are not cancelled."""
    from icalendar import Calendar  # takes 0.2 s to load
    from icalendar.parser import Contentlines

    lines = [line for line in Contentlines.from_ical(text) if _USED_LINES.match(line)]
    longest = max(lines, key=len)
    if len(longest) > MOST_LINE_CHARS:
        name = re.split("[:;]", longest, maxsplit=1)[0]
        raise UserError(f"{host}: a {name} line of {len(longest):,} characters", f"at most {MOST_LINE_CHARS:,}")
    _check_count(sum(line.upper().startswith("BEGIN") for line in lines), host)
    try:
        calendars = Calendar.from_ical("\r\n".join(lines), multiple=True)
        events = [event for calendar in calendars for event in calendar.walk("VEVENT")]
    except (ValueError, RecursionError) as error:
        raise UserError(f"{host}: not a valid iCalendar file ({first_line(error)})") from None
    return [_ical_row(event, host) for event in events if str(_first(event, "STATUS")).upper() != "CANCELLED"]


def _ical_row(event: "Component", host: str) -> dict[str, Any]:
    title = clean(str(_first(event, "SUMMARY") or ""))
    if "RRULE" in event or "RDATE" in event:
        raise UserError(
            f"{host}: the event {title[:60]!r} repeats (RRULE or RDATE), which is not supported",
            "use a calendar that lists each date as an event of its own",
        )
    try:
        start = _first(event, "DTSTART")
        at = start.dt if isinstance(start.dt, datetime) else datetime.combine(start.dt, time())
        if at.tzinfo is None and "TZID" in start.params:
            raise ValueError("unknown time zone")
        scheduled_at = round(at.replace(tzinfo=at.tzinfo or UTC).timestamp() * 1000)
        if not EARLIEST <= scheduled_at <= LATEST:
            raise ValueError("in UTC it is not in the years 1 to 9999")
    except (AttributeError, TypeError, ValueError, OverflowError, OSError):
        raise UserError(f"{host}: the event {title[:60]!r} has no start time that can be read") from None
    categories = getattr(_first(event, "CATEGORIES"), "cats", None)
    return {"scheduled_at": scheduled_at, "kind": clean(str(categories[0])) if categories else "event", "title": title}


def _first(event: "Component", name: str) -> Any:
    """The value of a property, or the first of several; None if there is none."""
    value = event.get(name)
    return value[0] if isinstance(value, list) else value


def _check_count(count: int, host: str) -> None:
    if count > MOST_EVENTS:
        raise UserError(f"{host}: the calendar has {count:,} events", f"at most {MOST_EVENTS:,} are read")


async def plan(request: DownloadRequest, fetcher: Fetcher) -> list[Task]:
    """One request for each calendar."""
    return [_calendar(address(url), request, fetcher) for url in request.urls]


def _calendar(url: str, request: DownloadRequest, fetcher: Fetcher) -> Single:
    async def fetch(stored: StoredState) -> list[SeriesRows]:
        def parse(reply: Reply) -> tuple[pl.DataFrame, tuple[str, ...]]:
            return read_calendar(reply.content, reply.asked_at, host_of(url))

        frame, notes = await fetcher.ask(Query(url, most_bytes=MOST_BYTES), parse)
        if stored.frame is not None:  # since when a stored event is known does not change
            fresh = frame.join(stored.frame, on=list(series("events").key), how="anti")
            if fresh.height < frame.height:
                notes = (*notes, f"{count_noun(frame.height - fresh.height, 'event')} stored before")
            frame = fresh
        return [SeriesRows("events", None, frame, notes)]

    # if one of several calendars fails, the others are still stored
    return Single(host_of(url), "events", fetch, optional=len(request.urls) > 1)


SOURCE = DataSource(
    "calendar",
    "events",
    "events of a CSV or iCalendar file, known from their first download",
    ("events",),
    ("events",),
    ("url",),
    plan,
)
