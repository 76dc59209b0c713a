"""The lock on a SQLite file: shared by several processes, or exclusive to one.

Locks a file beside the database, because closing any handle on the database file itself would drop SQLite's own locks.
This is the only module that calls `fcntl.flock`. Exclusive file locks elsewhere use the `filelock` package; its
`ReadWriteLock` keeps shared locks in a SQLite database of its own, would be imported at every program start, and does not
conflict with the `flock` of an earlier pitboss on the same file.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import IO

from pitboss.core.errors import UserError


class DatabaseLock:
    """A lock that is held until `close`, `undo` or the end of the process."""

    def __init__(self, handle: IO[bytes], path: Path, created: bool) -> None:
        self._handle = handle
        self._path = path
        self._created = created

    @classmethod
    def acquire(cls, database: Path, *, shared: bool) -> "DatabaseLock":
        """Lock a database without waiting. Raises `UserError` if another process holds a conflicting lock."""
        path = database.with_name(database.name + ".lock")
        mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            while True:
                handle, created = _open(path)
                try:
                    fcntl.flock(handle, mode | fcntl.LOCK_NB)
                    if _is_at(handle, path):
                        return cls(handle, path, created)
                except BaseException:
                    handle.close()
                    raise
                handle.close()  # `undo` of another process removed the file before it was locked here
        except BlockingIOError:
            if shared:
                raise UserError(
                    f"{database} is held by a pitboss process that uses it alone",
                    "wait until it ends, or stop it; then start this again",
                ) from None
            raise UserError(
                f"{database} is in use by another pitboss process",
                "wait until it ends, or start this one so that several processes may share the database",
            ) from None
        except OSError as error:
            raise unwritable(database, error) from None

    def close(self) -> None:
        """Release the lock. The file stays for the next process."""
        self._handle.close()

    def undo(self) -> None:
        """Release the lock, and remove the file if it was created here and no other process has it locked."""
        with self._handle, suppress(OSError):
            if self._created:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._path.unlink()


def unwritable(path: Path, error: OSError) -> UserError:
    """The error message for an `OSError` raised while a database is opened."""
    return UserError(f"cannot use the database {path}: {error.strerror}", "choose a folder you may write, with --home")


def _open(path: Path) -> tuple[IO[bytes], bool]:
    """The open lock file, and whether it was created."""
    try:
        return path.open("xb"), True
    except FileExistsError:
        return path.open("ab"), False


def _is_at(handle: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle.fileno()), path.stat())
    except FileNotFoundError:
        return False
