"""Execute backtests in a workspace: start, resume, finish and verify.

Everything reported about a run afterwards (document, report, verification) is computed from its stored records.
Reading that needs no execution is in `runs/stored.py`.
"""

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from pitboss import __version__
from pitboss.bootstrap import decider_source, mcp_tools
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.run_lock import executing, is_lost
from pitboss.bootstrap.telemetry import telemetry
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import BudgetExceeded, ReplayMismatch, RunCancelled, TransientError, UserError
from pitboss.core.instant import SECOND_MS
from pitboss.core.trace import SILENT, Tracer, Value
from pitboss.runs.daily_budget import limit_of, refused_by_budget
from pitboss.runs.execution import RunExecution, cause
from pitboss.runs.stored import journal_of, request_of
from pitboss.runs.venue import Venue
from pitboss.runs.venues import venue_of
from pitboss.sim.outcome import Ledger
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.request import BacktestRequest
from pitboss.sim.watch import Watch
from pitboss.skill.digest import skill_digest
from pitboss.store.budgets import RunLimit
from pitboss.store.journal import StoredJournal
from pitboss.store.lifecycle import ACTIVE, LeaseLost, Status, being_executed
from pitboss.store.queue import Job, Lease
from pitboss.store.retry import Unreachable
from pitboss.store.runs import Run
from pitboss.store.skills import StoredSkill
from pitboss.store.verify import verify_run

NO_WATCH = Watch()
LOG = logging.getLogger("pitboss.runs")


async def start(
    workspace: Workspace,
    request: BacktestRequest,
    watch: Watch = NO_WATCH,
    on_start: Callable[[str], None] = lambda run_id: None,
    extra_params: Mapping[str, Any] | None = None,
    for_report: bool = False,
) -> Run:
    """Run a backtest from the beginning. Nothing is stored unless the request and its data are valid.

    Its `max_cost_usd` is reserved from the daily budget first. `on_start` is called with the run's id before the first
    tick, so that the caller can name the run even if it does not finish. `extra_params` are stored with the run besides
    its request. With `for_report` its data is kept for a report that is written at once.
    """
    prepared = prepare(workspace, request)
    with telemetry(workspace.settings) as tracer:  # a wrong setting must fail before anything is stored
        run_id = _create(workspace, prepared, extra_params or {})
        on_start(run_id)
        run = await _observed(workspace, run_id, prepared, watch, tracer)
    if for_report:
        workspace.prepared.clear()  # the data of one run at most is kept
        workspace.prepared[run_id] = prepared
    return run


def prepare(workspace: Workspace, request: BacktestRequest) -> PreparedRun:
    """Check a request, its data and its model. Nothing is stored."""
    prepared = venue_of(request.skill).prepare(request, workspace.lake, workspace.settings)
    decider_source.check(workspace, request)
    return prepared


def _create(workspace: Workspace, prepared: PreparedRun, extra_params: Mapping[str, Any]) -> str:
    saved, params = stored_form(workspace, prepared)
    params |= {**workspace.pin(), **extra_params}
    name, limit = decider_source.model_name(prepared.request, params), limit_of(workspace, prepared.request)
    with refused_by_budget():
        return workspace.runs.create(saved.id, saved.version, name, params, prepared.data_digest, limit)


def stored_form(workspace: Workspace, prepared: PreparedRun) -> tuple[StoredSkill, dict[str, Any]]:
    """What is stored with a run: its skill, and the rest of its request."""
    request, skill = prepared.request, prepared.skill
    registry = venue_of(request.skill).tools()
    params = params_of(prepared) | decider_source.model_params(workspace, request, skill)
    params |= mcp_tools.pin(workspace, prepared, registry)
    return workspace.skills.save(skill.name, skill_digest(skill), codec.dumps(skill.normal())), params


def job_of(workspace: Workspace, request: BacktestRequest, **more: Any) -> Job:
    """Turn a request into a queue job, with the same checks as for a run started here. `more` are fields of `Job`."""
    prepared = prepare(workspace, request)
    saved, params = stored_form(workspace, prepared)
    params |= workspace.pin()
    name = decider_source.model_name(request, params)
    return Job(saved.id, saved.version, name, params, prepared.data_digest, **more)


def params_of(prepared: PreparedRun) -> dict[str, Any]:
    """The stored parameters of a run: everything needed to start it again."""
    # as numbers, because a skill document does not accept text there
    skill = codec.number_fragments(dict(prepared.request.skill))
    return {
        **venue_of(prepared.request.skill).params(prepared),
        "skill": skill,
        "skill_digest": skill_digest(prepared.skill),
        "version": __version__,
    }


