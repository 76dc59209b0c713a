"""Writing into the lake so that a crash, a full disk or a second writer leaves whole files only.

One writer at a time (a lock file), rows gathered in memory up to a bound, everything written under names of its
own first, then landed together with the manifest.
"""

import os
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
from pitboss.data.manifest import MANIFEST, LakeManifest, SourceFile, StoredFile
from pitboss.data.merge import RowChanges, RowMerger
from pitboss.data.series import SeriesKind

MOST_BYTES = 256 * 1024 * 1024
"""Rows kept in memory before the longest untouched file is written out."""

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
"""What polars and the system raise on a damaged file; a panic of polars is not even an `Exception`."""


def read_rows(shape: SeriesKind, path: Path) -> pl.DataFrame:
    """One file of the lake with all columns of its kind; those that came later are empty in an older file."""
    if not shape.later:
        return read_parquet(path, list(shape.columns))
    frame = read_parquet(path, None)
    try:
        return _filled(shape, frame).select(list(shape.columns))
    except pl.exceptions.ColumnNotFoundError as error:
        raise _damaged(path, error) from None


def read_parquet(path: Path, columns: list[str] | None) -> pl.DataFrame:
    """These columns of one file of the lake, or all of them; a damaged one is told in plain words."""
    try:
        with silent_stderr():
            return pl.read_parquet(path, columns=columns, hive_partitioning=False, glob=False)
    except UNREADABLE as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: BaseException) -> UserError:
    return UserError(
        f"{path} is damaged and cannot be read ({first_line(error)})",
        "delete that file and import its data again; `pitboss data check` looks at all files",
    )


@contextmanager
def silent_stderr() -> Iterator[None]:
    """Keep stderr silent for a moment: on a damaged file polars prints its stack before it raises."""
    try:
        saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except OSError:  # no stderr to keep silent
        yield
        return
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


def first_line(error: BaseException) -> str:
    """The first line of an error of a library, short enough for one line of ours."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:120]


@contextmanager
def write_lock(root: Path) -> Iterator[None]:
    """The lake for one writer at a time; whatever was staged and did not land is gone afterwards."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        with lake_lock(root):
            remove_staged(root)
            try:
                yield
            finally:
                if not (root / MOVES).exists():  # else what is staged is still to be moved, by whoever comes next
                    remove_staged(root)
    except OSError as error:
        raise write_error(root, error) from error


def write_error(root: Path, error: OSError) -> UserError:
    """What a person is told when the lake cannot be written."""
    return UserError(f"cannot write to {root}: {error.strerror or error}", "check permissions and free space")


def readable_rows(shape: SeriesKind, path: Path) -> pl.DataFrame | None:
    """The rows of a stored file as its kind has them; None if it cannot be read."""
    try:
        return _cast(shape, read_rows(shape, path))
    except (UserError, pl.exceptions.PolarsError):
        return None


