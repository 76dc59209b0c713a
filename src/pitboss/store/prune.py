"""Pruning: deletes old runs with everything that belongs only to them; what a remaining run needs stays.

A run that has not ended is never pruned. A reply that a pruned run paid for stays as long as a remaining run may have used
it, judged by the model, the end and the savings of that run. Totals of spending stay (`spend.py`). Skills stay: they are
small, and users look for them by name.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import ColumnElement, Connection, and_, delete, select

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.money import ZERO
from pitboss.store import budgets
from pitboss.store.answers import DUPLICATE_MARK
from pitboss.store.database import Database
from pitboss.store.lifecycle import ENDED
from pitboss.store.runs import remove
from pitboss.store.schema import answers, deployments, reservations, runs

BATCH = 50
"""Runs deleted in one transaction: other processes can write in between."""
_DELETE_BATCH = 500
PRESET = "llm"


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What was deleted: the ids of the runs, and the number of replies."""

    runs: Sequence[str]
    answers: int


def candidates(
    database: Database,
    *,
    keep: int | None = None,
    before_at: Instant | None = None,
    status: str | None = None,
    study_id: str | None = None,
) -> list[str]:
    """Ended runs that fit all conditions, newest first: created before an instant, not among the newest `keep`. Those of deployments
    that are not stopped are left out.
    """
    if keep is None and before_at is None and study_id is None:
        raise UserError("no runs are selected", "say how many to keep, until when, or of which study")
    query = select(runs.c.id).where(_removable())
    for column, value in ((runs.c.status, status), (runs.c.study_id, study_id)):
        if value is not None:
            query = query.where(column == value)
    if before_at is not None:
        query = query.where(runs.c.created_at < before_at)
    with database.read() as connection:
        ids = connection.execute(query.order_by(runs.c.created_at.desc(), runs.c.id)).scalars().all()
    return list(ids[keep or 0 :])


def prune(database: Database, ids: Collection[str]) -> PruneResult:
    """Delete those of these runs that have ended. Safe to interrupt and to repeat."""
    deleted: list[str] = []
    replies = 0
    selected = sorted(ids)
    for start in range(0, len(selected), BATCH):
        batch = selected[start : start + BATCH]
        with database.write() as connection:
            query = select(runs.c.id).where(runs.c.id.in_(batch), _removable()).order_by(runs.c.id)
            ended = list(connection.execute(query.with_for_update()).scalars())
            if not ended:
                continue
            open_ids = select(reservations.c.run_id).where(reservations.c.run_id.in_(ended)).distinct()
            for run_id in connection.execute(open_ids).scalars().all():
                budgets.settle_all(connection, run_id)
            remove(connection, database, ended)
            replies += _delete_replies(connection, ended)
            deleted += ended
    return PruneResult(deleted, replies)


def _removable() -> ColumnElement[bool]:
    """Runs that have ended, and that no deployment will continue."""
    continued = select(deployments.c.run_id).where(deployments.c.state != "stopped")
    return and_(runs.c.status.in_(sorted(ENDED)), runs.c.id.not_in(continued))


def may_have_used(run_model: str, reply_model: str) -> bool:
    """Whether a run of one model can have used a reply of another: `llm` stands for the configured model."""
    return run_model == reply_model or run_model.partition("/")[0] == PRESET


def _delete_replies(connection: Connection, ids: Sequence[str]) -> int:
    """Delete the replies of these runs that no other run can have used; returns how many."""
    columns = select(answers.c.key, answers.c.model, answers.c.created_at, answers.c.cost_usd)
    replies = connection.execute(columns.where(answers.c.run_id.in_(ids))).all()
    if not replies:
        return 0
    other_runs = connection.execute(
        select(runs.c.model, runs.c.status, runs.c.finished_at, runs.c.saved_usd).where(runs.c.id.not_in(ids))
    ).all()
    needs: dict[str, _Needs] = {}
    for model in {model for _, model, _, _ in replies}:
        needs[model] = _Needs.of(
            [(status, at, saved) for own, status, at, saved in other_runs if may_have_used(own, model)]
        )
    keys = [
        key
        for key, model, created_at, cost in replies
        if DUPLICATE_MARK in key or not needs[model].cover(created_at, _amount(cost))
    ]
    for start in range(0, len(keys), _DELETE_BATCH):
        connection.execute(delete(answers).where(answers.c.key.in_(keys[start : start + _DELETE_BATCH])))
    return len(keys)


@dataclass(frozen=True, slots=True)
class _Needs:
    """Which replies the remaining runs of a model can have used: any while one is active, else those stored before it ended.

    A run that saved nothing used no reply that another run had paid for.
    """

    any_active: bool
    latest_at: Instant
    latest_saver_at: Instant

    @classmethod
    def of(cls, remaining: Sequence[tuple[str, Instant | None, str]]) -> "_Needs":
        ended = [(at, _amount(saved)) for status, at, saved in remaining if status in ENDED and at is not None]
        savers = [at for at, saved in ended if saved is None or saved > ZERO]
        return cls(len(ended) < len(remaining), max((at for at, _ in ended), default=-1), max(savers, default=-1))

    def cover(self, created_at: Instant, cost: Decimal | None) -> bool:
        """Whether one of them may have used a reply."""
        return self.any_active or created_at <= (self.latest_saver_at if cost else self.latest_at)


def _amount(usd: str | None) -> Decimal | None:
    """An amount, None if it is unknown."""
    amount = None if usd is None else Decimal(usd)
    return None if amount is None or amount.is_nan() else amount
