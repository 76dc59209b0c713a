"""The log of run events: enqueued, claimed, lost, ended, and writes that were refused.

Append only. An event is written in the transaction of the change that it describes, under a lock on the run's row, so the
events of a run are in the order in which they happened. Times are the database's.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, insert, select

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import SEAL, run_events, runs

Kind = Literal[
    "enqueued",  # put into the queue for the first time
    "claimed",  # by a worker, from the queue; the epoch is the new one
    "taken",  # by a foreground command, from the queue or from its worker; the epoch is the new one
    "committed",  # records were added; the detail is "first-next"
    "cancel",  # a cancel was requested
    "released",  # returned to the queue by its worker
    "requeued",  # returned to the queue because its worker was lost
    "complete",
    "error",
    "cancelled",
    "refused",  # a write under an expired lease; the epoch is the old one
]
PAGE = 1_000
_LOSS_DETAIL = re.compile(r"\d+ ms, (\d+) records: ")


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One event. `epoch` is that of the lease under which it happened; 0 before the first lease."""

    id: int
    run_id: str
    epoch: int
    kind: Kind
    at: Instant
    worker: str | None
    detail: str


def event_row(run_id: str, epoch: int, kind: Kind, at: Instant, worker: str | None, detail: str = "") -> dict[str, Any]:
    """The sealed row of an event."""
    row = {"run_id": run_id, "epoch": epoch, "kind": kind, "at": at, "worker": worker, "detail": detail}
    return {**row, SEAL: rows.seal_of(run_events, row)}


def append(
    connection: Connection, run_id: str, epoch: int, kind: Kind, at: Instant, worker: str | None, detail: str = ""
) -> None:
    """Append an event. The caller holds the lock on the run's row."""
    connection.execute(insert(run_events), event_row(run_id, epoch, kind, at, worker, detail))


def append_refusal(database: Database, run_id: str, epoch: int, operation: str) -> None:
    """Record that a write under an old lease was refused. Best effort: a failure to record it is ignored."""
    with suppress(UserError), database.write() as connection:
        if rows.fetch(connection, runs, {"id": run_id}, lock=True) is not None:
            append(connection, run_id, epoch, "refused", database.now(connection), None, operation)


def loss_detail(silent_ms: int, records: int, cause: str) -> str:
    """The detail of a `requeued` event: how long its worker was silent, and how many records the run had committed."""
    return f"{silent_ms} ms, {records} records: {cause}"


def records_at_loss(connection: Connection, run_id: str) -> float:
    """The number of its records when a run last lost its worker; infinite if it never did, or if an earlier version wrote
    the event, which did not store the number.
    """
    lost = run_events.c.run_id == run_id, run_events.c.kind == "requeued"
    newest = select(run_events.c.detail).where(*lost).order_by(run_events.c.id.desc()).limit(1)
    match = _LOSS_DETAIL.match(connection.execute(newest).scalar_one_or_none() or "")
    return int(match[1]) if match else float("inf")


def read_events(database: Database, run_id: str | None = None) -> Iterator[RunEvent]:
    """The events of one run or of all, in order.

    Ids are assigned before a transaction commits: under concurrent writes an event of another run may appear below an id
    that was read already. The events of one run never do.
    """
    query = rows.raw(run_events) if run_id is None else rows.raw(run_events).where(run_events.c.run_id == run_id)
    for row in database.read_paged(query, run_events.c.id, PAGE):
        rows.require_intact(run_events, row)
        yield RunEvent(*(row[name] for name in ("id", "run_id", "epoch", "kind", "at", "worker", "detail")))
