"""The log of what happened to runs: who took them, when they were lost, how they ended, what was refused.

Append only, in the order in which it happened to each run: an event is written in the transaction of the change that it
tells, under a lock on the run's row. Times are the database's. What must hold of such a log is `history_check.py`.
"""

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
    "claimed",  # a worker took it from the queue; the epoch is the new one
    "taken",  # a person took it, from the queue or from whoever had it; the epoch is the new one
    "committed",  # records were added; the detail is "first-next"
    "cancel",  # somebody asked for it to stop
    "released",  # its worker put it back in good order
    "requeued",  # its worker was lost, and it was put back
    "complete",
    "error",
    "cancelled",
    "refused",  # a write under a lease that was gone; the epoch is the old one
]
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One event. `epoch` is the lease under which it happened; 0 before the first."""

    id: int
    run_id: str
    epoch: int
    kind: Kind
    at: Instant
    worker: str | None
    detail: str


def row_of(run_id: str, epoch: int, kind: Kind, at: Instant, worker: str | None, detail: str = "") -> dict[str, Any]:
    """The sealed row of an event."""
    row = {"run_id": run_id, "epoch": epoch, "kind": kind, "at": at, "worker": worker, "detail": detail}
    return {**row, SEAL: rows.seal_of(run_events, row)}


def append(
    connection: Connection, run_id: str, epoch: int, kind: Kind, at: Instant, worker: str | None, detail: str = ""
) -> None:
    """Tell an event. The caller has the run's row locked."""
    connection.execute(insert(run_events), row_of(run_id, epoch, kind, at, worker, detail))


def refuse(database: Database, run_id: str, epoch: int, what: str) -> None:
    """Tell that a write under an old lease was refused. Whoever comes too late must not fail twice: best effort."""
    with suppress(UserError), database.write() as connection:
        if rows.fetch(connection, runs, {"id": run_id}, lock=True) is not None:
            append(connection, run_id, epoch, "refused", database.now(connection), None, what)


def read(database: Database, run_id: str | None = None, after: int = 0) -> Iterator[RunEvent]:
    """Events in order, of one run or of all, from those with a number above `after`.

    Numbers are given before a transaction ends: while others write, an event of another run may still come in below one
    that was read already. Of one run they never do.
    """
    while True:
        query = rows.raw(run_events).where(run_events.c.id > after).order_by(run_events.c.id).limit(PAGE)
        if run_id is not None:
            query = query.where(run_events.c.run_id == run_id)
        with database.read() as connection:
            page = rows.fetch_all(connection, query)
        for row in page:
            rows.require_intact(run_events, row)
            yield RunEvent(*(row[name] for name in ("id", "run_id", "epoch", "kind", "at", "worker", "detail")))
        if len(page) < PAGE:
            return
        after = page[-1]["id"]


def last_number(database: Database) -> int:
    """The number of the newest event; 0 where there is none."""
    with database.read() as connection:
        newest = select(run_events.c.id).order_by(run_events.c.id.desc()).limit(1)
        return int(connection.execute(newest).scalar() or 0)
