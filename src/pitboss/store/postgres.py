"""The one place that knows it is Postgres: the address, the driver, its clock, its locks, what its error codes mean.

Its counterpart is `sqlite.py`; everything else in the store is written once for both. Text is compared by its bytes
(migration 0005 sees to that), so that an order, and a digest over it, is the same in both databases.
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
PATIENCE_S = 10
"""How long a server may take to answer at all."""
IDLE_MS = 5_000
"""A worker that stops inside a transaction (its machine sleeps) loses it after so long, and with it every lock. It may
have been about to claim a run that somebody else had lost: that wait comes on top of the lease."""
LOCK_MS = 10_000
"""How long to wait for somebody else's lock."""
_NOW = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"
"""Not now(): that is when the transaction began, perhaps before it waited for a lock."""

NOT_ALLOWED = "42501"
READ_ONLY = "25006"
FULL = "53100"
REFUSED = ("28", "3D")
"""Wrong user or password, no such database: waiting does not help."""
REFUSALS = ("does not exist", "authentication failed", "no pg_hba.conf entry", "no password supplied")
"""The same in words: an attempt to connect that fails has no code."""
PASSING = ("08", "25P03", "40", "53", "55P03", "57")
"""Connections cut, transactions cut, deadlocks, too many connections, locks, a server that stops or starts."""


def engine(address: str) -> Engine:
    """An engine for the server at an address. Nothing is connected yet."""
    scheme = address.partition("://")[0]
    if scheme not in SCHEMES:
        raise UserError(
            f"cannot open a database at {scheme}://…: pitboss keeps its runs in SQLite or Postgres",
            f"a file path, or {EXAMPLE} (postgresql+psycopg://… is the same)",
        )
    try:
        url = make_url(address).set(drivername="postgresql+psycopg")
        asked: dict[str, Any] = {
            "connect_timeout": PATIENCE_S,
            "application_name": "pitboss",
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
        }
        # One connection is kept for the hot path and one for everything else: a server has about a hundred for all workers.
        own = {name: value for name, value in asked.items() if name not in url.query}
        made = create_engine(url, connect_args=own, pool_size=2, max_overflow=30, pool_pre_ping=True)
    except ModuleNotFoundError as error:
        raise UserError(
            f"cannot open a database at {scheme}://…: the package {error.name} is not installed",
            "pip install 'pitboss[postgres]'",
        ) from None
    except (BadAddress, NoSuchModuleError, ValueError) as error:
        why = "it cannot be read" if isinstance(error, ValueError) else str(error)  # which may repeat any part of it
        raise UserError(f"cannot open a database at {scheme}://…: {why}", f"a file path, or {EXAMPLE}") from None

    @event.listens_for(made, "connect")
    def prepare(connection: Any, _record: object) -> None:  # pyright: ignore[reportUnusedFunction]
        with connection.cursor() as cursor:
            cursor.execute(f"SET idle_in_transaction_session_timeout = {IDLE_MS}")
            cursor.execute(f"SET lock_timeout = {LOCK_MS}")
            cursor.execute("SET TIME ZONE 'UTC'")
        connection.commit()  # a setting made in a transaction that is rolled back is none

    return made


def now(connection: Connection) -> Instant:
    """The server's time."""
    return int(connection.exec_driver_sql(_NOW).scalar_one())


def now_raw(cursor: Any) -> Instant:
    """The server's time, asked of the driver."""
    cursor.execute(_NOW)
    return int(cursor.fetchone()[0])


def alone(connection: Connection, name: str) -> None:
    """Wait until nobody else is in a transaction that said the same name; ours is kept until the transaction ends."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
    connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%(number)s)", {"number": number})


def unhurried(connection: Connection) -> None:
    """For the length of this transaction, wait as long as it takes."""
    connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
    connection.exec_driver_sql("SET LOCAL lock_timeout = 0")


def explain(error: BaseException, where: str) -> UserError | None:
    """The line for a person behind the error of a server, or None if it is not one that a person can fix."""
    cause = getattr(error, "orig", None) or error
    said = " ".join(str(cause).split())[:300]
    code = str(getattr(cause, "sqlstate", None) or "")
    if code == NOT_ALLOWED:
        return UserError(f"the database {where} does not allow this: {said}", "give its user the right to make tables")
    if code == READ_ONLY:
        return UserError(f"the database {where} cannot be written: {said}", "is it a copy that only follows another?")
    if code == FULL:
        return UserError(f"the disk under {where} is full", "free some space; everything committed so far is kept")
    away = f"the database {where} cannot be reached: {said}"
    hint = "does it run, and does --db name its host, user, password and database?"
    if code.startswith(REFUSED) or (not code and any(words in said for words in REFUSALS)):
        return UserError(away, hint)
    by_name = type(cause).__name__ in ("OperationalError", "InterfaceError")  # of the driver, past SQLAlchemy
    if code.startswith(PASSING) or isinstance(error, OperationalError | InterfaceError) or by_name:
        return Unreachable(away, hint)
    return None
