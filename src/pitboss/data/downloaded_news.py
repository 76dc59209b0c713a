"""Items of news as a source hands them over → rows of the lake, each once, dated when it could first be known."""

import re
from dataclasses import dataclass

import polars as pl

from pitboss.core.instant import Instant
from pitboss.data.news_rows import news_of
from pitboss.data.seen_items import normalised_title
from pitboss.data.series import count_noun, series
from pitboss.data.source import SeriesRows, StoredState
from pitboss.data.table import Table


@dataclass(frozen=True, slots=True)
class DownloadedItem:
    """One headline. `keys` are its link and id, whichever it has; `published_at` is what it says of itself."""

    published_at: Instant | None
    seen_at: Instant
    source: str
    text: str
    keys: tuple[str, ...] = ()
    sentiment: float | None = None
    symbols: tuple[str, ...] = ()


def new_items(items: list[DownloadedItem], known: StoredState, symbols: tuple[str, ...], where: str) -> SeriesRows:
    """What is new among the items. `symbols` are looked for in the words where an item names none itself."""
    titles = _titles(known.frame)
    rows: list[dict[str, object]] = []
    keys: dict[str, Instant] = {}
    repeated = late = 0
    for item in items:
        mine = [f"{where} {key}" for key in item.keys]
        title = (item.source, normalised_title(item.text))
        is_known = title in titles or any(key in known.seen or key in keys for key in mine)
        keys |= {key: item.seen_at for key in mine if key not in keys}
        titles.add(title)
        if is_known:
            repeated += 1
            continue
        late += item.published_at is None or item.published_at < item.seen_at
        rows.append(
            {
                "published": item.published_at or item.seen_at,
                "first_seen_at": item.seen_at,
                "source": item.source,
                "text": item.text,
                "sentiment": item.sentiment,
                "symbols": ",".join(item.symbols or _named(item.text, symbols)),
            }
        )
    notes = [f"{count_noun(repeated, 'item')} known before"] if repeated else []
    notes += [f"{count_noun(late, 'item')} counted from when first met, not from the date they carry"] if late else []
    if not rows:
        return SeriesRows("news", None, pl.DataFrame(schema=dict(series("news").columns)), tuple(notes), seen=keys)
    kinds = {"published": pl.Int64, "first_seen_at": pl.Int64, "sentiment": pl.Float64}
    frame = pl.DataFrame(rows, schema={name: kinds.get(name, pl.String) for name in rows[0]})
    return SeriesRows("news", None, news_of(Table(where, frame), None), tuple(notes), seen=keys)


def _titles(frame: pl.DataFrame | None) -> set[tuple[str, str]]:
    if frame is None:
        return set()
    return {(source, normalised_title(text)) for source, text in frame.select("source", "text").iter_rows()}


def _named(text: str, symbols: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(symbol for symbol in symbols if re.search(rf"(?<!\w){re.escape(symbol)}(?!\w)", text))
