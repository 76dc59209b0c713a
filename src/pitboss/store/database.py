"""An open database: read and write transactions, readable errors, and a schema that is up to date.

A path opens a SQLite file, `postgresql://…` a Postgres database. What is specific to one of them is in `sqlite.py` and
`postgres.py`; the SQL of all other modules runs on both.
"""

import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from threading import RLock, local
from types import TracebackType
from typing import Any

from sqlalchemy import Column, Connection, Engine, MetaData, Select, event, inspect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import PoolProxiedConnection

from pitboss.core.errors import InvariantError, UserError
from pitboss.core.instant import Instant
from pitboss.store import postgres, schema, sqlite
from pitboss.store import sealed_rows as rows
from pitboss.store.database_lock import DatabaseLock, unwritable
from pitboss.store.migrate import OutdatedDatabase, check_known, check_ours, create_schema, migrate, revision
from pitboss.store.migrations import HEAD
from pitboss.store.sqlite import JournalMode, Processes

_SQLITE_PREFIX = "sqlite:///"


class Database:
    """An open database. Close it after use, or use it in a `with`.

    With `turns` the threads of this process use a SQLite file one after the other, where it does not let them work at once.
    """

    def __init__(
        self,
        engine: Engine,
        location: str,
        mode: JournalMode | None = None,
        version: tuple[int, int, int] | None = None,
        lock: DatabaseLock | None = None,
        turns: bool = False,
    ) -> None:
        self.engine = engine
        self.location = location
        self.journal_mode = mode
        self.sqlite_version = version
        self.clock: Callable[[], Instant] | None = None if mode is None else sqlite.now
        """The clock of a SQLite file; None: the server's clock is used."""
        self._lock = lock
        # Threads that wait for SQLite's own locks look again after pauses of up to 100 ms; those that take turns need not.
        self._turn = RLock() if turns and mode is not None else nullcontext()
        self._reading_turn = self._turn if mode == "truncate" else nullcontext()
        self._idle: list[PoolProxiedConnection] = []
        self._thread = local()
        self._driver_error: type[Exception] = engine.dialect.loaded_dbapi.Error

    @contextmanager
    def _only_transaction(self) -> Iterator[None]:
        """Refuse a transaction inside another one of the same thread.

        With a rollback journal the inner one waits for a writer that waits for the outer one, until SQLite gives up after 10 s.
        """
        if getattr(self._thread, "is_busy", False):
            raise InvariantError("a transaction was begun inside another one; end the first, or pass its connection on")
        self._thread.is_busy = True
        try:
            yield
        finally:
            self._thread.is_busy = False

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read transaction. Keep it short: with a rollback journal it blocks writers."""
        with (
            self._only_transaction(),
            self._reading_turn,
            self.explained(),
            self.engine.connect() as connection,
            connection.begin(),
        ):
            yield connection

    def read_paged(self, query: Select[*tuple[Any, ...]], column: Column[Any], size: int) -> Iterator[dict[str, Any]]:
        """The rows of a `sealed_rows.raw` query in the order of a unique column. No lock is held between pages."""
        page_query = query
        while True:
            with self.read() as connection:
                page = rows.fetch_all(connection, page_query.order_by(column).limit(size))
            yield from page
            if len(page) < size:
                return
            page_query = query.where(column > page[-1][column.name])

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A write transaction: committed at the end of the block, rolled back on an error."""
        with self._only_transaction(), self._turn, self.explained(), self.engine.connect() as connection:
            writing = connection.execution_options(**{sqlite.WRITES: True})
            with writing.begin():
                yield writing

    @contextmanager
    def write_raw(self, lazily: bool = False) -> Iterator[Any]:
        """A write transaction with a driver cursor, for hot paths where SQLAlchemy's layers cost too much.

        The connection to a file is kept between uses: fetching one from the pool costs three times as much as the work
        itself. With `lazily` the write-ahead log is not flushed to disk: a crash of the process loses nothing, and the next ordinary
        commit flushes it, but a power failure before that may lose the transaction.
        """
        lazily = lazily and self.journal_mode == "wal"
        with self._only_transaction(), self._reused_connection() as connection:
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
        """A driver cursor for reading, over the same connection. Each statement sees one consistent state."""
        with self._only_transaction(), self._reused_connection() as connection:
            cursor = connection.cursor()
            try:
                yield cursor
                if self.journal_mode is None:  # on a server reading opens a transaction
                    connection.rollback()
            finally:
                cursor.close()

    @contextmanager
    def _reused_connection(self) -> Iterator[PoolProxiedConnection]:
        """The connection that is kept between uses, or a new one while that is in use. A connection that failed is dropped.

        A connection to a server goes back to the pool, which keeps one for all uses.
        """
        connection: PoolProxiedConnection | None = None
        try:
            try:
                connection = self._idle.pop()  # atomic: threads share a database
            except IndexError:
                connection = self.engine.raw_connection()
            yield connection
        except BaseException as error:
            if connection is not None:
                self._drop(connection)
            user_error = self._user_error(error)
            if user_error is None:
                raise
            raise user_error from error
        if self._idle or self.journal_mode is None:  # another thread has returned its connection meanwhile
            connection.close()
        else:
            self._idle.append(connection)

    def _drop(self, connection: PoolProxiedConnection) -> None:
        with suppress(self._driver_error):  # a broken connection has lost its transaction anyway
            connection.rollback()
        connection.invalidate()  # not back into the pool: it may be broken, or still have the settings of a lazy commit
        connection.close()

    def now(self, connection: Connection) -> Instant:
        """The time of the database, which is the same for all its clients."""
        return postgres.now(connection) if self.clock is None else self.clock()

    def now_raw(self, cursor: Any) -> Instant:
        """The time of the database, in a `write_raw`."""
        return postgres.now_raw(cursor) if self.clock is None else self.clock()

    def lock_name(self, connection: Connection, name: str) -> None:
        """Exclude every other transaction that locks the same name until this transaction ends.

        For cases in which a row lock is not possible because the row may not exist yet. SQLite has one writer at a time.
        """
        if self.journal_mode is None:
            postgres.advisory_lock(connection, name)

    def lock_name_without_timeout(self, connection: Connection, name: str) -> None:
        """The same for a transaction that may take long, and that others wait for."""
        if self.journal_mode is None:
            postgres.disable_timeouts(connection)
            postgres.advisory_lock(connection, name)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn driver errors that the user can act on into a `UserError`."""
        try:
            yield
        except Exception as error:
            user_error = self._user_error(error)
            if user_error is None:
                raise
            raise user_error from error

    def _user_error(self, error: BaseException) -> UserError | None:
        if isinstance(error, UnicodeEncodeError):  # such as an argument of a command that is not UTF-8
            return UserError("a name or an id is not valid text", "check it for characters that are not UTF-8")
        if not isinstance(error, DBAPIError | UnicodeDecodeError | self._driver_error):
            return None
        return (sqlite.explain if self.journal_mode else postgres.explain)(error, self.location)

    def close_idle(self) -> None:
        """Close the connection to a server that is kept for the next use, before a process waits for long."""
        if self.journal_mode is None:
            self.engine.dispose()

    def close(self) -> None:
        """Close all connections and release the lock. Safe to call twice."""
        while self._idle:
            self._idle.pop().close()
        self.engine.pool.dispose()  # that of the engine would make a pool for later use
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def discard(self) -> None:
        """Close a database that is refused, and remove the lock file if it was created for it."""
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
    read_only: bool = False,
) -> Database:
    """Open a database; create it if it does not exist, and migrate its schema.

    `processes="one"` excludes all other processes while it is open. With `read_only` nothing is created or migrated, and the
    database itself refuses writes over these connections.
    """
    file = _file_of(str(url_or_path))
    if file is None:
        database = _open_address(str(url_or_path))
    else:
        if read_only and not file.is_file():
            raise UserError("there is no database here yet", "it is created when something is first stored")
        database = _open_file(file, processes, sqlite_version)
    if read_only:
        _forbid_writes(database)
    try:
        with database.read() as connection:
            current = revision(connection)
        check_known(current)
        if current != HEAD and read_only:
            raise OutdatedDatabase(
                "the database was created by an earlier pitboss", "`pitboss runs list` brings it up to date, once"
            )
        if current is None and database.journal_mode is not None:
            current = create_schema(database.write)
        if current != HEAD:
            migrate(database.write, database.lock_name_without_timeout)
    except BaseException:
        database.discard()
        raise
    return database


def open_tables(url_or_path: str | Path, tables: MetaData, pool_size: int = 1, read_only: bool = False) -> Database:
    """Open a database that holds the tables of something else than runs, such as those of a venue's server.

    Missing tables are created. A file with other tables and none of these is refused; a database on a server may be shared.
    With `read_only` nothing is created, and the database itself refuses writes over these connections.
    """
    names = set(tables.tables)

    def check(existing: Collection[str]) -> None:
        if existing and not names & set(existing):
            raise UserError("this database belongs to another program", "name another file with --db")

    file = _file_of(str(url_or_path))
    if file is None:
        database = _open_address(str(url_or_path), pool_size)
    else:
        if read_only and not file.is_file():
            raise UserError("there is no database here yet", "it is created when something is first stored")
        database = _open_file(file, "several", sqlite3.sqlite_version_info, check, turns=True)
    if read_only:
        _forbid_writes(database)
    try:
        with database.read() as connection:
            existing = inspect(connection).get_table_names()
        if file is not None:
            check(existing)
        if read_only and not names <= set(existing):
            raise UserError("the database was created by an earlier pitboss", "start its server once")
        if not names <= set(existing):
            with database.write() as connection:
                database.lock_name(connection, "create tables")
                tables.create_all(connection)
    except BaseException:
        database.discard()
        raise
    return database


def _file_of(text: str) -> Path | None:
    """The path of a SQLite file; None for the address of a server."""
    file = text.removeprefix(_SQLITE_PREFIX)
    if file == ":memory:" or ("://" in file and file.startswith("sqlite")):
        raise UserError(f"cannot open a database at {text}", "name a file by its path, or by sqlite:///path")
    return None if "://" in text and not text.startswith(_SQLITE_PREFIX) else Path(file)


def _forbid_writes(database: Database) -> None:
    is_file = database.journal_mode is not None
    statement = "PRAGMA query_only = ON" if is_file else "SET default_transaction_read_only = on"

    @event.listens_for(database.engine, "connect")
    def forbid(connection: Any, _record: object) -> None:  # pyright: ignore[reportUnusedFunction]
        cursor = connection.cursor()
        cursor.execute(statement)
        cursor.close()
        if not is_file:
            connection.commit()  # a setting of a transaction that is rolled back is lost


def _open_file(
    path: Path,
    processes: Processes,
    version: tuple[int, int, int],
    check: Callable[[Collection[str]], None] = check_ours,
    turns: bool = False,
) -> Database:
    try:
        has_folder, is_folder = path.parent.is_dir(), path.is_dir()
    except OSError as error:  # a name that is too long, a folder without read permission
        raise unwritable(path, error) from None
    if not has_folder:
        raise UserError(f"there is no folder {path.parent} for the database", "create it, or name another --home")
    if is_folder:
        raise UserError(f"{path} is a folder, not a database", "name a file in it")
    mode = sqlite.journal_mode(version, processes)
    # From this version on processes of both kinds may use a database at once.
    lock = None if version >= sqlite.WAL_FIXED else DatabaseLock.acquire(path, shared=processes == "several")
    return Database(sqlite.engine(path, mode, check), str(path), mode, version, lock, turns)


def _open_address(address: str, pool_size: int = 1) -> Database:
    engine = postgres.engine(address, pool_size)
    return Database(engine, engine.url.set(drivername="postgresql").render_as_string(hide_password=True))


def journal_note(database: Database) -> str | None:
    """The note to the user about the journal mode: returned once for each database, then None."""
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
        f"SQLite {version} is older than 3.51.3, which fixes a fault that can damage a database written by several "
        "processes in WAL mode. pitboss therefore uses the slower rollback journal here, and WAL only in a process "
        "that has the database to itself. You need not do anything; a newer SQLite makes commits faster."
    )
