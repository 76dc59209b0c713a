"""Writes to the lake so that a crash, a full disk or a second writer leaves only complete files.

One writer at a time (a file lock). Rows are collected in memory up to a bound, written to staged files, and committed
together with the manifest. Also reads stored files, which may be damaged.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.data import manifest
from pitboss.data.commit import MOVES, STAGING, commit_moves, lake_lock, remove_staged
from pitboss.data.excerpt import excerpt
from pitboss.data.manifest import MANIFEST, LakeManifest, SourceFile, StoredFile
from pitboss.data.merge import RowChanges, RowMerger
from pitboss.data.series import SeriesKind

MOST_BYTES = 256 * 1024 * 1024
"""Bytes of rows kept in memory; above it the least recently used file is staged."""

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
"""Raised by polars and the system on a damaged file; a panic of polars is not an `Exception`."""


def read_rows(shape: SeriesKind, path: Path) -> pl.DataFrame:
    """One file of the lake with all columns of its kind; columns added by later versions are empty in an older file."""
    if not shape.later:
        return read_parquet(path, list(shape.columns))
    frame = read_parquet(path, None)
    try:
        return _filled(shape, frame).select(list(shape.columns))
    except pl.exceptions.ColumnNotFoundError as error:
        raise _damaged(path, error) from None


def read_parquet(path: Path, columns: list[str] | None) -> pl.DataFrame:
    """Some or all columns of one file of the lake; a damaged file is a `UserError`."""
    try:
        with silent_stderr():
            return pl.read_parquet(path, columns=columns, hive_partitioning=False, glob=False)
    except UNREADABLE as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: BaseException) -> UserError:
    if isinstance(error, PermissionError):
        return UserError(f"{path} cannot be read ({first_line(error)})", "check its permissions")
    return UserError(
        f"{path} is damaged and cannot be read ({first_line(error)})",
        "delete that file and import its data again; `pitboss data check` looks at all files",
    )


class _StderrSilencer:
    """Redirects stderr to nothing while at least one thread is in a block; the last one to leave restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._saved: int | None = None

    def enter(self) -> None:
        with self._lock:
            if not self._blocks:
                self._saved = self._redirect()
            self._blocks += 1

    def leave(self) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks and self._saved is not None:
                os.dup2(self._saved, 2)
                os.close(self._saved)

    def _redirect(self) -> int | None:
        """Redirect stderr; returns a descriptor of what it was, or None if there is no stderr."""
        try:
            with open(os.devnull, "wb") as devnull:
                saved = os.dup(2)
                os.dup2(devnull.fileno(), 2)
        except OSError:
            return None
        return saved


_STDERR = _StderrSilencer()


@contextmanager
def silent_stderr() -> Iterator[None]:
    """Silence stderr, which all threads share: on a damaged file polars prints its stack before it raises."""
    _STDERR.enter()
    try:
        yield
    finally:
        _STDERR.leave()


def first_line(error: BaseException) -> str:
    """The first line of a library's error, which may hold a part of the file, at most 120 characters."""
    lines = str(error).strip().splitlines()
    return excerpt(lines[0], 120) if lines else type(error).__name__


