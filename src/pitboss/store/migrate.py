"""Bringing a database to the schema that this version knows: an empty file at once, everything else step by step.

Each step is one transaction together with the note of the new version, so a process killed anywhere leaves the database
before or after a step, never inside, and opening it again goes on. The version is read inside that transaction, so two
processes that open an old database at once do not both take the same step.
"""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
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
from sqlalchemy import table as named

from pitboss.core.errors import UserError
from pitboss.store import migrations
from pitboss.store.schema import metadata

_VERSION_TABLE = "alembic_version"
_OURS = frozenset({_VERSION_TABLE, "runs", "records"})
"""In every pitboss database since its first revision, and nowhere else together."""


def revision(connection: Connection) -> str | None:
    """The revision a database is at; None if it holds nothing yet. Somebody else's database is refused."""
    names = inspect(connection).get_table_names()
    check_ours(names)
    if not names:
        return None
    found = connection.execute(select(column("version_num")).select_from(named(_VERSION_TABLE))).scalar()
    return str(found)


def check_ours(names: Collection[str]) -> None:
    """Refuse a database with tables that are not pitboss's. Other programs keep an `alembic_version` too."""
    if names and not _OURS.issubset(names):
        raise UserError("this database belongs to another program", "name another file, or another --home")


def check_known(found: str | None) -> None:
    """Refuse a schema that only a later pitboss can have made."""
    if found is not None and found not in migrations.REVISIONS:
        raise UserError(
            f"this database was written by a newer pitboss (schema {found}; this one knows {migrations.HEAD})",
            "upgrade pitboss, or use another --home",
        )


def make(write: Callable[[], AbstractContextManager[Connection]]) -> None:
    """Give an empty SQLite file the schema that all the steps lead to, in one transaction; leave any other as it is.

    A quarter of a second less for a first command. Postgres takes the steps: whoever sets up a server can wait.
    """
    version = Table(
        _VERSION_TABLE,
        MetaData(),
        Column("version_num", String(32), nullable=False),
        PrimaryKeyConstraint("version_num", name=f"{_VERSION_TABLE}_pkc"),
    )
    with write() as connection:
        if connection.dialect.name == "sqlite" and revision(connection) is None:
            metadata.create_all(connection, checkfirst=False)
            version.create(connection)
            connection.execute(insert(version), {"version_num": migrations.HEAD})


def migrate(
    write: Callable[[], AbstractContextManager[Connection]],
    alone: Callable[[Connection, str], None] = lambda connection, name: None,
) -> None:
    """Take every missing step, each in a transaction of its own; `alone` keeps others who do the same out of it."""
    # Alembic takes longer to import than most commands take to run, and almost every start needs no step.
    from alembic import command
    from alembic.config import Config

    while True:
        with write() as connection:
            alone(connection, "migrate")
            found = revision(connection)
            check_known(found)
            if found == migrations.HEAD:
                return
            config = Config()
            config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
            config.attributes["connection"] = connection
            command.upgrade(config, "+1")
