"""One open database: transactions to read and to write in, errors that a person can read, the schema up to date.

A path opens a SQLite file, `postgresql://…` a Postgres database. What is particular to one of them is in `sqlite.py` and
`postgres.py`; the SQL of all other modules runs on both.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import PoolProxiedConnection

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.store import postgres, schema, sqlite
from pitboss.store import sealed_rows as rows
from pitboss.store.database_lock import DatabaseLock, unwritable
from pitboss.store.migrate import check_known, make, migrate, revision
from pitboss.store.migrations import HEAD
from pitboss.store.sqlite import JournalMode, Processes

_SQLITE_PREFIX = "sqlite:///"


class Database:
    """An open database. Close it when done, or use it in a `with`."""

    def __init__(
        self,
        engine: Engine,
        where: str,
        mode: JournalMode | None = None,
        version: tuple[int, int, int] | None = None,
        lock: DatabaseLock | None = None,
    ) -> None:
        self.engine = engine
        self.where = where
        self.journal_mode = mode
        self.sqlite_version = version
        self.clock: Callable[[], Instant] | None = None if mode is None else sqlite.now
        """What a file has in place of a server's clock; None asks the server."""
        self._lock = lock
        self._kept: list[PoolProxiedConnection] = []
        self._driver_error: type[Exception] = engine.dialect.loaded_dbapi.Error

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads. Keep it short: with a rollback journal it makes writers wait."""
        with self.explained(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that writes: all of it happens, or nothing."""
        with self.explained(), self.engine.connect() as connection:
            writing = connection.execution_options(**{sqlite.WRITES: True})
            with writing.begin():
                yield writing

    @contextmanager
    def write_raw(self, lazily: bool = False) -> Iterator[Any]:
        """The same with a bare driver cursor, for the one place where the layers between cost too much.

        The connection is kept: to fetch one from the pool costs three times as much as what is done with it. `lazily`, a
        write-ahead log is not flushed to the disk: no crash of this program loses what was written, and the next ordinary
        commit flushes it too, but a machine that loses power before that may.
        """
        lazily = lazily and self.journal_mode == "wal"
        with self._kept_connection() as connection:
            cursor = connection.cursor()
            try:
                if lazily:
                    cursor.execute("PRAGMA synchronous=NORMAL")
                if self.journal_mode is not None:
                    cursor.execute("BEGIN IMMEDIATE")
                yield cursor
                connection.commit()
                if lazily:
                    cursor.execute("PRAGMA synchronous=FULL")
            finally:
                cursor.close()

    @contextmanager
    def read_raw(self) -> Iterator[Any]:
        """A bare driver cursor to read with, over the same connection. One statement sees one state of the database."""
        with self._kept_connection() as connection:
            cursor = connection.cursor()
            try:
                yield cursor
                if self.journal_mode is None:  # elsewhere than in SQLite reading opens a transaction
                    connection.rollback()
            finally:
                cursor.close()

    @contextmanager
    def _kept_connection(self) -> Iterator[PoolProxiedConnection]:
        """The connection that is kept between uses, or another while somebody has it. One that failed is not kept."""
        connection: PoolProxiedConnection | None = None
        try:
            try:
                connection = self._kept.pop()  # at one stroke: threads share a database
            except IndexError:
                connection = self.engine.raw_connection()
            yield connection
        except BaseException as error:
            if connection is not None:
                self._give_up(connection)
            explained = self._meaning(error)
            if explained is None:
                raise
            raise explained from error
        if self._kept:  # somebody else's has taken the place meanwhile
            connection.close()
        else:
            self._kept.append(connection)

    def _give_up(self, connection: PoolProxiedConnection) -> None:
        with suppress(self._driver_error):  # a connection that is gone took its transaction with it
            connection.rollback()
        if self.journal_mode is None:
            connection.invalidate()  # it may be the connection that failed
        connection.close()

    def now(self, connection: Connection) -> Instant:
        """The time of the database, which is the same for all who work on it."""
        return postgres.now(connection) if self.clock is None else self.clock()

    def now_raw(self, cursor: Any) -> Instant:
        """The same, in a `write_raw`."""
        return postgres.now_raw(cursor) if self.clock is None else self.clock()

    def alone(self, connection: Connection, name: str) -> None:
        """Keep out every other transaction that says the same name, until this one ends.

        For what a lock on a row cannot guard because the row may not be there yet. In SQLite one writes at a time anyway.
        """
        if self.journal_mode is None:
            postgres.alone(connection, name)

    def alone_for_long(self, connection: Connection, name: str) -> None:
        """The same for something that may take its time, and that others wait for."""
        if self.journal_mode is None:
            postgres.unhurried(connection)
            postgres.alone(connection, name)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn a driver's error that a person can do something about into a `UserError`."""
        try:
            yield
        except Exception as error:
            explained = self._meaning(error)
            if explained is None:
                raise
            raise explained from error

    def _meaning(self, error: BaseException) -> UserError | None:
        if not isinstance(error, DBAPIError | UnicodeDecodeError | self._driver_error):
            return None
        return (sqlite.explain if self.journal_mode else postgres.explain)(error, self.where)

    def close(self) -> None:
        """Close all connections and let go of the lock. Safe to call twice."""
        while self._kept:
            self._kept.pop().close()
        self.engine.dispose()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def discard(self) -> None:
        """Close what turned out not to be ours to use, and leave nothing beside it."""
        lock, self._lock = self._lock, None
        self.close()
        if lock is not None:
            lock.undo()

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def open_database(
    url_or_path: str | Path,
    processes: Processes = "several",
    sqlite_version: tuple[int, int, int] = sqlite3.sqlite_version_info,
    looking: bool = False,
) -> Database:
    """Open a database, make it if it is not there, and bring its schema up to date.

    `processes="one"` says that no other process will use it meanwhile, and makes sure of it. With `looking` nothing is
    made or brought up to date, and the database itself refuses to write through this door.
    """
    text = str(url_or_path)
    file = text.removeprefix(_SQLITE_PREFIX)
    if file == ":memory:" or ("://" in file and file.startswith("sqlite")):
        raise UserError(f"cannot open a database at {text}", "name a file by its path, or by sqlite:///path")
    if "://" in text and not text.startswith(_SQLITE_PREFIX):
        database = _open_address(text)
    else:
        if looking and not Path(file).is_file():
            raise UserError("there is no database here yet", "it is made when something is first stored")
        database = _open_file(Path(file), processes, sqlite_version)
    if looking:
        _forbid_writes(database)
    try:
        with database.read() as connection:
            found = revision(connection)
        check_known(found)
        if found != HEAD and looking:
            raise UserError(
                "the database was made by an earlier pitboss", "`pitboss runs list` brings it up to date, once"
            )
        if found is None and database.journal_mode is not None:
            make(database.write)
            with database.read() as connection:  # somebody else may have been there first
                found = revision(connection)
        if found != HEAD:
            migrate(database.write, database.alone_for_long)
    except BaseException:
        database.discard()
        raise
    return database


