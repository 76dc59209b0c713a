"""The tools of pitboss's server that change something; offered only with `--write`.

They do what the commands do, through the same functions. A run that is cancelled, or that breaks, keeps all it has done
and can be resumed. Models that cost money are asked only within a limit that the caller has set.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any

from pitboss.bootstrap import decider_source as gateway
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import BudgetExceeded, InvariantError, RunCancelled, ToolFailed, TransientError, UserError
from pitboss.core.instant import interval_ms
from pitboss.runs import documents
from pitboss.runs.compare import compare
from pitboss.runs.fork import ForkChange, fork
from pitboss.runs.run import resume, start
from pitboss.runs.stored import request_of
from pitboss.server.mcp.read_tools import tell_difference, tell_run
from pitboss.server.mcp.workspace import ServerWorkspace, overrides_of, suffix_of
from pitboss.server.tool_server import BackgroundWork, ToolOutput, complaint
from pitboss.sim.course import ticks_between
from pitboss.sim.watch import Watch
from pitboss.skill.load import summary
from pitboss.store.runs import Run
from pitboss.tools.history_text import moment
from pitboss.venues.perp.assembly import PerpRequest
from pitboss.venues.perp.report_source import write_report

MONEY = ("max_cost_usd", "price_in", "price_out")


def save_skill(desk: ServerWorkspace, given: Mapping[str, Any], side: BackgroundWork) -> ToolOutput:
    """Keep a document under its name; the same content again stays the same version."""
    del side
    text = given["text"]
    found = documents.check(text, suffix_of(text), desk.settings)
    if found.skill is None:
        raise summary("text", found.errors)
    with desk.workspace() as workspace:
        stored = documents.store(workspace, found.skill)
    values = {"name": stored.name, "version": stored.version, "digest": stored.digest}
    return ToolOutput(f"saved {stored.name}, version {stored.version}, digest {stored.digest}", values)


def run_backtest(desk: ServerWorkspace, given: Mapping[str, Any], side: BackgroundWork) -> ToolOutput:
    """Run a skill over a stretch of the past."""
    from_at, to_at = moment(given, "from"), moment(given, "to")
    if to_at <= from_at:
        raise ToolFailed("the range is empty: to is not after from")
    request = PerpRequest(
        skill=desk.skill(given, overrides_of(given)),
        from_at=from_at,
        to_at=to_at,
        model=given.get("model", ""),
        data_venue=given.get("data_venue", ""),
        equity_usd=_amount(given.get("equity_usd", 10_000)),
        seed=given.get("seed", 0),
        max_gap=desk.settings.max_gap,
        **_money(given),
    )
    _require_limit(request)
    with desk.workspace() as workspace:
        return _run(desk, workspace, request, side, lambda watch, began: start(workspace, request, watch, began))


def fork_run(desk: ServerWorkspace, given: Mapping[str, Any], side: BackgroundWork) -> ToolOutput:
    """Take over the past of a run up to a tick, and decide anew from there."""
    money = _money(given)
    change = ForkChange(given.get("model", ""), overrides_of(given), tuple(money.items()))
    with desk.workspace() as workspace:
        source = workspace.runs.get(given["run"])
        request = change.apply(request_of(source))
        _require_limit(request)
        branch = asyncio.run(fork(workspace, source.id, given["at"], change))

        async def go_on(watch: Watch, began: Callable[[str], None]) -> Run:
            began(branch)
            return await resume(workspace, branch, watch)

        told = _run(desk, workspace, request, side, go_on)
        if told.failed:
            return told
        difference = tell_difference(compare(workspace, source, workspace.runs.get(branch)))
    text = f"{told.text}\n\nagainst {source.id}:\n{difference.text}"
    return ToolOutput(text, {**(told.values or {}), "forked_from": source.id, "difference": difference.values})


def _run(
    desk: ServerWorkspace,
    workspace: Workspace,
    request: PerpRequest,
    side: BackgroundWork,
    work: Callable[[Watch, Callable[[str], None]], Awaitable[Run]],
) -> ToolOutput:
    ids: list[str] = []
    ticks = len(ticks_between(request.from_at, request.to_at, interval_ms(request.skill["schedule"]["every"])))

    def progress(done: float) -> None:
        side.progress(done, f"{done:.0%}, tick {round(done * ticks)} of {ticks}")

    side.progress(0.0, f"0%, {ticks} ticks to go")

    async def main() -> Run:
        return await work(Watch(progress, _stop(side, workspace, ids)), ids.append)

    try:
        run = asyncio.run(main())
    except RunCancelled:
        return _kept(workspace, ids, "was stopped")
    except (TransientError, InvariantError, BudgetExceeded, UserError) as error:
        if not ids:
            raise
        return _kept(workspace, ids, f"ended early: {error}")
    side.progress(1.0, f"done, {ticks} ticks")
    note = ""
    try:
        write_report(workspace, run.id)
    except UserError as error:  # a report that cannot be written does not undo the run
        note = f"\nnote: {error.message}"
    told = tell_run(desk, workspace, workspace.runs.get(run.id))
    return ToolOutput(told.text + note, told.values)


def _stop(side: BackgroundWork, workspace: Workspace, ids: list[str]) -> Callable[[], bool]:
    """Whether to stop: because the call was cancelled, or because somebody cancelled the run elsewhere."""
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return side.stopped() or bool(asked % 64 == 0 and ids and workspace.runs.cancel_requested(ids[0]))

    return stop


def _kept(workspace: Workspace, ids: list[str], words: str) -> ToolOutput:
    if not ids:
        return complaint("stopped before the run began")
    run = workspace.runs.get(ids[0])
    return complaint(
        f"run {run.id} {words}, after {run.progress:.0%}; everything up to there is kept",
        f"`pitboss runs resume {run.id}` goes on with it",
        {"run_id": run.id, "status": run.status, "progress_pct": round(run.progress * 100, 2)},
    )


def _require_limit(request: PerpRequest) -> None:
    if gateway.may_cost(request) and not request.max_cost_usd:
        raise ToolFailed(
            f"{request.source[:100]} costs money: give max_cost_usd, or use a policy or a stand-in (policy/…, standin/…)"
        )


def _money(given: Mapping[str, Any]) -> dict[str, Any]:
    if ("price_in" in given) != ("price_out" in given):
        raise ToolFailed("price_in and price_out go together")
    return {name: _amount(given[name]) for name in MONEY if name in given}


def _amount(value: Any) -> Decimal:
    return Decimal(value)
