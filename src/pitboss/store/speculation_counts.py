"""How many decisions a run has asked for ahead of time and how many of those it has used, stored while it is executed.

One row of `facts` for each lease epoch of the run, because a worker that has lost the run may still write. The counts are shown to
people; nothing is decided by them, and they are in no digest.
"""

from dataclasses import dataclass

from pitboss.core import codec
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.fact import keys_with
from pitboss.store.schema import facts

PREFIX = "guess/"


@dataclass(frozen=True, slots=True)
class SpeculationCounts:
    """Decisions that were asked for ahead of time, and those of them that the run has used."""

    asked: int
    used: int


def write_counts(database: Database, run_id: str, epoch: int, counts: SpeculationCounts) -> None:
    """Store the counts of a lease."""
    key, value = f"{PREFIX}{run_id}/{epoch}", codec.dumps([counts.asked, counts.used]).decode()
    with database.write() as connection:
        row = rows.fetch(connection, facts, {"key": key}, lock=True)
        if row is None:
            rows.add(connection, facts, {"key": key, "value": value})
        elif row["value"] != value:
            rows.change(connection, facts, row, {"value": value})


def read_counts(database: Database, run_id: str) -> SpeculationCounts | None:
    """The counts of a run over all its leases; None if it has never asked ahead."""
    query = rows.raw(facts).where(keys_with(f"{PREFIX}{run_id}/"))
    with database.read() as connection:
        stored = rows.fetch_all(connection, query)
    for row in stored:
        rows.require_intact(facts, row)
    if not stored:
        return None
    asked, used = map(sum, zip(*(codec.loads(row["value"]) for row in stored), strict=True))
    return SpeculationCounts(asked, used)
