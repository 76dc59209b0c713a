"""Conditions on the rows of the queue: runs that workers have, runs whose worker is silent, records of a run."""

from typing import Any

from sqlalchemy import Connection, Select, func, select

from pitboss.core.instant import Instant
from pitboss.store.lifecycle import ACTIVE
from pitboss.store.schema import run_states, runs

WORKING = sorted(ACTIVE)
"""The statuses of runs that a worker has."""


def count_active(owner: str | None) -> Select[int]:
    """The number of runs that workers have, of one user or of all."""
    query = select(func.count()).where(runs.c.status.in_(WORKING), runs.c.queued_at.is_not(None))
    return query if owner is None else query.where(runs.c.owner == owner)


def is_silent(before: Instant) -> tuple[Any, ...]:
    """The conditions of a run whose worker has sent no heartbeat since an instant."""
    return runs.c.status.in_(WORKING), runs.c.queued_at.is_not(None), runs.c.heartbeat_at < before


def silent_runs(before: Instant) -> Select[str]:
    """The ids of those runs, the longest silent first."""
    return select(runs.c.id).where(*is_silent(before)).order_by(runs.c.heartbeat_at)


def stored_records(connection: Connection, run_id: str) -> int:
    """The number of records that a run has committed."""
    return connection.execute(select(run_states.c.seq).where(run_states.c.run_id == run_id)).scalar_one_or_none() or 0
