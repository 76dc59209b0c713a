"""The queue: which run a worker executes next, and what happens to a run whose worker is lost.

The rows of `runs` are the queue: `queued_at` is the time from which a worker may claim a run; without it the run is not in
the queue. A claim is one conditional UPDATE that also raises the lease epoch; so does everything that takes a run from its
worker, and every write is made under an epoch (`runs.py`, `journal.py`). All times are the database's: the clocks of workers
do not matter. Nothing here waits, sleeps or starts anything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from sqlalchemy import Connection, Select, func, insert, select, update

from pitboss.core import codec
from pitboss.core.errors import InvariantError, ReplayMismatch, UserError
from pitboss.core.instant import Instant
from pitboss.store import budgets, events
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.lifecycle import ACTIVE, LeaseLost
from pitboss.store.queue_queries import WORKING, count_active, is_silent, silent_runs, stored_records
from pitboss.store.retry import Unreachable
from pitboss.store.run import Run, new_run_row, read_run, require_run_row
from pitboss.store.schema import SEAL, run_events, runs

HEARTBEAT_MS = 5_000
STALE_MS = 20_000
SCAN_MS = 2_000
MOST_REQUEUES = 3
_MAX_SKIPPED = 8
"""So many unreadable rows in succession are taken for a fault of the whole database."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run to be enqueued. Higher `priority` goes first; `reserve_usd` is its worst-case cost."""

    skill_id: str
    skill_version: int
    model: str
    params: Mapping[str, Any]
    data_digest: str | None = None
    owner: str = "local"
    priority: int = 0
    study_id: str | None = None
    build: str | None = None
    reserve_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """A run that a worker has claimed, as it was then. Every write is made under `epoch`."""

    run: Run
    epoch: int
    worker: str

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.id


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The reply to a heartbeat: which runs the worker has lost, and which it must stop."""

    lost: frozenset[str] = frozenset()
    cancelled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What happened to the runs of lost workers, by id."""

    requeued: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    cancelled: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """The number of runs that can be claimed now, of those that become ready later, and of those being worked on."""

    ready: int
    later: int
    working: int


