"""Makes a new SQLite database by copying the first one that this process created, which is faster than its statements.

Tests of the creation itself use `created_by_statements`.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pitboss.store import database, sqlite
from pitboss.store.migrate import check_ours

_open_file = database._open_file


@cache
def _empty(processes: sqlite.Processes, version: tuple[int, int, int]) -> bytes:
    """The bytes of a database without rows."""
    with tempfile.TemporaryDirectory() as folder, created_by_statements():
        path = Path(folder) / "empty.db"
        database.open_database(path, processes, version).close()
        return path.read_bytes()


def _open_copy(
    path: Path, processes: sqlite.Processes, version: tuple[int, int, int], check: Any = check_ours, turns: bool = False
) -> database.Database:
    with suppress(OSError):  # opening it raises the error
        if check is check_ours and path.parent.is_dir() and not path.exists():
            path.write_bytes(_empty(processes, version))
    return _open_file(path, processes, version, check, turns)


@contextmanager
def created_by_statements() -> Iterator[None]:
    """Create new databases by statements, as in production, within the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_open_file", _open_file)
        yield


def install() -> None:
    """Change the module for the rest of this process."""
    database._open_file = _open_copy
