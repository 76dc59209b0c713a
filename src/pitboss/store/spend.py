"""What was spent: per user, skill, model and day, exact to the last digit.

Counts what was paid for, used or not, on the day when it was answered. What a run that is gone had paid was added up when
it went. What a day may cost is `budgets.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, func, select, type_coerce
from sqlalchemy.types import NULLTYPE

from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.money import ZERO, exact, text
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import answers, past_spend, runs, skills

_LONGEST = 255
Key = tuple[str, str, str, Instant]


@dataclass(frozen=True, slots=True)
class Spend:
    """One user's spending on one model for one skill on one day. `unpriced` calls are those whose cost nobody knows."""

    owner: str
    skill: str
    model: str
    day_at: Instant
    calls: int
    unpriced: int
    cost_usd: Decimal


@exact
def spend(database: Database, from_at: Instant = 0, to_at: Instant = 1 << 62, owner: str | None = None) -> list[Spend]:
    """All spending of the days that begin in [from_at, to_at), by day, user, skill and model."""
    with database.read() as connection:
        found = _paid(connection, None, from_at, to_at)
        past = past_spend.c.day_at
        for row in rows.fetch_all(connection, rows.raw(past_spend).where(past >= from_at, past < to_at)):
            rows.require_intact(past_spend, row)
            _add(found, _spend(row))
    chosen = [one for one in found.values() if owner is None or one.owner == owner]
    return sorted(chosen, key=lambda one: (one.day_at, one.owner, one.skill, one.model))


@exact
def remember(connection: Connection, database: Database, ids: Sequence[str]) -> None:
    """Add up what these runs paid, before they go."""
    database.alone(connection, "past_spend")
    for key, one in sorted(_paid(connection, ids, 0, 1 << 62).items()):
        where: dict[str, object] = dict(zip(("owner", "skill", "model", "day_at"), key, strict=True))
        there = rows.fetch(connection, past_spend, where, lock=True)
        if there is None:
            values = {"calls": one.calls, "unpriced": one.unpriced, "cost_usd": text(one.cost_usd)}
            rows.add(connection, past_spend, {**where, **values})
        else:
            total = _sum(_spend(there), one)
            values = {"calls": total.calls, "unpriced": total.unpriced, "cost_usd": text(total.cost_usd)}
            rows.change(connection, past_spend, there, values)


def _paid(connection: Connection, ids: Sequence[str] | None, from_at: Instant, to_at: Instant) -> dict[Key, Spend]:
    """What the stored answers cost. Equal prices are counted by the database, and added up here, where it is exact."""
    day = (answers.c.created_at - answers.c.created_at % DAY_MS).label("day")
    cost = type_coerce(answers.c.cost_usd, NULLTYPE).label("cost")
    columns: list[Any] = [runs.c.owner, skills.c.name, answers.c.model, day, cost]
    begins = -(-from_at // DAY_MS) * DAY_MS
    ends = min(-(-to_at // DAY_MS) * DAY_MS, 1 << 62)
    query = (
        select(*columns, func.count())
        .select_from(answers)
        .join(runs, runs.c.id == answers.c.run_id)  # those of runs that are gone were added up then
        .join(skills, skills.c.id == runs.c.skill_id)
        .where(answers.c.created_at >= begins, answers.c.created_at < ends)
        .group_by(runs.c.owner, skills.c.name, answers.c.model, day, answers.c.cost_usd)
    )
    if ids is not None:
        query = query.where(answers.c.run_id.in_(ids))
    found: dict[Key, Spend] = {}
    paid: Any = connection.execute(query)
    for owner, skill, model, day_at, price, calls in paid:
        usd = ZERO if price is None else Decimal(str(price)) * calls
        unpriced = calls if price is None else 0
        _add(found, Spend(owner, skill[:_LONGEST], model[:_LONGEST], int(day_at), calls, unpriced, usd))
    return found


def _add(found: dict[Key, Spend], one: Spend) -> None:
    key = (one.owner, one.skill, one.model, one.day_at)
    found[key] = _sum(found[key], one) if key in found else one


def _sum(one: Spend, other: Spend) -> Spend:
    return Spend(
        one.owner,
        one.skill,
        one.model,
        one.day_at,
        one.calls + other.calls,
        one.unpriced + other.unpriced,
        one.cost_usd + other.cost_usd,
    )


def _spend(row: dict[str, Any]) -> Spend:
    names = ("owner", "skill", "model", "day_at", "calls", "unpriced")
    return Spend(*(row[name] for name in names), cost_usd=Decimal(row["cost_usd"]))


def total_usd(many: Iterable[Spend]) -> Decimal:
    """The sum."""
    return sum((one.cost_usd for one in many), ZERO)
