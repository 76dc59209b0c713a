"""Writing into the lake so that a crash, a full disk or a second writer leaves whole files only.

One writer at a time (a lock file), everything written into a staging folder first, then moved with `os.replace`.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.data.series import Series

try:
    import fcntl
except ImportError:  # only one writer is promised where there are no POSIX locks
    fcntl = None

STAGING = ".staging-"
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
"""What polars and the system raise on a damaged file; a panic of polars is not even an `Exception`."""


@dataclass(frozen=True, slots=True)
class Added:
    """What a put did to the lake."""

    added: int
    replaced: int
    unchanged: int


def read_parquet(path: Path, columns: list[str]) -> pl.DataFrame:
    """One file of the lake; a damaged one is told in plain words."""
    try:
        with quiet():
            return pl.read_parquet(path, columns=columns, hive_partitioning=False, glob=False)
    except UNREADABLE as error:
        raise UserError(
            f"{path} is damaged and cannot be read ({first_line(error)})",
            "delete that file and import its data again; `pitboss data check` looks at all files",
        ) from None


@contextmanager
def quiet() -> Iterator[None]:
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
def locked(root: Path) -> Iterator[Path]:
    """A staging folder that nobody else has, for one writer at a time; gone afterwards whatever happens."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / ".lock").open("w") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
                for left in sorted(root.glob(f"{STAGING}*")):  # of a writer that was killed: we hold the lock now
                    shutil.rmtree(left, ignore_errors=True)
            staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=root))
            try:
                yield staging
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise unwritable(root, error) from error


def unwritable(root: Path, error: OSError) -> UserError:
    """What a person is told when the lake cannot be written."""
    return UserError(f"cannot write to {root}: {error.strerror or error}", "check permissions and free space")


class Batch:
    """Puts that have been staged but not moved yet. A later put sees the rows of an earlier one."""

    def __init__(self, staging: Path) -> None:
        self._staging = staging
        self._moves: dict[Path, Path] = {}

    def put(self, shape: Series, folder: Path, frame: pl.DataFrame, replace: bool = False) -> Added:
        """Stage rows for one series. The frame has the columns of its kind and unique keys."""
        frame = frame.select(pl.col(name).cast(kind) for name, kind in shape.columns.items())
        if shape.time is None:
            return self._merge(shape, folder / "part.parquet", frame, replace)
        added = replaced = unchanged = 0
        for year, part in _years(frame, shape.time):
            did = self._merge(shape, folder / f"year={year:04d}" / "part.parquet", part, replace)
            added, replaced, unchanged = added + did.added, replaced + did.replaced, unchanged + did.unchanged
        return Added(added, replaced, unchanged)

    def commit(self) -> None:
        """Move everything into place. All folders are made first: what can fail should, before anything has moved."""
        for target in self._moves:
            target.parent.mkdir(parents=True, exist_ok=True)
        for target, staged in sorted(self._moves.items()):
            os.replace(staged, target)

    def _merge(self, shape: Series, target: Path, new: pl.DataFrame, replace: bool) -> Added:
        current = self._moves.get(target, target)
        key = list(shape.key)
        if not current.is_file():
            self._stage(target, new.sort(key))
            return Added(new.height, 0, 0)
        old = read_parquet(current, list(shape.columns))
        differing = _differing(shape, old, new)
        if differing.height and not replace:
            raise UserError(_conflict(shape, differing), "--replace takes the new rows instead of the stored ones")
        fresh = new.join(old, on=key, how="anti", nulls_equal=True)
        if fresh.height or differing.height:
            keep = old.join(differing, on=key, how="anti", nulls_equal=True)
            self._stage(target, pl.concat([keep, differing, fresh]).sort(key))
        return Added(fresh.height, differing.height, new.height - fresh.height - differing.height)

    def _stage(self, target: Path, frame: pl.DataFrame) -> None:
        staged = self._staging / f"{len(self._moves)}-{target.parent.name}.parquet"
        staged = self._moves.get(target, staged)
        try:
            frame.write_parquet(staged, compression="zstd", statistics=True)
        except pl.exceptions.PolarsError as error:  # how polars tells of a full disk
            raise OSError(first_line(error)) from None
        with staged.open("rb+") as file:
            os.fsync(file.fileno())
        self._moves[target] = staged


def _years(frame: pl.DataFrame, time: str) -> list[tuple[int, pl.DataFrame]]:
    parts = frame.with_columns(pl.col(time).dt.year().alias("_year")).partition_by("_year", maintain_order=True)
    return sorted(((int(part["_year"][0]), part.drop("_year")) for part in parts), key=lambda part: part[0])


def _differing(shape: Series, old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    values = [name for name in shape.columns if name not in shape.key]
    both = new.join(old, on=list(shape.key), how="inner", suffix="_old", nulls_equal=True)
    changed = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_old")) for name in values)
    return both.filter(changed).select(list(shape.columns)).sort(list(shape.key))


def _conflict(shape: Series, differing: pl.DataFrame) -> str:
    first = differing.row(0, named=True)
    where = first["symbol"] if shape.time is None else iso(differing[shape.time].dt.epoch("ms")[0])
    return f"{where} is already stored with other values (rows in conflict: {differing.height})"
