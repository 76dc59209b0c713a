"""Migrating a database to the schema of this version: an empty SQLite file at once, everything else step by step.

Each step and its version number are one transaction, so a process that is killed leaves the database before or after a step,
and opening it again continues. The version is read inside that transaction, so two processes that open an old database at
once do not both execute the same step.
"""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

from sqlalchemy import (
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    column,
    insert,
    inspect,
    select,
)
from sqlalchemy import table as table_clause
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from pitboss.core.errors import UserError
from pitboss.store import migrations
from pitboss.store.schema import metadata

_VERSION_TABLE = "alembic_version"
_OURS = frozenset({_VERSION_TABLE, "runs", "records"})
"""Tables of every pitboss database since its first revision; no other program has all of them."""


def revision(connection: Connection) -> str | None:
    """The revision of a database; None if it is empty. Raises `UserError` for the database of another program."""
    names = inspect(connection).get_table_names()
    check_ours(names)
    if not names:
        return None
    return str(connection.execute(select(column("version_num")).select_from(table_clause(_VERSION_TABLE))).scalar())


def check_ours(names: Collection[str]) -> None:
    """Refuse a database of another program. Other programs have an `alembic_version` too."""
    if names and not _OURS.issubset(names):
        raise UserError("this database belongs to another program", "name another file, or another --home")


class OutdatedDatabase(UserError):
    """The schema is that of an earlier pitboss, and nothing may be changed now."""


def check_known(current: str | None) -> None:
    """Refuse a schema that only a later pitboss can have created."""
    if current is not None and current not in migrations.REVISIONS:
        raise UserError(
            f"this database was written by a newer pitboss (schema {current}; this one knows {migrations.HEAD})",
            "upgrade pitboss, or use another --home",
        )


def create_schema(write: Callable[[], AbstractContextManager[Connection]]) -> str | None:
    """Create the current schema in an empty SQLite file, in one transaction; does nothing for any other database.

    Returns the revision after that: another process may have been first. This saves a quarter of a second of a first command.
    Postgres executes the steps: setting up a server may take longer.
    """
    with write() as connection:
        current = revision(connection)
        if connection.dialect.name != "sqlite" or current is not None:
            return current
        for statement in _statements():
            connection.exec_driver_sql(statement)
        version = table_clause(_VERSION_TABLE, column("version_num"))
        connection.execute(insert(version), {"version_num": migrations.HEAD})
        return migrations.HEAD


@cache
def _statements() -> tuple[str, ...]:
    """The statements that create every table and index in SQLite."""
    tables = [*metadata.sorted_tables, _version_table()]
    creations = [
        creation
        for table in tables
        for creation in (
            CreateTable(table),
            *map(CreateIndex, sorted(table.indexes, key=lambda index: str(index.name))),
        )
    ]
    return tuple(str(creation.compile(dialect=sqlite.dialect())) for creation in creations)


def _version_table() -> Table:
    return Table(
        _VERSION_TABLE,
        MetaData(),
        Column("version_num", String(32), nullable=False),
        PrimaryKeyConstraint("version_num", name=f"{_VERSION_TABLE}_pkc"),
    )


def migrate(
    write: Callable[[], AbstractContextManager[Connection]],
    lock: Callable[[Connection, str], None] = lambda connection, name: None,
) -> None:
    """Execute every missing step, each in its own transaction; `lock` excludes other processes that migrate."""
    # Importing Alembic takes longer than most commands, and almost every start needs no step.
    from alembic import command
    from alembic.config import Config

    while True:
        with write() as connection:
            lock(connection, "migrate")
            current = revision(connection)
            check_known(current)
            if current == migrations.HEAD:
                return
            config = Config()
            config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
            config.attributes["connection"] = connection
            command.upgrade(config, "+1")
