"""Running a backtest in a workspace: start, go on, finish, and say what came of it.

Everything a run says about itself afterwards (document, report, verification) is computed from its stored records; what
needs nothing else is `runs/stored.py`.
"""

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING, Any

from pitboss import __version__
from pitboss.bootstrap import decider_source as gateway
from pitboss.bootstrap import mcp_tools as mcp
from pitboss.bootstrap.kits import Kit, kit_of
from pitboss.bootstrap.machine import stopwatch
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.telemetry import observed, telemetry
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import BudgetExceeded, InvariantError, ReplayMismatch, RunCancelled, TransientError, UserError
from pitboss.core.money import ZERO
from pitboss.core.trace import SILENT, Tracer, Value
from pitboss.runs.stored import journal_of, request_of
from pitboss.sim.outcome import Ledger
from pitboss.sim.replay import replay
from pitboss.sim.request import BacktestRequest, PreparedRun
from pitboss.sim.speculator import Speculation
from pitboss.sim.watch import Watch
from pitboss.skill.digest import normal, skill_digest
from pitboss.store.journal import StoredJournal
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.queue import Job, Lease
from pitboss.store.retry import Unreachable, retry_while_unreachable
from pitboss.store.runs import Run
from pitboss.store.skills import StoredSkill
from pitboss.store.verify import verify_run

if TYPE_CHECKING:
    from pitboss.bootstrap.model_stack import ModelConnection

NOTHING = Watch()
LOG = logging.getLogger("pitboss.runs")


async def start(
    workspace: Workspace,
    request: BacktestRequest,
    watch: Watch = NOTHING,
    began: Callable[[str], None] = lambda run_id: None,
) -> Run:
    """Run a backtest from the beginning. Nothing is stored unless the request and its data are in order.

    `began` is told the run's id before the first tick, so that whoever waits can name the run if it does not end.
    """
    assembly = kit_of(request.skill).assemble(request, workspace.lake, workspace.settings)
    gateway.check(workspace, request)
    with telemetry(workspace.settings.telemetry) as tracer:  # a wrong setting is said before anything is stored
        run_id = _create(workspace, request, assembly)
        began(run_id)
        return await _watched(workspace, run_id, assembly, watch, tracer)


def _create(workspace: Workspace, request: BacktestRequest, assembly: PreparedRun) -> str:
    saved, params = _kept(workspace, assembly)
    return workspace.runs.create(saved.id, saved.version, request.source, params, assembly.data_digest)


def _kept(workspace: Workspace, assembly: PreparedRun) -> tuple[StoredSkill, dict[str, Any]]:
    """What is stored with a run: its skill, and everything else that was asked for."""
    skill = assembly.skill
    params = params_of(assembly) | {"manner": gateway.manner(workspace, assembly)} | mcp.pin(workspace, assembly)
    params |= workspace.pin()
    return workspace.skills.save(skill.name, skill_digest(skill), codec.dumps(normal(skill))), params


def job_of(workspace: Workspace, request: BacktestRequest, **more: Any) -> Job:
    """A request as a job for the queue, checked as it would be if it began here. `more` are fields of `Job`."""
    assembly = kit_of(request.skill).assemble(request, workspace.lake, workspace.settings)
    gateway.check(workspace, request)
    saved, params = _kept(workspace, assembly)
    return Job(saved.id, saved.version, request.source, params, assembly.data_digest, **more)


def params_of(assembly: PreparedRun) -> dict[str, Any]:
    """Everything that is needed to start a run again from nothing, as it is stored with it."""
    skill = codec.number_fragments(dict(assembly.request.skill))  # as numbers: a skill refuses text in their place
    return {
        **kit_of(assembly.request.skill).params(assembly),
        "skill": skill,
        "skill_digest": skill_digest(assembly.skill),
        "version": __version__,
    }


async def resume(workspace: Workspace, run_id: str, watch: Watch = NOTHING, max_cost_usd: Decimal | None = None) -> Run:
    """Go on with a run that stopped, from its last committed record; `max_cost_usd` replaces its limit for this time."""
    run = workspace.runs.get(run_id)
    if run.status == "complete":
        return run
    refuse_live(run)
    request = request_of(run)
    if max_cost_usd is not None:
        request = dataclasses.replace(request, max_cost_usd=max_cost_usd)
    assembly = _assembled(workspace, run, request)
    with telemetry(workspace.settings.telemetry) as tracer:
        return await _watched(workspace, run.id, assembly, watch, tracer)


def _assembled(workspace: Workspace, run: Run, request: Any) -> PreparedRun:
    """A stored run put together again, if everything under it is as it was."""
    assembly = kit_of(request.skill).assemble(request, workspace.lake_of(run.params), workspace.settings)
    if run.data_digest and run.data_digest != assembly.data_digest:
        raise UserError(
            "the data under this run has changed since it began; going on would mix two pasts",
            "start a new backtest, or bring back the data as it was",
        )
    mcp.check_pin(workspace, assembly, run.params)
    gateway.check(workspace, assembly.request)
    return assembly


