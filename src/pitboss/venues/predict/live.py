"""Runs `pitboss predict run`: the live driver, the paper venue, live prices, a stored run and the status endpoint.

A live run is stored, hash-chained and resumed from its last committed record like any other run. One process at a time
works on it: a file lock, released by the operating system when the process exits, prevents a second process on the same
machine, and the run's lease prevents any other.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pitboss import __version__
from pitboss.agent.loop import ToolLoop
from pitboss.bootstrap import decider_source
from pitboss.bootstrap.live_process import CancelPoll, StopCause, exclusive_run, stop_signals
from pitboss.bootstrap.machine import SystemClock, stopwatch, unit_random
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import InvariantError, RunCancelled, TransientError, UserError
from pitboss.core.instant import SECOND_MS, day_of
from pitboss.core.money import ZERO, text
from pitboss.core.state import State
from pitboss.data.fetch import Fetcher
from pitboss.data.hermes import Hermes
from pitboss.live.board import Board, Entry
from pitboss.live.runner import Runner, pace
from pitboss.live.schedule import schedule
from pitboss.live.status import serving
from pitboss.skill.digest import normal, skill_digest
from pitboss.skill.document import to_plain
from pitboss.store.journal import StoredJournal
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.runs import Run
from pitboss.venues.predict.agent import caps_of, decider_of, fallen_back, ports_of
from pitboss.venues.predict.broker import PredictPaper
from pitboss.venues.predict.data.spot import Spot, candles_of
from pitboss.venues.predict.deployment import Deployment
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.live_model import connected, request_of
from pitboss.venues.predict.live_source import PredictSource
from pitboss.venues.predict.outcome import read_predict_ledger
from pitboss.venues.predict.ports import read_state
from pitboss.venues.predict.request import SURFACES_FITTED, PredictRequest
from pitboss.venues.predict.state import QUOTE, open_world
from pitboss.venues.predict.status import StatusSource
from pitboss.venues.predict.venue import VENUE

LOG = logging.getLogger("pitboss.live")
MODE, DATA = "paper", "pyth"
VAULT = 1_000_000
"""Balance of the paper vault, in quote units."""
ASK_S = 5.0
"""Timeout of a price request. A later reply is no longer current; the next poll sends a new request."""


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


async def run_live(workspace: Workspace, deployment: Deployment, listener: Listener) -> LiveRunResult:
    """Start or resume a live run, until its number of ticks is reached or a stop is requested."""
    model, warning = fallen_back(deployment.model, workspace.settings)
    warnings = (*deployment.notes, *([warning] if warning else []))
    decider_of(deployment.skill, model)  # rejects an unknown policy before anything is stored
    decider_source.check(workspace, request_of(deployment, model))
    page = _Page()
    # The endpoint opens before anything is stored: an occupied port must not leave a run behind.
    async with serving(page.document, page.health, deployment.host, deployment.port, REDACTOR.redact) as address:
        run_id = _run_of(workspace, deployment, model)
        with exclusive_run(workspace.home, run_id):
            epoch = workspace.runs.claim(run_id, into="running")
            stored_run = _StoredLiveRun(workspace, run_id, epoch, stopwatch(), address)
            how, board = await _lived(stored_run, deployment, model, warnings, page, listener)
        return LiveRunResult(workspace.runs.get(run_id), how, board)


async def _lived(
    stored_run: "_StoredLiveRun",
    deployment: Deployment,
    model: str,
    warnings: tuple[str, ...],
    page: "_Page",
    listener: Listener,
) -> "tuple[StopCause, Board]":
    """Execute the run and store how it ended."""
    runs, run_id, epoch = stored_run.workspace.runs, stored_run.run_id, stored_run.epoch
    LOG.info("live run begins", extra={"fields": {"run_id": run_id, "model": model}})
    try:
        async with AsyncExitStack() as stack:
            return await _work(stack, stored_run, deployment, model, warnings, page, listener)
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

    def wall_s(self) -> float:
        """Total working time in seconds, including earlier processes."""
        run = self.workspace.runs.get(self.run_id)
        return (0.0 if self.epoch == 1 else run.wall_s) + stopwatch() - self.began_s


async def _work(
    stack: AsyncExitStack,
    stored_run: _StoredLiveRun,
    deployment: Deployment,
    model: str,
    warnings: tuple[str, ...],
    page: _Page,
    listener: Listener,
) -> tuple[StopCause, Board]:
    workspace, clock, board = stored_run.workspace, SystemClock(), Board()
    settings = workspace.settings
    journal = StoredJournal(workspace.database, stored_run.run_id, stored_run.epoch)
    board.restore(journal.records())
    stored = journal.latest_state()
    state = _first(deployment) if stored is None else read_state(stored[1])
    spot = await stack.enter_async_context(_spot(settings, deployment.skill.context.underlying))
    spent_usd = board.paid_on(day_of(clock.now()))
    connections, line = await stack.enter_async_context(
        connected(workspace, deployment, model, stored_run.run_id, spent_usd)
    )
    decider = decider_of(deployment.skill, model, connections)
    ports = ports_of(
        deployment.skill,
        decider,
        PredictPaper(),
        lambda at: spot.market.view(at),
        build_prompts=isinstance(decider, ToolLoop),
        every_ms=deployment.every_ms,
    )
    source = PredictSource(
        spot,
        caps_of(deployment.skill),
        deployment.skill.context.sorted_tiers(),
        clock.now,
        lambda message: listener.entry(board.remark(clock.now(), message), board),
    )
    stop = await stack.enter_async_context(stop_signals())
    watching = asyncio.create_task(spot.watch(settings.live_poll_s))
    stack.push_async_callback(_ended, watching)
    cancelled = CancelPoll(
        lambda: workspace.runs.cancel_requested(stored_run.run_id),
        lambda: workspace.runs.heartbeat(stored_run.run_id, stored_run.epoch),
    )
    runner = Runner(
        ports=ports,
        source=source,
        journal=journal,
        clock=clock,
        pace=pace(schedule(deployment.every_ms), round(settings.live_poll_s * SECOND_MS)),
        state=state,
        board=board,
        pause=stop.pause,
        stop=lambda: stop.requested or cancelled() or watching.done(),
        on_entry=lambda entry: listener.entry(entry, board),
        most_ticks=deployment.ticks,
    )
    status_source = StatusSource(deployment, model, stored_run.run_id, board, spot, clock.now(), warnings)
    page.tell = lambda: status_source.document(clock.now(), runner.next_at)
    listener.started(RunStart(stored_run.run_id, stored_run.address, model, board.ticks, warnings))
    await runner.run()
    if watching.done():
        watching.result()
    figures: dict[str, Any] = {"wall_s": stored_run.wall_s(), "ticks": board.ticks}
    paid_usd = ZERO if line is None else line.paid_usd
    figures["cost_usd"] = Decimal("NaN") if board.cost_usd is None else max(board.cost_usd, paid_usd)
    if stop.requested or cancelled.requested:
        workspace.runs.set_status(stored_run.run_id, "cancelled", stored_run.epoch, **figures)
        return stop.cause or "cancelled", board
    end = await runner.close()
    run = workspace.runs.get(stored_run.run_id)
    metrics = VENUE.measure_again(run.params, read_predict_ledger(journal.records()))
    workspace.runs.finish(
        stored_run.run_id, stored_run.epoch, digest=end.prev_digest, metrics=metrics, baselines={}, **figures
    )
    return "complete", board


def _first(deployment: Deployment) -> State:
    """Return a fresh account on a fresh venue."""
    return State(Desk(open_world(VAULT * QUOTE, int(deployment.equity * QUOTE))))


# Stored run -----------------------------------------------------------------------------------------------------------


def _run_of(workspace: Workspace, deployment: Deployment, model: str) -> str:
    """Return the run to work on: an unfinished run with the same configuration, or a new one."""
    if deployment.begin != "new":
        unfinished = _unfinished(workspace, deployment, model)
        if unfinished is not None:
            return unfinished.id
        if deployment.begin == "resume":
            raise UserError(
                "there is no unfinished run of this skill with this model, equity and time between ticks",
                "omit --resume to start one",
            )
    skill, now = deployment.skill, workspace.now()
    request = PredictRequest(
        skill={},
        from_at=now,
        to_at=now,  # the end is unknown, and an empty range prevents a replay of this run
        model=model,
        data_venue=DATA,
        equity_usd=deployment.equity,
        max_cost_usd=deployment.max_cost_usd,
        price_in=deployment.price_in,
        price_out=deployment.price_out,
        any_price=deployment.any_price,
        speculate="0",
    )
    params: dict[str, Any] = {
        **codec.plain(request),
        **_same(deployment, model),
        "name": deployment.name,
        "surfaces_are": SURFACES_FITTED,
        "skill": codec.number_fragments(to_plain(skill)),
        "version": __version__,
    }
    saved = workspace.skills.save(skill.name, skill_digest(skill), codec.dumps(normal(skill)))
    return workspace.runs.create(saved.id, saved.version, model, params)


def _same(deployment: Deployment, model: str) -> dict[str, Any]:
    """Return the values that must be equal for a start to resume a run."""
    return {
        "mode": MODE,
        "venue": VENUE.name,
        "skill_digest": skill_digest(deployment.skill),
        "model": model,
        "every_ms": deployment.every_ms,
        "equity": text(deployment.equity),
    }


def _unfinished(workspace: Workspace, deployment: Deployment, model: str) -> Run | None:
    expected = _same(deployment, model)
    for run in workspace.runs.listing(1_000).runs:
        if run.status == "complete" or any(run.params.get(name) != value for name, value in expected.items()):
            continue
        if run.status == "error" and deployment.begin == "auto":
            raise UserError(
                f"run {run.id} of this skill ended in error: {run.error_text}",
                "--resume continues it, --new starts another",
            )
        return run
    return None


# Prices ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _spot(settings: Settings, symbol: str) -> AsyncIterator[Spot]:
    clock = SystemClock()
    fetcher = Fetcher(now=clock.now, elapsed=stopwatch, random=unit_random(), timeout_s=ASK_S, attempts=1)
    try:
        yield Spot(
            symbol,
            Hermes(fetcher, settings.hermes_url),
            await candles_of(symbol, settings.pyth_url, fetcher),
            clock.now,
        )
    finally:
        await fetcher.close()


async def _ended(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task
