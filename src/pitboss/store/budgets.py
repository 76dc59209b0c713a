"""What a user may spend in a day, reserved before it is spent: nobody passes a limit, however many try at once.

A reservation takes the worst case out of the day's budget; settling puts back what was not spent. A run that is queued
reserves for itself (epoch 0) and keeps it through every worker; what a worker reserves under its lease comes back when the
lease is taken over. What was really spent is read from the answers that the run paid for, and from what may have been
charged without our hearing of it. The day is the UTC day of the reservation, by the database's clock. How high a limit
is, and what a run may cost at worst, is the caller's to know.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, delete, select, type_coerce
from sqlalchemy.types import NULLTYPE

from pitboss.core.errors import BudgetExceeded, InvariantError
from pitboss.core.instant import DAY_MS, Instant, iso
from pitboss.core.money import ZERO, exact, text
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.schema import SEAL, answers, budgets, facts, reservations, runs

OWN = 0
"""The epoch of a run's own reservation."""


@dataclass(frozen=True, slots=True)
class BudgetDay:
    """One user's day: what is set aside and what is gone."""

    owner: str
    day_at: Instant
    reserved_usd: Decimal
    spent_usd: Decimal


class Budgets:
    """The budgets in a database. The same holder reserving again adds to what it has."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reserve(self, owner: str, run_id: str, epoch: int, usd: Decimal, limit_usd: Decimal) -> None:
        """Set an amount aside for a lease of a run (or for the run itself: `OWN`), or raise `BudgetExceeded`."""
        with self._database.write() as connection:
            if epoch != OWN:
                row = rows.fetch(connection, runs, {"id": run_id}, lock=True)
                if row is None or row["lease_epoch"] != epoch:
                    raise LeaseLost(run_id)
            reserve(connection, self._database, owner, run_id, epoch, usd, limit_usd)

    def settle(self, run_id: str, epoch: int, spent_usd: Decimal | None = None) -> bool:
        """Put back what a reservation did not spend; whether there was one. None: what the store knows was paid."""
        with self._database.write() as connection:
            rows.fetch(connection, runs, {"id": run_id}, lock=True)  # the order of locks is always run, then budget
            return settle(connection, run_id, epoch, spent_usd)

    def standing(self, owner: str, day_at: Instant | None = None) -> BudgetDay:
        """How a user's day stands; today's if none is named."""
        with self._database.read() as connection:
            day = _day(self._database.now(connection) if day_at is None else day_at)
            row = rows.fetch(connection, budgets, {"owner": owner, "day_at": day})
        if row is None:
            return BudgetDay(owner, day, ZERO, ZERO)
        rows.require_intact(budgets, row)
        return BudgetDay(owner, day, Decimal(row["reserved_usd"]), Decimal(row["spent_usd"]))

    @exact
    def open_usd(self, owner: str, day_at: Instant) -> Decimal:
        """The sum of a user's open reservations of a day, which is what its budget must say is reserved."""
        query = rows.raw(reservations).where(reservations.c.owner == owner, reservations.c.day_at == _day(day_at))
        with self._database.read() as connection:
            found = rows.fetch_all(connection, query)
        for row in found:
            rows.require_intact(reservations, row)
        return sum((Decimal(row["amount_usd"]) for row in found), ZERO)


@exact
def reserve(
    connection: Connection,
    database: Database,
    owner: str,
    run_id: str,
    epoch: int,
    usd: Decimal,
    limit_usd: Decimal,
) -> None:
    """`Budgets.reserve` inside a transaction of the caller's."""
    if not (usd.is_finite() and usd >= 0):
        raise InvariantError(f"an amount of {usd} cannot be reserved")
    day_at = _day(database.now(connection))
    budget = _budget(connection, database, owner, day_at)
    reserved, spent = Decimal(budget["reserved_usd"]), Decimal(budget["spent_usd"])
    if reserved + spent + usd > limit_usd:
        raise BudgetExceeded(
            f"{owner} may spend ${text(limit_usd)} a day: ${text(spent)} are spent, ${text(reserved)} set aside, and this "
            f"may cost ${text(usd)} (the day ends at {iso(day_at + DAY_MS)})"
        )
    rows.change(connection, budgets, budget, {"reserved_usd": text(reserved + usd)})
    own = _open(connection, run_id, None)
    if any((row["epoch"] == OWN) != (epoch == OWN) for row in own):
        raise InvariantError(f"run {run_id} has reserved for itself, or for a lease; not both")
    for row in own:
        if (row["epoch"], row["day_at"], row["owner"]) == (epoch, day_at, owner):
            rows.change(connection, reservations, row, {"amount_usd": text(Decimal(row["amount_usd"]) + usd)})
            return
    made = {"run_id": run_id, "epoch": epoch, "day_at": day_at, "owner": owner, "amount_usd": text(usd)}
    before = _paid(connection, run_id)[0]
    rows.add(connection, reservations, {**made, "before_usd": text(before)})


