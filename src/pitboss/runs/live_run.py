"""Runs an agent live, on any venue: the live driver with a stored run, its model, its status endpoint and stop signals.

A live run is stored, hash-chained and resumed from its last committed record like any other run. One process at a time
works on it: a file lock, released by the operating system when the process exits, prevents a second process on the same
machine, and the run's lease prevents any other.

A venue supplies a `LiveSide`: its world source, its ports, and what its status says. Everything of it opens before
anything is stored, so a mistake or an occupied port leaves no run behind.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal, Protocol

from pitboss import __version__
from pitboss.bootstrap import decider_source
from pitboss.bootstrap.live_process import CancelPoll, SignalStop, StopCause, exclusive_run, stop_signals
from pitboss.bootstrap.machine import SystemClock, stopwatch
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import InvariantError, RunCancelled, TransientError, UserError
from pitboss.core.instant import SECOND_MS, Instant, day_of
from pitboss.core.money import ZERO
from pitboss.core.state import State
from pitboss.live.board import Board, Entry
from pitboss.live.runner import Runner, WorldSource, pace
from pitboss.live.schedule import schedule
from pitboss.live.status import serving
from pitboss.runs.live_model import connected
from pitboss.runs.venue import Venue
from pitboss.sim.connections import Connections
from pitboss.sim.request import BacktestRequest
from pitboss.skill.digest import normal, skill_digest
from pitboss.skill.document import to_plain
from pitboss.skill.schema import SkillDocument
from pitboss.store.journal import StoredJournal
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.runs import Run
from pitboss.tick import Ports

LOG = logging.getLogger("pitboss.live")
Begin = Literal["auto", "resume", "new"]
"""Whether a start resumes an unfinished run with the same configuration, must resume one, or begins another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePlan:
    """A live run to start or to resume. `request` is stored as its parameters and names its model."""

    venue: Venue
    skill: SkillDocument
    request: BacktestRequest
    every_ms: int
    identity: Mapping[str, Any]
    """Values that must be equal, besides skill, model and period, for a start to resume a run."""
    earlier_identity: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The identity of runs of versions that did not store these values."""
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further values stored with a new run."""
    begin: Begin = "auto"
    ticks: int | None = None
    most_usd_per_day: Decimal | None = None
    warnings: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        """The model or policy that decides."""
        return self.request.source


@dataclass(frozen=True, slots=True)
class RunStart:
    """Facts about a run at its start, for the first lines of output."""

    run_id: str
    address: str
    model: str
    ticks: int
    """Ticks executed before this start."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LiveView:
    """What the venue's status document is made from."""

    start: RunStart
    board: Board
    started_at: Instant
    now: Instant
    next_at: Instant


class LiveSide(Protocol):
    """The venue's part of a live run, while it is open."""

    @property
    def plan(self) -> LivePlan: ...
    @property
    def source(self) -> WorldSource: ...
    @property
    def first_world(self) -> Any:
        """The world with which a new run begins."""
        ...

    def read_state(self, plain: object) -> State:
        """Read a stored state."""
        ...

    async def begin(self, run_id: str, address: str, since: Instant) -> None:
        """Called once before the first tick; `since` is the last tick that the stored state includes."""
        ...

    def ports(self, connections: Connections) -> Ports:
        """The ports of its ticks."""
        ...

    def has_failed(self) -> bool:
        """Whether a background task has ended, which stops the run."""
        ...

    def raise_failure(self) -> None:
        """Raise the error of that task."""
        ...

    def ticked(self, entry: Entry, world: Any) -> None:
        """Called after every commit with its entry and the world after it."""
        ...

    def status(self, view: LiveView) -> dict[str, Any]:
        """The document of the status endpoint."""
        ...


@dataclass(frozen=True, slots=True)
class Listener:
    """Callbacks for the start of the run and for every entry."""

    started: Callable[[RunStart], None] = lambda begun: None
    entry: Callable[[Entry, Board], None] = lambda entry, board: None


@dataclass(frozen=True, slots=True)
class LiveRunResult:
    """The state of a live run when this process stops working on it."""

    run: Run
    how: StopCause
    board: Board


OpenSide = Callable[[Callable[[str], None]], AbstractAsyncContextManager[LiveSide]]
"""Opens the venue's part; its argument shows a remark to the user."""


