"""`pitboss jobs …`: show and control the queue, and put a backtest into it."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App

from pitboss.report.figures import plural
from pitboss.terminal import screen
from pitboss.terminal.options import Json, RunId, WholeNumber, option
from pitboss.terminal.workspace_options import Location, WorkspaceOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pitboss.bootstrap.workspace import Workspace
    from pitboss.sim.request import BacktestRequest
    from pitboss.store.runs import Run

app = App(name="jobs", help="List queued runs, wait for them, cancel them, queue them again.")
MAX_LISTED = 5
"""Largest number of runs listed in a suggested command; with more, the command waits for the whole queue."""
OPEN_STATUSES = ("queued", "loading", "running", "computing_metrics")


def enqueue_backtest(
    location: WorkspaceOptions, request: "BacktestRequest", repeats: int, priority: int, yes: bool, json: bool
) -> int:
    """Queue a backtest of any venue: show the estimate, confirm if needed, reserve the cost, start workers."""
    from pitboss.cli.consent import agreement, estimate_line
    from pitboss.jobs.submit import submit
    from pitboss.runs.daily_budget import refused_by_budget
    from pitboss.runs.new_request import repeated

    with location.workspace() as workspace, refused_by_budget():
        agree = agreement(workspace, yes, json)
        submission = submit(workspace, repeated(request, repeats), agree, priority=priority)
    ids, cost = submission.ids, submission.estimate
    if json:
        more = {"run_ids": ids} if repeats > 1 else {}
        screen.put_json({"run_id": ids[0], "estimate": cost.plain(), **more})
        return 0
    screen.put(f"queued: {', '.join(ids)}")
    screen.put(estimate_line(cost))
    for line in cost.basis:
        screen.put(f"  {line}")
    screen.put(f"next: {location.command_line(' '.join(['jobs wait', *(ids if len(ids) <= MAX_LISTED else [])]))}")
    return 0


@app.command(name="list")
def list_(*, json: Json = False, location: Location) -> int:
    """List queued and active runs.

    For example:

        pitboss jobs list
    """
    from pitboss.jobs.capacity import WorkerSlots, worker_limit
    from pitboss.jobs.worker_settings import open_queue

    with location.existing_workspace() as workspace:
        depth = open_queue(workspace).depth()
        slots, workers = WorkerSlots(workspace.home), 0
        if workspace.home.is_dir():
            with slots.lock():
                workers = len(slots.occupied(worker_limit(workspace.settings)))
        rows = [_row(run) for run in _open_runs(workspace)]
    if json:
        counts = {"ready": depth.ready, "later": depth.later, "working": depth.working, "local_workers": workers}
        screen.put_json({**counts, "runs": rows})
        return 0
    later = f", {depth.later} later" if depth.later else ""
    started = f"{workers} {'worker' if workers == 1 else 'workers'} started on this machine"
    screen.put(f"{depth.ready} ready{later}, {depth.working} active, {started}")
    cells = [
        (
            row["run_id"],
            row["status"],
            f"{row['progress_pct']:.0f} %",
            row["model"],
            row["owner"],
            str(row["priority"]),
            str(row["requeues"]),
            row["worker"] or "",
        )
        for row in rows
    ]
    if cells:
        headings = ("run", "status", "progress", "model", "owner", "priority", "requeues", "worker")
        screen.put_table(headings, cells, right=(2, 5, 6), folds=(3, 7), drop=(6, 5, 4, 7))
    else:
        screen.note("runs that have ended: pitboss runs list")
    return 0


@app.command
def show(run: RunId, /, *, json: Json = False, location: Location) -> int:
    """Show the state of a queued run: its worker, its cost limit and cost so far, and its result.

    For example:

        pitboss jobs show 3f9a
    """
    from pitboss.core.errors import UserError
    from pitboss.runs.stored import long_document

    with location.existing_workspace() as workspace:
        stored = workspace.runs.get(workspace.runs.find(run))
        if stored.build is None and stored.queued_at is None:
            raise UserError(
                f"run {stored.id} was never queued", f"`{location.command_line(f'runs show {stored.id}')}` shows it"
            )
        document = long_document(workspace, stored)
    queued_with = stored.params.get("queued") or {}
    extra = {"estimate": queued_with.get("estimate"), "max_cost_usd": stored.params.get("max_cost_usd")}
    document = {**document, **_row(stored), **extra}
    if json:
        screen.put_json(document)
        return 0
    for name, text in _detail_lines(document):
        screen.put(f"{name:<10}{text}")
    ended = document["finished_at"] is not None
    screen.put(f"{'next':<10}{location.command_line(f'runs show {stored.id}' if ended else f'jobs wait {stored.id}')}")
    return 0


@app.command
def cancel(*runs: RunId, json: Json = False, location: Location) -> int:
    """Cancel runs. A run without a worker is cancelled at once, an active run at its next tick.

    For example:

        pitboss jobs cancel 3f9a
    """
    from pitboss.runs.run import request_cancel

    _require_id("cancel", runs, location)
    with location.existing_workspace() as workspace:
        statuses = {run_id: request_cancel(workspace, run_id) for run_id in map(workspace.runs.find, runs)}
    if json:
        screen.put_json(statuses)
        return 0
    for run_id, status in statuses.items():
        screen.put(f"run {run_id} {'is cancelled' if status == 'cancelled' else f'is {status} and will stop'}")
    return 0


@app.command
def again(
    *runs: RunId,
    priority: Annotated[
        WholeNumber | None, option("--priority", "Runs with a higher priority go first. Default: unchanged.")
    ] = None,
    location: Location,
) -> int:
    """Queue failed or cancelled runs again; they continue where they stopped.

    For example:

        pitboss jobs again 3f9a
    """
    from pitboss.jobs.enqueue import enqueue_again, ensure_workers
    from pitboss.runs.daily_budget import refused_by_budget

    _require_id("again", runs, location)
    with location.existing_workspace() as workspace:
        for run_id in map(workspace.runs.find, runs):
            with refused_by_budget():
                enqueue_again(workspace, run_id, priority)
            screen.put(f"run {run_id} is queued")
        ensure_workers(workspace)
    return 0


def _require_id(command: str, ids: "Sequence[str]", location: WorkspaceOptions) -> None:
    from pitboss.core.errors import UserError

    if not ids:
        raise UserError(f"`jobs {command}` needs the id of a run", f"`{location.command_line('runs list')}` lists them")


@app.command
def wait(*runs: RunId, json: Json = False, location: Location) -> int:
    """Wait until the given runs end, or until the queue is empty. Starts workers and writes reports as needed.

    Exit code 1 if any run did not complete.

    For example:

        pitboss jobs wait
    """
    import asyncio

    from pitboss.jobs.run_report import wait_for_report
    from pitboss.jobs.wait import wait_until_ended

    async def all_ended(workspace: "Workspace", ids: list[str]) -> "list[Run]":
        return [await wait_for_report(workspace, run) for run in await wait_until_ended(workspace, ids)]

    with location.existing_workspace() as workspace:
        ids = [workspace.runs.find(run) for run in runs] or [run.id for run in _open_runs(workspace)]
        rows = [_row(run) for run in asyncio.run(all_ended(workspace, ids))]
    if json:
        screen.put_json(rows)
    else:
        for row in rows:
            error = f": {row['error_text']}" if row["error_text"] else ""
            report = f", report {row['report']}" if row["report"] else ""
            screen.put(f"run {row['run_id']} {row['status']}{error}{report}")
    return 0 if all(row["status"] == "complete" for row in rows) else 1


def _detail_lines(document: "Mapping[str, Any]") -> "Iterator[tuple[str, str]]":
    """The lines to print about a queued run, each with its label."""
    from pitboss.cli.consent import estimate_line
    from pitboss.jobs.estimate import Estimate
    from pitboss.runs.stored import one_line

    yield "run", f"{document['run_id']} ({document['status']}, {document['progress_pct']:.0f} %)"
    yield "skill", f"{one_line(document['skill'])} · {document['venue']} · {document['from']} to {document['to']}"
    yield "model", one_line(document["model"])
    yield "queue", f"priority {document['priority']}, by {document['owner']}, build {document['build'] or 'any'}"
    lost = f", requeued {plural(document['requeues'], 'time')}" if document["requeues"] else ""
    yield "worker", f"{document['worker'] or 'none yet'}{lost}"
    if document["estimate"] is not None:
        estimate = Estimate.from_plain(document["estimate"])
        scope = f" for {estimate.runs} runs together" if estimate.hi and estimate.runs > 1 else ""
        yield "estimate", f"{estimate_line(estimate)}{scope}"
        for line in estimate.basis:
            yield "", line
    limit = "" if document["max_cost_usd"] is None else f" of at most ${document['max_cost_usd']}"
    cost = "unknown" if document["cost_usd"] is None else f"${document['cost_usd']:.4f}{limit}"
    yield "cost", f"{cost}, saved by cached replies ${document['saved_usd']:.4f}"
    if document["report"]:
        yield "report", document["report"]
    if document["error_text"]:
        yield "error", one_line(document["error_text"], 2_000)


def _open_runs(workspace: "Workspace") -> "list[Run]":
    """Queued and active runs, highest priority first, then oldest."""
    runs = [
        run
        for status in OPEN_STATUSES
        for run in workspace.runs.listing(1_000, status).runs
        if run.queued_at is not None
    ]
    return sorted(runs, key=lambda run: (-run.priority, run.queued_at or 0, run.id))


def _row(run: "Run") -> dict[str, Any]:
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
