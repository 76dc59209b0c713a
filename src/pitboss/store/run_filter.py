"""Conditions on runs, as queries."""

from typing import Any, TypedDict

from sqlalchemy import and_, or_, select

from pitboss.core.instant import Instant
from pitboss.store.lifecycle import Status
from pitboss.store.schema import runs, skills


class RunFilter(TypedDict, total=False):
    """Conditions on runs; all of them must hold."""

    owner: str
    study_id: str
    model: str
    skill: str
    besides: str
    """Excludes the runs of this study."""
    single: bool
    """Excludes the runs of all studies."""
    before: tuple[Instant, str] | None
    """Only runs that a list shows after the one created at this instant with this id."""


def newest(query: Any, limit: int, status: Status | None, filters: RunFilter) -> Any:
    """The query for the runs that fulfil the conditions, newest first."""
    by_status = query if status is None else query.where(runs.c.status == status)
    return filtered(by_status, filters).order_by(runs.c.created_at.desc(), runs.c.id).limit(limit)


def filtered(query: Any, filters: RunFilter) -> Any:
    """The query for the runs that fulfil the conditions."""
    for name, value in filters.items():
        if name == "skill":
            query = query.where(runs.c.skill_id.in_(select(skills.c.id).where(skills.c.name == value)))
        elif name == "besides":
            query = query.where(or_(runs.c.study_id.is_(None), runs.c.study_id != value))
        elif name == "single":
            query = query.where(runs.c.study_id.is_(None)) if value else query
        elif name == "before" and isinstance(value, tuple):
            query = query.where(
                or_(
                    runs.c.created_at < value[0],
                    and_(runs.c.created_at == value[0], runs.c.id > value[1]),
                )
            )
        elif value is not None:
            query = query.where(runs.c[name] == value)
    return query
