"""Running a backtest in a workspace: start, go on, finish, and say what came of it.

Everything a run says about itself afterwards (document, report, verification) is computed from its stored records.
"""

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import ceil
from typing import Any

from pitboss import __version__
from pitboss.bootstrap import blind, gateway, mcp, realism
from pitboss.bootstrap.backtest import Assembly, Request, assemble
from pitboss.bootstrap.machine import stopwatch
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.telemetry import observed, telemetry
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import BudgetExceeded, InvariantError, ReplayMismatch, RunCancelled, TransientError, UserError
from pitboss.core.instant import Instant, interval_ms, iso
from pitboss.core.money import ZERO
from pitboss.core.trace import Tracer, Value
from pitboss.data.universe import words
from pitboss.models import cutoffs
from pitboss.sim import baseline
from pitboss.sim.metrics import Outcome, compute, compute_together
from pitboss.sim.outcome import Ledger, read_ledger
from pitboss.sim.perp import Script, first_state, read_state
from pitboss.sim.replay import replay
from pitboss.sim.speculate import Speculation
from pitboss.sim.watch import Watch
from pitboss.skill.digest import normal, skill_digest
from pitboss.store.journal import StoredJournal
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.runs import Run
from pitboss.store.verify import verify_run

NOTHING = Watch()
LOG = logging.getLogger("pitboss.runs")


async def start(
    workspace: Workspace,
    request: Request,
    watch: Watch = NOTHING,
    began: Callable[[str], None] = lambda run_id: None,
) -> Run:
    """Run a backtest from the beginning. Nothing is stored unless the request and its data are in order.

    `began` is told the run's id before the first tick, so that whoever waits can name the run if it does not end.
    """
    assembly = assemble(request, workspace.lake, workspace.settings)
    gateway.check(workspace, request)
    with telemetry(workspace.settings.telemetry) as tracer:  # a wrong setting is said before anything is stored
        run_id = _create(workspace, request, assembly)
        began(run_id)
        return await _watched(workspace, run_id, assembly, watch, tracer)


def _create(workspace: Workspace, request: Request, assembly: Assembly) -> str:
    skill = assembly.skill
    params = params_of(assembly) | {"manner": gateway.manner(workspace, assembly)} | mcp.pin(workspace, assembly)
    saved = workspace.skills.save(skill.name, skill_digest(skill), codec.dumps(normal(skill)))
    return workspace.runs.create(saved.id, saved.version, request.source, params, assembly.data_digest)


def params_of(assembly: Assembly) -> dict[str, Any]:
    """Everything that is needed to start a run again from nothing, as it is stored with it."""
    request, disguise = assembly.request, assembly.script.ports.context.disguise
    request = dataclasses.replace(request, disguise=None if disguise is None else disguise.plain())
    return {
        **codec.plain(dataclasses.replace(request, skill={}, data_venue=assembly.venue)),
        "skill": codec.number_fragments(dict(request.skill)),  # as numbers: a skill refuses text in their place
        "base_interval": assembly.script.base_interval,
        "skill_digest": skill_digest(assembly.skill),
        "version": __version__,
        **_universe(assembly),
    }


def _universe(assembly: Assembly) -> dict[str, Any]:
    """What a person should know about symbols that are not listed all the way, if there are any."""
    request = assembly.request
    said = words(assembly.script.market.listings, request.from_at, request.to_at)
    return {"universe": said} if said else {}


async def resume(workspace: Workspace, run_id: str, watch: Watch = NOTHING, max_cost_usd: Decimal | None = None) -> Run:
    """Go on with a run that stopped, from its last committed record; `max_cost_usd` replaces its limit for this time."""
    run = workspace.runs.get(run_id)
    if run.status == "complete":
        return run
    request = request_of(run)
    if max_cost_usd is not None:
        request = dataclasses.replace(request, max_cost_usd=max_cost_usd)
    assembly = assemble(request, workspace.lake, workspace.settings)
    if run.data_digest and run.data_digest != assembly.data_digest:
        raise UserError(
            "the data under this run has changed since it began; going on would mix two pasts",
            "start a new backtest, or bring back the data as it was",
        )
    mcp.check_pin(workspace, assembly, run.params)
    gateway.check(workspace, assembly.request)
    with telemetry(workspace.settings.telemetry) as tracer:
        return await _watched(workspace, run.id, assembly, watch, tracer)


