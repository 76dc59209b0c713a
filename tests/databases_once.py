"""A new database in a file is a copy of the first one that this process created.

Hundreds of tests begin with an empty database, and to create its tables takes longer than most of their statements. Tests of
that creation itself use `created_by_statements`.
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
    with suppress(OSError):  # whoever opens it says what is wrong
        if check is check_ours and path.parent.is_dir() and not path.exists():
            path.write_bytes(_empty(processes, version))
    return _open_file(path, processes, version, check, turns)


@contextmanager
def created_by_statements() -> Iterator[None]:
    """New databases are created as users' are, for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "_open_file", _open_file)
        yield


def install() -> None:
    """Change the module for the rest of this process."""
    database._open_file = _open_copy
