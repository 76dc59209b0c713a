"""The tools of pitboss's server that change something; offered only with `--write`.

They do what the commands do, through the same functions. A run that is cancelled, or that breaks, keeps all it has done
and can be resumed. Models that cost money are asked only within a limit that the caller has set.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any

from pitboss.bootstrap import documents, gateway
from pitboss.bootstrap.backtest import Request
from pitboss.bootstrap.comparing import compare
from pitboss.bootstrap.fork import Change, fork
from pitboss.bootstrap.reporting import write_report
from pitboss.bootstrap.runner import resume, start
from pitboss.bootstrap.stored import request_of
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import BudgetExceeded, InvariantError, RunCancelled, ToolFailed, TransientError, UserError
from pitboss.core.instant import interval_ms
from pitboss.servers.pitboss_desk import Desk, overrides_of, suffix_of
from pitboss.servers.pitboss_looking import tell_difference, tell_run
from pitboss.servers.serving import Answer, Side, complaint
from pitboss.sim.course import ticks_between
from pitboss.sim.watch import Watch
from pitboss.skill.load import summary
from pitboss.store.runs import Run
from pitboss.tools.telling import moment

MONEY = ("max_cost_usd", "price_in", "price_out")


def save_skill(desk: Desk, given: Mapping[str, Any], side: Side) -> Answer:
    """Keep a document under its name; the same content again stays the same version."""
    del side
    text = given["text"]
    found = documents.check(text, suffix_of(text), desk.settings)
    if found.skill is None:
        raise summary("text", found.errors)
    with desk.workspace() as workspace:
        stored = documents.store(workspace, found.skill)
    values = {"name": stored.name, "version": stored.version, "digest": stored.digest}
    return Answer(f"saved {stored.name}, version {stored.version}, digest {stored.digest}", values)


def run_backtest(desk: Desk, given: Mapping[str, Any], side: Side) -> Answer:
    """Run a skill over a stretch of the past."""
    from_at, to_at = moment(given, "from"), moment(given, "to")
    if to_at <= from_at:
        raise ToolFailed("the range is empty: to is not after from")
    request = Request(
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


def fork_run(desk: Desk, given: Mapping[str, Any], side: Side) -> Answer:
    """Take over the past of a run up to a tick, and decide anew from there."""
    money = _money(given)
    change = Change(given.get("model", ""), overrides_of(given), tuple(money.items()))
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
    return Answer(text, {**(told.values or {}), "forked_from": source.id, "difference": difference.values})


def _run(
    desk: Desk,
    workspace: Workspace,
    request: Request,
    side: Side,
    work: Callable[[Watch, Callable[[str], None]], Awaitable[Run]],
) -> Answer:
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
    return Answer(told.text + note, told.values)


def _stop(side: Side, workspace: Workspace, ids: list[str]) -> Callable[[], bool]:
    """Whether to stop: because the call was cancelled, or because somebody cancelled the run elsewhere."""
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return side.stopped() or bool(asked % 64 == 0 and ids and workspace.runs.cancel_requested(ids[0]))

    return stop


def _kept(workspace: Workspace, ids: list[str], words: str) -> Answer:
    if not ids:
        return complaint("stopped before the run began")
    run = workspace.runs.get(ids[0])
    return complaint(
        f"run {run.id} {words}, after {run.progress:.0%}; everything up to there is kept",
        f"`pitboss runs resume {run.id}` goes on with it",
        {"run_id": run.id, "status": run.status, "progress_pct": round(run.progress * 100, 2)},
    )


def _require_limit(request: Request) -> None:
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
