"""Runs `pitboss predict run`: the live driver, the venue, its live data, a stored run and the status endpoint.

A live run is stored, hash-chained and resumed from its last committed record like any other run. One process at a time
works on it: a file lock, released by the operating system when the process exits, prevents a second process on the same
machine, and the run's lease prevents any other.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pitboss import __version__
from pitboss.agent.loop import ToolLoop
from pitboss.bootstrap import decider_source
from pitboss.bootstrap.live_process import CancelPoll, SignalStop, StopCause, exclusive_run, stop_signals
from pitboss.bootstrap.machine import SystemClock, stopwatch
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import InvariantError, RunCancelled, TransientError, UserError
from pitboss.core.instant import SECOND_MS, day_of
from pitboss.core.money import ZERO, text
from pitboss.core.state import State
from pitboss.live.board import Board, Entry
from pitboss.live.runner import Runner, pace
from pitboss.live.schedule import schedule
from pitboss.live.status import serving
from pitboss.skill.digest import normal, skill_digest
from pitboss.skill.document import to_plain
from pitboss.store.journal import StoredJournal
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.runs import Run
from pitboss.venues.predict.agent import decider_of, fallen_back, ports_of
from pitboss.venues.predict.deployment import Deployment
from pitboss.venues.predict.live_feed import LiveFeed, check_markets, open_feed
from pitboss.venues.predict.live_model import connected, request_of
from pitboss.venues.predict.live_writer import LiveWriter, open_live_writer
from pitboss.venues.predict.outcome import read_predict_ledger
from pitboss.venues.predict.ports import read_state
from pitboss.venues.predict.request import INDEXER, SURFACES_FITTED, SURFACES_PROTOCOL, PredictRequest
from pitboss.venues.predict.status import StatusSource
from pitboss.venues.predict.venue import VENUE

LOG = logging.getLogger("pitboss.live")
SCHEDULED = "scheduled"
"""The source of markets stored with a run without an indexer; runs of earlier versions, which have none, are such runs."""


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
    check_markets(workspace.settings, deployment)
    page, board, clock = _Page(), Board(), SystemClock()
    async with AsyncExitStack() as stack:
        # All of this opens before anything is stored: a mistake or an occupied port must not leave a run behind.
        address = await stack.enter_async_context(
            serving(page.document, page.health, deployment.host, deployment.port, REDACTOR.redact)
        )

        def notify(message: str) -> None:
            listener.entry(board.remark(clock.now(), message), board)

        feed = await stack.enter_async_context(open_feed(workspace.settings, deployment, notify))
        writer = await stack.enter_async_context(open_live_writer(workspace, deployment, feed, notify))
        run_id = _run_of(workspace, deployment, model, writer)
        with exclusive_run(workspace.home, run_id):
            epoch = workspace.runs.claim(run_id, into="running")
            stored_run = _StoredLiveRun(workspace, run_id, epoch, stopwatch(), address, board)
            how = await _lived(
                stored_run, _Parts(deployment, model, (*warnings, *writer.notes), feed, writer), page, listener
            )
        return LiveRunResult(workspace.runs.get(run_id), how, board)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a live run works with."""

    deployment: Deployment
    model: str
    warnings: tuple[str, ...]
    feed: LiveFeed
    writer: LiveWriter


async def _lived(stored_run: "_StoredLiveRun", parts: _Parts, page: "_Page", listener: Listener) -> StopCause:
    """Execute the run and store how it ended."""
    runs, run_id, epoch = stored_run.workspace.runs, stored_run.run_id, stored_run.epoch
    LOG.info("live run begins", extra={"fields": {"run_id": run_id, "model": parts.model}})
    try:
        async with AsyncExitStack() as stack:
            return await _work(stack, stored_run, parts, page, listener)
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
    board: Board

    def wall_s(self) -> float:
        """Total working time in seconds, including earlier processes."""
        run = self.workspace.runs.get(self.run_id)
        return (0.0 if self.epoch == 1 else run.wall_s) + stopwatch() - self.began_s


