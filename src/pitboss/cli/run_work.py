"""Execute a run from the command line: start or resume it, wait, and turn the outcome into an exit code."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import BudgetExceeded, InvariantError, RunCancelled, TransientError, UserError
from pitboss.core.money import text
from pitboss.report.quality import quality_of, quality_warnings
from pitboss.runs.execution import BUDGET
from pitboss.runs.report import write_report
from pitboss.runs.run import refuse_live, resume, start
from pitboss.runs.stored import request_of
from pitboss.sim.request import BacktestRequest
from pitboss.sim.watch import Watch
from pitboss.store.runs import Run
from pitboss.terminal import screen
from pitboss.terminal.exit_codes import INTERRUPTED
from pitboss.terminal.progress import StopRequest, watching
from pitboss.terminal.workspace_options import WorkspaceOptions


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run after its execution, and the exit code."""

    run: Run
    code: int

    @property
    def is_complete(self) -> bool:
        """Whether the run has a result. Its exit code is 1 if its model decided at few of the ticks."""
        return self.run.status == "complete"


def start_run(
    workspace: Workspace,
    location: WorkspaceOptions,
    request: BacktestRequest,
    label: str = "backtest",
    extra_params: Mapping[str, Any] | None = None,
) -> FinishedRun:
    """Run a backtest from its beginning."""

    async def work(watch: Watch, stop: StopRequest) -> Run:
        return await start(workspace, request, watch, stop.set_run, extra_params, for_report=True)

    return _wait_until_ended(workspace, location, label, work)


def resume_run(
    workspace: Workspace,
    location: WorkspaceOptions,
    run_id: str,
    max_cost_usd: Decimal | None = None,
    take_over: bool = False,
) -> FinishedRun:
    """Resume a run, with another limit on its cost if one is given, or the one that a daily budget needs."""
    run = workspace.runs.get(run_id)
    full_id = run.id
    if max_cost_usd is None and workspace.settings.daily_usd and run.status != "complete":
        from pitboss.jobs.estimate import limited_run

        refuse_live(run)
        max_cost_usd = limited_run(workspace, run).max_cost_usd

    async def work(watch: Watch, stop: StopRequest) -> Run:
        stop.set_run(full_id)
        return await resume(workspace, full_id, watch, max_cost_usd, take_over)

    return _wait_until_ended(workspace, location, "resuming", work)


def _wait_until_ended(
    workspace: Workspace,
    location: WorkspaceOptions,
    label: str,
    work: Callable[[Watch, StopRequest], Coroutine[Any, Any, Run]],
) -> FinishedRun:
    with watching(label, workspace.runs.cancel_requested) as (watch, stop):
        try:
            run, code = asyncio.run(work(watch, stop)), 0
        except (RunCancelled, KeyboardInterrupt):
            if not stop.run_id:
                raise  # stopped before the run was created
            run, code = workspace.runs.get(stop.run_id), INTERRUPTED
        except (TransientError, InvariantError, BudgetExceeded) as error:
            if not stop.run_id:
                raise
            run, code = workspace.runs.get(stop.run_id), 1
            screen.complain(str(error))
    if code == 0:
        run = _with_report(workspace, run)
        for warning in quality_warnings(run.metrics):
            screen.note(f"warning: {warning}")
        quality = quality_of(run.metrics)
        code = 1 if quality is not None and quality.is_poor else 0
    else:
        how = "cancelled" if stop.cancelled else "stopped" if code == INTERRUPTED else "ended early"
        screen.note(f"run {run.id} {how} after {run.progress:.0%}; everything up to there is kept")
        screen.note(f"hint: continue it with `{location.command_line(resume_command(run))}`")
    return FinishedRun(run, code)


def resume_command(run: Run) -> str:
    """The command that continues a run; for one that its limit on cost ended, with twice that limit."""
    limit_usd = request_of(run).max_cost_usd
    if limit_usd is None or not (run.error_text or "").startswith(BUDGET):
        return f"runs resume {run.id}"
    return f"runs resume {run.id} --max-cost-usd {text(2 * max(limit_usd, run.cost_usd))}"


def _with_report(workspace: Workspace, run: Run) -> Run:
    try:
        write_report(workspace, run.id)
    except UserError as error:  # a failure to write the report does not fail the run
        screen.complain(error.message, error.hint)
    return workspace.runs.get(run.id)
