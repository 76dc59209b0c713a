"""What is specific to Postgres: the address, the driver, its clock, its locks, the meaning of its error codes.

Its counterpart is `sqlite.py`; everything else in the store is written once for both. Text is compared by its bytes (since
migration 0005), so that an order, and a digest over it, is the same in both databases.
"""

import hashlib
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError as BadAddress
from sqlalchemy.exc import InterfaceError, NoSuchModuleError, OperationalError

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.store.retry import Unreachable

SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
EXAMPLE = "postgresql://user@host/name"
CONNECT_TIMEOUT_S = 10
"""How long a server may take to accept a connection."""
IDLE_MS = 5_000
"""A worker that is suspended inside a transaction (its machine sleeps) loses the transaction and its locks after this time.
It may have been claiming a run of a lost worker: this wait is added to the lease."""
LOCK_MS = 10_000
"""How long to wait for a lock."""
_NOW = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
"""Not now(), which is the start of the transaction, perhaps before it waited for a lock."""

NOT_ALLOWED = "42501"
READ_ONLY = "25006"
FULL = "53100"
REFUSED = ("28", "3D")
"""Wrong user or password, no such database: waiting does not help."""
REFUSALS = ("does not exist", "authentication failed", "no pg_hba.conf entry", "no password supplied")
"""The same as text: a failed attempt to connect has no code."""
NO_SLOT = ("too many clients", "remaining connection slots", "too many connections for")
"""The same for a server, a role or a database whose limit of connections is reached."""
TOO_MANY = "53300"
PASSING = ("08", "25P03", "40", "53", "55P03", "57")
"""Broken connections, ended transactions, deadlocks, too many connections, locks, a server that stops or starts."""


def engine(address: str, pool_size: int = 1) -> Engine:
    """An engine for the server at an address that keeps `pool_size` connections. Nothing is connected yet."""
    scheme = address.partition("://")[0]
    if scheme not in SCHEMES:
        raise UserError(
            f"cannot open a database at {scheme}://…: pitboss stores its runs in SQLite or Postgres",
            f"a file path, or {EXAMPLE} (postgresql+psycopg://… is the same)",
        )
    try:
        url = make_url(address).set(drivername="postgresql+psycopg")
        defaults: dict[str, Any] = {
            "connect_timeout": CONNECT_TIMEOUT_S,
            "application_name": "pitboss",
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
        }
        # A server has about a hundred connections for all workers, so a worker keeps one. Threads that need more at the
        # same moment open others, which are closed after use.
        own = {name: value for name, value in defaults.items() if name not in url.query}
        # The schema has no hstore: the library need not ask every server whether it has that type.
        created = create_engine(
            url,
            connect_args=own,
            pool_size=pool_size,
            max_overflow=30,
            pool_pre_ping=True,
            use_native_hstore=False,
        )
    except ModuleNotFoundError as error:
        raise UserError(
            f"cannot open a database at {scheme}://…: the package {error.name} is not installed",
            "pip install 'pitboss[postgres]'",
        ) from None
    except (BadAddress, NoSuchModuleError, ValueError) as error:
        # The message of a `ValueError` may repeat parts of the address.
        reason = "it cannot be read" if isinstance(error, ValueError) else str(error)
        raise UserError(f"cannot open a database at {scheme}://…: {reason}", f"a file path, or {EXAMPLE}") from None

    @event.listens_for(created, "connect")
    def prepare(connection: Any, _record: object) -> None:  # pyright: ignore[reportUnusedFunction]
        with connection.cursor() as cursor:
            cursor.execute(
                f"SET idle_in_transaction_session_timeout = {IDLE_MS}; SET lock_timeout = {LOCK_MS}; SET TIME ZONE 'UTC'"
            )
        connection.commit()  # a setting of a transaction that is rolled back is lost

    return created


def now(connection: Connection) -> Instant:
    """The server's time."""
    return int(connection.exec_driver_sql(_NOW).scalar_one())


def now_raw(cursor: Any) -> Instant:
    """The server's time, by a driver cursor."""
    cursor.execute(_NOW)
    return int(cursor.fetchone()[0])


def advisory_lock(connection: Connection, name: str) -> None:
    """Take the advisory lock of a name; it is released when the transaction ends."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%(number)s)", {"number": number})


def disable_timeouts(connection: Connection) -> None:
    """Disable the idle and lock timeouts for this transaction."""
    connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
    connection.exec_driver_sql("SET LOCAL lock_timeout = 0")


def explain(error: BaseException, location: str) -> UserError | None:
    """The user's error behind an error of the server, or None if the user cannot act on it."""
    cause = getattr(error, "orig", None) or error
    reason = " ".join(str(cause).split())[:300]
    code = str(getattr(cause, "sqlstate", None) or "")
    if code == NOT_ALLOWED:
        return UserError(
            f"the database {location} does not allow this: {reason}", "give its user the right to create tables"
        )
    if code == READ_ONLY:
        return UserError(f"the database {location} cannot be written: {reason}", "is it a read-only replica?")
    if code == FULL:
        return UserError(f"the disk under {location} is full", "free some space; everything committed so far is kept")
    if code == TOO_MANY or any(phrase in reason for phrase in NO_SLOT):
        limit = reason.rpartition("FATAL: ")[2].strip()
        return Unreachable(
            f"the database {location} has no free connection: its limit (max_connections, 100 unless it was changed) is "
            f"reached ({limit})",
            "stop workers that are not needed, each of which keeps one, or raise max_connections on the server",
        )
    message = f"the database {location} cannot be reached: {reason}"
    hint = "check that the server runs and that --db names its host, user, password and database"
    if code.startswith(REFUSED) or (not code and any(phrase in reason for phrase in REFUSALS)):
        return UserError(message, hint)
    by_name = type(cause).__name__ in ("OperationalError", "InterfaceError")  # raised by the driver without SQLAlchemy
    if code.startswith(PASSING) or isinstance(error, OperationalError | InterfaceError) or by_name:
        return Unreachable(message, hint)
    return None
