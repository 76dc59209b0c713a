"""Preflights that passed: one row of `facts` for each account, with what was checked. An account that has changed has none."""

from dataclasses import asdict, dataclass

from pitboss.core.instant import Instant
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.fact import read_fact, write_fact
from pitboss.store.schema import facts

PREFIX = "preflight/"


@dataclass(frozen=True, slots=True)
class PassedPreflight:
    """What a preflight passed for: digests of the account's entry and of the agent without its caps."""

    account_digest: str
    agent_digest: str
    checks: int
    at: Instant = 0
    """Set by the database when it is written."""


def write_preflight(database: Database, venue: str, account: str, passed: PassedPreflight) -> None:
    """Store that a preflight passed, in place of the one before."""
    with database.write() as connection:
        write_fact(connection, f"{PREFIX}{venue}/{account}", {**asdict(passed), "at": database.now(connection)})


def read_preflight(database: Database, venue: str, account: str) -> tuple[PassedPreflight | None, int]:
    """The newest preflight that passed for an account, None if there is none, and its age in milliseconds."""
    with database.read() as connection:
        content, now = read_fact(connection, f"{PREFIX}{venue}/{account}"), database.now(connection)
    if content is None:
        return None, 0
    passed = PassedPreflight(**content)
    return passed, now - passed.at


def try_commit(database: Database) -> None:
    """Commit a row and remove it again: whether the database takes what a deployment stores before it acts."""
    key = {"key": f"{PREFIX}probe"}
    with database.write() as connection:
        if rows.fetch(connection, facts, key, lock=True) is None:
            rows.add(connection, facts, {**key, "value": "1"})
    with database.write() as connection:
        connection.execute(facts.delete().where(facts.c.key == key["key"]))
