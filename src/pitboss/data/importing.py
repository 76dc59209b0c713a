"""`data import`: files and folders → the lake. All files of one call are committed, or none.

The kind of a file comes from an argument, else its path, else its columns; rows are validated by `table` and the `*_rows`
modules. Nothing else is guessed: an interval is never inferred from the spacing of rows.
"""

import dataclasses
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import INTERVALS, Instant, interval_ms
from pitboss.core.suggestion import did_you_mean, nearest_spelling
from pitboss.data import order_book_rows as bookrows
from pitboss.data.excerpt import excerpts
from pitboss.data.file_reader import READABLE, format_of, read_hashed
from pitboss.data.lake import Lake
from pitboss.data.listing_rows import exchange_info_rows, is_exchange_info, listings_of, looks_like_listings
from pitboss.data.manifest import SourceFile
from pitboss.data.meta_rows import is_meta, meta_rows
from pitboss.data.news_rows import events_of, news_of
from pitboss.data.path_inference import FileHints, hints_of, is_binance_name
from pitboss.data.series import ALIASES, SERIES, require_symbol, series
from pitboss.data.staging import Batch
from pitboss.data.table import Table, bars_of, points_of

EXTRACTED = "extracted"
"""The kind that is computed, not imported."""
MOST_KNOWN_DAYS = 3_660
_EXCHANGES = ("binance", "bitget", "bybit", "coinbase", "deribit", "dydx", "hyperliquid", "kraken", "kucoin", "okx")


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result for one series of one file. `notes` are for the user."""

    path: str
    kind: str
    venue: str
    symbol: str | None
    interval: str | None
    rows: int
    added: int
    replaced: int
    unchanged: int
    first_at: Instant | None
    last_at: Instant | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _FileSeries:
    kind: str
    symbol: str | None
    interval: str | None
    frame: pl.DataFrame
    notes: tuple[str, ...]


def import_paths(
    lake: Lake,
    paths: Iterable[Path | str],
    kind: str | None = None,
    symbol: str | None = None,
    interval: str | None = None,
    venue: str = "hyperliquid",
    replace: bool = False,
    known_at: Instant | None = None,
    imported_at: Instant | None = None,
    known_days: float | None = None,
) -> list[ImportResult]:
    """Import files and folders, in sorted order.

    `known_at`, or `known_days` before each event, is since when events are known whose file does not say it.
    `imported_at` is the time of the import in the manifest.
    """
    if known_days is not None and (known_at is not None or not 0 <= known_days <= MOST_KNOWN_DAYS):
        raise UserError(
            "events are known either since one instant or for some days",
            f"give --known-at, or --known-days-before from 0 to {MOST_KNOWN_DAYS}, not both",
        )
    if kind is not None:
        kind = ALIASES.get(kind, kind)
        series(kind)
    if kind == EXTRACTED:
        raise UserError("events from headlines are not imported", "`pitboss data extract-events` computes them")
    if interval is not None:
        interval_ms(interval)
    if lake.is_synthetic(venue):
        raise UserError(f"venue {venue!r} holds generated data", "import real data under another --venue")
    files = _files([Path(path) for path in paths])
    options = FileHints(kind, symbol, interval)
    results: list[tuple[int, ImportResult]] = []
    with lake.writing(imported_at) as batch:
        for number, path in _ordered(files, replace):
            content, sha256 = read_hashed(path)
            source = SourceFile(path.name, sha256)
            for file_series in _file_series(path, content, options, known_at, known_days):
                results.append((number, _put_series(lake, batch, venue, path, file_series, replace, source)))
    ordered = [result for _, result in sorted(results, key=lambda pair: pair[0])]
    other_venue = next((name for path in files if (name := _other_venue(path, venue))), None)
    if other_venue and ordered:
        note = f"the path names {other_venue}, stored under {venue}; --venue {other_venue} keeps the two apart"
        ordered[0] = dataclasses.replace(ordered[0], notes=(*ordered[0].notes, note))
    return ordered


def _ordered(files: list[Path], replace: bool) -> list[tuple[int, Path]]:
    """Files of one series after each other, so that few series are in memory at a time.

    With `replace` in the order of the walk: the rows of the last file count.
    """
    numbered = list(enumerate(files))
    if replace:
        return numbered
    first: dict[FileHints, int] = {}
    return sorted(numbered, key=lambda pair: first.setdefault(hints_of(pair[1].absolute()), pair[0]))


def _files(paths: list[Path]) -> list[Path]:
    if not paths:
        raise UserError("nothing to import", "name a file or a folder")
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            readable = sorted(file for file in _walk(path) if format_of(file))
            if not readable:
                raise UserError(f"{path}: no file in this folder can be imported", f"readable are {READABLE}")
            files += readable
        elif path.exists():
            files.append(path)
        elif path.is_symlink():
            raise UserError(f"{path}: a link to a file that does not exist")
        else:
            raise UserError(f"{path}: no such file or folder", _similar_file(path))
    return list(dict.fromkeys(files))


def _similar_file(path: Path) -> str:
    try:
        siblings = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return f"there is no folder {path.parent}"
    return did_you_mean(nearest_spelling(path.name, siblings), f"look at what is in {path.parent.absolute()}")


def _walk(folder: Path) -> Iterator[Path]:
    """Every file below a folder that is not hidden, also through links to folders, each folder once."""

    def refuse(error: OSError) -> None:
        raise UserError(f"{error.filename} cannot be read ({error.strerror})", "check its permissions") from None

    visited = {folder.resolve()}
    walk = os.walk(folder, onerror=refuse, followlinks=True)
    for parent, folders, files in ((Path(name), *names) for name, *names in walk):
        new = {name: (parent / name).resolve() for name in sorted(folders) if not name.startswith(".")}
        folders[:] = [name for name, real in new.items() if real not in visited]
        visited.update(new.values())
        yield from (parent / name for name in files if not name.startswith(".") and (parent / name).is_file())


def _file_series(
    path: Path, content: Any, options: FileHints, known_at: Instant | None, known_days: float | None
) -> list[_FileSeries]:
    hints = hints_of(path.absolute())
    content = bookrows.as_table(content)
    if not isinstance(content, pl.DataFrame):
        return [_plain(path, content, options)]
    table = Table(str(path), bookrows.unwrap(content))
    kind = options.kind or hints.kind or (bookrows.KIND if bookrows.looks_like_books(table) else None)
    kind = kind or ("listings" if looks_like_listings(table) else table.kind())
    if kind is None:
        columns = excerpts(content.columns)
        raise UserError(
            f"{path}: cannot tell the kind of data in this file (columns: {columns})",
            f"add --kind, one of {', '.join(sorted(SERIES.keys() - {EXTRACTED}))}",
        )
    if kind == "meta":
        return [_meta(path, {"universe": table.assets()}, options)]
    if kind == "listings":
        return [_FileSeries(kind, None, None, listings_of(table), tuple(table.notes))]
    if kind == "news":
        return [_FileSeries(kind, None, None, news_of(table, options.symbol), tuple(table.notes))]
    if kind == "events":
        return [
            _FileSeries(kind, None, None, events_of(table, options.symbol, known_at, known_days), tuple(table.notes))
        ]
    return [_series(table, kind, symbol, options, hints) for symbol in _symbols(table, kind, options, hints)]


def _plain(path: Path, content: Any, options: FileHints) -> _FileSeries:
    if options.kind not in (None, "listings") or not is_exchange_info(content):
        return _meta(path, content, options)
    frame, notes = exchange_info_rows(content, str(path))
    return _FileSeries("listings", None, None, frame, tuple(notes))


def _meta(path: Path, content: Any, options: FileHints) -> _FileSeries:
    if options.kind not in (None, "meta") or not is_meta(content):
        raise UserError(
            f"{path}: neither a list of rows nor a `meta` reply",
            "rows belong in a JSON list or one object a line; meta needs a `universe`",
        )
    frame, notes = meta_rows(content, str(path))
    return _FileSeries("meta", None, None, frame, tuple(notes))


def _symbols(table: Table, kind: str, options: FileHints, hints: FileHints) -> list[str]:
    in_file = table.symbols()
    if options.symbol:
        if len(in_file) > 1 and options.symbol not in in_file:
            raise UserError(f"{table.origin}: the rows are of {excerpts(in_file)}, none of {options.symbol}")
        symbols = [options.symbol]
    elif len(in_file) > 1:
        symbols = in_file
    else:
        symbols = [hints.symbol] if hints.symbol else in_file
    if not symbols:
        raise UserError(f"{table.origin}: {kind} of which symbol?", "add --symbol, for example --symbol BTC")
    for symbol in symbols:
        require_symbol(symbol, table.origin)
    return symbols


def _series(table: Table, kind: str, symbol: str, options: FileHints, hints: FileHints) -> _FileSeries:
    if kind != "bars":
        rows = table.select(symbol, None)
        if kind == bookrows.KIND:
            return _FileSeries(kind, symbol, None, bookrows.books_of(rows), tuple(rows.notes))
        return _FileSeries(kind, symbol, None, points_of(rows, kind), tuple(rows.notes))
    in_file = table.intervals()
    interval = options.interval or hints.interval or (in_file[0] if len(in_file) == 1 else None)
    if interval is None:
        spacing = next((name for name, length in INTERVALS.items() if length == table.spacing()), None)
        looks = f"; the rows look {spacing} apart" if spacing else ""
        raise UserError(f"{table.origin}: bars of which interval?", f"add --interval, for example --interval 5m{looks}")
    if in_file and interval not in in_file:
        raise UserError(f"{table.origin}: the rows have interval {excerpts(in_file)}, not {interval}")
    rows = table.select(symbol, interval)
    return _FileSeries(kind, symbol, interval, bars_of(rows, interval), tuple(rows.notes))


def _other_venue(path: Path, venue: str) -> str | None:
    """An exchange that a folder is named after, if it is not the venue of the import."""
    folders = [folder.name.lower() for folder in path.absolute().parents][:3]
    exchange = next((name for folder in folders for name in _EXCHANGES if folder.startswith(name)), None)
    exchange = exchange or ("binance" if is_binance_name(path) else None)
    return exchange if exchange and not venue.lower().startswith(exchange) else None


def _put_series(
    lake: Lake, batch: Batch, venue: str, path: Path, file_series: _FileSeries, replace: bool, source: SourceFile
) -> ImportResult:
    shape = series(file_series.kind)
    folder = lake.folder(file_series.kind, venue, file_series.symbol, file_series.interval)
    try:
        changes = batch.put(shape, folder, file_series.frame, replace, source)
    except UserError as error:
        other_venue = _other_venue(path, venue)
        hint = f"--venue {other_venue} keeps it apart from {venue}; {error.hint}" if other_venue else error.hint
        raise UserError(f"{path}: {error.message}", hint) from None
    times = file_series.frame[shape.time].dt.epoch("ms") if shape.time else None
    return ImportResult(
        str(path),
        file_series.kind,
        venue,
        file_series.symbol,
        file_series.interval,
        file_series.frame.height,
        changes.added,
        changes.replaced,
        changes.unchanged,
        int(times[0]) if times is not None else None,
        int(times[-1]) if times is not None else None,
        file_series.notes,
    )
