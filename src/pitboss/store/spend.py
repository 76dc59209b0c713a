"""Spending per user, skill, model and day, exact to the last digit.

Counts all paid replies, used or not, on the day of the reply, and charges that are uncertain on the day on which their run
began. When a run is deleted its spending is added to `past_spend`; its uncertain charges are no longer listed.
Daily limits are in `budgets.py`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, func, select, type_coerce
from sqlalchemy.types import NULLTYPE

from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.money import ZERO, exact, text
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import answers, past_spend, runs, skills
from pitboss.store.uncertain_charges import uncertain_usd_by_run

_MAX_CHARS = 255
FAR_AT = 1 << 62
"""Later than any day."""
Key = tuple[str, str, str, Instant]


@dataclass(frozen=True, slots=True)
class Spend:
    """One user's spending on one model for one skill on one day. `unpriced` is the number of calls of unknown cost."""

    owner: str
    skill: str
    model: str
    day_at: Instant
    calls: int
    unpriced: int
    cost_usd: Decimal
    uncertain_usd: Decimal = ZERO
    """What may have been charged besides, for calls without a reply."""


@exact
def spend(database: Database, from_at: Instant = 0, to_at: Instant = FAR_AT, owner: str | None = None) -> list[Spend]:
    """All spending of the days that begin in [from_at, to_at), by day, user, skill and model."""
    uncertain = uncertain_usd_by_run(database)
    with database.read() as connection:
        totals = _reply_costs(connection, None, from_at, to_at, owner)
        past = past_spend.c.day_at
        deleted = rows.raw(past_spend).where(past >= from_at, past < to_at)
        if owner is not None:
            deleted = deleted.where(past_spend.c.owner == owner)
        for row in rows.fetch_all(connection, deleted):
            rows.require_intact(past_spend, row)
            _add(totals, _spend(row))
        for charge in _uncertain(connection, uncertain, from_at, to_at):
            _add(totals, charge)
    selected = [total for total in totals.values() if owner is None or total.owner == owner]
    return sorted(selected, key=lambda total: (total.day_at, total.owner, total.skill, total.model))


@exact
def add_to_totals(connection: Connection, database: Database, ids: Sequence[str]) -> None:
    """Add the spending of runs that are about to be deleted to `past_spend`."""
    database.lock_name(connection, "past_spend")
    for key, spending in sorted(_reply_costs(connection, ids, 0, FAR_AT).items()):
        key_columns: dict[str, object] = dict(zip(("owner", "skill", "model", "day_at"), key, strict=True))
        existing = rows.fetch(connection, past_spend, key_columns, lock=True)
        total = spending if existing is None else _sum(_spend(existing), spending)
        values = {"calls": total.calls, "unpriced": total.unpriced, "cost_usd": text(total.cost_usd)}
        if existing is None:
            rows.add(connection, past_spend, {**key_columns, **values})
        else:
            rows.change(connection, past_spend, existing, values)


def _reply_costs(
    connection: Connection, ids: Sequence[str] | None, from_at: Instant, to_at: Instant, owner: str | None = None
) -> dict[Key, Spend]:
    """The cost of the stored replies. The database counts equal prices; the exact sum is computed here."""
    day = (answers.c.created_at - answers.c.created_at % DAY_MS).label("day")
    cost = type_coerce(answers.c.cost_usd, NULLTYPE).label("cost")
    columns: list[Any] = [runs.c.owner, skills.c.name, answers.c.model, day, cost]
    begins = -(-from_at // DAY_MS) * DAY_MS
    ends = min(-(-to_at // DAY_MS) * DAY_MS, FAR_AT)
    query = (
        select(*columns, func.count())
        .select_from(answers)
        .join(runs, runs.c.id == answers.c.run_id)  # the replies of deleted runs are in `past_spend`
        .join(skills, skills.c.id == runs.c.skill_id)
        .where(answers.c.created_at >= begins, answers.c.created_at < ends)
        .group_by(runs.c.owner, skills.c.name, answers.c.model, day, answers.c.cost_usd)
    )
    if ids is not None:
        query = query.where(answers.c.run_id.in_(ids))
    if owner is not None:
        query = query.where(runs.c.owner == owner)
    totals: dict[Key, Spend] = {}
    costs: Any = connection.execute(query)
    for payer, skill, model, day_at, price, calls in costs:
        usd = ZERO if price is None else Decimal(str(price)) * calls
        unpriced = calls if price is None else 0
        _add(totals, Spend(payer, skill[:_MAX_CHARS], model[:_MAX_CHARS], int(day_at), calls, unpriced, usd))
    return totals


def _uncertain(
    connection: Connection, amounts: Mapping[str, Decimal], from_at: Instant, to_at: Instant
) -> Iterator[Spend]:
    """The uncertain charges of runs that began on the days from `from_at` to `to_at`."""
    columns: list[Any] = [runs.c.id, runs.c.owner, skills.c.name, runs.c.model, runs.c.started_at]
    query = select(*columns).join(skills, skills.c.id == runs.c.skill_id).where(runs.c.id.in_(sorted(amounts)))
    begun: Any = connection.execute(query) if amounts else ()
    for run_id, owner, skill, model, started_at in begun:
        day_at = (started_at or 0) - (started_at or 0) % DAY_MS
        if from_at <= day_at < to_at:
            yield Spend(owner, skill[:_MAX_CHARS], model[:_MAX_CHARS], day_at, 0, 0, ZERO, amounts[run_id])


def _add(totals: dict[Key, Spend], spending: Spend) -> None:
    key = (spending.owner, spending.skill, spending.model, spending.day_at)
    totals[key] = _sum(totals[key], spending) if key in totals else spending


def _sum(first: Spend, second: Spend) -> Spend:
    return replace(
        first,
        calls=first.calls + second.calls,
        unpriced=first.unpriced + second.unpriced,
        cost_usd=first.cost_usd + second.cost_usd,
        uncertain_usd=first.uncertain_usd + second.uncertain_usd,
    )


def _spend(row: dict[str, Any]) -> Spend:
    names = ("owner", "skill", "model", "day_at", "calls", "unpriced")
    return Spend(*(row[name] for name in names), cost_usd=Decimal(row["cost_usd"]))