def request_of(run: Run) -> Request:
    """The request a run was started with."""
    return codec.parse(Request, run.params)


async def _watched(workspace: Workspace, run_id: str, assembly: Assembly, watch: Watch, tracer: Tracer) -> Run:
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


async def _work(workspace: Workspace, run_id: str, assembly: Assembly, watch: Watch, tracer: Tracer) -> Run:
    runs, began = workspace.runs, stopwatch()
    epoch = runs.claim(run_id, into="running")  # `assembly` is all there is to load
    journal = StoredJournal(workspace.database, run_id, epoch, workspace.now)
    spent_s = 0.0 if epoch == 1 else runs.get(run_id).wall_s

    def wall_s() -> float:
        return spent_s + stopwatch() - began

    def figures() -> dict[str, Any]:
        """What a run that did not end has come to: what is stored counts, for a commit may be what failed."""
        try:
            kept = read_ledger(journal.records())
        except (ReplayMismatch, UserError):
            return {"wall_s": wall_s()}  # the rest stays what it was
        return {"wall_s": wall_s(), "ticks": kept.ticks, **_money(kept, line)}

    line: gateway.Line | None = None
    try:
        stored = None if epoch == 1 else journal.latest_state()  # the first to claim it finds nothing
        state = first_state(assembly.script) if stored is None else read_state(stored[1])
        ledger = Ledger() if stored is None else read_ledger(journal.records())
        async with (
            mcp.joined(workspace, assembly) as whole,
            gateway.connected(workspace, observed(whole, tracer), run_id, tracer) as (ready, line),
        ):
            for note in blind.notes(assembly.request.blind, assembly.skill):
                watch.told(f"note: {note}")
            for note in ready.script.ports.notes():
                watch.told(f"note: {note}")
            _remember_waste(ready.script.speculation, ledger, line)
            state = await replay(ready.script, journal, state, watch, ledger)
        if line is not None and line.news():
            watch.told(line.news())
        if journal.status != "computing_metrics":  # all of it was recorded before, so no commit has said so
            runs.set_status(run_id, "computing_metrics", epoch)
        metrics, baselines = measure(assembly, ledger)
        runs.finish(
            run_id,
            epoch,
            digest=state.prev_digest,
            metrics=metrics,
            baselines=baselines,
            wall_s=wall_s(),
            ticks=ledger.ticks,
            **_money(ledger, line),
        )
    except RunCancelled:
        runs.set_status(run_id, "cancelled", epoch, **figures())
        raise
    except (KeyboardInterrupt, asyncio.CancelledError):  # a second Ctrl-C: no time to count, but nobody is at work
        runs.set_status(run_id, "cancelled", epoch, wall_s=wall_s())
        raise
    except LeaseLost:
        raise  # the run belongs to another worker now: not a word about it from here
    except BudgetExceeded as error:
        runs.fail(run_id, epoch, REDACTOR.redact(f"budget: {error}"), **figures())
        raise
    except (TransientError, InvariantError, UserError) as error:
        runs.fail(run_id, epoch, REDACTOR.redact(str(error)), **figures())
        raise
    except Exception as error:
        runs.fail(run_id, epoch, REDACTOR.redact(f"unexpected fault: {error!r}"), **figures())
        raise
    return runs.get(run_id)


UNKNOWN = Decimal("NaN")
"""The cost of a run in which somebody was asked whose price nobody knows."""


def _remember_waste(plan: Speculation | None, ledger: Ledger, line: "gateway.Line | None") -> None:
    """A run that goes on has wasted what it wasted before: stopping and going on must not widen the cap."""
    used = ledger.cost_usd
    if plan is None or line is None or not used:
        return
    wasted = max(ZERO, line.paid_usd - used)
    plan.tally.useful, plan.tally.useful_usd = ledger.asked, used
    plan.tally.wasted, plan.tally.wasted_usd = ceil(wasted / used * ledger.asked), wasted


def _money(ledger: Ledger, line: "gateway.Line | None") -> dict[str, Any]:
    """What a run has paid, what the cache has spared it, and what of the paid was for nothing."""
    used, paid = ledger.cost_usd, ZERO if line is None else line.paid_usd
    if used is None:
        return {"cost_usd": UNKNOWN, "saved_usd": ledger.saved_usd}
    total = max(used, paid)
    return {"cost_usd": total, "saved_usd": ledger.saved_usd, "wasted_usd": total - used}