def settle(connection: Connection, run_id: str, epoch: int, spent_usd: Decimal | None = None) -> bool:
    """`Budgets.settle` inside a transaction of the caller's, who has the run's row locked."""
    return _close(connection, run_id, _open(connection, run_id, epoch), spent_usd)


def settle_before(connection: Connection, run_id: str, epoch: int) -> bool:
    """Take back what earlier leases of a run had reserved: whoever holds the lease now has this epoch."""
    lapsed = [row for row in _open(connection, run_id, None) if OWN < row["epoch"] < epoch]
    return _close(connection, run_id, lapsed, None)


def settle_all(connection: Connection, run_id: str) -> bool:
    """Settle everything that a run has reserved: it has ended."""
    return _close(connection, run_id, _open(connection, run_id, None), None)


@exact
def _close(connection: Connection, run_id: str, found: Sequence[dict[str, Any]], spent_usd: Decimal | None) -> bool:
    if not found:
        return False
    held = [Decimal(row["amount_usd"]) for row in found]
    if spent_usd is None:
        paid, known = _paid(connection, run_id)
        spent_usd = max(ZERO, paid - min(Decimal(row["before_usd"]) for row in found)) if known else sum(held, ZERO)
    left = spent_usd
    for number, (row, amount) in enumerate(zip(found, held, strict=True)):
        # Oldest day first; the last takes whatever is more than was set aside, for it was spent.
        part = left if number == len(found) - 1 else min(left, amount)
        left -= part
        key = {"owner": row["owner"], "day_at": row["day_at"]}
        budget = rows.fetch(connection, budgets, key, lock=True)
        if budget is None:
            raise InvariantError(f"a reservation of run {run_id} belongs to no budget")
        changes = {
            "reserved_usd": text(Decimal(budget["reserved_usd"]) - amount),
            "spent_usd": text(Decimal(budget["spent_usd"]) + part),
        }
        rows.change(connection, budgets, budget, changes)
        rows.require_intact(reservations, row)
        mine = (reservations.c.run_id == run_id, reservations.c.epoch == row["epoch"])
        connection.execute(delete(reservations).where(*mine, reservations.c.day_at == row["day_at"]))
    return True


def _budget(connection: Connection, database: Database, owner: str, day_at: Instant) -> dict[str, Any]:
    """A user's row of a day, locked; made if it is not there."""
    key = {"owner": owner, "day_at": day_at}
    found = rows.fetch(connection, budgets, key, lock=True)
    if found is None:
        database.alone(connection, f"budget/{owner}/{day_at}")
        found = rows.fetch(connection, budgets, key, lock=True)
    if found is None:
        made = {**key, "reserved_usd": "0", "spent_usd": "0"}
        rows.add(connection, budgets, made)
        found = {**made, SEAL: rows.seal_of(budgets, made)}
    return found


def _open(connection: Connection, run_id: str, epoch: int | None) -> list[dict[str, Any]]:
    query = rows.raw(reservations).where(reservations.c.run_id == run_id)
    if epoch is not None:
        query = query.where(reservations.c.epoch == epoch)
    return rows.fetch_all(connection, query.order_by(reservations.c.day_at, reservations.c.epoch))


@exact
def _paid(connection: Connection, run_id: str) -> tuple[Decimal, bool]:
    """What a run has paid, with what it may have been charged besides; and whether every price is known."""
    costs = connection.execute(select(type_coerce(answers.c.cost_usd, NULLTYPE)).where(answers.c.run_id == run_id))
    paid = [cost for (cost,) in costs]
    in_doubt = select(facts.c.value).where(facts.c.key.startswith(f"doubt/{run_id}/", autoescape=True))
    doubts = connection.execute(in_doubt).scalars().all()
    known = [Decimal(str(cost)) for cost in paid if cost is not None]
    return sum((*known, *(Decimal(str(one)) for one in doubts)), ZERO), None not in paid


def _day(at: Instant) -> Instant:
    return at - at % DAY_MS
