"""The queue: which run a worker works on next, and what becomes of a run whose worker is lost.

The run's row is the queue: `queued_at` is from when on a worker may take it, and a run without it is not for workers. A
claim is one conditional UPDATE that also raises the lease epoch; so does everything that takes a run from its worker, and
every write carries the epoch (`runs.py`, `journal.py`). All comparisons are in the database's time: the clocks of workers
do not matter. Nothing here waits, sleeps or starts anything: when to ask is the worker's business.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from sqlalchemy import Connection, Select, func, insert, select, update

from pitboss.core.errors import InvariantError, ReplayMismatch, UserError
from pitboss.core.instant import Instant
from pitboss.store import budgets, events
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.lifecycle import ACTIVE, LeaseLost
from pitboss.store.retry import Unreachable
from pitboss.store.run import Run, fresh, open_row, read_run
from pitboss.store.schema import SEAL, run_events, runs

HEARTBEAT_MS = 5_000
STALE_MS = 20_000
SCAN_MS = 2_000
MOST_REQUEUES = 3
_WORKING = sorted(ACTIVE)
_MOST_PASSED = 8
"""Rows in a row that cannot be read before it is taken for a fault of the whole database."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run to be queued. Higher `priority` goes first; `reserve_usd` is what it may cost at worst."""

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
    """A run that a worker has, as it was when it got it. `epoch` goes with every write."""

    run: Run
    epoch: int
    worker: str

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.run.id


