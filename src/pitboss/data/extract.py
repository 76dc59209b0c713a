"""`data extract-events`: coming events that headlines in the lake seem to announce, kept apart from real calendars.

Stored as the kind `extracted`, each with the headline it came from, and read by a run only if it asks for them. An event
is known from when its headline could be known, never earlier, and dated to the hour. The same event in several headlines
(same kind, hour and symbols) counts once, from the earliest of them. A file of news whose rows have not changed since is
not read again; what came out is the same, however often and in whatever portions news was imported.
"""

from dataclasses import dataclass
from pathlib import Path

import orjson
import polars as pl

from pitboss.core.instant import HOUR_MS, Instant
from pitboss.core.market import NewsItem
from pitboss.data.lake import Lake, news_items
from pitboss.data.manifest import load, stored
from pitboss.data.phrases import find
from pitboss.data.series import series
from pitboss.data.series_digest import stored_rows
from pitboss.data.staging import read_rows, unwritable

MARK = ".extracted.json"
RULES = 1
"""Counted up when the rules change, so that everything is read anew."""
TITLE = "{title}, unconfirmed: read out of a headline"
IMPORTANCE = 0.5
"""What is left of the importance of a kind when only a headline speaks of it."""

NEVER = 1 << 62
Key = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class Extracted:
    """What came of the news of one venue."""

    venue: str
    read: int
    """Headlines that were looked at this time."""
    found: int
    """Events in them, each counted once."""
    added: int
    replaced: int


def extract(lake: Lake, at: Instant | None = None) -> list[Extracted]:
    """Go through the news of every venue that has changed since the last time."""
    done: list[Extracted] = []
    marks = _marks(lake.root)
    for venue in lake.venues("news"):
        files = {path.relative_to(lake.root).as_posix(): path for path in _news_files(lake, venue)}
        digests = _digests(lake, files)
        changed = [name for name in files if marks.get(name) != digests[name]]
        items = [item for name in changed for item in news_items(read_rows(series("news"), files[name]))]
        rows = _events(items)
        added = replaced = 0
        if items:
            merged = _merged(lake, venue, rows, items)
            if merged.height:
                with lake.writing(at) as batch:
                    did = batch.put(
                        series("extracted"), lake.folder("extracted", venue, None, None), merged, replace=True
                    )
                added, replaced = did.added, did.replaced
        marks |= {name: digests[name] for name in changed}
        done.append(Extracted(venue, len(items), len(rows), added, replaced))
    _write_marks(lake.root, marks)  # only now: whatever stopped us, the next time begins where this one did
    return done


def _news_files(lake: Lake, venue: str) -> list[Path]:
    return sorted(lake.folder("news", venue, None, None).glob("year=*/part.parquet"))


def _digests(lake: Lake, files: dict[str, Path]) -> dict[str, str]:
    """Of the rows of each file: from the manifest, else from the file itself."""
    known, shape = load(lake.root), series("news")
    found: dict[str, str] = {}
    for name, path in files.items():
        told = known.files.get(name) if known is not None else None
        found[name] = told.digest if told is not None else stored(shape, read_rows(shape, path)).digest
    return found


def _events(items: list[NewsItem]) -> dict[Key, dict[str, object]]:
    rows: dict[Key, dict[str, object]] = {}
    for item in items:
        found = find(item.text, item.published_at, item.symbols)
        hour = 0 if found is None else found.scheduled_at // HOUR_MS * HOUR_MS
        if found is None or hour <= item.available_at:  # over before anybody could read of it
            continue
        symbols = ",".join(found.symbols)
        key = (hour, found.kind.name, symbols)
        row: dict[str, object] = {
            "scheduled_at": hour,
            "kind": found.kind.name,
            "symbols": symbols,
            "title": TITLE.format(title=found.kind.title),
            "known_at": item.available_at,
            "importance": round(found.kind.importance * IMPORTANCE, 3),
            "confidence": round(found.confidence, 3),
            "published_at": item.published_at,
            "source": item.source,
            "text": item.text,
        }
        if key not in rows or _order(row) < _order(rows[key]):
            rows[key] = row
    return rows


def _order(row: dict[str, object]) -> tuple[object, ...]:
    """Of several headlines about one event the one that could be known first; ties by what they say."""
    return row["known_at"], row["published_at"], row["source"], row["text"]


def _merged(lake: Lake, venue: str, rows: dict[Key, dict[str, object]], items: list[NewsItem]) -> pl.DataFrame:
    """What is to be written: rows of events that are new, or known earlier than they were.

    Later than they were only where the very headline that they came from is now said to have been met later.
    """
    arrival: dict[tuple[object, ...], Instant] = {
        (item.published_at, item.source, item.text): item.available_at for item in items
    }
    kept = stored_rows(lake, "extracted", venue, None, None)
    shape = series("extracted")
    times = [name for name, dtype in shape.columns.items() if dtype.is_temporal()]
    fresh: list[dict[str, object]] = []
    known: dict[Key, dict[str, object]] = {}
    for row in kept.with_columns(pl.col(times).dt.epoch("ms")).iter_rows(named=True) if kept is not None else ():
        known[int(row["scheduled_at"]), row["kind"], row["symbols"]] = row
    for key, before in known.items():
        met_at = arrival.get((before["published_at"], before["source"], before["text"]), before["known_at"])
        if met_at != before["known_at"]:
            rows.setdefault(key, before | {"known_at": met_at})
            known[key] = rows[key] | {"known_at": NEVER}
    for key, row in sorted(rows.items()):
        before = known.get(key)
        if before is None or _order(row) < _order(before):
            fresh.append(row)
    columns = {
        name: pl.Series([row[name] for row in fresh], dtype=pl.Int64 if dtype.is_temporal() else dtype, strict=False)
        for name, dtype in shape.columns.items()
    }
    return pl.DataFrame(columns).with_columns(pl.col(times).cast(pl.Datetime("ms")).dt.replace_time_zone("UTC"))


def _marks(root: Path) -> dict[str, str]:
    try:
        value = orjson.loads((root / MARK).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    known = value.get("news") if isinstance(value, dict) and value.get("rules") == RULES else None
    return {str(name): str(digest) for name, digest in known.items()} if isinstance(known, dict) else {}


def _write_marks(root: Path, marks: dict[str, str]) -> None:
    if marks == _marks(root):
        return
    part = root / f"{MARK}.part"
    try:
        part.write_bytes(orjson.dumps({"rules": RULES, "news": dict(sorted(marks.items()))}))
        part.replace(root / MARK)
    except OSError as error:
        raise unwritable(root, error) from error
