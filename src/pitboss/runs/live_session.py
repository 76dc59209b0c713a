"""One process at work on a live run: its state is read, the driver ticks, and what came of it is stored.

Common to the commands that run an agent in the foreground (`live_run.py`) and to deployments (`deployment_run.py`), which
differ in what stops them. A venue supplies a `LiveSide`: its world source, its ports, and what its status says.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, Protocol

from pitboss.bootstrap.live_process import StopCause
from pitboss.bootstrap.machine import SystemClock, stopwatch
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import InvariantError, RunCancelled, TransientError, UserError
from pitboss.core.instant import SECOND_MS, Instant, day_of
from pitboss.core.money import ZERO
from pitboss.core.ports import Clock
from pitboss.core.snapshot import Record
from pitboss.core.state import State
from pitboss.live.board import Board, Entry
from pitboss.live.control import Control
from pitboss.live.halt_checks import HaltChecks, HaltLimits
from pitboss.live.pace import Pace, pace
from pitboss.live.runner import Runner, nothing_to_close
from pitboss.live.schedule import schedule
from pitboss.live.world_source import History, WorldSource
from pitboss.runs.live_model import connected
from pitboss.runs.stored_board import StoredBoard
from pitboss.runs.venue import Venue
from pitboss.sim.connections import Connections
from pitboss.sim.request import BacktestRequest
from pitboss.skill.schema import SkillDocument
from pitboss.store.journal import StoredJournal
from pitboss.store.lifecycle import LeaseLost
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
    pace: Pace | None = None
    """The timing; None for that of the period, with updates between ticks as often as `live_poll_s`."""
    halt_limits: HaltLimits = field(default_factory=HaltLimits)
    must_close: Callable[[Any, Instant], str] = nothing_to_close
    """Which loss limit demands that a world's positions are closed; empty if none does."""
    uses_mcp: bool = False
    """Whether the MCP servers that the skill names are connected."""

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


class RunHistory(History, Protocol):
    """The history of a run that may have been resumed."""

    def begin(self, records: Callable[[], Iterable[Record]], count: int) -> None:
        """Begin with the first `count` of the stored records."""
        ...


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

    @property
    def first_memory(self) -> Any:
        """The memory with which a new run begins; None if its agents remember nothing."""
        ...

    @property
    def history(self) -> "RunHistory | None":
        """What its tools look back on; None if they do not."""
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


@dataclass(slots=True)
class StoredLiveRun:
    """The stored run that this process executes, under the lease `epoch`."""

    workspace: Workspace
    run_id: str
    epoch: int
    address: str
    board: Board
    clock: Clock | None = None
    """None: the clock of this machine."""
    began_s: float = field(default_factory=stopwatch)

    def wall_s(self) -> float:
        """Total working time in seconds, including earlier processes."""
        run = self.workspace.runs.get(self.run_id)
        return (0.0 if self.epoch == 1 else run.wall_s) + stopwatch() - self.began_s


