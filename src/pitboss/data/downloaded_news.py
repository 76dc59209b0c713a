"""News items of a download → rows of the lake, each once, with the time of the download that first contained it.

An item is a repetition if its link or id is remembered, or its headline is stored. The memory is a small file beside the
lake's folders; losing it costs no rows, because stored headlines are recognised.
"""

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
import polars as pl

from pitboss.core.instant import Instant
from pitboss.data.news_rows import news_of
from pitboss.data.series import TIME, count_noun, series
from pitboss.data.source import SeriesRows, StoredState
from pitboss.data.staging import write_error
from pitboss.data.table import Table

FOLDER = ".seen"
MOST_KEYS = 50_000
"""Keys remembered for a venue; the oldest are dropped first. No feed lists an item for that long."""


@dataclass(frozen=True, slots=True)
class DownloadedItem:
    """One headline. `keys` are its link and id, as far as it has them; `published_at` is the date it carries."""

    published_at: Instant | None
    seen_at: Instant
    source: str
    text: str
    keys: tuple[str, ...] = ()
    sentiment: float | None = None
    symbols: tuple[str, ...] = ()


class SeenItems:
    """The keys of a venue's items that were downloaded before, with the time of the first download."""

    def __init__(self, root: Path, venue: str) -> None:
        self._root = root
        self._path = root / FOLDER / f"{venue}.json"
        self._first_seen = self._read()

    def __contains__(self, key: str) -> bool:
        return _short(key) in self._first_seen

    def add(self, keys: dict[str, Instant]) -> None:
        """Store these keys. The time of a key that is stored already does not change."""
        new = {_short(key): at for key, at in keys.items()}
        if not new.keys() - self._first_seen.keys():
            return
        merged = sorted((new | self._first_seen).items(), key=lambda pair: (pair[1], pair[0]))
        self._first_seen = dict(merged[-MOST_KEYS:])
        part = self._path.with_suffix(".part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(orjson.dumps(self._first_seen))
            os.replace(part, self._path)
        except OSError as error:
            raise write_error(self._root, error) from error

    def _read(self) -> dict[str, Instant]:
        try:
            value = orjson.loads(self._path.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return {}
        return {key: at for key, at in value.items() if isinstance(at, int)} if isinstance(value, dict) else {}


def new_items(
    items: list[DownloadedItem],
    stored: StoredState,
    symbols: tuple[str, ...],
    origin: str,
    hide: Callable[[str], str] = str,
) -> SeriesRows:
    """The items that are not stored yet. `symbols` are searched in the text of items that name none.

    `origin` is the host of the items: their keys are unique only there. `hide` removes secrets that the host repeated.
    """
    items = [replace(item, source=hide(item.source), text=hide(item.text)) for item in items]
    frame = stored.frame
    titles = set() if frame is None else {(source, normalised_title(text)) for source, text in _titles(frame)}
    rows: list[dict[str, object]] = []
    keys: dict[str, Instant] = {}
    repeated = late = 0
    for item in items:
        item_keys = [f"{origin} {key}" for key in item.keys]
        title = (item.source, normalised_title(item.text))
        is_repeated = title in titles or any(key in stored.seen_keys or key in keys for key in item_keys)
        keys |= {key: item.seen_at for key in item_keys if key not in keys}
        titles.add(title)
        if is_repeated:
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
                "symbols": ",".join(item.symbols or _symbols_in(item.text, symbols)),
            }
        )
    notes = [f"{count_noun(repeated, 'item')} stored before"] if repeated else []
    notes += [f"{count_noun(late, 'item')} counted from this download, not from the date they carry"] if late else []
    if not rows:
        return SeriesRows("news", None, pl.DataFrame(schema=dict(series("news").columns)), tuple(notes), keys=keys)
    dtypes = {"published": pl.Int64, "first_seen_at": pl.Int64, "sentiment": pl.Float64}
    raw = pl.DataFrame(rows, schema={name: dtypes.get(name, pl.String) for name in rows[0]})
    # as times, not numbers: the unit of numbers is inferred from the largest of them
    raw = raw.cast({"published": TIME, "first_seen_at": TIME})
    return SeriesRows("news", None, news_of(Table(origin, raw), None), tuple(notes), keys=keys)


def normalised_title(title: str) -> str:
    """A headline without what differs between two copies of it: case, punctuation, spaces, forms of letters."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", title).casefold()))


def _titles(frame: pl.DataFrame) -> list[tuple[str, str]]:
    return frame.select("source", "text").rows()


def _symbols_in(text: str, symbols: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(symbol for symbol in symbols if re.search(rf"(?<!\w){re.escape(symbol)}(?!\w)", text))


def _short(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:24]