def _forbid_writes(database: Database) -> None:
    is_file = database.journal_mode is not None
    statement = "PRAGMA query_only = ON" if is_file else "SET default_transaction_read_only = on"

    @event.listens_for(database.engine, "connect")
    def forbid(connection: Any, _record: object) -> None:  # pyright: ignore[reportUnusedFunction]
        cursor = connection.cursor()
        cursor.execute(statement)
        cursor.close()
        if not is_file:
            connection.commit()  # a setting made in a transaction that is rolled back is none


def _open_file(path: Path, processes: Processes, version: tuple[int, int, int]) -> Database:
    try:
        has_folder, is_folder = path.parent.is_dir(), path.is_dir()
    except OSError as error:  # a name too long, a folder that may not be looked into
        raise unwritable(path, error) from None
    if not has_folder:
        raise UserError(f"there is no folder {path.parent} to keep the database in", "make it, or name another --home")
    if is_folder:
        raise UserError(f"{path} is a folder, not a database", "name a file in it")
    mode = sqlite.journal_mode(version, processes)
    # From this version on processes of both kinds may use a database at once.
    lock = None if version >= sqlite.WAL_FIXED else DatabaseLock.acquire(path, shared=processes == "several")
    return Database(sqlite.engine(path, mode), str(path), mode, version, lock)


def _open_address(address: str) -> Database:
    engine = postgres.engine(address)
    return Database(engine, engine.url.set(drivername="postgresql").render_as_string(hide_password=True))


def journal_note(database: Database) -> str | None:
    """What to tell a person about the journal mode: text the first time it is asked for a database, then None."""
    if database.sqlite_version is None or database.sqlite_version >= sqlite.WAL_FIXED:
        return None
    version = ".".join(str(part) for part in database.sqlite_version)
    key = {"key": "journal_note"}
    with database.read() as connection:
        if rows.fetch(connection, schema.facts, key):
            return None
    with database.write() as connection:
        if rows.fetch(connection, schema.facts, key):
            return None
        rows.add(connection, schema.facts, {**key, "value": version})
    return (
        f"SQLite {version} is older than 3.51.3, which mends a fault that can damage a database written by several "
        "processes in WAL mode. pitboss therefore uses the slower rollback journal here, and WAL only in a process "
        "that has the database to itself. Nothing for you to do; a newer SQLite makes commits faster."
    )
