"""Moves staged files into a lake atomically, even if the process is killed in between.

Before the first move the list of moves is written to the lake's root. From then on the write is committed: the next
process that opens the lake makes the remaining moves. The contents of the files do not matter here.
"""

import errno
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from pitboss.core import codec
from pitboss.core.errors import UserError

MOVES = ".landing.json"
STAGING = ".staging-"
LOCK = ".lock"
MOST_SYNCS = 8
FEW_SYNCS = 4
"""Up to this many files are synced one after the other: starting threads takes longer."""


def commit_moves(root: Path, moves: Mapping[Path, Path]) -> None:
    """Move every staged file, which lies in the root itself, to its target. The caller holds the lock."""
    for folder in sorted({target.parent for target in moves}):  # fails, if at all, before anything has moved
        folder.mkdir(parents=True, exist_ok=True)
    for target in moves:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, f"Is a directory: {target}")
    rows = [[staged.name, target.relative_to(root).as_posix()] for target, staged in sorted(moves.items())]
    ready = root / f"{STAGING}moves.json"
    ready.write_bytes(codec.dumps({"moves": rows}))
    _sync([*moves.values(), ready])
    os.replace(ready, root / MOVES)
    finish_moves(root)


def _sync(paths: Sequence[Path]) -> None:
    """Flush all files to disk, in parallel: one flush of a file system serves many files."""
    if len(paths) <= FEW_SYNCS:
        for path in paths:
            _sync_one(path)
        return
    with ThreadPoolExecutor(min(MOST_SYNCS, len(paths))) as pool:
        list(pool.map(_sync_one, paths))


def _sync_one(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def finish_moves(root: Path) -> None:
    """Make the remaining moves of a commit. The caller holds the lock."""
    record = root / MOVES
    if not record.is_file():
        return
    try:
        document = codec.loads(record.read_bytes())
        staging = (
            root / str(document["staging"]) if "staging" in document else None
        )  # earlier versions staged in a folder
        moves = [((staging or root) / str(name), root / str(target)) for name, target in document["moves"]]
        if not all(_is_inside(root, path) for move in moves for path in move):
            raise ValueError("a move leads out of the lake")
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{record} cannot be read", "delete it and import the data again") from None
    for staged, target in moves:
        if staged.is_file():
            os.replace(staged, target)
    record.unlink()
    if staging is not None and staging.name.startswith(STAGING):
        shutil.rmtree(staging, ignore_errors=True)


def _is_inside(root: Path, path: Path) -> bool:
    return Path(os.path.normpath(path)).is_relative_to(os.path.normpath(root))


def remove_staged(root: Path) -> None:
    """Remove staged files of a writer that was killed before its commit. The caller holds the lock."""
    for path in sorted(root.glob(f"{STAGING}*")):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def finish_interrupted(root: Path) -> None:
    """Finish an interrupted commit before anything is read; waits for one that is in progress."""
    if not (root / MOVES).exists():
        return
    try:
        with lake_lock(root):
            pass
    except OSError as error:
        raise UserError(
            f"an import into {root} was interrupted and cannot be finished: {error.strerror or error}",
            "check permissions and free space",
        ) from error


@contextmanager
def lake_lock(root: Path) -> Iterator[None]:
    """Hold the lake's lock, after finishing what an earlier writer left undone.

    The operating system releases the lock when the process ends. The lock file stays in the root.
    """
    with FileLock(root / LOCK, fallback_to_soft=False):
        finish_moves(root)
        yield
