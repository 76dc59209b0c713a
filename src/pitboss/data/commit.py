"""Moving staged files into a lake so that all of them arrive or none, even if the process is killed in between.

Before the first move the list of moves is put into the lake's root under one name. From then on the write has happened:
whoever opens the lake next finishes what is left of it. Nothing here knows what is in the files.
"""

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
"""So few are waited for one after the other: threads take longer to begin."""


def commit_moves(root: Path, moves: Mapping[Path, Path]) -> None:
    """Move every staged file, which lies in the root itself, to its target. The caller holds the lock."""
    for folder in sorted({target.parent for target in moves}):  # what can fail should, before anything has moved
        folder.mkdir(parents=True, exist_ok=True)
    listed = [[staged.name, target.relative_to(root).as_posix()] for target, staged in sorted(moves.items())]
    ready = root / f"{STAGING}moves.json"
    ready.write_bytes(codec.dumps({"moves": listed}))
    _sync([*moves.values(), ready])
    os.replace(ready, root / MOVES)
    finish_moves(root)


def _sync(paths: Sequence[Path]) -> None:
    """Wait until all of them are on the disk: together, because one wait of a file system serves many files."""
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
    """Make the moves of a landing that are still to be made. The caller holds the lock."""
    record = root / MOVES
    if not record.is_file():
        return
    try:
        document = codec.loads(record.read_bytes())
        staging = root / str(document["staging"]) if "staging" in document else None  # a folder, in earlier versions
        moves = [((staging or root) / str(name), root / str(target)) for name, target in document["moves"]]
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{record} cannot be read", "delete it and import the data again") from None
    for staged, target in moves:
        if staged.is_file():
            os.replace(staged, target)
    record.unlink()
    if staging is not None and staging.name.startswith(STAGING):
        shutil.rmtree(staging, ignore_errors=True)


def remove_staged(root: Path) -> None:
    """Remove what a writer left that was killed before it landed anything. The caller holds the lock."""
    for left in sorted(root.glob(f"{STAGING}*")):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def finish_interrupted(root: Path) -> None:
    """Finish a landing that was cut short, before anything is read; waits for one that is under way."""
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
