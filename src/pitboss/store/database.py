"""One open database: transactions to read and to write in, errors that a person can read, the schema up to date.

Everything that is particular to SQLite is in `sqlite.py`; the SQL of the other modules runs on Postgres as well.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError as BadAddress
from sqlalchemy.exc import DBAPIError, InterfaceError, NoSuchModuleError, OperationalError
from sqlalchemy.pool import PoolProxiedConnection

from pitboss.core.errors import UserError
from pitboss.store import rows, schema, sqlite
from pitboss.store.migrate import check_known, migrate, revision
from pitboss.store.migrations import HEAD
from pitboss.store.sqlite import Hold, JournalMode, Processes

_SQLITE_PREFIX = "sqlite:///"
PATIENCE_S = 10
"""How long a server may take to answer at all."""
NOT_ALLOWED = "42501"
"""What every Postgres calls it."""


class Database:
    """An open database. Close it when done, or use it in a `with`."""

    def __init__(
        self,
        engine: Engine,
        where: str,
        mode: JournalMode | None = None,
        version: tuple[int, int, int] | None = None,
        held: Hold | None = None,
    ) -> None:
        self.engine = engine
        self.where = where
        self.journal_mode = mode
        self.sqlite_version = version
        self._held = held
        self._kept: PoolProxiedConnection | None = None

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
        with self.explained():
            connection = self._kept or self.engine.raw_connection()
            self._kept = None
            try:
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
                except BaseException:
                    connection.rollback()
                    raise
                finally:
                    cursor.close()
            except BaseException:
                connection.close()
                raise
            self._kept = connection

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn a driver's error that a person can do something about into a `UserError`."""
        try:
            yield
        except (DBAPIError, sqlite3.Error, UnicodeDecodeError) as error:
            explained = sqlite.explain(error, self.where) if self.journal_mode else _explain(error, self.where)
            if explained is None:
                raise
            raise explained from error

    def close(self) -> None:
        """Close all connections and let go of the lock. Safe to call twice."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None
        self.engine.dispose()
        if self._held is not None:
            self._held.close()
            self._held = None

    def discard(self) -> None:
        """Close what turned out not to be ours to use, and leave nothing beside it."""
        held, self._held = self._held, None
        self.close()
        if held is not None:
            held.undo()

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
        if found != HEAD:
            migrate(database.write)
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
        raise sqlite.unwritable(path, error) from None
    if not has_folder:
        raise UserError(f"there is no folder {path.parent} to keep the database in", "make it, or name another --home")
    if is_folder:
        raise UserError(f"{path} is a folder, not a database", "name a file in it")
    held = sqlite.hold(path, version, processes)
    mode = sqlite.journal_mode(version, processes)
    return Database(sqlite.engine(path, mode), str(path), mode, version, held)


def _open_address(address: str) -> Database:
    scheme = address.partition("://")[0]
    try:
        url = make_url(address)
        patient = url.get_backend_name() == "postgresql" and "connect_timeout" not in url.query
        engine = create_engine(url, connect_args={"connect_timeout": PATIENCE_S} if patient else {})
    except ModuleNotFoundError as error:
        raise UserError(
            f"cannot open a database at {scheme}://…: the package {error.name} is not installed",
            "pip install 'psycopg[binary]', and write postgresql+psycopg://user@host/name",
        ) from None
    except (BadAddress, NoSuchModuleError, ValueError) as error:
        why = "it cannot be read" if isinstance(error, ValueError) else str(error)  # which may repeat any part of it
        raise UserError(
            f"cannot open a database at {scheme}://…: {why}", "a file path, or postgresql+psycopg://user@host/name"
        ) from None
    return Database(engine, engine.url.render_as_string(hide_password=True))


def _explain(error: BaseException, where: str) -> UserError | None:
    """The line for a person behind the error of a database server, or None if it is not one that a person can fix."""
    cause = getattr(error, "orig", None) or error
    said = " ".join(str(cause).split())[:300]
    if getattr(cause, "sqlstate", None) == NOT_ALLOWED:
        return UserError(f"the database {where} does not allow this: {said}", "give its user the right to make tables")
    if isinstance(error, OperationalError | InterfaceError):
        return UserError(
            f"the database {where} cannot be reached: {said}",
            "does it run, and does --db name its host, user, password and database?",
        )
    return None


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
