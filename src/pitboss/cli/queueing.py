"""`pitboss jobs …`: the queue as a person sees it."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App

from pitboss.cli import screen
from pitboss.cli.options import Json, RunId, given
from pitboss.cli.place import Here

if TYPE_CHECKING:
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.store.runs import Run

app = App(name="jobs", help="Look at queued runs, wait for them, stop them, queue them again.")
OPEN = ("queued", "loading", "running", "computing_metrics")


@app.command(name="list")
def list_(*, json: Json = False, place: Here) -> int:
    """List what is queued and what is being worked on.

    For example:

        pitboss jobs list
    """
    from pitboss.jobs.capacity import Places
    from pitboss.jobs.executors.local import most_workers
    from pitboss.jobs.terms import open_queue

    with place.workspace() as workspace:
        depth = open_queue(workspace).depth()
        places = Places(workspace.home)
        with places.alone():
            workers = len(places.taken(most_workers(workspace.settings)))
        found = [_plain(run) for run in _open_runs(workspace)]
    if json:
        counts = {"ready": depth.ready, "later": depth.later, "working": depth.working, "local_workers": workers}
        screen.put_json({**counts, "runs": found})
        return 0
    later = f", {depth.later} later" if depth.later else ""
    screen.put(
        f"{depth.ready} ready{later}, {depth.working} being worked on, {workers} workers started on this machine"
    )
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
    return 0


@app.command
def cancel(*runs: RunId, json: Json = False, place: Here) -> int:
    """Ask for runs to stop. One that nobody works on is cancelled at once, the others within a tick.

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
    """Queue runs that broke off or were cancelled once more; they go on where they stopped.

    For example:

        pitboss jobs again 3f9a
    """
    from pitboss.jobs.enqueue import ensure
    from pitboss.jobs.terms import open_queue

    with place.workspace() as workspace:
        queue = open_queue(workspace)
        for run_id in map(workspace.runs.find, runs):
            queue.again(run_id, priority=priority)
            screen.put(f"run {run_id} is queued")
        ensure(workspace)
    return 0


@app.command
def wait(*runs: RunId, json: Json = False, place: Here) -> int:
    """Wait for runs to end, or for everything that is queued, and see to it that there are workers.

    Ends with 1 if one of them did not complete.

    For example:

        pitboss jobs wait
    """
    import asyncio

    from pitboss.jobs.waiting import ended

    with place.workspace() as workspace:
        ids = [workspace.runs.find(run) for run in runs] or [run.id for run in _open_runs(workspace)]
        done = asyncio.run(ended(workspace, ids))
        found = [_plain(run) for run in done]
    if json:
        screen.put_json(found)
    else:
        for one in found:
            why = f": {one['error_text']}" if one["error_text"] else ""
            screen.put(f"run {one['run_id']} {one['status']}{why}")
    return 0 if all(one["status"] == "complete" for one in found) else 1


def _open_runs(workspace: "Workspace") -> "list[Run]":
    """Runs that wait for a worker or have one, oldest first."""
    found = [run for status in OPEN for run in workspace.runs.look(1_000, status).runs if run.queued_at is not None]
    return sorted(found, key=lambda run: (-run.priority, run.queued_at or 0, run.id))


def _plain(run: "Run") -> dict[str, Any]:
    return {
        "run_id": run.id,
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
        "error_text": run.error_text,
    }
