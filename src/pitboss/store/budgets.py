"""Daily budgets: amounts are reserved before they are spent, so concurrent runs cannot exceed a user's limit.

A reservation takes the worst case out of the day's budget; settling it returns what was not spent. A run has its own
reservation (epoch 0): a queued one keeps it through every worker, one that a user starts or resumes gets it with its claim
(`RunLimit`). A reservation under a lease is returned when the run is claimed again. The amount spent is read from the
replies that the run paid for and from its uncertain charges. The day is the UTC day of the reservation, by the database's
clock. The limit, and the worst case of a run, are given by the caller.
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
from pitboss.store.fact import keys_with
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.schema import SEAL, answers, budgets, facts, reservations, runs

OWN = 0
"""The epoch of a run's own reservation."""


@dataclass(frozen=True, slots=True)
class RunLimit:
    """The most that a run may cost in total, and what its user may spend in a day."""

    most_usd: Decimal
    daily_usd: Decimal


@dataclass(frozen=True, slots=True)
class BudgetDay:
    """The budget of one user on one day: the amounts reserved and spent."""

    owner: str
    day_at: Instant
    reserved_usd: Decimal
    spent_usd: Decimal


class Budgets:
    """The budgets in a database. A second reservation of the same lease adds to the first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def reserve(self, owner: str, run_id: str, epoch: int, usd: Decimal, limit_usd: Decimal) -> None:
        """Reserve an amount for a lease of a run (or for the run itself: `OWN`), or raise `BudgetExceeded`."""
        with self._database.write() as connection:
            if epoch != OWN:
                row = rows.fetch(connection, runs, {"id": run_id}, lock=True)
                if row is None or row["lease_epoch"] != epoch:
                    raise LeaseLost(run_id)
            reserve(connection, self._database, owner, run_id, epoch, usd, limit_usd)

    def require(self, owner: str, usd: Decimal, limit_usd: Decimal) -> None:
        """Raise `BudgetExceeded` if this much could not be reserved now. Nothing is reserved."""
        with self._database.write() as connection:
            _require(connection, self._database, owner, usd, limit_usd)

    def settle(self, run_id: str, epoch: int, spent_usd: Decimal | None = None) -> bool:
        """Settle a reservation; returns whether there was one. `spent_usd` None: the amount that the store has recorded."""
        with self._database.write() as connection:
            # Locks are always taken in this order: run, then budget.
            rows.fetch(connection, runs, {"id": run_id}, lock=True)
            return settle(connection, run_id, epoch, spent_usd)

    def get(self, owner: str, day_at: Instant | None = None) -> BudgetDay:
        """The budget of a user on a day; today if none is given."""
        with self._database.read() as connection:
            day = _day(self._database.now(connection) if day_at is None else day_at)
            row = rows.fetch(connection, budgets, {"owner": owner, "day_at": day})
        if row is None:
            return BudgetDay(owner, day, ZERO, ZERO)
        rows.require_intact(budgets, row)
        return BudgetDay(owner, day, Decimal(row["reserved_usd"]), Decimal(row["spent_usd"]))


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
    """`Budgets.reserve` inside the caller's transaction."""
    budget = _require(connection, database, owner, usd, limit_usd)
    day_at = budget["day_at"]
    rows.change(connection, budgets, budget, {"reserved_usd": text(Decimal(budget["reserved_usd"]) + usd)})
    existing = _reservations(connection, run_id, None)
    if any((row["epoch"] == OWN) != (epoch == OWN) for row in existing):
        raise InvariantError(f"run {run_id} has a reservation of its own or of a lease, not both")
    for row in existing:
        if (row["epoch"], row["day_at"], row["owner"]) == (epoch, day_at, owner):
            rows.change(connection, reservations, row, {"amount_usd": text(Decimal(row["amount_usd"]) + usd)})
            return
    reservation = {"run_id": run_id, "epoch": epoch, "day_at": day_at, "owner": owner, "amount_usd": text(usd)}
    before = _cost_of_run(connection, run_id)[0]
    rows.add(connection, reservations, {**reservation, "before_usd": text(before)})


@exact
def reserve_rest(connection: Connection, database: Database, owner: str, run_id: str, limit: RunLimit) -> None:
    """Reserve what a run may still cost from today's budget, unless its reservation covers that: one from the queue, or
    from before its process was killed. Raises `BudgetExceeded`.
    """
    own_rows = _reservations(connection, run_id, OWN)
    covered_usd = sum((Decimal(row["amount_usd"]) for row in own_rows), ZERO)
    if own_rows and min(Decimal(row["before_usd"]) for row in own_rows) + covered_usd >= limit.most_usd:
        return
    settle_all(connection, run_id)
    rest_usd = max(ZERO, limit.most_usd - _cost_of_run(connection, run_id)[0])
    reserve(connection, database, owner, run_id, OWN, rest_usd, limit.daily_usd)