async def _work(
    stack: AsyncExitStack, stored_run: _StoredLiveRun, parts: _Parts, page: _Page, listener: Listener
) -> StopCause:
    workspace, clock, board = stored_run.workspace, SystemClock(), stored_run.board
    deployment, feed, writer, settings = parts.deployment, parts.feed, parts.writer, workspace.settings
    journal = StoredJournal(workspace.database, stored_run.run_id, stored_run.epoch)
    board.restore(journal.records())
    stored = journal.latest_state()
    state = State(writer.desk) if stored is None else read_state(stored[1])
    if stored is None:  # before any order: a process that is killed at its first tick leaves the account it began with
        await journal.commit([], state, 0.0)
    writer.begin(state.tick_at or workspace.runs.get(stored_run.run_id).created_at)
    spent_usd = board.paid_on(day_of(clock.now()))
    connections, line = await stack.enter_async_context(
        connected(workspace, deployment, parts.model, stored_run.run_id, spent_usd)
    )
    decider = decider_of(deployment.skill, parts.model, connections)
    ports = ports_of(
        deployment.skill,
        decider,
        writer.broker,
        lambda at: feed.spot.market.view(at),
        feed.tape,
        build_prompts=isinstance(decider, ToolLoop),
        every_ms=deployment.every_ms,
    )
    stop = await stack.enter_async_context(stop_signals())
    cancelled = CancelPoll(
        lambda: workspace.runs.cancel_requested(stored_run.run_id),
        lambda: workspace.runs.heartbeat(stored_run.run_id, stored_run.epoch),
    )
    runner = Runner(
        ports=ports,
        source=writer.source,
        journal=journal,
        clock=clock,
        pace=pace(schedule(deployment.every_ms), round(settings.live_poll_s * SECOND_MS)),
        state=state,
        board=board,
        pause=stop.pause,
        stop=lambda: stop.requested or cancelled() or feed.polling.done(),
        on_entry=lambda entry: listener.entry(entry, board),
        most_ticks=deployment.ticks,
    )
    status_source = StatusSource(deployment, parts.model, stored_run.run_id, board, feed, clock.now(), parts.warnings)
    page.tell = lambda: status_source.document(clock.now(), runner.next_at)
    listener.started(RunStart(stored_run.run_id, stored_run.address, parts.model, board.ticks, parts.warnings))
    await runner.run()
    if feed.polling.done():
        feed.polling.result()
    paid_usd = ZERO if line is None else line.paid_usd
    cost_usd = Decimal("NaN") if board.cost_usd is None else max(board.cost_usd, paid_usd)
    return await _end(stored_run, runner, journal, cost_usd, _cause(stop, cancelled))


def _cause(stop: SignalStop, cancelled: CancelPoll) -> StopCause:
    return (stop.cause or "cancelled") if stop.requested or cancelled.requested else "complete"


async def _end(
    stored_run: _StoredLiveRun, runner: Runner, journal: StoredJournal, cost_usd: Decimal, how: StopCause
) -> StopCause:
    """Store the figures of a run that is complete or was stopped; only a complete one gets a closing record."""
    runs, run_id, epoch = stored_run.workspace.runs, stored_run.run_id, stored_run.epoch
    end = await runner.close() if how == "complete" else runner.state
    metrics = VENUE.measure_again(runs.get(run_id).params, read_predict_ledger(journal.records()))
    figures: dict[str, Any] = {"wall_s": stored_run.wall_s(), "ticks": stored_run.board.ticks, "cost_usd": cost_usd}
    if how == "complete":
        runs.finish(run_id, epoch, digest=end.prev_digest, metrics=metrics, baselines={}, **figures)
    else:
        runs.note(run_id, epoch, metrics=metrics)
        runs.set_status(run_id, "cancelled", epoch, **figures)
    return how


# Stored run -----------------------------------------------------------------------------------------------------------


def _run_of(workspace: Workspace, deployment: Deployment, model: str, writer: LiveWriter) -> str:
    """Return the run to work on: an unfinished run with the same configuration, or a new one."""
    if deployment.begin != "new":
        unfinished = _unfinished(workspace, deployment, model, writer)
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
        data_venue="pyth" if deployment.scheduled else INDEXER,
        equity_usd=writer.equity,
        max_cost_usd=deployment.max_cost_usd,
        price_in=deployment.price_in,
        price_out=deployment.price_out,
        any_price=deployment.any_price,
        speculate="0",
    )
    params: dict[str, Any] = {
        **codec.plain(request),
        **_same(deployment, model, writer),
        "name": deployment.name,
        "surfaces_are": SURFACES_FITTED if deployment.scheduled else SURFACES_PROTOCOL,
        "equity": text(writer.equity),
        "skill": codec.number_fragments(to_plain(skill)),
        "version": __version__,
    }
    saved = workspace.skills.save(skill.name, skill_digest(skill), codec.dumps(normal(skill)))
    return workspace.runs.create(saved.id, saved.version, model, params)


def _same(deployment: Deployment, model: str, writer: LiveWriter) -> dict[str, Any]:
    """Return the values that must be equal for a start to resume a run."""
    same = {
        "mode": deployment.mode,
        "venue": VENUE.name,
        "skill_digest": skill_digest(deployment.skill),
        "model": model,
        "every_ms": deployment.every_ms,
        "markets": SCHEDULED if deployment.scheduled else INDEXER,
        **writer.identity,
    }
    # On the chain the account is what the manager holds.
    return {**same, "equity": text(deployment.equity)} if deployment.writer == "paper" else same


def _unfinished(workspace: Workspace, deployment: Deployment, model: str, writer: LiveWriter) -> Run | None:
    expected = _same(deployment, model, writer)
    for run in workspace.runs.listing(1_000).runs:
        params = {"markets": SCHEDULED, **run.params}
        if run.status == "complete" or any(params.get(name) != value for name, value in expected.items()):
            continue
        if run.status == "error" and deployment.begin == "auto":
            raise UserError(
                f"run {run.id} of this skill ended in error: {run.error_text}",
                "--resume continues it, --new starts another",
            )
        return run
    return None
