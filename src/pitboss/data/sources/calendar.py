"""Calendars of coming events, as CSV or iCalendar from an address: FOMC, inflation, jobs, token unlocks.

An event is known from the moment we first met it, and at the latest when it happens: a calendar fetched today proves
nothing about what was known a year ago, unless its own `known_at` column says so.
"""

import re
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.data.fetch import Fetcher, Query, Reply, address, host_of
from pitboss.data.news_rows import events_of
from pitboss.data.series import counted, series
from pitboss.data.source import DataSource, DownloadRequest, SeriesRows, Single, StoredState, Task
from pitboss.data.sources.rss import clean
from pitboss.data.table import Table

MOST_BYTES = 4 * 2**20
MOST_EVENTS = 20_000
_FIELD = re.compile(r"(?P<name>[A-Z-]+)(?P<options>(?:;[^:;]*)*):(?P<value>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\([\\;,nN])")


def read_calendar(content: bytes, asked_at: Instant, host: str) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Events of a calendar in the lake's columns, and what had to be assumed."""
    text = content.decode("utf-8-sig", "replace")
    if text.lstrip().startswith("BEGIN:VCALENDAR"):
        raw = pl.DataFrame(
            _entries(text, host), schema={"scheduled_at": pl.Int64, "kind": pl.String, "title": pl.String}
        )
    else:
        try:
            raw = pl.read_csv(text.encode(), infer_schema=False)
        except pl.exceptions.PolarsError:
            raise UserError(f"{host}: neither a CSV nor an iCalendar file") from None
    if raw.is_empty():
        raise UserError(f"{host}: the calendar has no events")
    if raw.height > MOST_EVENTS:
        raise UserError(f"{host}: {raw.height:,} events are more than a calendar has", f"at most {MOST_EVENTS:,}")
    table = Table(host, raw)
    frame = events_of(table, None, asked_at)
    if table.find("known_at", "announced_at", "known") is None:
        table.notes.append("no known_at: an event counts as known from when first met, at the latest when it happens")
    return frame, tuple(table.notes)


def _entries(text: str, host: str) -> list[dict[str, Any]]:
    lines = re.sub(r"\r?\n[ \t]", "", text).splitlines()
    found: list[dict[str, Any]] = []
    entry: dict[str, str] | None = None
    for line in lines:
        if line == "BEGIN:VEVENT":
            entry = {}
        elif line == "END:VEVENT" and entry is not None:
            if entry.get("STATUS") != "CANCELLED":
                found.append(_event(entry, host))
            entry = None
        elif entry is not None and (field := _FIELD.fullmatch(line)):
            entry.setdefault(field["name"], field["value"])
            entry.setdefault(f"{field['name']} options", field["options"])
    return found


def _event(entry: dict[str, str], host: str) -> dict[str, Any]:
    title = clean(_unescaped(entry.get("SUMMARY", "")))
    zone = re.search(r"TZID=\"?([^;\"]+)", entry.get("DTSTART options", ""))
    try:
        at = datetime.fromisoformat(entry["DTSTART"].strip())
        tz = at.tzinfo or (ZoneInfo(zone[1]) if zone else UTC)
        scheduled_at = round(at.replace(tzinfo=tz).timestamp() * 1000)
    except (KeyError, ValueError, ZoneInfoNotFoundError, OverflowError, OSError):
        raise UserError(f"{host}: the event {title[:60]!r} has no time that can be read") from None
    kind = clean(_unescaped(entry.get("CATEGORIES", "")).split(",")[0]) or "event"
    return {"scheduled_at": scheduled_at, "kind": kind, "title": title}


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: " " if found[1] in "nN" else found[1], text)


async def plan(wanted: DownloadRequest, fetcher: Fetcher) -> list[Task]:
    """One question a calendar."""
    return [_calendar(address(url), wanted, fetcher) for url in wanted.urls]


def _calendar(url: str, wanted: DownloadRequest, fetcher: Fetcher) -> Single:
    async def bring(known: StoredState) -> list[SeriesRows]:
        def read(reply: Reply) -> tuple[pl.DataFrame, tuple[str, ...]]:
            return read_calendar(reply.content, reply.asked_at, host_of(url))

        frame, notes = await fetcher.ask(Query(url, most_bytes=MOST_BYTES), read)
        if known.frame is not None:  # met before: since when it is known does not change
            fresh = frame.join(known.frame, on=list(series("events").key), how="anti")
            if fresh.height < frame.height:
                notes = (*notes, f"{counted(frame.height - fresh.height, 'event')} known before")
            frame = fresh
        return [SeriesRows("events", None, frame, notes)]

    # of several, one that fails does not keep the others from coming
    return Single(host_of(url), "events", bring, optional=len(wanted.urls) > 1)


SOURCE = DataSource(
    "calendar",
    "events",
    "events from a CSV or iCalendar address, known from when first met",
    ("events",),
    ("events",),
    ("url",),
    plan,
)
