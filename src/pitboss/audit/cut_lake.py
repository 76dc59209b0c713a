"""A copy of a lake that ends at an instant, or has another future after it, which the loader reads like any lake.

A row belongs to the past if it was known by then: a bar at its close, a value at its time, a news item when it was
published and first seen, an event at its announcement, the end of a listing when it was announced. Funding is paid in
the hour of its timestamp, so its rows count from the beginning of their hour. A series is copied when its folder is used.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from pitboss.core.instant import DAY_MS, HOUR_MS, Instant, interval_ms
from pitboss.core.market import Ints
from pitboss.data.lake import Lake, year_of
from pitboss.data.series import TIME, SeriesKind, series
from pitboss.data.series_files import PART
from pitboss.data.staging import read_rows


@dataclass(frozen=True, slots=True)
class SeriesName:
    """What identifies a series of a lake."""

    kind: str
    venue: str
    symbol: str | None = None
    interval: str | None = None

    @property
    def shape(self) -> SeriesKind:
        """The layout of its kind."""
        return series(self.kind)


RowsOfCopy = Callable[[SeriesName, pl.DataFrame, pl.DataFrame], pl.DataFrame]
"""Makes the rows of a series in a copy from its past rows and its future rows."""


def without_future(name: SeriesName, past: pl.DataFrame, future: pl.DataFrame) -> pl.DataFrame:
    """The past rows alone: the lake ends."""
    del name, future
    return past


@dataclass(slots=True)
class SourceRows:
    """The rows of the original lake, read once for all copies of it."""

    lake: Lake
    symbols: set[str] = field(default_factory=set[str])
    """The symbols of the series that were used so far."""
    _frames: dict[Path, pl.DataFrame] = field(default_factory=dict[Path, pl.DataFrame])

    def files(self, name: SeriesName) -> list[Path]:
        """The files of a series, oldest first."""
        folder = self.lake.folder(name.kind, name.venue, name.symbol, name.interval)
        if name.symbol is not None:
            self.symbols.add(name.symbol)
        return sorted(folder.glob(f"year=*/{PART}" if name.shape.time else PART))

    def rows(self, name: SeriesName, path: Path) -> pl.DataFrame:
        """The rows of one file."""
        frame = self._frames.get(path)
        if frame is None:
            frame = self._frames[path] = read_rows(name.shape, path)
        return frame


class CutLake(Lake):
    """The copy, in a folder of its own."""

    def __init__(self, source: SourceRows, root: Path, at: Instant, rows: RowsOfCopy = without_future) -> None:
        super().__init__(root)
        self._source = source
        self._at = at
        self._rows = rows
        self._copied: set[SeriesName] = set()

    def folder(self, kind: str, venue: str, symbol: str | None, interval: str | None) -> Path:
        """The folder of one series, with its files."""
        path = super().folder(kind, venue, symbol, interval)
        name = SeriesName(kind, venue, symbol, interval)
        if name not in self._copied:
            self._copied.add(name)
            self._copy(name, path)
        return path

    def venues(self, kind: str | None = None) -> list[str]:
        """The venues of the original lake."""
        return self._source.lake.venues(kind)

    def symbols(self, venue: str) -> list[str]:
        """The symbols of the original lake."""
        return self._source.lake.symbols(venue)

    def intervals(self, venue: str, symbol: str) -> list[str]:
        """The intervals in which there are bars of a symbol by now."""
        intervals = self._source.lake.intervals(venue, symbol)
        return [name for name in intervals if any(self.folder("bars", venue, symbol, name).glob(f"*/{PART}"))]

    def synthetic_note(self, venue: str) -> str | None:
        """The text of the marker in the original lake."""
        return self._source.lake.synthetic_note(venue)

    def _copy(self, name: SeriesName, folder: Path) -> None:
        remaining: list[pl.DataFrame] = []
        for path in self._source.files(name):
            frame = self._source.rows(name, path)
            if name.shape.time is None:
                remaining.append(frame)
                continue
            year = path.parent.name
            is_past = int(year.removeprefix("year=")) < year_of(self._at - DAY_MS)
            if is_past and bool((known_at(name, frame) <= self._at).all()):
                (folder / year).mkdir(parents=True)
                os.symlink(path.absolute(), folder / year / PART)
            else:
                remaining.append(frame)
        if remaining:
            self._write(name, folder, pl.concat(remaining))

    def _write(self, name: SeriesName, folder: Path, frame: pl.DataFrame) -> None:
        is_known = pl.Series(known_at(name, frame) <= self._at)
        past, future = frame.filter(is_known), frame.filter(~is_known)
        if name.kind == "listings":
            past = listings_as_known(past, self._at)
        rows = self._rows(name, past, future).unique(list(name.shape.key), keep="first").sort(list(name.shape.key))
        if name.shape.time is None:
            _write_file(rows, folder / PART)
            return
        for (year,), part in rows.group_by(pl.col(name.shape.time).dt.year(), maintain_order=True):
            _write_file(part, folder / f"year={year}" / PART)


def _write_file(rows: pl.DataFrame, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows.write_parquet(path, compression="uncompressed", statistics=False)


def known_at(name: SeriesName, rows: pl.DataFrame) -> Ints:
    """When each row of a series became known."""
    kind = name.kind
    if kind == "bars":
        return _times(rows, "open_at") + interval_ms(name.interval or "")
    if kind == "funding":
        at = _times(rows, "at")
        return np.minimum(at, at // HOUR_MS * HOUR_MS + 1)
    if kind == "news":
        published_at = _times(rows, "published_at") + rows["date_only"].fill_null(False).to_numpy() * DAY_MS
        return np.maximum(published_at, _times(rows, "first_seen_at"))
    if "known_at" in name.shape.columns and name.shape.time is not None:
        return _times(rows, "known_at")
    if name.shape.time is None:  # no time: known from the beginning
        return np.zeros(rows.height, np.int64)
    return _times(rows, name.shape.time)


def listings_as_known(rows: pl.DataFrame, at: Instant) -> pl.DataFrame:
    """Listings without the ends that were not announced by an instant."""
    moment = pl.lit(at).cast(TIME)
    is_known = pl.coalesce("known_at", "delisted_at") <= moment
    return rows.with_columns(pl.when(is_known).then(pl.col(name)).alias(name) for name in ("delisted_at", "known_at"))


def _times(rows: pl.DataFrame, column: str) -> Ints:
    return rows[column].dt.epoch("ms").fill_null(0).to_numpy()
