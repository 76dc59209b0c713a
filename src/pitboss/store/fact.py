"""One row of `facts`: a value as canonical JSON under a key. What is stored there is named by the modules that use it."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, and_

from pitboss.core import codec
from pitboss.store import sealed_rows as rows
from pitboss.store.schema import SEAL, facts


def write_fact(connection: Connection, key: str, value: object) -> None:
    """Store a value in place of the one before."""
    new = {"key": key, "value": codec.dumps(value).decode()}
    row = rows.fetch(connection, facts, {"key": key}, lock=True)
    if row is None:
        sealed = {**new, SEAL: rows.seal_of(facts, new)}
        if connection.execute(rows.insert_unless_there(connection.dialect, facts), sealed).rowcount:
            return
        row = rows.fetch(connection, facts, {"key": key}, lock=True) or {}  # another process was first
    rows.change(connection, facts, row, {"value": new["value"]})


def read_fact(connection: Connection, key: str, lock: bool = False) -> Any:
    """The value under a key; None if there is none."""
    row = rows.fetch(connection, facts, {"key": key}, lock=lock)
    if row is None:
        return None
    rows.require_intact(facts, row)
    return codec.loads(row["value"])


def keys_with(prefix: str) -> ColumnElement[bool]:
    """The condition that a key begins with a prefix. It is a range, because in SQLite a LIKE reads every row and ignores case."""
    return and_(facts.c.key >= prefix, facts.c.key < prefix[:-1] + chr(ord(prefix[-1]) + 1))