@dataclass(frozen=True, slots=True)
class Beat:
    """What a worker hears when it says that it is alive: which runs it has lost, and which it should stop."""

    lost: frozenset[str] = frozenset()
    cancelled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Swept:
    """What became of runs whose workers were lost, by id."""

    requeued: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    cancelled: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Depth:
    """How much there is to do: runs that a worker may take now, runs that wait for their time, runs being worked on."""

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
        """Queue runs, all or none, and give their ids. With `daily_usd` what they may cost is reserved, or
        `BudgetExceeded` says how much is left.
        """
        made = [(self._new_id(), job) for job in jobs]
        with self._database.write() as connection:
            now = self._database.now(connection)
            queued = [{**_row(run_id, job, now), "created_at": self._now()} for run_id, job in made]
            if not queued:
                return []
            connection.execute(insert(runs), [{**row, SEAL: rows.seal_of(runs, row)} for row in queued])
            connection.execute(
                insert(run_events), [events.row_of(run_id, 0, "enqueued", now, None, job.owner) for run_id, job in made]
            )
            if daily_usd is not None:
                for run_id, job in sorted(made, key=lambda one: one[1].owner):  # locks are taken in one order by all
                    if job.reserve_usd is None:
                        raise InvariantError("a run without an estimate cannot be held to a budget")
                    budgets.reserve(
                        connection, self._database, job.owner, run_id, budgets.OWN, job.reserve_usd, daily_usd
                    )
        return [run_id for run_id, _ in made]

    def again(
        self,
        run_id: str,
        reserve_usd: Decimal | None = None,
        daily_usd: Decimal | None = None,
        priority: int | None = None,
    ) -> None:
        """Put a run that ended in error or was cancelled back into the queue, to go on where it stopped."""
        with self._database.write() as connection:
            row = open_row(connection, run_id, lock=True)
            if row["status"] not in ("error", "cancelled"):
                raise UserError(f"run {run_id} is {row['status']}", "only a run that broke off can be queued again")
            now = self._database.now(connection)
            changes = {
                **_back(row, now),
                "requeues": 0,
                "cancel_requested": False,
                "finished_at": None,
                "error_text": None,
                "priority": row["priority"] if priority is None else priority,
            }
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
        """Take the run that is next, or None if there is none to take.

        Next is the one of the highest priority that has waited longest, of a user with fewer than `per_user` runs being
        worked on, made by `build` (None: any; a run that names none is for any build).
        """
        passed: set[str] = set()
        while True:
            with self._database.read() as connection:  # an idle worker must not keep writers waiting
                now = self._database.now(connection)
                if connection.execute(self._next(now, per_user, build, passed)).first() is None:
                    return None
            run_id = ""
            try:
                with self._database.write() as connection:
                    now = self._database.now(connection)
                    query = self._next(now, per_user, build, passed).with_for_update(skip_locked=True, of=runs)
                    found = connection.execute(query).first()
                    if found is None:
                        return None
                    run_id, owner = found
                    if per_user is not None:
                        self._database.alone(connection, f"claim/{owner}")
                        if connection.execute(_having(owner)).scalar_one() >= per_user:
                            continue  # somebody took a run of theirs at the same moment: look again
                    lease = self._take(connection, run_id, worker, now, into)
            except Unreachable:
                raise
            except UserError:  # text in this one row that the driver cannot read; or nothing can be written at all
                if not run_id or len(passed) >= _MOST_PASSED:
                    raise
                passed.add(run_id)
                continue
            if lease is not None:
                return lease
            self._put_aside(run_id)
            passed.add(run_id)

    def held(self, worker: str) -> list[Lease]:
        """The runs that a worker has. Names of workers are unique, so after a claim whose answer was lost it finds out here
        whether it got one.
        """
        query = rows.raw(runs).where(runs.c.status.in_(_WORKING), runs.c.worker == worker).order_by(runs.c.id)
        with self._database.read() as connection:
            found = rows.fetch_all(connection, query)
        return [Lease(read_run(row), row["lease_epoch"], worker) for row in found if rows.intact(runs, row)]

    def beat(self, leases: Mapping[str, int]) -> Beat:
        """Say that a worker is alive and at work on these runs (id → epoch), and hear what became of them.

        Never raises for a run: what is lost is named. A commit of the journal is a sign of life too.
        """
        lost: set[str] = set()
        cancelled: set[str] = set()
        if not leases:
            return Beat()
        with self._database.write() as connection:
            for run_id, epoch in sorted(leases.items()):  # in one order, as others lock rows too
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
        return Beat(frozenset(lost), frozenset(cancelled))

    def release(self, run_id: str, epoch: int, cause: str = "", delay_ms: int = 0) -> None:
        """Give a run back in good order (a worker that leaves): it goes on elsewhere, and this does not count."""
        with self._database.write() as connection:
            row = rows.fetch(connection, runs, {"id": run_id}, lock=True)
            if row is not None and row["lease_epoch"] == epoch and row["status"] in ACTIVE:
                now = self._database.now(connection)
                if row["cancel_requested"]:
                    self._end(connection, row, now, "cancelled", None)
                    return
                place_at = now + delay_ms if delay_ms or row["queued_at"] is None else row["queued_at"]
                rows.change(connection, runs, row, _back(row, place_at))
                events.append(connection, run_id, epoch, "released", now, row["worker"], cause)
                budgets.settle_before(connection, run_id, epoch + 1)
                return
        events.refuse(self._database, run_id, epoch, "release")
        raise LeaseLost(run_id)

    def sweep(self, stale_ms: int = STALE_MS, most: int = MOST_REQUEUES, limit: int = 100) -> Swept:
        """Put runs back whose worker has given no sign of life for `stale_ms`; after `most` times they end in error.

        Every worker does this now and then; it does not matter if several do it at once.
        """
        with self._database.read() as connection:
            before = self._database.now(connection) - stale_ms
            ids = connection.execute(_silent(before).limit(limit)).scalars().all()
        swept = Swept()
        for run_id in ids:
            try:
                self._sweep_one(run_id, stale_ms, most, swept)
            except Unreachable:
                raise
            except ReplayMismatch:  # a damaged row: not one that could be worked on
                self._put_aside(run_id)
            except UserError:  # it cannot be read, or nothing can be written: the others must not wait for it
                continue
        return swept

    def depth(self) -> Depth:
        """How much there is to do."""
        with self._database.read() as connection:
            now = self._database.now(connection)
            waiting = select(func.count()).where(runs.c.status == "queued")
            ready = connection.execute(waiting.where(runs.c.queued_at <= now)).scalar_one()
            later = connection.execute(waiting.where(runs.c.queued_at > now)).scalar_one()
            working = connection.execute(_having(None)).scalar_one()
        return Depth(int(ready), int(later), int(working))

    def _next(self, now: Instant, per_user: int | None, build: str | None, passed: set[str]) -> Select[str, str]:
        query = select(runs.c.id, runs.c.owner).where(runs.c.status == "queued", runs.c.queued_at <= now)
        if per_user is not None:
            busy = _having(None).with_only_columns(runs.c.owner).group_by(runs.c.owner)
            full = busy.having(func.count() >= per_user).correlate(None)
            query = query.where(runs.c.owner.not_in(full.scalar_subquery()))
        if build is not None:
            query = query.where(runs.c.build.is_(None) | (runs.c.build == build))
        if passed:
            query = query.where(runs.c.id.not_in(sorted(passed)))
        return query.order_by(runs.c.priority.desc(), runs.c.queued_at, runs.c.id).limit(1)

    def _take(
        self, connection: Connection, run_id: str, worker: str, now: Instant, into: Literal["loading", "running"]
    ) -> Lease | None:
        """The run as ours, or None if its row is damaged."""
        row = open_row(connection, run_id)
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

    def _sweep_one(self, run_id: str, stale_ms: int, most: int, swept: Swept) -> None:
        with self._database.write() as connection:
            now = self._database.now(connection)
            mine = select(runs.c.id).where(runs.c.id == run_id, *_lost(now - stale_ms))
            if connection.execute(mine.with_for_update(skip_locked=True)).first() is None:
                return  # it gave a sign of life, or somebody else sweeps it
            row = open_row(connection, run_id)
            silent_s = (now - row["heartbeat_at"]) // 1_000
            cause = f"worker {row['worker']} gave no sign of life for {silent_s} s at {row['progress']:.0%}"
            if row["cancel_requested"]:
                self._end(connection, row, now, "cancelled", None)
                swept.cancelled.append(run_id)
            elif row["requeues"] >= most:
                told = f"its worker was lost {row['requeues'] + 1} times; the last time, {cause}"
                self._end(connection, row, now, "error", told)
                swept.failed.append(run_id)
            else:
                # It keeps its place: one that was begun must not wait behind all that came after it.
                rows.change(connection, runs, row, {**_back(row, row["queued_at"]), "requeues": row["requeues"] + 1})
                silent = f"{now - row['heartbeat_at']} ms: {cause}"
                events.append(connection, run_id, row["lease_epoch"], "requeued", now, row["worker"], silent)
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
        """End a run in the place of a worker that is gone, and fence that worker off."""
        changes = {
            "status": status,
            "finished_at": now,
            "error_text": error_text,
            "lease_epoch": row["lease_epoch"] + 1,
        }
        rows.change(connection, runs, row, changes)
        events.append(connection, row["id"], row["lease_epoch"], status, now, row["worker"], error_text or "")
        budgets.settle_all(connection, row["id"])

    def _put_aside(self, run_id: str) -> None:
        """Take a damaged row out of the queue so that it stops nobody. It gets no fresh seal: it stays damaged."""
        with self._database.write() as connection:
            ended = {"status": "error", "error_text": "its row was changed after it was written"}
            connection.execute(update(runs).where(runs.c.id == run_id).values(ended))


def _row(run_id: str, job: Job, now: Instant) -> dict[str, object]:
    return {
        **fresh(run_id, job.skill_id, job.skill_version, job.model, job.params, job.data_digest),
        "owner": job.owner,
        "priority": job.priority,
        "queued_at": now,
        "study_id": job.study_id,
        "build": job.build,
    }


def _back(row: Mapping[str, Any], queued_at: Instant) -> dict[str, object]:
    """What puts a run into the queue again, and whoever had it out of the game."""
    return {"status": "queued", "lease_epoch": row["lease_epoch"] + 1, "queued_at": queued_at, "worker": None}


def _having(owner: str | None) -> Select[int]:
    """How many runs workers have, of one user or of all."""
    query = select(func.count()).where(runs.c.status.in_(_WORKING), runs.c.queued_at.is_not(None))
    return query if owner is None else query.where(runs.c.owner == owner)


def _lost(before: Instant) -> tuple[Any, ...]:
    return runs.c.status.in_(_WORKING), runs.c.queued_at.is_not(None), runs.c.heartbeat_at < before


def _silent(before: Instant) -> Select[str]:
    return select(runs.c.id).where(*_lost(before)).order_by(runs.c.heartbeat_at)