async def work(
    workspace: Workspace, lease: Lease, watch: Watch = NOTHING, tracer: Tracer = SILENT, logged: bool = False
) -> Run:
    """Do a run that a worker has claimed, from its last committed record, and write how it ended under its lease.

    Whatever is wrong with the run ends it in error and is no exception here. A stop (`RunCancelled`, a cancelled task) is
    not written: whoever asked for it knows whether the run ends or goes back into the queue. `LeaseLost` and `Unreachable`
    pass too; after the latter the same lease can be worked on again.
    """
    run, runs = lease.run, workspace.runs
    go = _Go(workspace, StoredJournal(workspace.database, run.id, lease.epoch, logged=logged), run.wall_s)
    LOG.info("run begins", extra={"fields": {"run_id": run.id, "model": run.model, "worker": lease.worker}})
    with tracer.span("pitboss.run", {"pitboss.run_id": run.id, "gen_ai.request.model": run.model}) as span:
        try:
            assembly = _assembled(workspace, run, request_of(run))
            if run.status == "loading":
                runs.set_status(run.id, "running", lease.epoch)
            await go.through(assembly, watch, tracer)
        except (LeaseLost, Unreachable):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a run does, its worker goes on; the cause is kept with it
            cause = REDACTOR.redact(_cause(error))
            runs.fail(run.id, lease.epoch, cause, **go.figures(kit_or_none(run)))
        ended = runs.get(run.id)
        span.set({"pitboss.status": ended.status, "pitboss.ticks": ended.ticks})
    LOG.info("run ended", extra={"fields": {"run_id": run.id, "status": ended.status, "ticks": ended.ticks}})
    return ended


def give_up(workspace: Workspace, lease: Lease, worked_s: float) -> None:
    """Write that a run was cancelled, after so long under this lease, with what its records say it has come to."""
    run = lease.run
    go = _Go(workspace, StoredJournal(workspace.database, run.id, lease.epoch), run.wall_s + worked_s)
    workspace.runs.set_status(run.id, "cancelled", lease.epoch, **go.figures(kit_or_none(run)))


def kit_or_none(run: Run) -> Kit | None:
    """The kit of a run whose parameters may be anything."""
    skill = run.params.get("skill") if isinstance(run.params, Mapping) else None
    return kit_of(skill) if isinstance(skill, Mapping) else None


def refuse_live(run: Run) -> None:
    """A run on live prices has no past that could be replayed."""
    if run.params.get("mode"):
        raise UserError(
            f"run {run.id} is a live one: only its own command goes on with it",
            f"`pitboss {run.params.get('venue', '')} run SKILL.yaml --resume`",
        )


async def _watched(workspace: Workspace, run_id: str, assembly: PreparedRun, watch: Watch, tracer: Tracer) -> Run:
    """The work, told to whoever observes and to the log."""
    model = assembly.request.source
    LOG.info("run begins", extra={"fields": {"run_id": run_id, "model": model}})
    with tracer.span("pitboss.run", {"pitboss.run_id": run_id, "gen_ai.request.model": model}) as span:
        try:
            run = await _work(workspace, run_id, assembly, watch, tracer)
        except Exception as error:
            LOG.error("run failed", extra={"fields": {"run_id": run_id, "error": type(error).__name__}})
            raise
        cost: dict[str, Value] = {} if run.cost_usd.is_nan() else {"pitboss.cost_usd": float(run.cost_usd)}
        span.set({"pitboss.status": run.status, "pitboss.ticks": run.ticks, **cost})
    LOG.info("run ended", extra={"fields": {"run_id": run_id, "status": run.status, "ticks": run.ticks, **cost}})
    return run


async def _work(workspace: Workspace, run_id: str, assembly: PreparedRun, watch: Watch, tracer: Tracer) -> Run:
    runs, kit = workspace.runs, kit_of(assembly.request.skill)
    epoch = runs.claim(run_id, into="running")  # `assembly` is all there is to load
    journal = StoredJournal(workspace.database, run_id, epoch)
    go = _Go(workspace, journal, 0.0 if epoch == 1 else runs.get(run_id).wall_s)
    try:
        await go.through(assembly, watch, tracer)
    except RunCancelled:
        runs.set_status(run_id, "cancelled", epoch, **go.figures(kit))
        raise
    except (KeyboardInterrupt, asyncio.CancelledError):  # a second Ctrl-C: no time to count, but nobody is at work
        runs.set_status(run_id, "cancelled", epoch, wall_s=go.wall_s())
        raise
    except LeaseLost:
        raise  # the run belongs to another worker now: not a word about it from here
    except Exception as error:
        runs.fail(run_id, epoch, REDACTOR.redact(_cause(error)), **go.figures(kit))
        raise
    return runs.get(run_id)