async def resume(
    workspace: Workspace,
    run_id: str,
    watch: Watch = NO_WATCH,
    max_cost_usd: Decimal | None = None,
    take_over: bool = False,
) -> Run:
    """Continue a stopped run from its last committed record.

    `max_cost_usd` replaces the run's limit for this execution. What the run may still cost is reserved from the daily
    budget first. A run that another process is executing is refused; with `take_over` that process loses it.
    """
    run = workspace.runs.get(run_id)
    if run.status == "complete":
        return run
    refuse_live(run)
    if not take_over:
        _refuse_executing(workspace, run)
    workspace = workspace.owned_by(run.owner)
    request = request_of(run)
    if max_cost_usd is not None:
        request = dataclasses.replace(request, max_cost_usd=max_cost_usd)
    decider_source.check_unchanged(workspace, run.params)
    prepared = _prepare_resumed(workspace, run, request)
    with telemetry(workspace.settings) as tracer:
        limit, epoch = limit_of(workspace, request), None if take_over else run.lease_epoch
        return await _observed(workspace, run.id, prepared, watch, tracer, limit, epoch)


def request_cancel(workspace: Workspace, run_id: str) -> Status:
    """Request the cancel of a run; returns its status.

    An active run stops at its next tick. A queued one, and a backtest whose process has ended, is cancelled at once.
    """
    workspace.runs.request_cancel(run_id)
    run = workspace.runs.get(run_id)
    if run.status not in ACTIVE or not _is_abandoned(workspace, run):
        return run.status
    epoch = workspace.runs.claim(run_id, into="running", expected_epoch=run.lease_epoch)
    workspace.runs.set_status(run_id, "cancelled", epoch)
    return "cancelled"


def _is_abandoned(workspace: Workspace, run: Run) -> bool:
    """Whether no process executes an active backtest. Of a foreground run on another machine only the silence tells it."""
    if run.params.get("mode") or _executor(workspace, run):  # the process of a live run holds another lock
        return False
    silent_ms = workspace.now() - (run.heartbeat_at or 0)
    is_of_this_machine = workspace.database.journal_mode is not None  # SQLite
    return is_of_this_machine or silent_ms > workspace.settings.lease_stale_s * SECOND_MS


def _refuse_executing(workspace: Workspace, run: Run) -> None:
    """Raise `UserError` if a process of this machine, or a worker with a recent heartbeat, executes the run."""
    if executor := _executor(workspace, run):
        raise being_executed(run.id, executor)


def _executor(workspace: Workspace, run: Run) -> str:
    """The process of this machine, or the worker with a recent heartbeat, that executes the run; empty if none does."""
    if run.status not in ACTIVE:
        return ""
    with executing(workspace.home, run.id) as is_free:
        executor = "" if is_free else "another process"
    silent_ms = workspace.now() - (run.heartbeat_at or 0)
    if run.worker and silent_ms <= workspace.settings.lease_stale_s * SECOND_MS and not is_lost(run.worker):
        executor = f"worker {run.worker}"
    return executor


def _prepare_resumed(workspace: Workspace, run: Run, request: Any) -> PreparedRun:
    """Prepare a stored run for its continuation; raises `UserError` if its data or its MCP servers have changed."""
    prepared = prepare_stored(workspace, run, request)
    mcp_tools.check_pin(workspace, prepared, venue_of(request.skill).tools(), run.params)
    decider_source.check(workspace, prepared.request, run.params)
    return prepared


def prepare_stored(workspace: Workspace, run: Run, request: Any) -> PreparedRun:
    """Prepare a stored run on its data; raises `UserError` if the data has changed."""
    prepared = venue_of(request.skill).prepare(request, workspace.lake_of(run.params), workspace.settings)
    if run.data_digest and run.data_digest != prepared.data_digest:
        raise UserError(
            "the data of this run has changed since it began; its past cannot be continued or replayed",
            "start a new backtest, or restore the data",
        )
    return prepared


async def work(
    workspace: Workspace, lease: Lease, watch: Watch = NO_WATCH, tracer: Tracer = SILENT, logged: bool = False
) -> Run:
    """Execute a claimed run from its last committed record and store its outcome under the lease.

    A fault of the run itself ends it with status error and raises nothing. A stop (`RunCancelled`, a cancelled task)
    is not stored: the caller that requested it decides whether the run ends or returns to the queue. `LeaseLost` and
    `Unreachable` are raised too; after `Unreachable` the same lease can be worked on again. What the run refers to, such as
    `replay/<run id>`, is looked up among the rows of its owner alone.
    """
    run = lease.run
    workspace = workspace.owned_by(run.owner)
    runs = workspace.runs
    execution = RunExecution(
        workspace, StoredJournal(workspace.database, run.id, lease.epoch, logged=logged), run.wall_s
    )
    LOG.info("run begins", extra={"fields": {"run_id": run.id, "model": run.model, "worker": lease.worker}})
    with tracer.span("pitboss.run", {"pitboss.run_id": run.id, "gen_ai.request.model": run.model}) as span:
        try:
            prepared = _prepare_resumed(workspace, run, request_of(run))
            if run.status == "loading":
                runs.set_status(run.id, "running", lease.epoch)
            await execution.run(prepared, watch, tracer)
        except (LeaseLost, Unreachable):
            raise
        except Exception as error:  # noqa: BLE001 - a failed run must not end its worker; the cause is stored with the run
            runs.fail(run.id, lease.epoch, REDACTOR.redact(cause(error)), **execution.figures(venue_or_none(run)))
        ended = runs.get(run.id)
        span.set({"pitboss.status": ended.status, "pitboss.ticks": ended.ticks})
    LOG.info("run ended", extra={"fields": {"run_id": run.id, "status": ended.status, "ticks": ended.ticks}})
    return ended


