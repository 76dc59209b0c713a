"""`pitboss predict run` put together: the live driver, the predict venue on paper, live prices, a stored run, the status.

A live run is a run like any other: stored, chained, resumed from its last committed record. One process works on it at a
time: a lock that the system releases with the process says which, and the lease of the run keeps out whoever did not ask.
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
from pitboss.venues.predict.readers import hermes
from pitboss.venues.predict.request import SURFACES_FITTED, PredictRequest
from pitboss.venues.predict.state import QUOTE, open_world
from pitboss.venues.predict.status import Telling
from pitboss.venues.predict.venue import VENUE

LOG = logging.getLogger("pitboss.live")
MODE, DATA = "paper", "pyth"
VAULT = 1_000_000
"""What the paper vault holds, in units of quote."""
ASK_S = 5.0
"""A price that takes longer than this is not of this moment any more: the next round asks anew."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What is known when a run begins: for the first lines that a person sees."""

    run_id: str
    address: str
    model: str
    ticks: int
    """Ticks it has behind it."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listener:
    """Who looks on: told of the beginning and of every entry."""

    began: Callable[[Begun], None] = lambda begun: None
    entry: Callable[[Entry, Board], None] = lambda entry, board: None


@dataclass(frozen=True, slots=True)
class LiveRunResult:
    """A live run after this process is done with it."""

    run: Run
    how: StopCause
    board: Board


async def run_live(workspace: Workspace, deployment: Deployment, listener: Listener) -> LiveRunResult:
    """Begin or go on with a live run, until its ticks are used up or somebody asks for a stop."""
    model, warning = fallen_back(deployment.model, workspace.home)
    warnings = (*deployment.notes, *([warning] if warning else []))
    decider_of(deployment.skill, model)  # an unknown policy is refused before anything is stored
    decider_source.check(workspace, request_of(deployment, model))
    page = _Page()
    # It listens before anything is stored: a port that is taken must not leave a run behind.
    async with serving(page.document, page.health, deployment.host, deployment.port, REDACTOR.redact) as address:
        run_id = _run_of(workspace, deployment, model)
        with exclusive_run(workspace.home, run_id):
            epoch = workspace.runs.claim(run_id, into="running")
            life = _StoredLiveRun(workspace, run_id, epoch, stopwatch(), address)
            how, board = await _lived(life, deployment, model, warnings, page, listener)
        return LiveRunResult(workspace.runs.get(run_id), how, board)


async def _lived(
    life: "_StoredLiveRun",
    deployment: Deployment,
    model: str,
    warnings: tuple[str, ...],
    page: "_Page",
    listener: Listener,
) -> "tuple[StopCause, Board]":
    """The work, and what is stored of how it ended."""
    runs, run_id, epoch = life.workspace.runs, life.run_id, life.epoch
    LOG.info("live run begins", extra={"fields": {"run_id": run_id, "model": model}})
    try:
        async with AsyncExitStack() as stack:
            return await _work(stack, life, deployment, model, warnings, page, listener)
    except asyncio.CancelledError:  # a second Ctrl-C: no time to count, but nobody is at work
        runs.set_status(run_id, "cancelled", epoch, wall_s=life.wall_s())
        raise RunCancelled from None
    except LeaseLost:
        raise  # the run belongs to another process now: not a word about it from here
    except (TransientError, InvariantError, UserError) as error:
        runs.fail(run_id, epoch, REDACTOR.redact(str(error)), wall_s=life.wall_s())
        raise
    except Exception as error:
        runs.fail(run_id, epoch, REDACTOR.redact(f"unexpected fault: {error!r}"), wall_s=life.wall_s())
        raise


class _Page:
    """What the status endpoint answers with: little until the run has begun."""

    def __init__(self) -> None:
        self.tell: Callable[[], dict[str, Any]] = dict

    def document(self) -> dict[str, Any]:
        """`/status`."""
        return self.tell()

    def health(self) -> dict[str, Any]:
        """`/health`."""
        return {"ok": True}


@dataclass(slots=True)
class _StoredLiveRun:
    """The stored side of a run."""

    workspace: Workspace
    run_id: str
    epoch: int
    began_s: float
    address: str

    def wall_s(self) -> float:
        """How long it was worked on, earlier processes included."""
        run = self.workspace.runs.get(self.run_id)
        return (0.0 if self.epoch == 1 else run.wall_s) + stopwatch() - self.began_s


async def _work(
    stack: AsyncExitStack,
    life: _StoredLiveRun,
    deployment: Deployment,
    model: str,
    warnings: tuple[str, ...],
    page: _Page,
    listener: Listener,
) -> tuple[StopCause, Board]:
    workspace, clock, board = life.workspace, SystemClock(), Board()
    settings = workspace.settings
    journal = StoredJournal(workspace.database, life.run_id, life.epoch)
    board.restore(journal.records())
    stored = journal.latest_state()
    state = _first(deployment) if stored is None else read_state(stored[1])
    spot = await stack.enter_async_context(_spot(settings, deployment.skill.context.underlying))
    spent = board.paid_on(day_of(clock.now()))
    connections, line = await stack.enter_async_context(connected(workspace, deployment, model, life.run_id, spent))
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
        lambda words: listener.entry(board.remark(clock.now(), words), board),
    )
    stop = await stack.enter_async_context(stop_signals())
    watching = asyncio.create_task(spot.watch(settings.live_poll_s))
    stack.push_async_callback(_ended, watching)
    cancelled = CancelPoll(
        lambda: workspace.runs.cancel_requested(life.run_id), lambda: workspace.runs.heartbeat(life.run_id, life.epoch)
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
        tell=lambda entry: listener.entry(entry, board),
        most_ticks=deployment.ticks,
    )
    telling = Telling(deployment, model, life.run_id, board, spot, clock.now(), warnings)
    page.tell = lambda: telling.document(clock.now(), runner.next_at)
    listener.began(Begun(life.run_id, life.address, model, board.ticks, warnings))
    await runner.run()
    if watching.done():
        watching.result()
    figures: dict[str, Any] = {"wall_s": life.wall_s(), "ticks": board.ticks}
    paid_usd = ZERO if line is None else line.paid_usd
    figures["cost_usd"] = Decimal("NaN") if board.cost_usd is None else max(board.cost_usd, paid_usd)
    if stop.requested or cancelled.requested:
        workspace.runs.set_status(life.run_id, "cancelled", life.epoch, **figures)
        return stop.cause or "cancelled", board
    end = await runner.close()
    run = workspace.runs.get(life.run_id)
    metrics = VENUE.measure_again(run.params, read_predict_ledger(journal.records()))
    workspace.runs.finish(life.run_id, life.epoch, digest=end.prev_digest, metrics=metrics, baselines={}, **figures)
    return "complete", board


def _first(deployment: Deployment) -> State:
    """A fresh account on a fresh venue."""
    return State(Desk(open_world(VAULT * QUOTE, int(deployment.equity * QUOTE))))


# The run as it is stored -----------------------------------------------------------------------------------------------


def _run_of(workspace: Workspace, deployment: Deployment, model: str) -> str:
    """The run to work on: one that was stopped and is the same, or a new one."""
    if deployment.begin != "new":
        found = _unfinished(workspace, deployment, model)
        if found is not None:
            return found.id
        if deployment.begin == "resume":
            raise UserError(
                "there is no unfinished run of this skill with this model, equity and time between ticks",
                "leave --resume out to begin one",
            )
    skill, now = deployment.skill, workspace.now()
    request = PredictRequest(
        skill={},
        from_at=now,
        to_at=now,  # nobody knows; and an empty range is one that no replay can be made of
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
    """What two starts must agree in to be one run."""
    return {
        "mode": MODE,
        "venue": VENUE.name,
        "skill_digest": skill_digest(deployment.skill),
        "model": model,
        "every_ms": deployment.every_ms,
        "equity": text(deployment.equity),
    }


def _unfinished(workspace: Workspace, deployment: Deployment, model: str) -> Run | None:
    wanted = _same(deployment, model)
    for run in workspace.runs.listing(1_000).runs:
        if run.status == "complete" or any(run.params.get(name) != value for name, value in wanted.items()):
            continue
        if run.status == "error" and deployment.begin == "auto":
            raise UserError(
                f"run {run.id} of this skill ended in error: {run.error_text}",
                "--resume goes on with it, --new begins another",
            )
        return run
    return None


# Prices ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _spot(settings: Settings, symbol: str) -> AsyncIterator[Spot]:
    clock = SystemClock()
    fetcher = Fetcher(now=clock.now, elapsed=stopwatch, random=unit_random(), timeout_s=ASK_S, attempts=1)
    try:
        yield Spot(symbol, hermes(settings, fetcher), await candles_of(symbol, settings.pyth_url, fetcher), clock.now)
    finally:
        await fetcher.close()


async def _ended(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task
