"""Execute a run from the command line: start or resume it, wait, and turn the outcome into an exit code."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import BudgetExceeded, InvariantError, RunCancelled, TransientError, UserError
from pitboss.runs.report import write_report
from pitboss.runs.run import resume, start
from pitboss.sim.request import BacktestRequest
from pitboss.sim.watch import Watch
from pitboss.store.runs import Run
from pitboss.terminal import screen
from pitboss.terminal.progress import StopRequest, watching
from pitboss.terminal.workspace_options import WorkspaceOptions


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run after its execution, and the exit code."""

    run: Run
    code: int


def begin(
    workspace: Workspace, place: WorkspaceOptions, request: BacktestRequest, label: str = "backtest"
) -> FinishedRun:
    """Run a backtest from its beginning."""

    async def work(watch: Watch, stop: StopRequest) -> Run:
        return await start(workspace, request, watch, stop.began)

    return _wait(workspace, place, label, work)


def go_on(
    workspace: Workspace, place: WorkspaceOptions, run_id: str, max_cost_usd: Decimal | None = None
) -> FinishedRun:
    """Resume a run, with another limit on its cost if one is given."""

    whole_id = workspace.runs.find(run_id)

    async def work(watch: Watch, stop: StopRequest) -> Run:
        stop.began(whole_id)
        return await resume(workspace, whole_id, watch, max_cost_usd)

    return _wait(workspace, place, "resuming", work)


def _wait(
    workspace: Workspace, place: WorkspaceOptions, label: str, work: Callable[[Watch, StopRequest], Awaitable[Run]]
) -> FinishedRun:
    with watching(label, workspace.runs.cancel_requested) as (watch, stop):
        try:
            run, code = asyncio.run(_main(work, watch, stop)), 0
        except (RunCancelled, KeyboardInterrupt):
            if not stop.run_id:
                raise  # stopped before the run was created
            run, code = workspace.runs.get(stop.run_id), 130
        except (TransientError, InvariantError, BudgetExceeded) as error:
            if not stop.run_id:
                raise
            run, code = workspace.runs.get(stop.run_id), 1
            screen.complain(str(error))
    if code == 0:
        run = _with_report(workspace, run)
    else:
        how = "cancelled" if stop.cancelled else "stopped" if code == 130 else "ended early"
        screen.note(f"run {run.id} {how} after {run.progress:.0%}; everything up to there is kept")
        screen.note(f"hint: go on with `{place.typed(f'runs resume {run.id}')}`")
    return FinishedRun(run, code)


async def _main(work: Callable[[Watch, StopRequest], Awaitable[Run]], watch: Watch, stop: StopRequest) -> Run:
    return await work(watch, stop)


def _with_report(workspace: Workspace, run: Run) -> Run:
    try:
        write_report(workspace, run.id)
    except UserError as error:  # a failure to write the report does not fail the run
        screen.complain(error.message, error.hint)
    return workspace.runs.get(run.id)
