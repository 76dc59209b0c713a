"""`pitboss jobs …`: show and control the queue, and put a backtest into it."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App

from pitboss.terminal import screen
from pitboss.terminal.options import Json, RunId, given
from pitboss.terminal.workspace_options import Here, WorkspaceOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pitboss.bootstrap.workspace import Workspace
    from pitboss.sim.request import BacktestRequest
    from pitboss.store.runs import Run

app = App(name="jobs", help="Look at queued runs, wait for them, stop them, queue them again.")
MOST_NAMED = 5
"""Most runs listed in a suggested command; with more, the command waits for the whole queue."""
OPEN = ("queued", "loading", "running", "computing_metrics")


def put(place: WorkspaceOptions, request: "BacktestRequest", repeats: int, priority: int, yes: bool, json: bool) -> int:
    """Queue a backtest of any venue: show the estimate, confirm if needed, reserve the cost, start workers."""
    from pitboss.bootstrap.decider_source import may_cost
    from pitboss.cli.study_result import estimate_line
    from pitboss.cli.study_run import asker
    from pitboss.core.errors import BudgetExceeded, UserError
    from pitboss.jobs.enqueue import enqueue
    from pitboss.jobs.estimate import estimate, require_consent, worst_case

    requests = [replace(request, seed=request.seed + number, repeat=number) for number in range(repeats)]
    with place.workspace() as workspace:
        found = estimate(workspace, requests)
        require_consent(found, yes, asker(json))
        limit, reserve = workspace.settings.daily_usd or None, None
        if limit is not None:
            reserve = worst_case(found, request) if request.max_cost_usd is None else request.max_cost_usd
            if may_cost(request) and reserve:
                requests = [replace(one, max_cost_usd=reserve) for one in requests]
        told = {"estimate": found.plain(), "report": True}
        try:
            ids = enqueue(
                workspace,
                requests,
                priority=priority,
                reserve_usd=reserve,
                daily_usd=limit,
                extra_params={"queued": told},
            )
        except BudgetExceeded as error:
            raise UserError(str(error), "raise the setting daily_usd (0: no limit), or give --max-cost-usd") from None
    if json:
        more = {"run_ids": ids} if repeats > 1 else {}
        screen.put_json({"run_id": ids[0], "estimate": found.plain(), **more})
        return 0
    screen.put(f"queued: {', '.join(ids)}")
    screen.put(estimate_line(found))
    for words in found.basis:
        screen.put(f"  {words}")
    screen.put(f"next: {place.typed(' '.join(['jobs wait', *(ids if len(ids) <= MOST_NAMED else [])]))}")
    return 0


@app.command(name="list")
def list_(*, json: Json = False, place: Here) -> int:
    """List queued and active runs.

    For example:

        pitboss jobs list
    """
    from pitboss.jobs.capacity import WorkerSlots, worker_limit
    from pitboss.jobs.worker_settings import open_queue

    with place.workspace() as workspace:
        depth = open_queue(workspace).depth()
        slots = WorkerSlots(workspace.home)
        with slots.lock():
            workers = len(slots.occupied(worker_limit(workspace.settings)))
        found = [_plain(run) for run in _open_runs(workspace)]
    if json:
        counts = {"ready": depth.ready, "later": depth.later, "working": depth.working, "local_workers": workers}
        screen.put_json({**counts, "runs": found})
        return 0
    later = f", {depth.later} later" if depth.later else ""
    started = f"{workers} {'worker' if workers == 1 else 'workers'} started on this machine"
    screen.put(f"{depth.ready} ready{later}, {depth.working} being worked on, {started}")
    rows = [
        (
            one["run_id"],
            one["status"],
            f"{one['progress_pct']:.0f} %",
            one["model"],
            one["owner"],
            str(one["priority"]),
            str(one["requeues"]),
            one["worker"] or "",
        )
        for one in found
    ]
    if rows:
        headings = ("run", "status", "done", "model", "owner", "priority", "lost", "worker")
        screen.put_table(headings, rows, right=(2, 5, 6), folds=(3, 7))
    else:
        screen.note("runs that have ended: pitboss runs list")
    return 0


@app.command
def show(run: RunId, /, *, json: Json = False, place: Here) -> int:
    """Show the state of a queued run: its worker, its cost limit and cost so far, and its result.

    For example:

        pitboss jobs show 3f9a
    """
    from pitboss.core.errors import UserError
    from pitboss.runs.stored import long_document

    with place.workspace() as workspace:
        found = workspace.runs.get(workspace.runs.find(run))
        if found.build is None and found.queued_at is None:
            raise UserError(f"run {found.id} was never queued", f"`{place.typed(f'runs show {found.id}')}` shows it")
        document = long_document(found, workspace.settings.model_cutoffs)
    told = found.params.get("queued") or {}
    more = {"estimate": told.get("estimate"), "max_cost_usd": found.params.get("max_cost_usd")}
    document = {**document, **_plain(found), **more}
    if json:
        screen.put_json(document)
        return 0
    for name, words in _lines(document):
        screen.put(f"{name:<10}{words}")
    ended = document["finished_at"] is not None
    screen.put(f"{'next':<10}{place.typed(f'runs show {found.id}' if ended else f'jobs wait {found.id}')}")
    return 0


@app.command
def cancel(*runs: RunId, json: Json = False, place: Here) -> int:
    """Cancel runs. A run without a worker is cancelled at once, the others within a tick.

    For example:

        pitboss jobs cancel 3f9a
    """
    with place.workspace() as workspace:
        told = {run_id: workspace.runs.request_cancel(run_id) for run_id in map(workspace.runs.find, runs)}
    if json:
        screen.put_json(told)
        return 0
    for run_id, status in told.items():
        screen.put(f"run {run_id} {'is cancelled' if status == 'cancelled' else f'is {status} and will stop'}")
    return 0


@app.command
def again(
    *runs: RunId,
    priority: Annotated[int | None, given("--priority", "Higher goes first. Default: what it was.")] = None,
    place: Here,
) -> int:
    """Queue runs again that failed or were cancelled; they continue where they stopped.

    For example:

        pitboss jobs again 3f9a
    """
    from pitboss.jobs.enqueue import ensure_workers
    from pitboss.jobs.worker_settings import open_queue

    with place.workspace() as workspace:
        queue = open_queue(workspace)
        for run_id in map(workspace.runs.find, runs):
            queue.enqueue_again(run_id, priority=priority)
            screen.put(f"run {run_id} is queued")
        ensure_workers(workspace)
    return 0


@app.command
def wait(*runs: RunId, json: Json = False, place: Here) -> int:
    """Wait until runs end, or until the queue is empty; starts workers and writes reports as needed.

    Exit code 1 if one of them did not complete.

    For example:

        pitboss jobs wait
    """
    import asyncio

    from pitboss.jobs.run_report import wait_for_report
    from pitboss.jobs.wait import wait_until_ended

    async def all_ended(workspace: "Workspace", ids: list[str]) -> "list[Run]":
        return [await wait_for_report(workspace, run) for run in await wait_until_ended(workspace, ids)]

    with place.workspace() as workspace:
        ids = [workspace.runs.find(run) for run in runs] or [run.id for run in _open_runs(workspace)]
        found = [_plain(run) for run in asyncio.run(all_ended(workspace, ids))]
    if json:
        screen.put_json(found)
    else:
        for one in found:
            why = f": {one['error_text']}" if one["error_text"] else ""
            page = f", report {one['report']}" if one["report"] else ""
            screen.put(f"run {one['run_id']} {one['status']}{why}{page}")
    return 0 if all(one["status"] == "complete" for one in found) else 1


def _lines(document: "Mapping[str, Any]") -> "Iterator[tuple[str, str]]":
    """The lines to print about a queued run, each with its label."""
    from pitboss.cli.study_result import estimate_line
    from pitboss.jobs.estimate import Estimate
    from pitboss.runs.stored import one_line

    yield "run", f"{document['run_id']} ({document['status']}, {document['progress_pct']:.0f} %)"
    yield "skill", f"{one_line(document['skill'])} · {document['venue']} · {document['from']} to {document['to']}"
    yield "model", one_line(document["model"])
    yield "queue", f"priority {document['priority']}, by {document['owner']}, build {document['build'] or 'any'}"
    lost = f", lost {document['requeues']} times before" if document["requeues"] else ""
    yield "worker", f"{document['worker'] or 'none yet'}{lost}"
    if document["estimate"] is not None:
        found = Estimate.from_plain(document["estimate"])
        of = f" for {found.runs} runs together" if found.hi and found.runs > 1 else ""
        yield "estimate", f"{estimate_line(found)}{of}"
        for words in found.basis:
            yield "", words
    limit = "" if document["max_cost_usd"] is None else f" of at most ${document['max_cost_usd']}"
    cost = "unknown" if document["cost_usd"] is None else f"${document['cost_usd']:.4f}{limit}"
    yield "cost", f"{cost}, spared by known answers ${document['saved_usd']:.4f}"
    if document["report"]:
        yield "report", document["report"]
    if document["error_text"]:
        yield "error", one_line(document["error_text"], 2_000)


def _open_runs(workspace: "Workspace") -> "list[Run]":
    """Queued and active runs, oldest first."""
    found = [run for status in OPEN for run in workspace.runs.listing(1_000, status).runs if run.queued_at is not None]
    return sorted(found, key=lambda run: (-run.priority, run.queued_at or 0, run.id))


def _plain(run: "Run") -> dict[str, Any]:
    from pitboss.report.source import mapping

    return {
        "run_id": run.id,
        "skill": mapping(run.params.get("skill")).get("name", ""),
        "venue": mapping(run.params.get("skill")).get("venue", "perp"),
        "status": run.status,
        "progress_pct": round(run.progress * 100, 2),
        "model": run.model,
        "owner": run.owner,
        "priority": run.priority,
        "study_id": run.study_id,
        "requeues": run.requeues,
        "worker": run.worker,
        "build": run.build,
        "digest": run.digest,
        "report": run.report,
        "error_text": run.error_text,
    }