async def run_live(
    workspace: Workspace, open_side: OpenSide, host: str, port: int, listener: Listener
) -> LiveRunResult:
    """Start or resume a live run, until its number of ticks is reached or a stop is requested."""
    page, board, clock = _Page(), Board(), SystemClock()
    async with AsyncExitStack() as stack:
        address = await stack.enter_async_context(serving(page.document, page.health, host, port, REDACTOR.redact))

        def notify(message: str) -> None:
            listener.entry(board.remark(clock.now(), message), board)

        side = await stack.enter_async_context(open_side(notify))
        run_id = _run_of(workspace, side.plan)
        with exclusive_run(workspace.home, run_id):
            epoch = workspace.runs.claim(run_id, into="running")
            stored_run = _StoredLiveRun(workspace, run_id, epoch, stopwatch(), address, board)
            how = await _lived(stored_run, side, page, listener)
        return LiveRunResult(workspace.runs.get(run_id), how, board)


class _Page:
    """Content of the status endpoint; empty until the run has started."""

    def __init__(self) -> None:
        self.tell: Callable[[], dict[str, Any]] = dict

    def document(self) -> dict[str, Any]:
        """Return the body of `/status`."""
        return self.tell()

    def health(self) -> dict[str, Any]:
        """Return the body of `/health`."""
        return {"ok": True}


@dataclass(slots=True)
class _StoredLiveRun:
    """The stored run that this process executes."""

    workspace: Workspace
    run_id: str
    epoch: int
    began_s: float
    address: str
    board: Board

    def wall_s(self) -> float:
        """Total working time in seconds, including earlier processes."""
        run = self.workspace.runs.get(self.run_id)
        return (0.0 if self.epoch == 1 else run.wall_s) + stopwatch() - self.began_s


async def _lived(stored_run: _StoredLiveRun, side: LiveSide, page: _Page, listener: Listener) -> StopCause:
    """Execute the run and store how it ended."""
    runs, run_id, epoch = stored_run.workspace.runs, stored_run.run_id, stored_run.epoch
    LOG.info("live run begins", extra={"fields": {"run_id": run_id, "model": side.plan.model}})
    try:
        async with AsyncExitStack() as stack:
            return await _work(stack, stored_run, side, page, listener)
    except (
        asyncio.CancelledError
    ):  # a second Ctrl-C: no time for the metrics, but the run must not stay marked as running
        runs.set_status(run_id, "cancelled", epoch, wall_s=stored_run.wall_s())
        raise RunCancelled from None
    except LeaseLost:
        raise  # another process owns the run now: this one must not write to it
    except (TransientError, InvariantError, UserError) as error:
        runs.fail(run_id, epoch, REDACTOR.redact(str(error)), wall_s=stored_run.wall_s())
        raise
    except Exception as error:
        runs.fail(run_id, epoch, REDACTOR.redact(f"unexpected fault: {error!r}"), wall_s=stored_run.wall_s())
        raise


