"""A run as a value and as a row of the database. The operations on runs are in `runs.py`."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypedDict

from sqlalchemy import Connection

from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.instant import Instant
from pitboss.core.money import text
from pitboss.store import sealed_rows as rows
from pitboss.store.lifecycle import Status
from pitboss.store.schema import runs


@dataclass(frozen=True, slots=True)
class Run:
    """A run. `progress` is the finished share, 0 to 1.

    `saved_usd` is what replies stored by other runs would have cost, `wasted_usd` what was paid for and not used.
    `queued_at` is the time from which a worker may claim it (None: not in the queue), `requeues` how often its worker was
    lost since its last progress, `build` the build that created it and must execute it.
    """

    id: str
    skill_id: str
    skill_version: int
    status: Status
    model: str
    params: Mapping[str, Any]
    data_digest: str | None
    progress: float
    error_text: str | None
    metrics: Mapping[str, Any] | None
    baselines: Mapping[str, Any] | None
    digest: str | None
    cost_usd: Decimal
    saved_usd: Decimal
    wasted_usd: Decimal
    wall_s: float
    ticks: int
    report: str | None
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    heartbeat_at: Instant | None
    lease_epoch: int
    cancel_requested: bool
    owner: str = "local"
    priority: int = 0
    queued_at: Instant | None = None
    requeues: int = 0
    worker: str | None = None
    study_id: str | None = None
    build: str | None = None


class Figures(TypedDict, total=False):
    """Costs and counts of a run so far; columns that are left out stay unchanged."""

    cost_usd: Decimal
    saved_usd: Decimal
    wasted_usd: Decimal
    wall_s: float
    ticks: int


def new_run_row(
    run_id: str, skill_id: str, skill_version: int, model: str, params: Mapping[str, Any], data_digest: str | None
) -> dict[str, object]:
    """The row of a new run; the caller adds `created_at`."""
    return {
        "id": run_id,
        "skill_id": skill_id,
        "skill_version": skill_version,
        "status": "queued",
        "model": model,
        "params": codec.dumps(params),
        "data_digest": data_digest,
        "progress": 0.0,
        "error_text": None,
        "metrics": None,
        "baselines": None,
        "digest": None,
        "cost_usd": "0",
        "saved_usd": "0",
        "wasted_usd": "0",
        "wall_s": 0.0,
        "ticks": 0,
        "report": None,
        "started_at": None,
        "finished_at": None,
        "heartbeat_at": None,
        "lease_epoch": 0,
        "cancel_requested": False,
        "owner": "local",
        "priority": 0,
        "queued_at": None,
        "requeues": 0,
        "worker": None,
        "study_id": None,
        "build": None,
    }


def require_run_row(connection: Connection, run_id: str, *, lock: bool = False) -> dict[str, Any]:
    """The row of a run, or `UserError`. `lock` excludes other writers."""
    row = rows.fetch(connection, runs, {"id": run_id}, lock=lock)
    if row is None:
        raise no_run(run_id)
    return row


def no_run(run_id: str) -> UserError:
    """The error for an id that no run has, or none of the owner."""
    return UserError(f"there is no run {run_id!r}")


def figure_columns(figures: Figures) -> dict[str, object]:
    """Figures as the values of columns."""
    values = {name: text(value) if isinstance(value, Decimal) else value for name, value in figures.items()}
    return values | {"wall_s": float(figures["wall_s"])} if "wall_s" in figures else values


def read_run(row: Mapping[str, Any]) -> Run:
    """The run in a row. Raises `ReplayMismatch` if its documents cannot be parsed."""
    values = {name: row[name] for name in rows.sealed_columns(runs)}
    try:
        for name in ("params", "metrics", "baselines"):
            values[name] = None if values[name] is None else codec.loads(values[name])
        for name in ("cost_usd", "saved_usd", "wasted_usd"):
            values[name] = Decimal(values[name])
    except (ValueError, TypeError, ArithmeticError):
        raise ReplayMismatch(f"the row of run {row['id']} was changed after it was written") from None
    values["cancel_requested"] = bool(values["cancel_requested"])
    return Run(**values)
