"""Raw columns of news and calendars → rows of the lake.

Rows out of order are sorted, not refused, because their order means nothing. What matters is since when each could be
known: a headline from its publication or its first download, whichever is later; an event from its announcement.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, Instant, iso
from pitboss.data.excerpt import display
from pitboss.data.series import count_noun, series
from pitboss.data.table import (
    SYMBOLS,
    TIMES,
    RowCheck,
    Table,
    constant_column,
    frame_of,
    numbers_of,
    optional_number,
    optional_times,
    read_times,
    text_of,
)

_NEWS_TIMES = ("published", "published_at", *TIMES)
_EVENT_TIMES = ("release_utc", "scheduled_at", *TIMES)
_SEEN_TIMES = ("first_seen_at", "first_seen", "seen_at", "ingested_at")
KNOWN_TIMES = ("known_at", "announced_at", "known")
_LEVELS = {"low": 0.2, "medium": 0.5, "high": 0.9}


def news_of(table: Table, symbol: str | None) -> pl.DataFrame:
    """News rows. Exactly midnight means that only the date is known; `first_seen_at` is empty where the file has none."""
    times, check = read_times(table, _NEWS_TIMES)
    text = text_of(table, check, table.need("the headline", "text", "title", "headline"))
    check.refuse(_blank(text), lambda row: "there is no text")
    source = table.find("source", "publisher", "site")
    columns = {
        "published_at": times,
        "source": _text_or(table, check, source, "unknown"),
        "text": text,
        "sentiment": optional_number(table, check, "sentiment"),
        "symbols": _symbols(table, check, symbol),
        "date_only": pl.Series(times.fill_null(0).to_numpy() % DAY_MS == 0),
        "first_seen_at": optional_times(table, check, _SEEN_TIMES),
    }
    check.raise_first()
    return _deduplicated(table, frame_of("news", columns), "news")


def events_of(
    table: Table, symbol: str | None, known_at: Instant | None, known_days: float | None = None
) -> pl.DataFrame:
    """Calendar rows. Without a `known_at` an event counts as known when it happens: never early.

    `known_at` and `known_days` (before each event) are the user's own statement where the file has no such column.
    """
    times, check = read_times(table, _EVENT_TIMES)
    title_column = table.find("title", "name", "event", "kind", "type")
    if title_column is None:
        title_column = table.need("the event's title", "title", "name", "kind")
    title = text_of(table, check, title_column)
    check.refuse(_blank(title), lambda row: "there is no title")
    columns = {
        "scheduled_at": times,
        "kind": _text_or(table, check, table.find("kind", "type", "category", "event"), "event"),
        "title": title,
        "known_at": _known_times(table, check, times, known_at, known_days),
        "importance": _importance(table, check),
        "symbols": _symbols(table, check, symbol),
    }
    check.raise_first()
    return _deduplicated(table, frame_of("events", columns), "events")


def _text_or(table: Table, check: RowCheck, name: str | None, default: str) -> pl.Series:
    return text_of(table, check, name).fill_null(default) if name else constant_column(table, default)


def _blank(texts: pl.Series) -> NDArray[np.bool_]:
    return (texts.fill_null("").str.strip_chars() == "").to_numpy()


def _importance(table: Table, check: RowCheck) -> pl.Series:
    name = table.find("importance", "impact")
    if name is None:
        return pl.Series([0.5] * table.frame.height, dtype=pl.Float64)
    texts = text_of(table, check, name).str.strip_chars().str.to_lowercase()
    levels = texts.replace_strict(_LEVELS, default=None, return_dtype=pl.Float64)
    numbers = levels.fill_null(numbers_of(table.frame[name]))
    bad = texts.is_not_null().to_numpy() & ~np.isfinite(numbers.fill_null(float("nan")).to_numpy())
    check.refuse(bad, lambda row: f"importance {display(texts[row])} is neither a number nor low, medium, high")
    return numbers.fill_null(0.5)


def _symbols(table: Table, check: RowCheck, symbol: str | None) -> pl.Series:
    name = table.find("symbols", "tickers", *SYMBOLS)
    if name is None:
        return constant_column(table, symbol or "")
    column = table.frame[name]
    if isinstance(column.dtype, pl.List):
        lists = [[] if value is None else [str(name) for name in value] for value in column.to_list()]
    else:
        lists = [(value or "").replace(";", ",").replace(" ", ",").split(",") for value in text_of(table, check, name)]
    joined = [",".join(sorted({name.strip() for name in names if name.strip()})) for names in lists]
    return pl.Series([names or symbol or "" for names in joined], dtype=pl.String)


def _deduplicated(table: Table, frame: pl.DataFrame, kind: str) -> pl.DataFrame:
    shape = series(kind)
    if not frame.select(shape.key).is_duplicated().any():
        return frame.sort(shape.key)
    unique = frame.unique(maintain_order=True)
    if unique.height < frame.height:
        table.notes.append(f"{count_noun(frame.height - unique.height, 'repeated row')} counted once")
    conflicts = unique.filter(pl.struct(shape.key).is_duplicated()).sort(shape.key)
    if conflicts.height:
        at = conflicts[shape.time or ""].dt.epoch("ms")[0]
        raise UserError(f"{table.origin}: two rows at {iso(at)} differ about the same item")
    return unique.sort(shape.key)


def _known_times(
    table: Table, check: RowCheck, times: pl.Series, known_at: Instant | None, known_days: float | None
) -> pl.Series:
    """Since when each event is known: at the latest when it happens."""
    if table.find(*KNOWN_TIMES):
        return optional_times(table, check, KNOWN_TIMES).fill_null(times)
    if known_at is not None:
        return pl.Series([min(known_at, at) for at in times.fill_null(0)], dtype=pl.Int64)
    if known_days is not None:
        return times - round(known_days * DAY_MS)
    table.notes.append(
        "no known_at column: each event counts as known only from the moment it happens"
        " (--known-at or --known-days-before set an earlier time)"
    )
    return times
