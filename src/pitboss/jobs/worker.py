"""The worker: claims runs from the queue and executes them, many at once on one event loop, until it is stopped.

It owns nothing but leases. If it ends, its runs continue elsewhere from their last commit; if a run fails, the worker
continues. Where workers are started, and how many, is decided in `executors`.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pitboss.bootstrap.machine import stopwatch
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import InvariantError, RunCancelled, UserError
from pitboss.core.trace import SILENT, Tracer
from pitboss.jobs.children import ChildDied, Children
from pitboss.jobs.heartbeat import Heartbeat, HeartbeatSettings, LeaseNotice
from pitboss.jobs.placement import is_compute_only, needs_process
from pitboss.jobs.run_report import ReportWriter
from pitboss.jobs.study_steps import StudyContinuer
from pitboss.runs.run import give_up, work
from pitboss.sim.watch import Watch
from pitboss.store.lifecycle import ENDED, LeaseLost
from pitboss.store.queue import Lease, Queue
from pitboss.store.retry import Unreachable, retry_while_unreachable

LOG = logging.getLogger("pitboss.jobs")
POLL_S = 0.5
"""How often an idle worker looks for a run."""
UNREACHABLE_PAUSE_S = 0.5
"""The pause before a run is executed again after the database was unreachable."""
CHILD_GRACE_S = 5.0
"""How long a child may take to finish its tick before it is killed."""

StopReason = Literal["lost", "cancelled", "drain"]
SEVERITY: dict[StopReason | None, int] = {None: 0, "drain": 1, "cancelled": 2, "lost": 3}


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How a worker works. `build` None claims runs of any build; `idle_exit_s` None never exits when idle."""

    concurrency: int = 16
    processes: int = 0
    """Child processes for runs that compute or have lost workers before; 0: all runs on the event loop."""
    idle_exit_s: float | None = None
    drain_s: float = 10.0
    per_user: int | None = None
    build: str | None = None
    heartbeat: HeartbeatSettings = field(default_factory=HeartbeatSettings)
    logged: bool = False


class WorkerSlot(Protocol):
    """The slot that a worker occupies, of the number of workers that may run. It is released before the last look for a
    run: a process that enqueues a run meanwhile finds the slot free, or its run is found by that look.
    """

    def try_release(self) -> bool:
        """Release the slot, unless the worker is still needed although there is nothing to claim."""
        ...

    def reacquire(self) -> None:
        """Take the slot again: the last look found a run."""
        ...


class UnboundSlot:
    """The slot of a worker that is not counted: it may exit at any time."""

    def try_release(self) -> bool:
        """Always possible."""
        return True

    def reacquire(self) -> None:
        """Nothing was released."""


class ClaimedRun:
    """A run that this worker has claimed. `reason` is set, perhaps by another thread, when the run must stop."""

    def __init__(self, lease: Lease, compute_only: bool, in_child: bool) -> None:
        self.lease = lease
        self.compute_only = compute_only
        self.in_child = in_child
        self.reason: StopReason | None = None
        self.task: asyncio.Task[None] | None = None
        self._started_s = stopwatch()

    @property
    def worked_s(self) -> float:
        """How long this worker has been working on it."""
        return stopwatch() - self._started_s

    def must_stop(self) -> bool:
        """Whether a stop is requested; checked between two ticks."""
        return self.reason is not None

    def request_stop(self, reason: StopReason) -> bool:
        """Request a stop; a more severe reason replaces a lesser one. Returns whether the reason changed."""
        if SEVERITY[reason] <= SEVERITY[self.reason]:
            return False
        self.reason = reason
        return True


