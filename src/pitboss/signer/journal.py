"""`SigningJournal`: an SQLite file of the signing process with what was signed, what is used of its caps, and its halts.

A request is counted and stored in one transaction before it is signed, and the signature is stored before it leaves. A process that is
killed in between has counted too much, never too little. Each scheme has tables of its own; halts are kept here.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.noun import noun

Statement = Callable[..., sqlite3.Cursor]
"""Runs one SQL statement with its values inside a transaction."""

_HALTS = """
CREATE TABLE IF NOT EXISTS halts (
    number INTEGER PRIMARY KEY, at INTEGER NOT NULL, reason TEXT NOT NULL, request_id TEXT NOT NULL,
    lifted_at INTEGER, lift_reason TEXT
) STRICT;
"""


@noun
class SignerHalt:
    """Why and since when the process signs only what reduces risk; and when and why a person lifted that."""

    number: int
    at: Instant
    reason: str
    request_id: str
    lifted_at: Instant | None
    lift_reason: str | None


class SigningJournal:
    """The journal in one file, for one process at a time."""

    def __init__(self, path: Path) -> None:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=5.0)
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("PRAGMA foreign_keys = ON")
            self._connection.executescript(_HALTS)
        except sqlite3.Error as error:
            self._connection.close()
            raise OSError(None, str(error), str(path)) from None

    def make_tables(self, statements: str) -> None:
        """Make the tables of a scheme where they are missing."""
        self._connection.executescript(statements)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[Statement]:
        """One transaction; committed unless the block raises."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield lambda statement, *values: self._connection.execute(statement, values)
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def halts(self, most: int = 20) -> list[SignerHalt]:
        """The latest halts, newest first."""
        with self.transaction() as run:
            rows = run("SELECT * FROM halts ORDER BY number DESC LIMIT ?", most).fetchall()
        return [SignerHalt(*row) for row in rows]

    def lift(self, reason: str, now: Instant) -> int:
        """Lift every halt, with the reason of a person. Return how many."""
        if not reason.strip():
            raise UserError("a halt is lifted with a reason", "add --reason TEXT")
        with self.transaction() as run:
            return run(
                "UPDATE halts SET lifted_at = ?, lift_reason = ? WHERE lifted_at IS NULL", now, reason.strip()
            ).rowcount


def halt(run: Statement, reason: str, request_id: str, now: Instant) -> None:
    """Halt the process durably, inside a transaction. Adds nothing while it is halted for that reason."""
    if not run("SELECT 1 FROM halts WHERE lifted_at IS NULL AND reason = ? LIMIT 1", reason).fetchone():
        run("INSERT INTO halts (at, reason, request_id) VALUES (?, ?, ?)", now, reason, request_id)


def halt_reason(run: Statement) -> str:
    """The reason of the first halt that is not lifted; empty if there is none."""
    row = run("SELECT reason FROM halts WHERE lifted_at IS NULL ORDER BY number LIMIT 1").fetchone()
    return "" if row is None else str(row[0])
