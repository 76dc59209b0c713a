"""The lake: everything imported, as hive-partitioned parquet under one folder.

    bars/venue=hyperliquid/interval=5m/symbol=BTC/year=2025/part.parquet
    funding/venue=hyperliquid/symbol=BTC/year=2025/part.parquet      (also open_interest, mark, oracle, l2)
    news/venue=hyperliquid/year=2025/part.parquet                    (also events)
    meta/venue=hyperliquid/part.parquet                              (also listings)

    manifest.json                                                    (all series, with digests and sources)

A write is staged beside the data and committed as one: a reader never sees part of a file, a crash never leaves part of a
write. Rows are validated by `table`, not here; the as-of view cuts them by time.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import numpy as np
import polars as pl

from pitboss.core.asset import Asset
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, INTERVALS, Instant, interval_ms
from pitboss.core.market import (
    Bars,
    CalendarEvent,
    Floats,
    Ints,
    Listing,
    NewsItem,
    PointKind,
    Points,
    UnconfirmedEvent,
)
from pitboss.data.commit import finish_interrupted
from pitboss.data.manifest import load_manifest
from pitboss.data.merge import RowChanges
from pitboss.data.meta_rows import meta_assets
from pitboss.data.series import SERIES, SeriesKind, epoch_ms, series
from pitboss.data.series_files import PART, YEARS, SeriesFiles, find_series
from pitboss.data.series_info import SeriesInfo, extent_of, instants, series_info
from pitboss.data.staging import Batch, read_rows, write_error, write_lock, write_manifest
from pitboss.data.synthetic_marker import MARKER, venue_folder


class Lake:
    """All imported data of a workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root

    # writing

    def put(
        self,
        kind: str,
        venue: str,
        symbol: str | None,
        interval: str | None,
        frame: pl.DataFrame,
        replace: bool = False,
    ) -> RowChanges:
        """Add rows to a series. Rows already there change nothing; differing ones are refused unless `replace`."""
        with self.writing() as batch:
            return batch.put(series(kind), self.folder(kind, venue, symbol, interval), frame, replace)

    @contextmanager
    def writing(self, at: Instant | None = None) -> Iterator[Batch]:
        """Several puts that are committed together or not at all. `at` is their time in the manifest."""
        with write_lock(self.root):
            batch = Batch(self.root, at)
            yield batch
            batch.commit()

    def mark_synthetic(self, venue: str, text: str) -> None:
        """Write the marker that this venue's data was generated."""
        path = self.folder("meta", venue, None, None) / MARKER
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise write_error(self.root, error) from error

    def synthetic_note(self, venue: str) -> str | None:
        """The text of the marker of a generated venue; None if there is no marker."""
        path = self.folder("meta", venue, None, None) / MARKER
        return path.read_text(encoding="utf-8") if path.is_file() else None

    def is_synthetic(self, venue: str) -> bool:
        """Whether this venue's data was generated rather than imported."""
        return self.synthetic_note(venue) is not None

    def drop_synthetic(self, venue: str) -> None:
        """Remove a generated venue. Imported data is never removed."""
        if not self.is_synthetic(venue):
            raise UserError(f"the data of venue {venue!r} was imported, not generated; it is not removed")
        manifest = load_manifest(self.root)
        if manifest is not None:
            manifest.drop(venue)
            write_manifest(self.root, manifest)
        # the marker last: without it what is left would pass for real data
        for kind in sorted(SERIES, key=lambda kind: kind == "meta"):
            shutil.rmtree(self.root / kind / f"venue={venue}", ignore_errors=True)

    # listing

    def folder(self, kind: str, venue: str, symbol: str | None, interval: str | None) -> Path:
        """The folder of one series."""
        shape = series(kind)
        path = venue_folder(self.root, kind, venue)
        if shape.per_interval:
            interval_ms(interval or "")
            path /= f"interval={interval}"
        if shape.per_symbol:
            if not symbol:
                raise UserError(f"{kind} need a symbol", "add --symbol")
            path /= f"symbol={quote(symbol, safe='')}"
        return path

    def series_files(self, kind: str | None = None, venue: str | None = None) -> list[SeriesFiles]:
        """The files of every series, sorted by venue, kind, symbol and interval."""
        finish_interrupted(self.root)
        return find_series(self.root, kind, venue)

    def revision(self) -> object:
        """A plain value that changes whenever data does. Nothing is read but the list of the files."""
        paths = [path for series in self.series_files() for path in series.paths]
        stats = [(path, path.stat()) for path in paths]
        return [[str(path.relative_to(self.root)), stat.st_size, stat.st_mtime_ns] for path, stat in stats]

    def list(self) -> list[SeriesInfo]:
        """Every series with its number of rows, time span and number of gaps."""
        return [series_info(files) for files in self.series_files()]

    def venues(self, kind: str | None = None) -> "list[str]":
        """Venues with any data, or with data of one kind."""
        finish_interrupted(self.root)
        kinds = [kind] if kind else sorted(SERIES)
        folders = (path for name in kinds for path in (self.root / name).glob("venue=*"))
        return sorted({path.name.removeprefix("venue=") for path in folders if any(path.glob(f"**/{PART}"))})

    def symbols(self, venue: str) -> "list[str]":
        """Symbols of a venue that have bars."""
        return sorted({files.symbol or "" for files in self.series_files("bars", venue)})

    def intervals(self, venue: str, symbol: str) -> "list[str]":
        """Intervals in which bars of a symbol were imported, finest first."""
        finish_interrupted(self.root)
        folder, name = self.root / "bars" / f"venue={venue}", f"symbol={quote(symbol, safe='')}"
        try:
            existing = set(os.listdir(folder))
        except OSError:
            return []
        return [
            interval
            for interval in INTERVALS
            if (part := f"interval={interval}") in existing and any((folder / part / name).glob(f"{YEARS}/{PART}"))
        ]

    def extent(self, venue: str, symbol: str, interval: str) -> tuple[Instant, Instant] | None:
        """Open times of the first and the last bar; reads only the first and the last file."""
        return extent_of(self._files("bars", venue, symbol, interval), "open_at")

    # reading

    def bars(self, venue: str, symbol: str, interval: str, before: Instant | None = None) -> Bars | None:
        """Bars that open before an instant (all by default); None if the series was never imported."""
        frame = self._frame("bars", venue, symbol, interval, before, inclusive=False)
        if frame is None:
            return None
        opens = instants(frame["open_at"])
        columns = [_floats(frame[name]) for name in ("open", "high", "low", "close", "volume")]
        self._require_sound(opens, columns, f"{interval} bars of {symbol}")
        return Bars(symbol, interval, interval_ms(interval), opens, *columns)

    def points(self, kind: PointKind, venue: str, symbol: str, until: Instant | None = None) -> Points | None:
        """A point series up to and including an instant; None if it was never imported."""
        frame = self._frame(kind, venue, symbol, None, until)
        if frame is None:
            return None
        at, values = instants(frame["at"]), _floats(frame["value"])
        self._require_sound(at, [values], f"{kind} of {symbol}")
        return Points(symbol, kind, at, values)

    def news(self, venue: str, until: Instant | None = None) -> "list[NewsItem]":
        """News that arrived by an instant, in order of arrival.

        An item with a date and no time arrives at the next midnight. No item arrives before it was first downloaded, where
        that time is stored.
        """
        frame = self._frame("news", venue, None, None, until)
        if frame is None:
            return []
        items = [item for item in news_items(frame) if until is None or item.available_at <= until]
        return sorted(items, key=lambda item: (item.available_at, item.published_at, item.source, item.text))

    def events(self, venue: str, until: Instant | None = None) -> "list[CalendarEvent]":
        """Events known by an instant, in the order in which they became known."""
        frame = self._frame("events", venue, None, None, None)
        if frame is None:
            return []
        events = [
            CalendarEvent(scheduled_at, known_at, kind, title, importance, _split(symbols))
            for scheduled_at, kind, title, known_at, importance, symbols in frame.with_columns(
                pl.col("scheduled_at", "known_at").dt.epoch("ms")
            ).iter_rows()
            if until is None or known_at <= until
        ]
        return sorted(events, key=lambda event: (event.known_at, event.scheduled_at, event.kind, event.title))

    def assets(self, venue: str) -> dict[str, Asset]:
        """Assets of the imported `meta`, by symbol."""
        frame = self._frame("meta", venue, None, None, None)
        return {} if frame is None else meta_assets(frame)

    def extracted(self, venue: str) -> "list[tuple[NewsItem, UnconfirmedEvent]]":
        """Events extracted from headlines, each with its headline."""
        frame = self._frame("extracted", venue, None, None, None)
        if frame is None:
            return []
        times = pl.col("scheduled_at", "known_at", "published_at").dt.epoch("ms")
        return [
            (
                NewsItem(published_at, known_at, source, text),
                UnconfirmedEvent(at, known_at, kind, title, importance, _split(symbols), confidence),
            )
            for at, kind, symbols, title, known_at, importance, confidence, published_at, source, text in (
                frame.with_columns(times).iter_rows()
            )
        ]

    def listings(self, venue: str) -> dict[str, Listing]:
        """Imported listings, by symbol."""
        frame = self._frame("listings", venue, None, None, None)
        if frame is None:
            return {}
        rows = frame.with_columns(pl.col("listed_at", "delisted_at", "known_at").dt.epoch("ms")).sort("symbol")
        return {row[0]: Listing(*row) for row in rows.iter_rows()}

    def stored_rows(
        self,
        kind: str,
        venue: str,
        symbol: str | None = None,
        interval: str | None = None,
        span: tuple[Instant, Instant] | None = None,
    ) -> pl.DataFrame | None:
        """The rows of a series as they are stored, in order of their key; None if there is no file.

        `span` selects rows from its first instant up to, but not including, its second.
        """
        shape = series(kind)
        files = self._files(kind, venue, symbol, interval)
        if not files:
            return None
        frame = pl.concat([self._rows(shape, path) for path in files])
        if shape.time and span is not None:
            frame = frame.filter(pl.col(shape.time).dt.epoch("ms").is_between(*span, closed="left"))
        return frame.sort(shape.key).rechunk()

    def _files(self, kind: str, venue: str, symbol: str | None, interval: str | None) -> "list[Path]":
        finish_interrupted(self.root)
        folder = self.folder(kind, venue, symbol, interval)
        if series(kind).time is None:
            return [path for path in (folder / PART,) if path.is_file()]
        return sorted(folder.glob(f"{YEARS}/{PART}"))

    def _rows(self, shape: SeriesKind, path: Path) -> pl.DataFrame:
        """The rows of one file of a series."""
        return read_rows(shape, path)

    def _frame(
        self,
        kind: str,
        venue: str,
        symbol: str | None,
        interval: str | None,
        until: Instant | None,
        inclusive: bool = True,
    ) -> pl.DataFrame | None:
        files = self._files(kind, venue, symbol, interval)
        if not files:
            return None
        shape = series(kind)
        if until is not None and shape.time:
            files = [path for path in files if _year(path) <= year_of(until)] or files[:1]
        parts = [self._rows(shape, path) for path in files]
        frame = pl.concat(parts) if len(parts) > 1 else parts[0]
        if until is not None and shape.time:
            moments = epoch_ms(frame[shape.time])
            side = "right" if inclusive else "left"
            frame = frame.head(int(np.searchsorted(moments, until, side=side)))
        return frame.rechunk()

    def _require_sound(self, moments: Ints, columns: "list[Floats]", label: str) -> None:
        # import accepts only sound rows; a file edited since then must not reach a run
        if not bool(np.all(moments[1:] > moments[:-1])):
            raise UserError(f"the stored {label} are out of order", "see `pitboss data check`")
        if not all(bool(np.isfinite(column).all()) for column in columns):
            raise UserError(f"the stored {label} hold numbers that are not finite", "see `pitboss data check`")


def news_items(frame: pl.DataFrame) -> list[NewsItem]:
    """News rows as items, each with the time at which it could be known."""
    return [
        NewsItem(
            at,
            max(at + DAY_MS if date_only else at, first_seen_at or 0),
            source,
            text,
            sentiment,
            _split(symbols),
        )
        for at, source, text, sentiment, symbols, date_only, first_seen_at in frame.with_columns(
            pl.col("published_at", "first_seen_at").dt.epoch("ms")
        ).iter_rows()
    ]


def year_of(at: Instant) -> int:
    """The UTC year of an instant."""
    return int(np.datetime64(at, "ms").astype("datetime64[Y]").astype(int)) + 1970


def _year(path: Path) -> int:
    return int(path.parent.name.removeprefix("year="))


def _split(symbols: str) -> tuple[str, ...]:
    return tuple(symbols.split(",")) if symbols else ()


def _floats(column: pl.Series) -> Floats:
    values = column.to_numpy()
    values.setflags(write=False)
    return values
