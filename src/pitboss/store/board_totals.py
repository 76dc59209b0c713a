"""The totals of a live run's display at an earlier record, one row of `facts` for each run: a restart counts on from there.

Their fields are those of `live/board.py`; here they are plain values.
"""

from collections.abc import Mapping
from typing import Any

from pitboss.store.database import Database
from pitboss.store.fact import read_fact, write_fact

PREFIX = "board"


def write_totals(database: Database, run_id: str, totals: Mapping[str, Any]) -> None:
    """Store the totals of a run in place of those before."""
    with database.write() as connection:
        write_fact(connection, _key(run_id), dict(totals))


def read_totals(database: Database, run_id: str) -> Mapping[str, Any] | None:
    """The stored totals of a run; None if there are none. Raises `ReplayMismatch` if they were changed."""
    with database.read() as connection:
        return read_fact(connection, _key(run_id))


def _key(run_id: str) -> str:
    return f"{PREFIX}/{run_id}/"