async def _work(
    stack: AsyncExitStack, stored_run: _StoredLiveRun, side: LiveSide, page: _Page, listener: Listener
) -> StopCause:
    workspace, clock, board, plan = stored_run.workspace, SystemClock(), stored_run.board, side.plan
    journal = StoredJournal(workspace.database, stored_run.run_id, stored_run.epoch)
    board.restore(journal.records())
    stored = journal.latest_state()
    state = State(side.first_world) if stored is None else side.read_state(stored[1])
    if stored is None:  # before any order: a process that is killed at its first tick leaves the account it began with
        await journal.commit([], state, 0.0)
    since = state.tick_at or workspace.runs.get(stored_run.run_id).created_at
    await side.begin(stored_run.run_id, stored_run.address, since)
    spent_usd = board.paid_on(day_of(clock.now()))
    connections, line = await stack.enter_async_context(
        connected(workspace, plan.request, plan.skill, stored_run.run_id, plan.most_usd_per_day, spent_usd)
    )
    stop = await stack.enter_async_context(stop_signals())
    cancelled = CancelPoll(
        lambda: workspace.runs.cancel_requested(stored_run.run_id),
        lambda: workspace.runs.heartbeat(stored_run.run_id, stored_run.epoch),
    )

    def report(entry: Entry) -> None:
        side.ticked(entry, runner.state.world)
        listener.entry(entry, board)

    runner = Runner(
        ports=side.ports(connections),
        source=side.source,
        journal=journal,
        clock=clock,
        pace=pace(schedule(plan.every_ms), round(workspace.settings.live_poll_s * SECOND_MS)),
        state=state,
        board=board,
        pause=stop.pause,
        stop=lambda: stop.requested or cancelled() or side.has_failed(),
        on_entry=report,
        most_ticks=plan.ticks,
    )
    start = RunStart(stored_run.run_id, stored_run.address, plan.model, board.ticks, plan.warnings)
    started_at = clock.now()
    page.tell = lambda: side.status(LiveView(start, board, started_at, clock.now(), runner.next_at))
    listener.started(start)
    await runner.run()
    if side.has_failed():
        side.raise_failure()
    paid_usd = ZERO if line is None else line.paid_usd
    cost_usd = Decimal("NaN") if board.cost_usd is None else max(board.cost_usd, paid_usd)
    return await _end(stored_run, plan.venue, runner, journal, cost_usd, _cause(stop, cancelled))


def _cause(stop: SignalStop, cancelled: CancelPoll) -> StopCause:
    return (stop.cause or "cancelled") if stop.requested or cancelled.requested else "complete"


async def _end(
    stored_run: _StoredLiveRun, venue: Venue, runner: Runner, journal: StoredJournal, cost_usd: Decimal, how: StopCause
) -> StopCause:
    """Store the figures of a run that is complete or was stopped; only a complete one gets a closing record."""
    runs, run_id, epoch = stored_run.workspace.runs, stored_run.run_id, stored_run.epoch
    end = await runner.close() if how == "complete" else runner.state
    metrics = venue.measure_again(runs.get(run_id).params, venue.read_ledger(journal.records()))
    figures: dict[str, Any] = {"wall_s": stored_run.wall_s(), "ticks": stored_run.board.ticks, "cost_usd": cost_usd}
    if how == "complete":
        runs.finish(run_id, epoch, digest=end.prev_digest, metrics=metrics, baselines={}, **figures)
    else:
        runs.note(run_id, epoch, metrics=metrics)
        runs.set_status(run_id, "cancelled", epoch, **figures)
    return how


# Stored run -----------------------------------------------------------------------------------------------------------


def _run_of(workspace: Workspace, plan: LivePlan) -> str:
    """Return the run to work on: an unfinished run with the same configuration, or a new one."""
    if plan.begin != "new":
        unfinished = _unfinished(workspace, plan)
        if unfinished is not None:
            decider_source.check_unchanged(workspace, unfinished.params)
            return unfinished.id
        if plan.begin == "resume":
            raise UserError(
                "there is no unfinished run of this skill with this model, account and time between ticks",
                "omit --resume to start one",
            )
    skill = plan.skill
    params: dict[str, Any] = {
        **codec.plain(replace(plan.request, skill={})),
        **_identity(plan),
        **plan.params,
        **decider_source.model_params(workspace, plan.request, skill),
        "skill": codec.number_fragments(to_plain(skill)),
        "version": __version__,
    }
    saved = workspace.skills.save(skill.name, skill_digest(skill), codec.dumps(normal(skill)))
    return workspace.runs.create(saved.id, saved.version, decider_source.model_name(plan.request, params), params)


def _identity(plan: LivePlan) -> dict[str, Any]:
    return {
        "venue": plan.venue.name,
        "skill_digest": skill_digest(plan.skill),
        "model": plan.model,
        "every_ms": plan.every_ms,
        **plan.identity,
    }


def _unfinished(workspace: Workspace, plan: LivePlan) -> Run | None:
    expected = _identity(plan)
    for run in workspace.runs.listing(1_000).runs:
        params = {**plan.earlier_identity, **run.params}
        if run.status == "complete" or any(params.get(name) != value for name, value in expected.items()):
            continue
        if run.status == "error" and plan.begin == "auto":
            raise UserError(
                f"run {run.id} of this skill ended in error: {run.error_text}",
                "--resume continues it, --new starts another",
            )
        return run
    return None
