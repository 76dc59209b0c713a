"""Keeping the store in bounds: old runs go, with everything that is only theirs; what a kept run needs stays.

A run that is not at its end is never pruned. Of the answers that a pruned run paid for, one stays as long as some kept run
may have been given it: that is known from its model, from when it ended, and from what it says it saved. What was spent stays known
(`spend.py`). Skills stay: they are small, and people look for them by name.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection, delete, select

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.money import ZERO
from pitboss.store import budgets
from pitboss.store.answers import AGAIN
from pitboss.store.database import Database
from pitboss.store.lifecycle import ENDED
from pitboss.store.runs import remove
from pitboss.store.schema import answers, reservations, runs

BATCH = 50
"""Runs that go in one transaction: others can write in between."""
_OFTEN = 500
PRESET = "llm"


@dataclass(frozen=True, slots=True)
class Pruned:
    """What went: the runs by id, and how many answers."""

    runs: Sequence[str]
    answers: int


def candidates(
    database: Database,
    *,
    keep: int | None = None,
    before_at: Instant | None = None,
    status: str | None = None,
    study_id: str | None = None,
    owner: str | None = None,
) -> list[str]:
    """Ended runs that fit all that is given, newest first: made before an instant, not among the newest `keep`."""
    if keep is None and before_at is None and study_id is None:
        raise UserError("which runs should go?", "say how many to keep, until when, or of which study")
    query = select(runs.c.id).where(runs.c.status.in_(sorted(ENDED)))
    for column, value in ((runs.c.status, status), (runs.c.study_id, study_id), (runs.c.owner, owner)):
        if value is not None:
            query = query.where(column == value)
    if before_at is not None:
        query = query.where(runs.c.created_at < before_at)
    with database.read() as connection:
        found = connection.execute(query.order_by(runs.c.created_at.desc(), runs.c.id)).scalars().all()
    return list(found[keep or 0 :])


def prune(database: Database, ids: Collection[str]) -> Pruned:
    """Remove these runs as far as they have ended. Safe to stop anywhere and to do again."""
    gone: list[str] = []
    answers_gone = 0
    wanted = sorted(ids)
    for start in range(0, len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        with database.write() as connection:
            query = select(runs.c.id).where(runs.c.id.in_(batch), runs.c.status.in_(sorted(ENDED))).order_by(runs.c.id)
            ended = list(connection.execute(query.with_for_update()).scalars())
            if not ended:
                continue
            open_ids = select(reservations.c.run_id).where(reservations.c.run_id.in_(ended)).distinct()
            for run_id in connection.execute(open_ids).scalars().all():
                budgets.settle_all(connection, run_id)
            remove(connection, database, ended)
            answers_gone += _forget(connection, ended)
            gone += ended
    return Pruned(gone, answers_gone)


def may_ask(run_model: str, answer_model: str) -> bool:
    """Whether a run of one model can have been given an answer of another: `llm` stands for whichever is set."""
    return run_model == answer_model or run_model.partition("/")[0] == PRESET


def _forget(connection: Connection, ids: Sequence[str]) -> int:
    """Remove the answers of these runs that no other run can have been given; how many."""
    wanted = select(answers.c.key, answers.c.model, answers.c.created_at, answers.c.cost_usd)
    found = connection.execute(wanted.where(answers.c.run_id.in_(ids))).all()
    if not found:
        return 0
    others = connection.execute(
        select(runs.c.model, runs.c.status, runs.c.finished_at, runs.c.saved_usd).where(runs.c.id.not_in(ids))
    ).all()
    needs: dict[str, _Needs] = {}
    for model in {model for _, model, _, _ in found}:
        needs[model] = _Needs.of([(status, at, saved) for own, status, at, saved in others if may_ask(own, model)])
    gone = [
        key for key, model, made_at, cost in found if AGAIN in key or not needs[model].cover(made_at, _amount(cost))
    ]
    for start in range(0, len(gone), _OFTEN):
        connection.execute(delete(answers).where(answers.c.key.in_(gone[start : start + _OFTEN])))
    return len(gone)


@dataclass(frozen=True, slots=True)
class _Needs:
    """What kept runs of a model can have been given: anything while one is at work, else what was there when they ended.

    A run that saved nothing was given nothing that had cost somebody else money.
    """

    at_work: bool
    latest_at: Instant
    latest_saver_at: Instant

    @classmethod
    def of(cls, kept: Sequence[tuple[str, Instant | None, str]]) -> "_Needs":
        ended = [(at, _amount(saved)) for status, at, saved in kept if status in ENDED and at is not None]
        savers = [at for at, saved in ended if saved is None or saved > ZERO]
        return cls(len(ended) < len(kept), max((at for at, _ in ended), default=-1), max(savers, default=-1))

    def cover(self, made_at: Instant, cost: Decimal | None) -> bool:
        """Whether an answer may have been given to one of them."""
        return self.at_work or made_at <= (self.latest_saver_at if cost else self.latest_at)


def _amount(usd: str | None) -> Decimal | None:
    """An amount, None where nobody knows it."""
    found = None if usd is None else Decimal(usd)
    return None if found is None or found.is_nan() else found
