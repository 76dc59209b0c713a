"""The worker: takes runs from the queue and does them, many at once on one event loop, until it is told to leave.

It owns nothing but leases. Whatever ends it, its runs go on elsewhere from their last commit; whatever a run does, the
worker goes on. Where it is started, and how many of it, is the business of `executors`.
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
from pitboss.jobs.heartbeat import News, Pulse, Rhythm
from pitboss.jobs.placement import apart, computes
from pitboss.jobs.run_report import Reports
from pitboss.runs.run import give_up, work
from pitboss.sim.watch import Watch
from pitboss.store.lifecycle import ENDED, LeaseLost
from pitboss.store.queue import Lease, Queue
from pitboss.store.retry import Unreachable, patiently

LOG = logging.getLogger("pitboss.jobs")
POLL_S = 0.5
"""How often an idle worker asks for a run."""
AWAY_S = 0.5
CHILD_GRACE_S = 5.0
"""How long a child may take to come to the end of its tick before it is killed."""

Why = Literal["lost", "cancelled", "drain"]
RANK: dict[Why | None, int] = {None: 0, "drain": 1, "cancelled": 2, "lost": 3}


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How a worker works. `build` None takes runs of any build; `idle_exit_s` None stays for ever."""

    concurrency: int = 16
    processes: int = 0
    """Child processes for runs that compute or have cost a worker before; 0: everything on the loop."""
    idle_exit_s: float | None = None
    drain_s: float = 10.0
    per_user: int | None = None
    build: str | None = None
    rhythm: Rhythm = field(default_factory=Rhythm)
    logged: bool = False


class Post(Protocol):
    """The place that a worker fills, as whoever started it counts them. It is given up before the last look for a run, so
    that one who queues a run meanwhile either finds the place free, or is found by that look."""

    def leave(self) -> bool:
        """Give the place up, unless the worker is still needed though there is nothing to take."""
        ...

    def stay(self) -> None:
        """Take it again: there was something to do after all."""
        ...


class NoPost:
    """Nobody counts: it may come and go."""

    def leave(self) -> bool:
        """It may."""
        return True

    def stay(self) -> None:
        """Nothing was given up."""


class ClaimedRun:
    """A run that this worker has. `why` is set, perhaps by another thread, when it is to stop."""

    def __init__(self, lease: Lease, computing: bool, apart: bool) -> None:
        self.lease = lease
        self.computing = computing
        self.apart = apart
        self.why: Why | None = None
        self.task: asyncio.Task[None] | None = None
        self._began = stopwatch()

    @property
    def worked_s(self) -> float:
        """How long it has been worked on here."""
        return stopwatch() - self._began

    def stopped(self) -> bool:
        """Asked between two ticks."""
        return self.why is not None

    def ask(self, why: Why) -> bool:
        """Ask for a stop; a graver reason takes the place of another. Whether it is news."""
        if RANK[why] <= RANK[self.why]:
            return False
        self.why = why
        return True


