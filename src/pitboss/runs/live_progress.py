"""What a page or a stream shows of a run while it is executed: its progress, and its newest ticks.

Read from the row of the run and a bounded number of its newest records, so that reading twice a second does not slow the worker.
"""

from collections.abc import Mapping
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.curve import last_point
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso
from pitboss.core.snapshot import Record
from pitboss.runs.stored import decision_rows, speculation_of
from pitboss.runs.venues import period_ms, venue_of
from pitboss.store.budgets import cost_of_run
from pitboss.store.lifecycle import ENDED
from pitboss.store.recent_records import newest_records
from pitboss.store.runs import Run

MOST_TICKS = 256
"""Ticks that are read at once; of more than that the newest."""


def total_ticks(run: Run) -> int:
    """The number of ticks that a run will have when it is complete."""
    try:
        return ticks_in(run.params["skill"], run.params["from_at"], run.params["to_at"])
    except UserError:  # its venue is not installed
        return 0


def ticks_in(skill: Mapping[str, Any], from_at: Instant, to_at: Instant) -> int:
    """The number of ticks of a skill in `[from_at, to_at)`."""
    period = period_ms(skill)
    return max(0, -(-to_at // period) - -(-from_at // period))


def progress_document(workspace: Workspace, run: Run, total: int) -> dict[str, Any]:
    """The progress of a run. While it is executed, its cost is what the stored replies have cost so far."""
    ended = run.status in ENDED
    cost_usd = run.cost_usd if ended else cost_of_run(workspace.database, run.id)
    return {
        "run_id": run.id,
        "status": run.status,
        "progress_pct": round(run.progress * 100, 2),
        "ticks": run.ticks if run.status == "complete" else round(run.progress * total),
        "total_ticks": total,
        "cost_usd": None if cost_usd.is_nan() else float(cost_usd),
        "saved_usd": float(run.saved_usd),
        "wasted_usd": float(run.wasted_usd),
        "speculation": speculation_of(workspace, run),
        "error_text": run.error_text,
    }


def newest_ticks(workspace: Workspace, run: Run, after_seq: int, limit: int = MOST_TICKS) -> list[dict[str, Any]]:
    """The newest ticks of a run after a record, oldest first, at most `limit`."""
    records = newest_records(workspace.database, run.id, after_seq, limit)
    rows = [row for record in records if (row := _tick(record)) is not None]
    return venue_of(run.params["skill"]).reveal(rows, run.params)


def _tick(record: Record) -> dict[str, Any] | None:
    body = codec.loads(record.covered)
    row = next(decision_rows(record, body), None)
    if row is None:
        return None
    at, usd = last_point(body["equity"]) or (None, None)
    return {
        "seq": record.seq,
        "tick_at": iso(record.tick_at),
        "times": row.get("times", 1),
        "outcome": row["outcome"],
        "action": _text(row.get("action")),
        "code": _text(row.get("code")),
        "symbol": _text(row.get("symbol")),
        "equity_usd": None if usd is None else float(usd),
        "equity_at": None if at is None else iso(at),
    }


def _text(value: object) -> str | None:
    """A value of a proposal, which may be anything."""
    return value[:100] if isinstance(value, str) else None