class Worker:
    """One worker. `name` must be unique."""

    def __init__(
        self,
        workspace: Workspace,
        queue: Queue,
        name: str,
        settings: WorkerSettings,
        slot: WorkerSlot = UnboundSlot(),  # noqa: B008 - it has no state
        tracer: Tracer = SILENT,
    ) -> None:
        self._workspace = workspace
        self._queue = queue
        self.name = name
        self._settings = settings
        self._slot = slot
        self._tracer = tracer
        self._claimed: dict[str, ClaimedRun] = {}
        self._abandoned: set[tuple[str, int]] = set()
        self._children = Children(workspace.settings, name)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._reports = ReportWriter(workspace, self._wake.set)
        self._studies = StudyContinuer(workspace, self._wake.set)
        self._stops = 0
        self._claim_uncertain = False
        self._last_run_s = 0.0
        self.finished_runs = 0
        """How many runs ended here."""

    def stop(self) -> None:
        """Stop: the first call lets the current ticks finish, the second does not. Safe in a signal handler or a thread."""
        self._stops += 1
        for run in self._claimed.copy().values():
            run.request_stop("drain")  # a run that computes sees this although it blocks the loop
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake.set)

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stops > 0

    async def run(self) -> int:
        """Work until stopped, or until idle for long enough. Returns how many runs ended."""
        self._loop = asyncio.get_running_loop()
        LOG.info("worker starts", extra={"fields": {"worker": self.name}})
        with Heartbeat(self._queue, self._workspace.runs, self._settings.heartbeat, self._leases, self._notice):
            try:
                self._studies.schedule()
                await self._claim_until_idle()
                await self._drain()
            finally:
                await self._children.close()
                await self._reports.close()
                await self._studies.close()
        LOG.info("worker exits", extra={"fields": {"worker": self.name, "done": self.finished_runs}})
        return self.finished_runs

    # claiming

    async def _claim_until_idle(self) -> None:
        loop = asyncio.get_running_loop()
        idle_since, idle_exit_s = loop.time(), self._settings.idle_exit_s
        while not self._stops:
            lease = self._claim() if self._has_room() else None
            if lease is not None:
                self._begin(lease)
                await asyncio.sleep(0)
                idle_since = loop.time()
                continue
            if self._claimed or self._reports.pending or self._studies.pending:
                idle_since = loop.time()
            elif idle_exit_s is not None and loop.time() - idle_since >= idle_exit_s:
                if self._release_slot():
                    lease = self._claim()
                    if lease is None and not self._claim_uncertain:
                        return
                    self._slot.reacquire()
                    if lease is not None:
                        self._begin(lease)
                idle_since = loop.time()
            await self._pause(POLL_S)

    def _release_slot(self) -> bool:
        try:
            return self._slot.try_release()
        except Unreachable:
            return False

    def _has_room(self) -> bool:
        # Counted here and not by the children: a child that is still starting has its run already.
        processes = self._settings.processes
        full = processes and sum(run.in_child for run in self._claimed.values()) >= processes
        return len(self._claimed) < self._settings.concurrency and not full

    def _claim(self) -> Lease | None:
        try:
            if self._claim_uncertain:  # the reply to a claim was lost: it may have been committed
                for lease in self._queue.leases_of(self.name):
                    if lease.run_id not in self._claimed and (lease.run_id, lease.epoch) not in self._abandoned:
                        return lease
                self._claim_uncertain = False
            return self._queue.claim(self.name, per_user=self._settings.per_user, build=self._settings.build)
        except Unreachable as error:
            if not self._claim_uncertain:
                LOG.warning("the database is unreachable", extra={"fields": {"error": error.message}})
            self._claim_uncertain = True
        except Exception as error:  # noqa: BLE001 - a row that cannot be claimed must not end the worker
            LOG.error("claim", extra={"fields": {"error": repr(error)}})
        return None

    def _begin(self, lease: Lease) -> None:
        compute_only = is_compute_only(lease.run)
        in_child = needs_process(
            lease.run, compute_only, self._settings.processes, bool(self._claimed), self._last_run_s
        )
        run = ClaimedRun(lease, compute_only, in_child)
        self._claimed[lease.run_id] = run
        run.task = asyncio.create_task(self._serve(run), name=lease.run_id)

    async def _pause(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    # working

    async def _serve(self, run: ClaimedRun) -> None:
        """One run from claim to end. Raises nothing."""
        run_id, epoch = run.lease.run_id, run.lease.epoch
        try:
            await self._execute(run)
            self.finished_runs += 1
            self._reports.schedule(run.lease.run)
            if run.compute_only:
                self._last_run_s = run.worked_s
        except LeaseLost:
            LOG.info("lease lost", extra={"fields": {"run_id": run_id, "epoch": epoch}})
        except ChildDied as error:
            self._abandoned.add((run_id, epoch))
            LOG.error("child died", extra={"fields": {"run_id": run_id, "error": str(error)}})
        except (RunCancelled, asyncio.CancelledError):
            await self._record_stop(run)
        except BaseException as error:  # noqa: BLE001 - SystemExit too: the run is at fault, not the worker
            cause = REDACTOR.redact(f"unexpected fault: {error!r}")
            await self._write_end(run, lambda: self._workspace.runs.fail(run_id, epoch, cause))
        finally:
            if self._claimed.get(run_id) is run:  # else it was requeued and claimed again meanwhile
                del self._claimed[run_id]
            if run.lease.run.study_id is not None and not self._stops:
                self._studies.schedule(run.lease.run.study_id)
            self._wake.set()

    async def _execute(self, run: ClaimedRun) -> None:
        while True:
            lease = run.lease
            try:
                if run.in_child:
                    await self._children.work(lease, run.must_stop)
                else:
                    watch = Watch(stop=run.must_stop)
                    await work(self._workspace, lease, watch, self._tracer, self._settings.logged)
                return
            except Unreachable:
                LOG.warning("the database is unreachable", extra={"fields": {"run_id": lease.run_id}})
            await asyncio.sleep(UNREACHABLE_PAUSE_S)
            if not await self._is_unfinished(run):
                return

    async def _is_unfinished(self, run: ClaimedRun) -> bool:
        """After an outage of the database: whether the run has not ended. Waits for the database without a limit."""
        lease = run.lease
        stored = await retry_while_unreachable(lambda: self._workspace.runs.get_or_none(lease.run_id), float("inf"))
        if stored is None or stored.lease_epoch != lease.epoch:
            raise LeaseLost(lease.run_id)
        run.lease = Lease(stored, lease.epoch, lease.worker)
        return stored.status not in ENDED

    async def _record_stop(self, run: ClaimedRun) -> None:
        """Write why a run was stopped; nothing for a run whose lease was lost."""
        lease = run.lease
        if run.reason == "cancelled":
            await self._write_end(run, lambda: give_up(self._workspace, lease, run.worked_s))
        elif run.reason != "lost":
            await self._write_end(run, lambda: self._queue.release(lease.run_id, lease.epoch, "its worker leaves"))

    async def _write_end(self, run: ClaimedRun, write: Callable[[], None]) -> None:
        """Make the last write for a run. If it fails the lease expires, and the sweep handles the run."""
        try:
            await retry_while_unreachable(write, self._settings.heartbeat.stale_s)
        except LeaseLost:
            return
        except (UserError, InvariantError) as error:
            LOG.error(
                "the end of a run was not written", extra={"fields": {"run_id": run.lease.run_id, "error": str(error)}}
            )

    # stopping

    def _leases(self) -> dict[str, int]:
        """Called in the heartbeat thread."""
        return {run_id: run.lease.epoch for run_id, run in self._claimed.copy().items()}

    def _notice(self, run_id: str, epoch: int, notice: LeaseNotice) -> None:
        """Called in the heartbeat thread. A run that computes sees the reason; one that waits is interrupted on the loop."""
        run = self._claimed.get(run_id)
        if run is not None and run.lease.epoch == epoch and run.request_stop(notice) and self._loop is not None:
            self._loop.call_soon_threadsafe(self._interrupt, run)

    def _interrupt(self, run: ClaimedRun) -> None:
        if run.task is None or self._claimed.get(run.lease.run_id) is not run:
            return
        if run.in_child and run.reason != "lost":
            self._children.stop(run.lease.run_id)
            asyncio.get_running_loop().call_later(CHILD_GRACE_S, run.task.cancel)
        else:
            run.task.cancel()

    async def _drain(self) -> None:
        """Release unfinished runs: after the current tick, or at once when stopped a second time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + (self._settings.drain_s if self._stops else 0.0)
        for run in self._claimed.values():
            run.request_stop("drain")
            if run.in_child:
                self._children.stop(run.lease.run_id)
        while (self._claimed or self._reports.pending) and self._stops < 2 and loop.time() < until:
            await self._pause(min(0.1, max(0.0, until - loop.time())))
        tasks = [run.task for run in self._claimed.values() if run.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