@contextmanager
def write_lock(root: Path) -> Iterator[None]:
    """Lock the lake for one writer; staged files that were not committed are removed afterwards."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        with lake_lock(root):
            remove_staged(root)
            try:
                yield
            finally:
                if not (root / MOVES).exists():  # else the next process moves the staged files
                    remove_staged(root)
    except OSError as error:
        raise write_error(root, error) from error


def write_error(root: Path, error: OSError) -> UserError:
    """The error for a lake that cannot be written."""
    return UserError(f"cannot write to {root}: {error.strerror or error}", "check permissions and free space")


def readable_rows(shape: SeriesKind, path: Path) -> pl.DataFrame | None:
    """The rows of a stored file with the types of its kind; None if it cannot be read."""
    try:
        return _cast(shape, read_rows(shape, path))
    except (UserError, pl.exceptions.PolarsError):
        return None


class Batch:
    """Puts that are not committed yet. A later put sees the rows of an earlier one."""

    def __init__(self, root: Path, at: Instant | None = None, most_bytes: int = MOST_BYTES) -> None:
        self._root = root
        self._at = at
        self._most_bytes = most_bytes
        self._mergers: OrderedDict[Path, tuple[SeriesKind, RowMerger]] = OrderedDict()  # least recently used first
        self._moves: dict[Path, Path] = {}
        self._stored: dict[Path, dict[str, StoredFile]] = {}
        self._sources: dict[Path, dict[SourceFile, None]] = {}
        self._manifest = manifest.load_manifest(root)

    def put(
        self,
        shape: SeriesKind,
        folder: Path,
        frame: pl.DataFrame,
        replace: bool = False,
        source: SourceFile | None = None,
    ) -> RowChanges:
        """Stage rows for one series. The frame has the columns of its kind and unique keys."""
        frame = _cast(shape, frame)
        added = replaced = unchanged = 0
        for name, part in rows_by_file(shape, frame):
            changes = self._merger(shape, folder / name, replace).add(part, replace)
            added, replaced, unchanged = (
                added + changes.added,
                replaced + changes.replaced,
                unchanged + changes.unchanged,
            )
        if source is not None:
            self._sources.setdefault(folder, {})[source] = None
        self._limit_memory()
        return RowChanges(added, replaced, unchanged)

    def commit(self) -> None:
        """Move everything into place, together with the manifest. Nothing is written if nothing has changed."""
        for target in list(self._mergers):
            self._flush(target)
        new = self._manifest or manifest.rebuild_manifest(self._root, readable_rows)
        before = new.dumps(self._root) if self._manifest else b""
        for folder in {**self._stored, **self._sources}:
            name = folder.relative_to(self._root).as_posix()
            new.record(name, self._stored.get(folder, {}), self._sources.get(folder, {}), self._at)
        after = new.dumps(self._root)
        if not self._moves and (after == before or not new.files):
            return
        staged = self._root / f"{STAGING}{MANIFEST}"
        staged.write_bytes(after)
        commit_moves(self._root, {**self._moves, self._root / MANIFEST: staged})

    def _merger(self, shape: SeriesKind, target: Path, replace: bool) -> RowMerger:
        if target in self._mergers:
            self._mergers.move_to_end(target)
            return self._mergers[target][1]
        current = self._moves.get(target, target)
        frame = read_rows(shape, current) if current.is_file() else None
        merger = RowMerger(shape, frame)
        if frame is not None and not self._is_imported(shape, target, frame):
            if not replace:  # rows of another program would from now on count as imported
                raise UserError(
                    f"{target} has been changed since it was imported",
                    "see `pitboss data check`; --replace accepts its other rows as they are",
                )
            merger.changed = True
        self._mergers[target] = (shape, merger)
        return merger

    def _is_imported(self, shape: SeriesKind, target: Path, frame: pl.DataFrame) -> bool:
        if self._manifest is None or target in self._moves:
            return True
        imported = self._manifest.files.get(target.relative_to(self._root).as_posix())
        return imported == manifest.describe_rows(shape, _cast(shape, frame))

    def _limit_memory(self) -> None:
        while len(self._mergers) > 1 and sum(merger.size for _, merger in self._mergers.values()) > self._most_bytes:
            self._flush(next(iter(self._mergers)))

    def _flush(self, target: Path) -> None:
        shape, merger = self._mergers.pop(target)
        if not merger.changed:
            return
        frame = merger.frame()
        name = f"{STAGING}{len(self._moves)}-{target.parent.name}.parquet"
        staged = self._moves.get(target, self._root / name)
        try:
            frame.write_parquet(staged, compression="zstd", statistics=True)
        except pl.exceptions.PolarsError as error:  # polars reports a full disk in this way
            raise OSError(first_line(error)) from None
        self._moves[target] = staged
        folder = target.parent if shape.time is None else target.parent.parent
        name = target.relative_to(self._root).as_posix()
        self._stored.setdefault(folder, {})[name] = manifest.describe_rows(shape, frame)


def write_manifest(root: Path, lake_manifest: LakeManifest) -> None:
    """Commit a manifest alone."""
    with write_lock(root):
        staged = root / f"{STAGING}{MANIFEST}"
        staged.write_bytes(lake_manifest.dumps(root))
        commit_moves(root, {root / MANIFEST: staged})


def _cast(shape: SeriesKind, frame: pl.DataFrame) -> pl.DataFrame:
    if frame.schema == shape.columns:
        return frame
    return _filled(shape, frame).select(pl.col(name).cast(kind) for name, kind in shape.columns.items())


def _filled(shape: SeriesKind, frame: pl.DataFrame) -> pl.DataFrame:
    absent = [name for name in shape.later if name not in frame.columns]
    return frame.with_columns(pl.lit(None, dtype=shape.columns[name]).alias(name) for name in absent)


def rows_by_file(shape: SeriesKind, frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """The rows by the name of their file in the folder of their series."""
    if shape.time is None:
        return [("part.parquet", frame)]
    if not frame.height:
        return []
    years = frame[shape.time].to_numpy().astype("datetime64[Y]").astype(np.int64) + 1970
    turns = np.flatnonzero(np.diff(years)) + 1
    edges = [0, *turns.tolist(), len(years)]
    pieces = [(int(years[first]), frame[first:end]) for first, end in pairwise(edges)]
    if len({year for year, _ in pieces}) < len(pieces):  # not in order of time
        order = np.unique(years).tolist()
        pieces = [(year, frame.filter(pl.Series(years == year))) for year in order]
    return [(f"year={year:04d}/part.parquet", part) for year, part in sorted(pieces, key=lambda piece: piece[0])]
