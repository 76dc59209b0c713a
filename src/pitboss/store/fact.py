"""One row of `facts`: a value as canonical JSON under a key. What is stored there is named by the modules that use it."""

from typing import Any

from sqlalchemy import Connection

from pitboss.core import codec
from pitboss.store import sealed_rows as rows
from pitboss.store.schema import facts


def write_fact(connection: Connection, key: str, value: object) -> None:
    """Store a value in place of the one before."""
    encoded = codec.dumps(value).decode()
    row = rows.fetch(connection, facts, {"key": key}, lock=True)
    if row is None:
        rows.add(connection, facts, {"key": key, "value": encoded})
    else:
        rows.change(connection, facts, row, {"value": encoded})


def read_fact(connection: Connection, key: str, lock: bool = False) -> Any:
    """The value under a key; None if there is none."""
    row = rows.fetch(connection, facts, {"key": key}, lock=lock)
    if row is None:
        return None
    rows.require_intact(facts, row)
    return codec.loads(row["value"])