def measure(assembly: Assembly, ledger: Ledger) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metrics of a run and of its baselines."""
    script, seed = assembly.script, assembly.request.seed
    start, interval = int(script.tick_at[0]), script.tape.interval_ms
    ran = ledger.outcome(start, script.to_at, interval, script.initial_usd)
    baselines = baseline_outcomes(script)
    metrics, *others = compute_together([ran, *baselines.values()], seed)
    return metrics, dict(zip(baselines, others, strict=True))


def baseline_outcomes(script: Script) -> dict[str, Outcome]:
    """What cash and buy-and-hold would have given over the same bars."""
    start, world = int(script.tick_at[0]), first_state(script).world
    marks: dict[str, tuple[Decimal, Instant]] = {
        symbol: (price, world.marked_at[symbol]) for symbol, price in world.marks.items()
    }
    unlisted = script.market.view(start).unlisted(script.tape.symbols)
    return {
        "buy_and_hold": baseline.buy_and_hold(
            script.initial_usd, script.tape, script.ports.terms, marks, start, script.to_at, unlisted
        ),
        "cash": baseline.cash(script.initial_usd, script.tape, start, script.to_at),
    }


def ledger_of(workspace: Workspace, run: Run) -> Ledger:
    """What the stored records of a run say."""
    return read_ledger(journal_of(workspace, run).records())


def journal_of(workspace: Workspace, run: Run) -> StoredJournal:
    """The records of a run, for reading."""
    return StoredJournal(workspace.database, run.id, run.lease_epoch, workspace.now)


def document(run: Run, model_cutoffs: str = "") -> dict[str, Any]:
    """The public document of a run. `model_cutoffs` is the setting of that name."""
    params = run.params
    cutoff = cutoffs.cutoff_of(run.model, model_cutoffs)
    return {
        "run_id": run.id,
        "status": run.status,
        "digest": run.digest,
        "skill_digest": params["skill_digest"],
        "data_digest": run.data_digest,
        "model": run.model,
        "from": iso(params["from_at"]),
        "to": iso(params["to_at"]),
        "ticks": run.ticks,
        "metrics": run.metrics,
        "baselines": run.baselines,
        "cost_usd": None if run.cost_usd.is_nan() else float(run.cost_usd),
        "saved_usd": float(run.saved_usd),
        "wasted_usd": float(run.wasted_usd),
        "waste_pct": _waste_pct(run),
        "wall_s": run.wall_s,
        "report": run.report,
        "errors": [run.error_text] if run.error_text else [],
        "realism": realism.settings(request_of(run)),
        "cutoff": cutoffs.told(cutoff, params["from_at"], params["to_at"]),
        **({"blind": True} if params.get("blind") else {}),
    }


def _waste_pct(run: Run) -> float | None:
    """What was asked ahead in vain, in percent of the useful spending; None where there was none or nobody knows."""
    useful = run.cost_usd - run.wasted_usd
    return None if useful.is_nan() or useful <= 0 else round(float(run.wasted_usd / useful * 100), 2)


def long_document(run: Run, model_cutoffs: str = "") -> dict[str, Any]:
    """The public document with the run's life beside it."""
    return {
        **document(run, model_cutoffs),
        **({"disguise": run.params.get("disguise")} if run.params.get("blind") else {}),
        "progress_pct": round(run.progress * 100, 2),
        "error_text": run.error_text,
        "created_at": iso(run.created_at),
        "started_at": None if run.started_at is None else iso(run.started_at),
        "finished_at": None if run.finished_at is None else iso(run.finished_at),
    }


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
    params = run.params
    request = request_of(run)
    period = interval_ms(params["skill"]["schedule"]["every"])
    start = -(-request.from_at // period) * period
    outcome = ledger.outcome(start, request.to_at, interval_ms(params["base_interval"]), request.equity_usd)
    return _differences(run.metrics, codec.plain(compute(outcome, request.seed)))


def _differences(stored: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    return [
        f"metric {name}: stored {stored.get(name)!r}, recomputed {found.get(name)!r}"
        for name in sorted({*stored, *found})
        if stored.get(name) != found.get(name)
    ]
