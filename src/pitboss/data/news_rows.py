"""What people have told: raw columns of news and of calendars → rows of the lake.

Sorted rather than refused when out of order, because their order means nothing. What counts is since when each could be
known: a headline from when it was published or first met, whichever came later; an event from when it was announced.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, Instant, iso
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
    read_times,
    text_of,
)
from pitboss.data.time_columns import to_instants

_NEWS_TIMES = ("published", "published_at", *TIMES)
_EVENT_TIMES = ("release_utc", "scheduled_at", *TIMES)
_SEEN_TIMES = ("first_seen_at", "first_seen", "seen_at", "ingested_at")
_KNOWN_TIMES = ("known_at", "announced_at", "known")
_LEVELS = {"low": 0.2, "medium": 0.5, "high": 0.9}


def news_of(table: Table, symbol: str | None) -> pl.DataFrame:
    """News rows. A midnight exactly means that only the date is known; `first_seen_at` stays empty where none is given."""
    times, check = read_times(table, _NEWS_TIMES)
    text = text_of(table, check, table.need("the headline", "text", "title", "headline"))
    check.refuse(_blank(text), lambda row: "there is no text")
    sentiment = optional_number(table, check, "sentiment")
    source = table.find("source", "publisher", "site")
    columns = {
        "published_at": times,
        "source": text_of(table, check, source).fill_null("unknown") if source else constant_column(table, "unknown"),
        "text": text,
        "sentiment": sentiment,
        "symbols": _symbols(table, check, symbol),
        "date_only": pl.Series(times.fill_null(0).to_numpy() % DAY_MS == 0),
        "first_seen_at": _optional_time(table, check, _SEEN_TIMES),
    }
    check.done()
    frame = frame_of("news", columns)
    return _deduplicated(table, frame, "news")


def events_of(
    table: Table, symbol: str | None, known_at: Instant | None, known_days: float | None = None
) -> pl.DataFrame:
    """Calendar rows. Without a `known_at` an event counts as known when it happens: never early.

    `known_at` and `known_days` (before each event) are what a person vouches for where the file does not say it.
    """
    times, check = read_times(table, _EVENT_TIMES)
    kind_column = table.find("kind", "type", "category", "event")
    title_column = table.find("title", "name", "event", "kind", "type")
    if title_column is None:
        table.need("the event's title", "title", "name", "kind")
    title = text_of(table, check, title_column or "")
    check.refuse(_blank(title), lambda row: "there is no title")
    known = _known(table, check, times, known_at, known_days)
    columns = {
        "scheduled_at": times,
        "kind": text_of(table, check, kind_column).fill_null("event")
        if kind_column
        else constant_column(table, "event"),
        "title": title,
        "known_at": known,
        "importance": _importance(table, check),
        "symbols": _symbols(table, check, symbol),
    }
    check.done()
    frame = frame_of("events", columns)
    return _deduplicated(table, frame, "events")


def _blank(words: pl.Series) -> NDArray[np.bool_]:
    return np.array([not (word or "").strip() for word in words.to_list()], dtype=bool)


def _importance(table: Table, check: RowCheck) -> pl.Series:
    found = table.find("importance", "impact")
    if found is None:
        return pl.Series([0.5] * table.frame.height, dtype=pl.Float64)
    words = text_of(table, check, found).str.strip_chars().str.to_lowercase()
    levels = words.replace_strict(_LEVELS, default=None, return_dtype=pl.Float64)
    numbers = levels.fill_null(numbers_of(table.frame[found]))
    given = words.is_not_null().to_numpy()
    bad = given & ~np.isfinite(numbers.fill_null(float("nan")).to_numpy())
    check.refuse(bad, lambda row: f"importance {display(words[row])} is neither a number nor low, medium, high")
    return numbers.fill_null(0.5)


def _symbols(table: Table, check: RowCheck, symbol: str | None) -> pl.Series:
    found = table.find("symbols", "tickers", *SYMBOLS)
    if found is None:
        return constant_column(table, symbol or "")
    column = table.frame[found]
    if isinstance(column.dtype, pl.List):
        lists = [[] if value is None else [str(word) for word in value] for value in column.to_list()]
    else:
        lists = [(value or "").replace(";", ",").replace(" ", ",").split(",") for value in text_of(table, check, found)]
    joined = [",".join(sorted({word.strip() for word in words if word.strip()})) for words in lists]
    return pl.Series([words or symbol or "" for words in joined], dtype=pl.String)


def _deduplicated(table: Table, frame: pl.DataFrame, kind: str) -> pl.DataFrame:
    shape = series(kind)
    if not frame.select(shape.key).is_duplicated().any():
        return frame.sort(shape.key)
    unique = frame.unique(maintain_order=True)
    if unique.height < frame.height:
        table.notes.append(f"{count_noun(frame.height - unique.height, 'repeated row')} counted once")
    twice = unique.filter(pl.struct(shape.key).is_duplicated()).sort(shape.key)
    if twice.height:
        at = twice[shape.time or ""].dt.epoch("ms")[0]
        raise UserError(f"{table.where}: two rows at {iso(at)} say different things about the same item")
    return unique.sort(shape.key)


def _known(
    table: Table, check: RowCheck, times: pl.Series, known_at: Instant | None, known_days: float | None
) -> pl.Series:
    """Since when each event is known: at the latest when it happens."""
    if table.find(*_KNOWN_TIMES):
        return _optional_time(table, check, _KNOWN_TIMES).fill_null(times)
    if known_at is not None:
        return pl.Series([min(known_at, at) for at in times.fill_null(0)], dtype=pl.Int64)
    if known_days is not None:
        return times - round(known_days * DAY_MS)
    table.notes.append(
        "no known_at column: each event counts as known only from the moment it happens"
        " (--known-at or --known-days-before tell since when they were)"
    )
    return times


def _optional_time(table: Table, check: RowCheck, names: tuple[str, ...]) -> pl.Series:
    """A column of times that may be missing as a whole or in places; what is there must be a time."""
    found = table.find(*names)
    if found is None:
        return pl.Series([None] * table.frame.height, dtype=pl.Int64)
    raw = table.frame[found]
    if raw.dtype == pl.String:
        raw = raw.str.strip_chars().replace("", None)
    read = to_instants(raw)
    unread = (read.is_null() & raw.is_not_null()).to_numpy()
    check.refuse(unread, lambda row: f"{found} {display(raw[row])} is not a time")
    return read
