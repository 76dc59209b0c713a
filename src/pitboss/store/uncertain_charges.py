"""Uncertain charges: what a run may have been charged for calls without a reply, stored so that a resumed run keeps its limit.

One row of `facts` for each lease epoch of the run, because a worker that has lost the run may still write. Replies and their
cost are in `answers`; which charges are uncertain, and when they must be stored, is decided by the run's budget.
"""

from decimal import Decimal

from pitboss.core.money import ZERO, exact, text
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.fact import keys_with
from pitboss.store.schema import facts

PREFIX = "doubt/"


@exact
def uncertain_usd(database: Database, run_id: str) -> Decimal:
    """What a run may have been charged for calls without a reply, over all its leases."""
    return sum(_amounts(database, f"{PREFIX}{run_id}/").values(), ZERO)


@exact
def uncertain_usd_by_run(database: Database) -> dict[str, Decimal]:
    """The uncertain charges of all runs that have any, by run."""
    totals: dict[str, Decimal] = {}
    for key, amount in _amounts(database, PREFIX).items():
        if amount:
            run_id = key.removeprefix(PREFIX).partition("/")[0]
            totals[run_id] = totals.get(run_id, ZERO) + amount
    return totals


def _amounts(database: Database, prefix: str) -> dict[str, Decimal]:
    query = rows.raw(facts).where(keys_with(prefix))
    with database.read() as connection:
        stored = rows.fetch_all(connection, query)
    for row in stored:
        rows.require_intact(facts, row)
    return {row["key"]: Decimal(row["value"]) for row in stored}


class UncertainCharges:
    """The uncertain charges of one run, for the worker with this lease epoch."""

    @exact
    def __init__(self, database: Database, run_id: str, epoch: int) -> None:
        self._database = database
        self._key = f"{PREFIX}{run_id}/{epoch}"
        amounts = _amounts(database, f"{PREFIX}{run_id}/")
        self.before_usd = sum(amounts.values(), ZERO)
        """The sum when this worker began."""
        self._of_other_leases_usd = self.before_usd - amounts.get(self._key, ZERO)

    @exact
    def note(self, usd: Decimal) -> None:
        """Store the current sum, `before_usd` included. Durable when it returns."""
        value = text(max(usd - self._of_other_leases_usd, ZERO))
        with self._database.write() as connection:
            row = rows.fetch(connection, facts, {"key": self._key}, lock=True)
            if row is None:
                rows.add(connection, facts, {"key": self._key, "value": value})
            else:
                rows.change(connection, facts, row, {"value": value})