class Queue:
    """The queue of a database. One process may have several of these."""

    def __init__(self, database: Database, now: Callable[[], Instant], new_id: Callable[[], str]) -> None:
        self._database = database
        self._now = now
        self._new_id = new_id

    def enqueue(self, jobs: Sequence[Job], daily_usd: Decimal | None = None) -> list[str]:
        """Enqueue runs, all or none, and return their ids. With `daily_usd` their worst-case cost is reserved, or
        `BudgetExceeded` is raised.
        """
        created = [(self._new_id(), job) for job in jobs]
        with self._database.write() as connection:
            now = self._database.now(connection)
            queued = [{**_row(run_id, job, now), "created_at": self._now()} for run_id, job in created]
            if not queued:
                return []
            connection.execute(insert(runs), [{**row, SEAL: rows.seal_of(runs, row)} for row in queued])
            connection.execute(
                insert(run_events),
                [events.event_row(run_id, 0, "enqueued", now, None, job.owner) for run_id, job in created],
            )
            if daily_usd is not None:
                for run_id, job in sorted(created, key=lambda item: item[1].owner):  # all take locks in this order
                    if job.reserve_usd is None:
                        raise InvariantError("a run without an estimate cannot be held to a budget")
                    budgets.reserve(
                        connection, self._database, job.owner, run_id, budgets.OWN, job.reserve_usd, daily_usd
                    )
        return [run_id for run_id, _ in created]

    def enqueue_again(
        self,
        run_id: str,
        reserve_usd: Decimal | None = None,
        daily_usd: Decimal | None = None,
        priority: int | None = None,
        params: Mapping[str, Any] | None = None,
        build: str | None = None,
    ) -> None:
        """Enqueue a run that ended in error or was cancelled once more, or a branch that was never queued; it continues
        from its last commit.

        `params` replace stored ones, such as the limit on its cost; `build` replaces the build that may execute it.
        """
        with self._database.write() as connection:
            row = require_run_row(connection, run_id, lock=True)
            is_new_branch = row["status"] == "queued" and row["queued_at"] is None
            if row["status"] not in ("error", "cancelled") and not is_new_branch:
                raise UserError(
                    f"run {run_id} is {row['status']}",
                    "only a run that ended in error or was cancelled can be queued again",
                )
            now = self._database.now(connection)
            changes = {
                **_requeued(row, now),
                "requeues": 0,
                "cancel_requested": False,
                "finished_at": None,
                "error_text": None,
                "priority": row["priority"] if priority is None else priority,
                "build": row["build"] if build is None else build,
            }
            if params:
                changes["params"] = codec.dumps({**read_run(row).params, **params})
            rows.change(connection, runs, row, changes)
            events.append(connection, run_id, row["lease_epoch"] + 1, "enqueued", now, None, row["owner"])
            if daily_usd is not None:
                if reserve_usd is None:
                    raise InvariantError("a run without an estimate cannot be held to a budget")
                owner = row["owner"]
                budgets.reserve(connection, self._database, owner, run_id, budgets.OWN, reserve_usd, daily_usd)

    def claim(
        self,
        worker: str,
        *,
        per_user: int | None = None,
        build: str | None = None,
        into: Literal["loading", "running"] = "loading",
    ) -> Lease | None:
        """Claim the next run, or return None if there is none.

        That is the one of the highest priority that has waited longest, of a user with fewer than `per_user` active runs,
        created by `build` (None: any; a run without a build is for any).
        """
        skipped: set[str] = set()
        while True:
            with self._database.read() as connection:  # an idle worker must not block writers
                now = self._database.now(connection)
                if connection.execute(self._next(now, per_user, build, skipped)).first() is None:
                    return None
            run_id = ""
            try:
                with self._database.write() as connection:
                    now = self._database.now(connection)
                    query = self._next(now, per_user, build, skipped).with_for_update(skip_locked=True, of=runs)
                    row = connection.execute(query).first()
                    if row is None:
                        return None
                    run_id, owner = row
                    if per_user is not None:
                        self._database.lock_name(connection, f"claim/{owner}")
                        if connection.execute(count_active(owner)).scalar_one() >= per_user:
                            continue  # another worker claimed a run of this user at the same moment
                    lease = self._take(connection, run_id, worker, now, into)
            except Unreachable:
                raise
            except UserError:  # this row has text that the driver cannot read; or nothing can be written at all
                if not run_id or len(skipped) >= _MAX_SKIPPED:
                    raise
                skipped.add(run_id)
                continue
            if lease is not None:
                return lease
            self._set_error(run_id)
            skipped.add(run_id)

    def leases_of(self, worker: str) -> list[Lease]:
        """The runs that a worker has. Names of workers are unique, so a worker whose claim got no reply finds out here
        whether the claim was made.
        """
        query = rows.raw(runs).where(runs.c.status.in_(WORKING), runs.c.worker == worker).order_by(runs.c.id)
        with self._database.read() as connection:
            claimed = rows.fetch_all(connection, query)
        return [Lease(read_run(row), row["lease_epoch"], worker) for row in claimed if rows.intact(runs, row)]

    def beat(self, leases: Mapping[str, int]) -> HeartbeatReply:
        """Write a heartbeat for these runs (id → epoch); returns which were lost or are to be stopped.

        Never raises for a single run. A commit of the journal counts as a heartbeat too.
        """
        lost: set[str] = set()
        cancelled: set[str] = set()
        if not leases:
            return HeartbeatReply()
        with self._database.write() as connection:
            for run_id, epoch in sorted(leases.items()):  # always in this order, to avoid deadlocks
                row = rows.fetch(connection, runs, {"id": run_id}, lock=True)
                if row is None or row["lease_epoch"] != epoch or row["status"] not in ACTIVE:
                    lost.add(run_id)
                    continue
                if row["cancel_requested"]:
                    cancelled.add(run_id)
                try:
                    rows.change(connection, runs, row, {"heartbeat_at": self._database.now(connection)})
                except ReplayMismatch:
                    lost.add(run_id)
        return HeartbeatReply(frozenset(lost), frozenset(cancelled))

    def release(self, run_id: str, epoch: int, cause: str = "") -> None:
        """Return a run to the queue (a worker that exits). It continues elsewhere, and this does not count as a loss."""
        with self._database.write() as connection:
            row = rows.fetch(connection, runs, {"id": run_id}, lock=True)
            if row is not None and row["lease_epoch"] == epoch and row["status"] in ACTIVE:
                now = self._database.now(connection)
                if row["cancel_requested"]:
                    self._end(connection, row, now, "cancelled", None)
                    return
                queued_at = now if row["queued_at"] is None else row["queued_at"]
                rows.change(connection, runs, row, _requeued(row, queued_at))
                events.append(connection, run_id, epoch, "released", now, row["worker"], cause)
                budgets.settle_before(connection, run_id, epoch + 1)
                return
        events.append_refusal(self._database, run_id, epoch, "release")
        raise LeaseLost(run_id)

    def sweep(self, stale_ms: int = STALE_MS, most: int = MOST_REQUEUES, limit: int = 100) -> SweepResult:
        """Requeue runs without a heartbeat for `stale_ms`; after `most` times without progress they end in error.

        Every worker does this regularly; several may do it at once.
        """
        with self._database.read() as connection:
            before = self._database.now(connection) - stale_ms
            ids = connection.execute(silent_runs(before).limit(limit)).scalars().all()
        swept = SweepResult()
        for run_id in ids:
            try:
                self._sweep_run(run_id, stale_ms, most, swept)
            except Unreachable:
                raise
            except ReplayMismatch:  # a damaged row: the run cannot be executed
                self._set_error(run_id)
            except UserError:  # it cannot be read, or nothing can be written: the other runs must not wait for it
                continue
        return swept

    def depth(self) -> QueueDepth:
        """The depth of the queue."""
        with self._database.read() as connection:
            now = self._database.now(connection)
            waiting = select(func.count()).where(runs.c.status == "queued")
            ready = connection.execute(waiting.where(runs.c.queued_at <= now)).scalar_one()
            later = connection.execute(waiting.where(runs.c.queued_at > now)).scalar_one()
            working = connection.execute(count_active(None)).scalar_one()
        return QueueDepth(int(ready), int(later), int(working))

    def _next(self, now: Instant, per_user: int | None, build: str | None, skipped: set[str]) -> Select[str, str]:
        query = select(runs.c.id, runs.c.owner).where(runs.c.status == "queued", runs.c.queued_at <= now)
        if per_user is not None:
            busy = count_active(None).with_only_columns(runs.c.owner).group_by(runs.c.owner)
            full = busy.having(func.count() >= per_user).correlate(None)
            query = query.where(runs.c.owner.not_in(full.scalar_subquery()))
        if build is not None:
            query = query.where(runs.c.build.is_(None) | (runs.c.build == build))
        if skipped:
            query = query.where(runs.c.id.not_in(sorted(skipped)))
        return query.order_by(runs.c.priority.desc(), runs.c.queued_at, runs.c.id).limit(1)

    def _take(
        self, connection: Connection, run_id: str, worker: str, now: Instant, into: Literal["loading", "running"]
    ) -> Lease | None:
        """The lease of the run, or None if its row is damaged."""
        row = require_run_row(connection, run_id)
        epoch = row["lease_epoch"] + 1
        changes = {
            "status": into,
            "lease_epoch": epoch,
            "started_at": row["started_at"] or now,
            "heartbeat_at": now,
            "worker": worker,
        }
        try:
            lease = Lease(read_run({**row, **changes}), epoch, worker)
            rows.change(connection, runs, row, changes)
        except ReplayMismatch:
            return None
        events.append(connection, run_id, epoch, "claimed", now, worker)
        return lease

    def _sweep_run(self, run_id: str, stale_ms: int, most: int, swept: SweepResult) -> None:
        with self._database.write() as connection:
            now = self._database.now(connection)
            silent = select(runs.c.id).where(runs.c.id == run_id, *is_silent(now - stale_ms))
            if connection.execute(silent.with_for_update(skip_locked=True)).first() is None:
                return  # it has a new heartbeat, or another worker sweeps it
            row = require_run_row(connection, run_id)
            silent_s = (now - row["heartbeat_at"]) // 1_000
            cause = f"worker {row['worker']} sent no heartbeat for {silent_s} s at {row['progress']:.0%}"
            if row["cancel_requested"]:
                self._end(connection, row, now, "cancelled", None)
                swept.cancelled.append(run_id)
                return
            stored = stored_records(connection, run_id)
            losses = 1 + (0 if stored > events.records_at_loss(connection, run_id) else row["requeues"])
            if losses > most:
                error_text = f"its worker was lost {losses} times without progress; the last time, {cause}"
                self._end(connection, row, now, "error", error_text)
                swept.failed.append(run_id)
            else:
                # It keeps its position: a run that was begun must not wait behind all that were enqueued after it.
                rows.change(connection, runs, row, {**_requeued(row, row["queued_at"]), "requeues": losses})
                detail = events.loss_detail(now - row["heartbeat_at"], stored, cause)
                events.append(connection, run_id, row["lease_epoch"], "requeued", now, row["worker"], detail)
                budgets.settle_before(connection, run_id, row["lease_epoch"] + 1)
                swept.requeued.append(run_id)

    def _end(
        self,
        connection: Connection,
        row: Mapping[str, Any],
        now: Instant,
        status: Literal["error", "cancelled"],
        error_text: str | None,
    ) -> None:
        """End a run in place of its lost worker, and raise the epoch so that writes of that worker are refused."""
        changes = {
            "status": status,
            "finished_at": now,
            "error_text": error_text,
            "lease_epoch": row["lease_epoch"] + 1,
        }
        rows.change(connection, runs, row, changes)
        events.append(connection, row["id"], row["lease_epoch"], status, now, row["worker"], error_text or "")
        budgets.settle_all(connection, row["id"])

    def _set_error(self, run_id: str) -> None:
        """Take a damaged row out of the queue. It gets no new seal: it stays damaged."""
        with self._database.write() as connection:
            values = {"status": "error", "error_text": "its row was changed after it was written"}
            connection.execute(update(runs).where(runs.c.id == run_id).values(values))


def _row(run_id: str, job: Job, now: Instant) -> dict[str, object]:
    return {
        **new_run_row(run_id, job.skill_id, job.skill_version, job.model, job.params, job.data_digest),
        "owner": job.owner,
        "priority": job.priority,
        "queued_at": now,
        "study_id": job.study_id,
        "build": job.build,
    }


def _requeued(row: Mapping[str, Any], queued_at: Instant) -> dict[str, object]:
    """The changes that return a run to the queue and invalidate the lease of its worker."""
    return {"status": "queued", "lease_epoch": row["lease_epoch"] + 1, "queued_at": queued_at, "worker": None}