class LiveStop(Protocol):
    """Whether this process is to stop working on the run, and a wait that ends then."""

    @property
    def requested(self) -> bool: ...

    @property
    def cause(self) -> StopCause | None: ...

    async def pause(self, wait_ms: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Driving:
    """What the driver of a run is given: its stop, the commands to it, and the listener."""

    stop: LiveStop
    cancelled: Callable[[], bool]
    control: Control
    show: Callable[[Callable[[], dict[str, Any]]], None] = lambda tell: None
    """Takes the function that makes the status document."""
    listener: Listener = field(default_factory=lambda: Listener())
    measures_stopped: bool = True
    """Whether the metrics are computed, from all records, also if the run is only stopped and goes on elsewhere."""


async def work_live(stored_run: StoredLiveRun, side: LiveSide, driving: Driving) -> StopCause:
    """Execute the run until its number of ticks is reached or a stop is requested, and store how it ended."""
    runs, run_id, epoch = stored_run.workspace.runs, stored_run.run_id, stored_run.epoch
    LOG.info("live run begins", extra={"fields": {"run_id": run_id, "model": side.plan.model}})
    try:
        async with AsyncExitStack() as stack:
            return await _work(stack, stored_run, side, driving)
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


async def _work(stack: AsyncExitStack, stored_run: StoredLiveRun, side: LiveSide, driving: Driving) -> StopCause:
    workspace, board, plan = stored_run.workspace, stored_run.board, side.plan
    clock = stored_run.clock or SystemClock()
    journal = StoredJournal(workspace.database, stored_run.run_id, stored_run.epoch)
    stored_board = StoredBoard(workspace.database, stored_run.run_id, board)
    stored_board.restore(journal.records)
    stored = journal.latest_state()
    state = State(side.first_world, memory=side.first_memory) if stored is None else side.read_state(stored[1])
    if stored is None:  # before any order: a process that is killed at its first tick leaves the account it began with
        await journal.commit([], state, 0.0)
    since = state.tick_at or workspace.runs.get(stored_run.run_id).created_at
    await side.begin(stored_run.run_id, stored_run.address, since)
    spent_usd = board.paid_on(day_of(clock.now()))
    connections, model_connection = await stack.enter_async_context(
        connected(
            workspace,
            plan.request,
            plan.skill,
            stored_run.run_id,
            plan.most_usd_per_day,
            spent_usd,
            plan.venue.tools() if plan.uses_mcp else None,
        )
    )
    stop, cancelled, listener = driving.stop, driving.cancelled, driving.listener

    def report(entry: Entry) -> None:
        stored_board.committed()
        side.ticked(entry, runner.state.world)
        listener.entry(entry, board)

    history = side.history
    if history is not None:
        history.begin(journal.records, state.seq)

    runner = Runner(
        ports=side.ports(connections),
        source=side.source,
        journal=journal,
        clock=clock,
        pace=plan.pace or pace(schedule(plan.every_ms), round(workspace.settings.live_poll_s * SECOND_MS)),
        state=state,
        board=board,
        pause=stop.pause,
        stop=lambda: stop.requested or cancelled() or side.has_failed(),
        on_entry=report,
        most_ticks=plan.ticks,
        control=driving.control,
        history=history,
        checks=HaltChecks(plan.halt_limits),
        must_close=plan.must_close,
    )
    start = RunStart(stored_run.run_id, stored_run.address, plan.model, board.ticks, plan.warnings)
    started_at = clock.now()
    driving.show(lambda: side.status(LiveView(start, board, started_at, clock.now(), runner.next_at)))
    listener.started(start)
    await runner.run()
    if side.has_failed():
        side.raise_failure()
    paid_usd = ZERO if model_connection is None else model_connection.paid_usd
    cost_usd = Decimal("NaN") if board.cost_usd is None else max(board.cost_usd, paid_usd)
    how: StopCause = (stop.cause or "cancelled") if stop.requested or cancelled() else "complete"
    measures = how == "complete" or driving.measures_stopped
    return await _end(stored_run, plan.venue if measures else None, runner, journal, cost_usd, how)


async def _end(
    stored_run: StoredLiveRun,
    venue: Venue | None,
    runner: Runner,
    journal: StoredJournal,
    cost_usd: Decimal,
    how: StopCause,
) -> StopCause:
    """Store the figures of a run that is complete or was stopped; only a complete one gets a closing record. Without a venue its
    metrics are not computed.
    """
    runs, run_id, epoch = stored_run.workspace.runs, stored_run.run_id, stored_run.epoch
    end = await runner.close() if how == "complete" else runner.state
    metrics: dict[str, Any] = {}
    if venue is not None:
        metrics = venue.measure_again(runs.get(run_id).params, venue.read_ledger(journal.records()))
    figures: dict[str, Any] = {"wall_s": stored_run.wall_s(), "ticks": stored_run.board.ticks, "cost_usd": cost_usd}
    if how == "complete":
        runs.finish(run_id, epoch, digest=end.prev_digest, metrics=metrics, baselines={}, **figures)
    else:
        if venue is not None:
            runs.note(run_id, epoch, metrics=metrics)
        runs.set_status(run_id, "cancelled", epoch, **figures)
    return how
