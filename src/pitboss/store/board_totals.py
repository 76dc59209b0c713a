"""The totals of a live run's display at an earlier record, one row of `facts` for each run: a restart counts on from there.

What they are made of is known to `live/board.py`; here they are plain values.
"""

from collections.abc import Mapping
from typing import Any

from pitboss.core import codec
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import facts

PREFIX = "board"


def write_totals(database: Database, run_id: str, totals: Mapping[str, Any]) -> None:
    """Store the totals of a run in place of those before."""
    key, value = _key(run_id), codec.dumps(dict(totals)).decode()
    with database.write() as connection:
        row = rows.fetch(connection, facts, {"key": key}, lock=True)
        if row is None:
            rows.add(connection, facts, {"key": key, "value": value})
        else:
            rows.change(connection, facts, row, {"value": value})


def read_totals(database: Database, run_id: str) -> Mapping[str, Any] | None:
    """The stored totals of a run; None if there are none. Raises `ReplayMismatch` if they were changed."""
    with database.read() as connection:
        row = rows.fetch(connection, facts, {"key": _key(run_id)})
    if row is None:
        return None
    rows.require_intact(facts, row)
    return codec.loads(row["value"])


def _key(run_id: str) -> str:
    return f"{PREFIX}/{run_id}/"