def give_up(workspace: Workspace, lease: Lease, worked_s: float) -> None:
    """Store that a run was cancelled after `worked_s` seconds under this lease, with its figures so far."""
    run = lease.run
    execution = RunExecution(workspace, StoredJournal(workspace.database, run.id, lease.epoch), run.wall_s + worked_s)
    workspace.runs.set_status(run.id, "cancelled", lease.epoch, **execution.figures(venue_or_none(run)))


def venue_or_none(run: Run) -> Venue | None:
    """The venue of a run; None if its parameters are damaged or the venue is not installed."""
    skill = run.params.get("skill") if isinstance(run.params, Mapping) else None
    if not isinstance(skill, Mapping):
        return None
    try:
        return venue_of(skill)
    except UserError:
        return None


def refuse_live(run: Run) -> None:
    """Raise `UserError` for a run on live prices, which cannot be replayed."""
    if run.params.get("deployed"):
        raise UserError(f"run {run.id} belongs to a deployment", f"`pitboss command {run.id} resume` resumes it")
    if run.params.get("mode"):
        raise UserError(
            f"run {run.id} is a live run: only its own command can resume it",
            f"`pitboss {run.params.get('venue', '')} run SKILL.yaml --resume`",
        )


async def _observed(
    workspace: Workspace,
    run_id: str,
    prepared: PreparedRun,
    watch: Watch,
    tracer: Tracer,
    limit: RunLimit | None = None,
    expected_epoch: int | None = None,
) -> Run:
    """Execute a run and report its progress to the watch and to the log."""
    model = prepared.request.source
    with refused_by_budget():
        epoch = workspace.runs.claim(run_id, None, "running", limit, expected_epoch)  # the data is loaded already
    LOG.info("run begins", extra={"fields": {"run_id": run_id, "model": model}})
    with tracer.span("pitboss.run", {"pitboss.run_id": run_id, "gen_ai.request.model": model}) as span:
        try:
            with executing(workspace.home, run_id):
                run = await _execute(workspace, run_id, epoch, prepared, watch, tracer)
        except Exception as error:
            # the caller reports an error that is not a fault of the program
            level = logging.INFO if isinstance(error, TransientError | BudgetExceeded | UserError) else logging.ERROR
            LOG.log(level, "run failed", extra={"fields": {"run_id": run_id, "error": type(error).__name__}})
            raise
        cost: dict[str, Value] = {} if run.cost_usd.is_nan() else {"pitboss.cost_usd": float(run.cost_usd)}
        span.set({"pitboss.status": run.status, "pitboss.ticks": run.ticks, **cost})
    LOG.info("run ended", extra={"fields": {"run_id": run_id, "status": run.status, "ticks": run.ticks, **cost}})
    return run


async def _execute(
    workspace: Workspace, run_id: str, epoch: int, prepared: PreparedRun, watch: Watch, tracer: Tracer
) -> Run:
    runs, venue = workspace.runs, venue_of(prepared.request.skill)
    journal = StoredJournal(workspace.database, run_id, epoch)
    execution = RunExecution(workspace, journal, 0.0 if epoch == 1 else runs.get(run_id).wall_s)
    try:
        await execution.run(prepared, watch, tracer)
    except RunCancelled:
        runs.set_status(run_id, "cancelled", epoch, **execution.figures(venue))
        raise
    except (KeyboardInterrupt, asyncio.CancelledError):  # a second Ctrl-C: skip the figures, but release the run
        runs.set_status(run_id, "cancelled", epoch, wall_s=execution.wall_s())
        raise
    except LeaseLost:
        raise  # the run belongs to another worker now, so nothing is written here
    except Exception as error:
        runs.fail(run_id, epoch, REDACTOR.redact(cause(error)), **execution.figures(venue))
        raise
    return runs.get(run_id)


def ledger_of(workspace: Workspace, run: Run) -> Ledger:
    """Read the ledger of a run from its stored records."""
    return venue_of(run.params["skill"]).read_ledger(journal_of(workspace, run).records())


def verify(workspace: Workspace, run_id: str) -> list[str]:
    """Return every difference between a stored run and its own records: rows, chain, metrics."""
    run_id = workspace.runs.find(run_id)
    problems = verify_run(workspace.database, run_id)
    if problems:
        return problems
    run = workspace.runs.get(run_id)
    if run.metrics is None:
        return []
    try:
        ledger = ledger_of(workspace, run)
    except ReplayMismatch as error:
        return [str(error)]
    return _differences(run.metrics, codec.plain(venue_of(run.params["skill"]).measure_again(run.params, ledger)))


def _differences(stored: Mapping[str, Any], recomputed: Mapping[str, Any]) -> list[str]:
    return [
        f"metric {name}: stored {stored.get(name)!r}, recomputed {recomputed.get(name)!r}"
        for name in sorted({*stored, *recomputed})
        if stored.get(name) != recomputed.get(name)
    ]