def settle(connection: Connection, run_id: str, epoch: int, spent_usd: Decimal | None = None) -> bool:
    """`Budgets.settle` inside the caller's transaction, which holds the lock on the run's row."""
    return _settle(connection, run_id, _reservations(connection, run_id, epoch), spent_usd)


def settle_before(connection: Connection, run_id: str, epoch: int) -> bool:
    """Settle the reservations of earlier leases of a run; `epoch` is that of the current lease."""
    earlier = [row for row in _reservations(connection, run_id, None) if OWN < row["epoch"] < epoch]
    return _settle(connection, run_id, earlier, None)


def settle_all(connection: Connection, run_id: str) -> bool:
    """Settle all reservations of a run that has ended."""
    return _settle(connection, run_id, _reservations(connection, run_id, None), None)


@exact
def _settle(
    connection: Connection, run_id: str, open_rows: Sequence[dict[str, Any]], spent_usd: Decimal | None
) -> bool:
    if not open_rows:
        return False
    reserved = [Decimal(row["amount_usd"]) for row in open_rows]
    if spent_usd is None:
        cost_usd, is_exact = _cost_of_run(connection, run_id)
        before = min(Decimal(row["before_usd"]) for row in open_rows)
        spent_usd = max(ZERO, cost_usd - before) if is_exact else sum(reserved, ZERO)
    remaining = spent_usd
    for number, (row, amount) in enumerate(zip(open_rows, reserved, strict=True)):
        # Oldest day first; the last one takes all that exceeds the reservations.
        part = remaining if number == len(open_rows) - 1 else min(remaining, amount)
        remaining -= part
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
        lease = (reservations.c.run_id == run_id, reservations.c.epoch == row["epoch"])
        connection.execute(delete(reservations).where(*lease, reservations.c.day_at == row["day_at"]))
    return True


@exact
def _require(
    connection: Connection, database: Database, owner: str, usd: Decimal, limit_usd: Decimal
) -> dict[str, Any]:
    """Today's budget of a user, locked, if this much may be reserved from it."""
    if not (usd.is_finite() and usd >= 0):
        raise InvariantError(f"an amount of {usd} cannot be reserved")
    day_at = _day(database.now(connection))
    budget = _budget(connection, database, owner, day_at)
    reserved, spent = Decimal(budget["reserved_usd"]), Decimal(budget["spent_usd"])
    left = max(ZERO, limit_usd - reserved - spent)
    if usd > left:
        raise BudgetExceeded(
            f"{owner} may spend ${text(limit_usd)} a day: ${text(spent)} is spent, ${text(reserved)} is reserved, "
            f"${text(left)} is left, and this may cost ${text(usd)} (the day ends at {iso(day_at + DAY_MS)})"
        )
    return budget


def _budget(connection: Connection, database: Database, owner: str, day_at: Instant) -> dict[str, Any]:
    """The row of a user and a day, locked; inserted if it does not exist."""
    key = {"owner": owner, "day_at": day_at}
    row = rows.fetch(connection, budgets, key, lock=True)
    if row is None:
        database.lock_name(connection, f"budget/{owner}/{day_at}")
        row = rows.fetch(connection, budgets, key, lock=True)
    if row is None:
        row = {**key, "reserved_usd": "0", "spent_usd": "0"}
        rows.add(connection, budgets, row)
        row |= {SEAL: rows.seal_of(budgets, row)}
    return row


def _reservations(connection: Connection, run_id: str, epoch: int | None) -> list[dict[str, Any]]:
    query = rows.raw(reservations).where(reservations.c.run_id == run_id)
    if epoch is not None:
        query = query.where(reservations.c.epoch == epoch)
    return rows.fetch_all(connection, query.order_by(reservations.c.day_at, reservations.c.epoch))


@exact
def _cost_of_run(connection: Connection, run_id: str) -> tuple[Decimal, bool]:
    """What a run has paid, uncertain charges included, and whether every price is known."""
    costs = connection.execute(select(type_coerce(answers.c.cost_usd, NULLTYPE)).where(answers.c.run_id == run_id))
    reply_costs = [cost for (cost,) in costs]
    uncertain = select(facts.c.value).where(keys_with(f"doubt/{run_id}/"))
    charges = connection.execute(uncertain).scalars().all()
    amounts = [Decimal(str(amount)) for amount in (*reply_costs, *charges) if amount is not None]
    return sum(amounts, ZERO), None not in reply_costs


def cost_of_run(database: Database, run_id: str) -> Decimal:
    """What a run has paid, uncertain charges included."""
    with database.read() as connection:
        return _cost_of_run(connection, run_id)[0]


def _day(at: Instant) -> Instant:
    return at - at % DAY_MS
