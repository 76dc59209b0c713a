"""A copy of a lake that ends at an instant, or has another future after it, which the loader reads like any lake.

A row belongs to the past if it was known by then: a bar at its close, a value at its time, a news item when it was
published and first seen, an event at its announcement, the end of a listing when it was announced. Funding is paid in
the hour of its timestamp, so its rows count from the beginning of their hour. A series is copied when it is used.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from pitboss.core.instant import DAY_MS, HOUR_MS, Instant, interval_ms
from pitboss.core.market import Ints
from pitboss.data.lake import Lake, year_of
from pitboss.data.series import TIME, SeriesKind, epoch_ms, series
from pitboss.data.series_files import PART, YEARS
from pitboss.data.staging import read_rows, rows_by_file


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


@dataclass(frozen=True, slots=True, eq=False)
class KnownRows:
    """Rows of a series, and when each became known."""

    rows: pl.DataFrame
    known_at: Ints

    def split(self, at: Instant) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows known by an instant, and the others."""
        is_known = self.known_at <= at
        count = int(is_known.sum())
        if bool(is_known[:count].all()):  # as in most series, which are in the order in which they became known
            return self.rows[:count], self.rows[count:]
        mask = pl.Series(is_known)
        return self.rows.filter(mask), self.rows.filter(~mask)


@dataclass(slots=True)
class SourceRows:
    """The rows of the original lake, read once for all copies of it."""

    lake: Lake
    symbols: set[str] = field(default_factory=set[str])
    """The symbols of the series that were used so far."""
    _files: dict[SeriesName, dict[Path, KnownRows]] = field(default_factory=dict[SeriesName, dict[Path, KnownRows]])

    def files(self, name: SeriesName) -> Mapping[Path, KnownRows]:
        """The files of a series with their rows, oldest first."""
        files = self._files.get(name)
        if files is None:
            folder = self.lake.folder(name.kind, name.venue, name.symbol, name.interval)
            if name.symbol is not None:
                self.symbols.add(name.symbol)
            paths = sorted(folder.glob(f"{YEARS}/{PART}" if name.shape.time else PART))
            files = self._files[name] = {path: _known_rows(name, path) for path in paths}
        return files


def _known_rows(name: SeriesName, path: Path) -> KnownRows:
    rows = read_rows(name.shape, path)
    return KnownRows(rows, known_at(name, rows))


class CutLake(Lake):
    """The copy. Its rows are in memory, by the paths that their files would have."""

    def __init__(self, source: SourceRows, root: Path, at: Instant, rows: RowsOfCopy = without_future) -> None:
        super().__init__(root)
        self._source = source
        self._at = at
        self._rows_of_copy = rows
        self._series: dict[SeriesName, list[Path]] = {}
        self._rows_of_file: dict[Path, pl.DataFrame] = {}

    def venues(self, kind: str | None = None) -> list[str]:
        """The venues of the original lake."""
        return self._source.lake.venues(kind)

    def symbols(self, venue: str) -> list[str]:
        """The symbols of the original lake."""
        return self._source.lake.symbols(venue)

    def intervals(self, venue: str, symbol: str) -> list[str]:
        """The intervals in which there are bars of a symbol by now."""
        intervals = self._source.lake.intervals(venue, symbol)
        return [interval for interval in intervals if self._files("bars", venue, symbol, interval)]

    def extent(self, venue: str, symbol: str, interval: str) -> tuple[Instant, Instant] | None:
        """Open times of the first and the last bar."""
        opens = [epoch_ms(self._rows_of_file[path]["open_at"]) for path in self._files("bars", venue, symbol, interval)]
        return (int(opens[0].min()), int(opens[-1].max())) if opens and len(opens[0]) and len(opens[-1]) else None

    def synthetic_note(self, venue: str) -> str | None:
        """The text of the marker in the original lake."""
        return self._source.lake.synthetic_note(venue)

    def _files(self, kind: str, venue: str, symbol: str | None, interval: str | None) -> list[Path]:
        name = SeriesName(kind, venue, symbol, interval)
        if name not in self._series:
            folder = self.folder(kind, venue, symbol, interval)
            files = {folder / file: rows for file, rows in self._copy(name)}
            self._rows_of_file.update(files)
            self._series[name] = sorted(files)
        return self._series[name]

    def _rows(self, shape: SeriesKind, path: Path) -> pl.DataFrame:
        return self._rows_of_file[path]

    def _copy(self, name: SeriesName) -> Iterator[tuple[str, pl.DataFrame]]:
        """The rows of a series by the name of their file."""
        changing: list[KnownRows] = []
        for path, part in self._source.files(name).items():
            if name.shape.time is None:
                changing.append(part)
                continue
            year = path.parent.name
            is_past = int(year.removeprefix("year=")) < year_of(self._at - DAY_MS)
            if is_past and bool((part.known_at <= self._at).all()):
                yield f"{year}/{PART}", part.rows
            else:
                changing.append(part)
        if not changing:
            return
        rows = changing[0].rows if len(changing) == 1 else pl.concat(part.rows for part in changing)
        past, future = KnownRows(rows, np.concatenate([part.known_at for part in changing])).split(self._at)
        if name.kind == "listings":
            past = listings_as_known(past, self._at)
        copied = self._rows_of_copy(name, past, future)
        yield from rows_by_file(name.shape, copied if copied is past else _in_order(name.shape, copied))


def _in_order(shape: SeriesKind, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows in the order of their key, the first of each."""
    if len(shape.key) == 1 and shape.time is not None:
        times = epoch_ms(rows[shape.time])
        if bool(np.all(times[1:] > times[:-1])):
            return rows
    return rows.unique(list(shape.key), keep="first").sort(list(shape.key))


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
    times = rows[column]
    return times.dt.epoch("ms").fill_null(0).to_numpy() if times.null_count() else epoch_ms(times)
