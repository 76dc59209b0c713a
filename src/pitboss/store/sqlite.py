"""What is specific to SQLite: pragmas, the journal mode, the meaning of its error codes.

SQLite before 3.51.3 can corrupt a database in WAL mode when several processes write it (the WAL-reset bug). With such a
version WAL is used only by a process that holds the database exclusively (`database_lock.py`); others use the rollback
journal. A process that is stopped (SIGSTOP) inside a transaction keeps the file locked: the others wait `busy_timeout` and
then get `Unreachable`.
"""

import sqlite3
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.store.migrate import check_ours
from pitboss.store.retry import Unreachable

WAL_FIXED = (3, 51, 3)
BUSY_TIMEOUT_MS = 10_000
WRITES = "pitboss_writes"

Processes = Literal["several", "one"]
JournalMode = Literal["wal", "truncate"]


def journal_mode(version: tuple[int, int, int], processes: Processes) -> JournalMode:
    """The fastest mode that is safe with this version of SQLite and this number of processes."""
    return "wal" if version >= WAL_FIXED or processes == "one" else "truncate"


def engine(path: Path, mode: JournalMode, check: Callable[[Collection[str]], None] = check_ours) -> Engine:
    """An engine whose connections flush commits, wait for locks, enforce references, and announce writes when they begin.

    `check` gets the names of the tables of an existing file and raises `UserError` if it belongs to another program.
    """
    created = create_engine(URL.create("sqlite+pysqlite", database=str(path)))

    @event.listens_for(created, "connect")
    def prepare(connection: sqlite3.Connection, _record: object) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.isolation_level = None  # BEGIN is sent below; the driver would send it too late
        cursor = connection.cursor()
        try:
            cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
            # Setting the mode takes locks, so it is set only if it differs. TRUNCATE is not stored in the file.
            (current,) = cursor.execute("PRAGMA journal_mode").fetchone()
            if current != mode:
                # The mode is written into the file: refuse the file of another program before it is changed.
                tables = cursor.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
                check([name for (name,) in tables if not str(name).startswith("sqlite_")])
                (current,) = cursor.execute(f"PRAGMA journal_mode={mode}").fetchone()
            if current != mode:
                raise sqlite3.OperationalError(f"journal mode is {current}, not {mode}")
            cursor.execute("PRAGMA synchronous=FULL")
            # In WAL mode: checkpoint every 32 MB instead of every 4; a run that commits each tick waits for each checkpoint.
            cursor.execute("PRAGMA wal_autocheckpoint=8000")
            cursor.execute("PRAGMA foreign_keys=ON")
        finally:
            cursor.close()

    @event.listens_for(created, "begin")
    def begin(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        # A transaction that reads first and writes later can fail half-way with SQLITE_BUSY; BEGIN IMMEDIATE cannot.
        writes = connection.get_execution_options().get(WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return created


def now() -> Instant:
    """The time of a SQLite database: the machine's clock, which all processes that share the file share too."""
    return time.time_ns() // 1_000_000  # noqa: TID251 - a lease is compared in the database's time, and this is it


def explain(error: BaseException, location: str) -> UserError | None:
    """The user's error behind a driver error, or None if the user cannot act on it."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, UnicodeDecodeError):  # the driver cannot decode text, or its own message about it
        return UserError(f"the database {location} is damaged", "restore a copy, or use another --home")
    if not isinstance(cause, sqlite3.Error):
        return None
    name = getattr(cause, "sqlite_errorname", None) or ""
    for start, message, hint in _MEANINGS:
        if name.startswith(start):
            kind = Unreachable if start in _TRANSIENT else UserError
            return kind(message.format(location=location), hint)
    if isinstance(cause, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return None
    return UserError(f"the database {location} cannot be used: {cause}", "restore a copy, or use another --home")


_TRANSIENT = ("SQLITE_BUSY", "SQLITE_LOCKED")
_BUSY = f"the database {{location}} is busy: another process has locked it for {BUSY_TIMEOUT_MS // 1_000} s"
_BUSY_HINT = "try again later; if that process was stopped (Ctrl-Z), let it go on or end it"
_MEANINGS = (
    ("SQLITE_NOTADB", "{location} is not a database", "name another file, or move this one away"),
    ("SQLITE_READONLY", "the database {location} cannot be written", "choose a folder you may write, with --home"),
    (
        "SQLITE_CANTOPEN",
        "the database {location} cannot be opened or created",
        "check that the folder exists and that you may write it",
    ),
    (
        "SQLITE_PERM",
        "the database {location} cannot be opened or created",
        "check that the folder exists and that you may write it",
    ),
    ("SQLITE_FULL", "the disk is full: {location} cannot grow", "free some space; everything committed so far is kept"),
    ("SQLITE_BUSY", _BUSY, _BUSY_HINT),
    ("SQLITE_LOCKED", _BUSY, _BUSY_HINT),
    ("SQLITE_CORRUPT", "the database {location} is damaged", "restore a copy, or use another --home"),
    (
        "SQLITE_IOERR",
        "the disk under {location} reports an error",
        "check the disk; everything committed so far is kept",
    ),
)


def damage(connection: Connection) -> list[str]:
    """The problems that SQLite's integrity check reports; empty if there are none."""
    rows = connection.exec_driver_sql("PRAGMA integrity_check(5)").scalars()
    return [str(row) for row in rows if row != "ok"]
