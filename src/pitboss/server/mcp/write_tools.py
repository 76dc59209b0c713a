"""The tools of pitboss's MCP server that write; offered only with `--write`.

They call the same functions as the commands. A run that is cancelled or fails keeps its records and can be resumed. A
model that costs money is used only with a spending limit set by the caller.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from pitboss.bootstrap import decider_source
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import BudgetExceeded, InvariantError, RunCancelled, ToolFailed, TransientError, UserError
from pitboss.report.figures import plural
from pitboss.runs import documents, record_text
from pitboss.runs.comparison_text import compared
from pitboss.runs.fork import ForkChange, fork
from pitboss.runs.indexed_runs import stored_index
from pitboss.runs.new_request import build_request
from pitboss.runs.report import write_report
from pitboss.runs.run import resume, start
from pitboss.runs.stored import request_of
from pitboss.runs.venues import period_ms
from pitboss.server.mcp.read_tools import output
from pitboss.server.mcp.workspace import ServerWorkspace, overrides_of
from pitboss.server.tool_server import BackgroundWork, ToolOutput, error_output
from pitboss.sim.course import ticks_between
from pitboss.sim.request import BacktestRequest
from pitboss.sim.watch import Watch
from pitboss.skill.load import summary
from pitboss.store.runs import Run
from pitboss.tools.history_text import moment

MONEY = ("max_cost_usd", "price_in", "price_out")


def save_skill(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """Save a document under its name; unchanged content keeps its version."""
    del task
    text = arguments["text"]
    check = documents.check(text, documents.suffix_of(text), server_workspace.settings)
    if check.skill is None:
        raise summary("text", check.errors)
    from pitboss.server.route_table import check_skill_name  # here: it loads the web server

    check_skill_name(check.skill.name)
    with server_workspace.workspace() as workspace:
        stored = documents.store(workspace, check.skill, text)
    values = {"name": stored.name, "version": stored.version, "digest": stored.digest}
    return ToolOutput(f"saved {stored.name}, version {stored.version}, digest {stored.digest}", values)


def run_backtest(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """Run a skill over a range of the past."""
    plain = server_workspace.skill(arguments, overrides_of(arguments))
    end = server_workspace.end_of_data(plain, arguments)
    from_at, to_at = moment(arguments, "from", end), moment(arguments, "to", end)
    if to_at <= from_at:
        raise ToolFailed("the range is empty: to is not after from")
    equity = {"equity_usd": _amount(arguments["equity_usd"])} if "equity_usd" in arguments else {}
    request_fields = {
        "from_at": from_at,
        "to_at": to_at,
        "model": arguments.get("model", ""),
        "data_venue": arguments.get("data_venue", ""),
        "seed": arguments.get("seed", 0),
        "max_gap": server_workspace.settings.max_gap,
        **equity,
        **_money(arguments),
    }
    built = build_request(plain, request_fields, server_workspace.settings)
    request = built.request
    _require_limit(request)
    with server_workspace.workspace() as workspace:
        result = _run(workspace, request, task, lambda watch, on_start: start(workspace, request, watch, on_start))
    return replace(result, text=f"warning: {built.warning}\n{result.text}") if built.warning else result


def fork_run(server_workspace: ServerWorkspace, arguments: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    """Copy a run up to a tick and continue from there with changes."""
    money = _money(arguments)
    change = ForkChange(arguments.get("model", ""), overrides_of(arguments), tuple(money.items()))
    with server_workspace.workspace() as workspace:
        source = workspace.runs.get(arguments["run"])
        request = change.apply(request_of(source))
        _require_limit(request)
        branch = asyncio.run(fork(workspace, source.id, arguments["at"], change))

        async def continue_branch(watch: Watch, on_start: Callable[[str], None]) -> Run:
            on_start(branch)
            return await resume(workspace, branch, watch)

        result = _run(workspace, request, task, continue_branch)
        if result.failed:
            return result
        difference = compared(workspace, source, workspace.runs.get(branch), partial(stored_index, workspace))
    text = f"{result.text}\n\nagainst {source.id}:\n{difference.text}"
    return ToolOutput(text, {**(result.values or {}), "difference": difference.values})


def _run(
    workspace: Workspace,
    request: BacktestRequest,
    task: BackgroundWork,
    work: Callable[[Watch, Callable[[str], None]], Awaitable[Run]],
) -> ToolOutput:
    ids: list[str] = []
    ticks = len(ticks_between(request.from_at, request.to_at, period_ms(request.skill)))

    def progress(share: float) -> None:
        task.progress(share, f"{share:.0%}, tick {round(share * ticks)} of {ticks}")

    task.progress(0.0, f"0%, {plural(ticks, 'tick')} to go")

    async def main() -> Run:
        return await work(Watch(progress, _stop(task, workspace, ids)), ids.append)

    try:
        run = asyncio.run(main())
    except RunCancelled:
        return _interrupted(workspace, ids, "was stopped")
    except (TransientError, InvariantError, BudgetExceeded, UserError) as error:
        if not ids:
            raise
        return _interrupted(workspace, ids, f"ended early: {error}")
    task.progress(1.0, f"done, {plural(ticks, 'tick')}")
    note = ""
    try:
        write_report(workspace, run.id)
    except UserError as error:  # the run is complete without its report
        note = f"\nnote: {error.message}"
    result = output(record_text.run(workspace, workspace.runs.get(run.id)))
    return ToolOutput(result.text + note, result.values)


def _stop(task: BackgroundWork, workspace: Workspace, ids: list[str]) -> Callable[[], bool]:
    """Whether to stop: the call was cancelled, or another process cancelled the run (checked at every 64th call)."""
    calls = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return task.stopped() or bool(calls % 64 == 0 and ids and workspace.runs.cancel_requested(ids[0]))

    return stop


def _interrupted(workspace: Workspace, ids: list[str], cause: str) -> ToolOutput:
    if not ids:
        return error_output("stopped before the run began")
    run = workspace.runs.get(ids[0])
    return error_output(
        f"run {run.id} {cause}, after {run.progress:.0%}; everything up to there is kept",
        f"`pitboss runs resume {run.id}` continues it",
        {"run_id": run.id, "status": run.status, "progress_pct": round(run.progress * 100, 2)},
    )


def _require_limit(request: BacktestRequest) -> None:
    if decider_source.may_cost(request) and not request.max_cost_usd:
        raise ToolFailed(
            f"{request.source[:100]} costs money: give max_cost_usd, or use a policy or a stand-in (policy/…, standin/…)"
        )


def _money(arguments: Mapping[str, Any]) -> dict[str, Any]:
    if ("price_in" in arguments) != ("price_out" in arguments):
        raise ToolFailed("price_in and price_out go together")
    return {name: _amount(arguments[name]) for name in MONEY if name in arguments}


def _amount(value: Any) -> Decimal:
    return Decimal(value)