class Worker:
    """One worker. `name` must be its alone."""

    def __init__(
        self,
        workspace: Workspace,
        queue: Queue,
        name: str,
        terms: WorkerSettings,
        post: Post = NoPost(),  # noqa: B008 - it holds nothing
        tracer: Tracer = SILENT,
    ) -> None:
        self._workspace = workspace
        self._queue = queue
        self.name = name
        self._terms = terms
        self._post = post
        self._tracer = tracer
        self._held: dict[str, ClaimedRun] = {}
        self._left: set[tuple[str, int]] = set()
        self._children = Children(workspace.settings, name)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._reports = Reports(workspace, self._wake.set)
        self._stops = 0
        self._in_doubt = False
        self._took_s = 0.0
        self.done = 0
        """How many runs came to an end here."""

    def stop(self) -> None:
        """Leave: the first time after the ticks in hand, the second time at once. Safe in a signal's handler or a thread."""
        self._stops += 1
        for held in self._held.copy().values():
            held.ask("drain")  # seen by a run that computes, and lets nobody else have the loop
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake.set)

    @property
    def stopped(self) -> bool:
        """Whether it was told to leave."""
        return self._stops > 0

    async def run(self) -> int:
        """Work until told to leave, or until there has been nothing to do for long enough. Gives how many runs ended."""
        self._loop = asyncio.get_running_loop()
        LOG.info("worker begins", extra={"fields": {"worker": self.name}})
        with Pulse(self._queue, self._workspace.runs, self._terms.rhythm, self._leases, self._told):
            try:
                await self._take_and_wait()
                await self._drain()
            finally:
                await self._children.close()
                await self._reports.close()
        LOG.info("worker leaves", extra={"fields": {"worker": self.name, "done": self.done}})
        return self.done

    # taking

    async def _take_and_wait(self) -> None:
        loop = asyncio.get_running_loop()
        idle_since, idle_exit_s = loop.time(), self._terms.idle_exit_s
        while not self._stops:
            lease = self._claim() if self._has_room() else None
            if lease is not None:
                self._begin(lease)
                await asyncio.sleep(0)
                idle_since = loop.time()
                continue
            if self._held or self._reports.owed:
                idle_since = loop.time()
            elif idle_exit_s is not None and loop.time() - idle_since >= idle_exit_s:
                if self._leaves():
                    lease = self._claim()
                    if lease is None and not self._in_doubt:
                        return
                    self._post.stay()
                    if lease is not None:
                        self._begin(lease)
                idle_since = loop.time()
            await self._pause(POLL_S)

    def _leaves(self) -> bool:
        try:
            return self._post.leave()
        except Unreachable:
            return False

    def _has_room(self) -> bool:
        # Counted here and not by the children: one that is still being started has its run already.
        full = self._terms.processes and sum(one.apart for one in self._held.values()) >= self._terms.processes
        return len(self._held) < self._terms.concurrency and not full

    def _claim(self) -> Lease | None:
        try:
            if self._in_doubt:  # the answer to a claim was lost: perhaps it was made
                for lease in self._queue.held(self.name):
                    if lease.run_id not in self._held and (lease.run_id, lease.epoch) not in self._left:
                        return lease
                self._in_doubt = False
            return self._queue.claim(self.name, per_user=self._terms.per_user, build=self._terms.build)
        except Unreachable as error:
            if not self._in_doubt:
                LOG.warning("the database is away", extra={"fields": {"error": error.message}})
            self._in_doubt = True
        except Exception as error:  # noqa: BLE001 - one row that cannot be taken must not end the worker
            LOG.error("claim", extra={"fields": {"error": repr(error)}})
        return None

    def _begin(self, lease: Lease) -> None:
        computing = computes(lease.run)
        aside = apart(lease.run, computing, self._terms.processes, bool(self._held), self._took_s)
        held = ClaimedRun(lease, computing, aside)
        self._held[lease.run_id] = held
        held.task = asyncio.create_task(self._serve(held), name=lease.run_id)

    async def _pause(self, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    # working

    async def _serve(self, held: ClaimedRun) -> None:
        """One run from claim to end. Nothing comes out of here."""
        run_id, epoch = held.lease.run_id, held.lease.epoch
        try:
            await self._work(held)
            self.done += 1
            self._reports.owe(held.lease.run)
            if held.computing:
                self._took_s = held.worked_s
        except LeaseLost:
            LOG.info("lease lost", extra={"fields": {"run_id": run_id, "epoch": epoch}})
        except ChildDied as error:
            self._left.add((run_id, epoch))
            LOG.error("child died", extra={"fields": {"run_id": run_id, "error": str(error)}})
        except (RunCancelled, asyncio.CancelledError):
            await self._stopped(held)
        except BaseException as error:  # noqa: BLE001 - SystemExit and its kin too: it is the run's fault, not ours
            cause = REDACTOR.redact(f"unexpected fault: {error!r}")
            await self._last_word(held, lambda: self._workspace.runs.fail(run_id, epoch, cause))
        finally:
            if self._held.get(run_id) is held:  # or it was put back, and claimed again before we noticed
                del self._held[run_id]
            self._wake.set()

    async def _work(self, held: ClaimedRun) -> None:
        while True:
            lease = held.lease
            try:
                if held.apart:
                    await self._children.work(lease, held.stopped)
                else:
                    watch = Watch(stop=held.stopped)
                    await work(self._workspace, lease, watch, self._tracer, self._terms.logged)
                return
            except Unreachable:
                LOG.warning("the database is away", extra={"fields": {"run_id": lease.run_id}})
            await asyncio.sleep(AWAY_S)
            if not await self._still_ours(held):
                return

    async def _still_ours(self, held: ClaimedRun) -> bool:
        """After the database was away: whether there is something left to do. Waits for it as long as it takes."""
        lease = held.lease
        run = await patiently(lambda: self._workspace.runs.having(lease.run_id), float("inf"))
        if run is None or run.lease_epoch != lease.epoch:
            raise LeaseLost(lease.run_id)
        held.lease = Lease(run, lease.epoch, lease.worker)
        return run.status not in ENDED

    async def _stopped(self, held: ClaimedRun) -> None:
        """Write why a run was stopped here; of one that was lost, nothing."""
        lease = held.lease
        if held.why == "cancelled":
            await self._last_word(held, lambda: give_up(self._workspace, lease, held.worked_s))
        elif held.why != "lost":
            await self._last_word(held, lambda: self._queue.release(lease.run_id, lease.epoch, "its worker leaves"))

    async def _last_word(self, held: ClaimedRun, write: Callable[[], None]) -> None:
        """Where it cannot be written the lease runs out, and the sweep knows what to do."""
        try:
            await patiently(write, self._terms.rhythm.stale_s)
        except LeaseLost:
            return
        except (UserError, InvariantError) as error:
            LOG.error("last word", extra={"fields": {"run_id": held.lease.run_id, "error": str(error)}})

    # stopping

    def _leases(self) -> dict[str, int]:
        """In the thread of the pulse."""
        return {run_id: held.lease.epoch for run_id, held in self._held.copy().items()}

    def _told(self, run_id: str, epoch: int, news: News) -> None:
        """In the thread of the pulse: the mark is seen by a run that computes, the call by one that waits."""
        held = self._held.get(run_id)
        if held is not None and held.lease.epoch == epoch and held.ask(news) and self._loop is not None:
            self._loop.call_soon_threadsafe(self._interrupt, held)

    def _interrupt(self, held: ClaimedRun) -> None:
        if held.task is None or self._held.get(held.lease.run_id) is not held:
            return
        if held.apart and held.why != "lost":
            self._children.stop(held.lease.run_id)
            asyncio.get_running_loop().call_later(CHILD_GRACE_S, held.task.cancel)
        else:
            held.task.cancel()

    async def _drain(self) -> None:
        """Give back what is not done: after the tick in hand, or at once when asked a second time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + (self._terms.drain_s if self._stops else 0.0)
        for held in self._held.values():
            held.ask("drain")
            if held.apart:
                self._children.stop(held.lease.run_id)
        while (self._held or self._reports.owed) and self._stops < 2 and loop.time() < until:
            await self._pause(min(0.1, max(0.0, until - loop.time())))
        tasks = [held.task for held in self._held.values() if held.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