class Batch:
    """Puts that have not landed yet. A later put sees the rows of an earlier one."""

    def __init__(self, root: Path, at: Instant | None = None, most_bytes: int = MOST_BYTES) -> None:
        self._root = root
        self._at = at
        self._most_bytes = most_bytes
        self._piles: OrderedDict[Path, tuple[SeriesKind, RowMerger]] = OrderedDict()  # the longest untouched first
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
        for name, part in _parts(shape, frame):
            did = self._pile(shape, folder / name, replace).add(part, replace)
            added, replaced, unchanged = added + did.added, replaced + did.replaced, unchanged + did.unchanged
        if source is not None:
            self._sources.setdefault(folder, {})[source] = None
        self._bound()
        return RowChanges(added, replaced, unchanged)

    def commit(self) -> None:
        """Move everything into place, the manifest with it. Nothing is written where nothing has changed."""
        for target in list(self._piles):
            self._flush(target)
        made = self._manifest or manifest.rebuild_manifest(self._root, readable_rows)
        before = made.dumps(self._root) if self._manifest else b""
        for folder in {**self._stored, **self._sources}:
            name = folder.relative_to(self._root).as_posix()
            made.note(name, self._stored.get(folder, {}), self._sources.get(folder, {}), self._at)
        after = made.dumps(self._root)
        if not self._moves and (after == before or not made.files):
            return
        staged = self._root / f"{STAGING}{MANIFEST}"
        staged.write_bytes(after)
        commit_moves(self._root, {**self._moves, self._root / MANIFEST: staged})

    def _pile(self, shape: SeriesKind, target: Path, replace: bool) -> RowMerger:
        if target in self._piles:
            self._piles.move_to_end(target)
            return self._piles[target][1]
        current = self._moves.get(target, target)
        frame = read_rows(shape, current) if current.is_file() else None
        pile = RowMerger(shape, frame)
        if frame is not None and not self._is_known(shape, target, frame):
            if not replace:  # what someone else wrote there would from now on look as if it had been imported
                raise UserError(
                    f"{target} has been changed since it was imported",
                    "see `pitboss data check`; --replace takes its other rows as they stand",
                )
            pile.changed = True
        self._piles[target] = (shape, pile)
        return pile

    def _is_known(self, shape: SeriesKind, target: Path, frame: pl.DataFrame) -> bool:
        if self._manifest is None or target in self._moves:
            return True
        known = self._manifest.files.get(target.relative_to(self._root).as_posix())
        return known == manifest.describe_rows(shape, _cast(shape, frame))

    def _bound(self) -> None:
        while len(self._piles) > 1 and sum(pile.size for _, pile in self._piles.values()) > self._most_bytes:
            self._flush(next(iter(self._piles)))

    def _flush(self, target: Path) -> None:
        shape, pile = self._piles.pop(target)
        if not pile.changed:
            return
        frame = pile.frame()
        name = f"{STAGING}{len(self._moves)}-{target.parent.name}.parquet"
        staged = self._moves.get(target, self._root / name)
        try:
            frame.write_parquet(staged, compression="zstd", statistics=True)
        except pl.exceptions.PolarsError as error:  # how polars tells of a full disk
            raise OSError(first_line(error)) from None
        self._moves[target] = staged
        folder = target.parent if shape.time is None else target.parent.parent
        name = target.relative_to(self._root).as_posix()
        self._stored.setdefault(folder, {})[name] = manifest.describe_rows(shape, frame)


def write_manifest(root: Path, made: LakeManifest) -> None:
    """Put a manifest into the lake on its own."""
    with write_lock(root):
        staged = root / f"{STAGING}{MANIFEST}"
        staged.write_bytes(made.dumps(root))
        commit_moves(root, {root / MANIFEST: staged})


def _cast(shape: SeriesKind, frame: pl.DataFrame) -> pl.DataFrame:
    if frame.schema == shape.columns:
        return frame
    return _filled(shape, frame).select(pl.col(name).cast(kind) for name, kind in shape.columns.items())


def _filled(shape: SeriesKind, frame: pl.DataFrame) -> pl.DataFrame:
    absent = [name for name in shape.later if name not in frame.columns]
    return frame.with_columns(pl.lit(None, dtype=shape.columns[name]).alias(name) for name in absent)


def _parts(shape: SeriesKind, frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """The rows by the file they belong into."""
    if shape.time is None:
        return [("part.parquet", frame)]
    if not frame.height:
        return []
    years = frame[shape.time].to_numpy().astype("datetime64[Y]").astype(np.int64) + 1970
    turns = np.flatnonzero(np.diff(years)) + 1
    edges = [0, *turns.tolist(), len(years)]
    pieces = [(int(years[first]), frame[first:end]) for first, end in pairwise(edges)]
    if len({year for year, _ in pieces}) < len(pieces):  # not in the order of time
        order = np.unique(years).tolist()
        pieces = [(year, frame.filter(pl.Series(years == year))) for year in order]
    return [(f"year={year:04d}/part.parquet", part) for year, part in sorted(pieces, key=lambda piece: piece[0])]