def _cause(error: Exception) -> str:
    """What is kept with a run that ended in error."""
    if isinstance(error, BudgetExceeded):
        return f"budget: {error}"
    if isinstance(error, TransientError | InvariantError | UserError):
        return str(error)
    return f"unexpected fault: {error!r}"


class _Go:
    """One go at a run under a lease: from its last record to its result, and what it has come to if it does not end."""

    def __init__(self, workspace: Workspace, journal: StoredJournal, spent_s: float) -> None:
        self._workspace = workspace
        self._journal = journal
        self._spent_s = spent_s
        self._began = stopwatch()
        self._line: ModelConnection | None = None

    def wall_s(self) -> float:
        """How long it has been worked on, all goes together."""
        return self._spent_s + stopwatch() - self._began

    def figures(self, kit: Kit | None) -> dict[str, Any]:
        """What a run that did not end has come to: what is stored counts, for a commit may be what failed."""
        try:
            kept = None if kit is None else kit.read_ledger(self._journal.records())
        except Unreachable:
            raise
        except (ReplayMismatch, UserError):
            kept = None
        if kept is None:
            return {"wall_s": self.wall_s()}  # the rest stays what it was
        return {"wall_s": self.wall_s(), "ticks": kept.ticks, **_money(kept, self._line)}

    async def through(self, assembly: PreparedRun, watch: Watch, tracer: Tracer) -> None:
        """The work itself, and its result."""
        workspace, journal, kit = self._workspace, self._journal, kit_of(assembly.request.skill)
        run_id, epoch = journal.run_id, journal.epoch
        stored = None if epoch == 1 else journal.latest_state()  # the first to claim it finds nothing
        state = kit.first_state(assembly.script) if stored is None else kit.read_state(stored[1])
        ledger = kit.read_ledger(() if stored is None else journal.records())
        async with (
            mcp.joined(workspace, assembly) as whole,
            gateway.connected(workspace, observed(whole, tracer), run_id, tracer) as (ready, line),
        ):
            self._line = line
            for note in (*kit.notes(assembly), *ready.script.ports.notes()):
                watch.told(f"note: {note}")
            _remember_waste(ready.script.speculation, ledger, line)
            state = await replay(ready.script, journal, state, watch, ledger)
        if line is not None and line.news():
            watch.told(line.news())
        if journal.status != "computing_metrics":  # all of it was recorded before, so no commit has said so
            workspace.runs.set_status(run_id, "computing_metrics", epoch)
        metrics, baselines = kit.measure(assembly, ledger)

        def finish() -> None:
            workspace.runs.finish(
                run_id,
                epoch,
                digest=state.prev_digest,
                metrics=metrics,
                baselines=baselines,
                wall_s=self.wall_s(),
                ticks=ledger.ticks,
                **_money(ledger, line),
            )

        await retry_while_unreachable(finish)  # a finish whose answer was lost must be told again, not made again


UNKNOWN = Decimal("NaN")
"""The cost of a run in which somebody was asked whose price nobody knows."""


def _remember_waste(plan: Speculation | None, ledger: Ledger, line: "ModelConnection | None") -> None:
    """A run that goes on has wasted what it wasted before: stopping and going on must not widen the cap."""
    used = ledger.cost_usd
    if plan is None or line is None or not used:
        return
    wasted = max(ZERO, line.paid_usd - used)
    plan.tally.useful, plan.tally.useful_usd = ledger.asked, used
    plan.tally.wasted, plan.tally.wasted_usd = ceil(wasted / used * ledger.asked), wasted


def _money(ledger: Ledger, line: "ModelConnection | None") -> dict[str, Any]:
    """What a run has paid, what the cache has spared it, and what of the paid was for nothing."""
    used, paid = ledger.cost_usd, ZERO if line is None else line.paid_usd
    if used is None:
        return {"cost_usd": UNKNOWN, "saved_usd": ledger.saved_usd}
    total = max(used, paid)
    return {"cost_usd": total, "saved_usd": ledger.saved_usd, "wasted_usd": total - used}


def ledger_of(workspace: Workspace, run: Run) -> Ledger:
    """What the stored records of a run say."""
    return kit_of(run.params["skill"]).read_ledger(journal_of(workspace, run).records())


def verify(workspace: Workspace, run_id: str) -> list[str]:
    """Every difference between a stored run and what its own records say: rows, chain, metrics."""
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
    return _differences(run.metrics, codec.plain(kit_of(run.params["skill"]).measure_again(run.params, ledger)))


def _differences(stored: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    return [
        f"metric {name}: stored {stored.get(name)!r}, recomputed {found.get(name)!r}"
        for name in sorted({*stored, *found})
        if stored.get(name) != found.get(name)
    ]
