"""`pitboss runs …`: everything about runs that were made."""

import sys
from typing import Annotated, Any, Literal

from cyclopts import App

from pitboss.cli import screen
from pitboss.cli.options import Json, RunId, given
from pitboss.cli.place import Here
from pitboss.core.errors import UserError

app = App(name="runs", help="List, show, resume, verify, export, compare and delete runs.")

What = Literal["snapshots", "fills", "equity", "receipts", "decisions"]
Status = Literal["queued", "loading", "running", "computing_metrics", "complete", "error", "cancelled"]


@app.command(name="list")
def list_(
    *,
    limit: Annotated[int, given("--limit", "Most runs to list.")] = 100,
    status: Annotated[Status | None, given("--status", "Only runs with this status.")] = None,
    json: Json = False,
    place: Here,
) -> int:
    """List runs, newest first.

    For example:

        pitboss runs list --status complete
    """
    from pitboss.bootstrap.runner import long_document
    from pitboss.sim.report import figures

    if limit < 1:
        raise UserError(f"--limit: {limit} is below 1", "for example --limit 20")
    with place.workspace() as workspace:
        found = [_short(long_document(run), run.params) for run in workspace.runs.list(limit, status)]
    if json:
        screen.put_json(found)
        return 0
    if not found:
        screen.put("there are no runs here yet")
        return 0
    rows = [
        (
            one["run_id"],
            one["status"] if one["status"] == "complete" else f"{one['status']} {one['progress_pct']:.0f} %",
            one["skill"],
            one["model"],
            f"{one['from'][:10]} to {one['to'][:10]}",
            figures.percent(one["total_return_pct"], signed=True),
            one["created_at"][:16].replace("T", " "),
        )
        for one in found
    ]
    screen.put_table(
        ("run", "status", "skill", "model", "range", "return", "made"), rows, right=(5,), folds=(2, 3, 4, 6)
    )
    return 0


def _short(document: dict[str, Any], params: Any) -> dict[str, Any]:
    metrics = document.pop("metrics") or {}
    document.pop("baselines")
    return {**document, "skill": params["skill"].get("name", ""), "total_return_pct": metrics.get("total_return_pct")}


@app.command
def show(run: RunId, /, *, json: Json = False, place: Here) -> int:
    """Show one run: results, labels, digest, report.

    For example:

        pitboss runs show 3f9a --json
    """
    from pitboss.bootstrap.runner import long_document
    from pitboss.cli.results import show_run

    with place.workspace() as workspace:
        found = workspace.runs.get(run)
        if json:
            screen.put_json(long_document(found))
        else:
            show_run(workspace, place, found)
    return 0


@app.command
def cancel(run: RunId, /, *, json: Json = False, place: Here) -> int:
    """Ask a run to stop at its next tick. Everything done so far is kept, and it can be resumed.

    For example:

        pitboss runs cancel 3f9a
    """
    with place.workspace() as workspace:
        run_id = workspace.runs.find(run)
        status = workspace.runs.request_cancel(run_id)
    if json:
        screen.put_json({"run_id": run_id, "status": status, "cancel_requested": True})
    else:
        screen.put(f"run {run_id} is {status}" + ("" if status == "cancelled" else " and has been asked to stop"))
    return 0


@app.command
def resume(run: RunId, /, *, json: Json = False, place: Here) -> int:
    """Go on with a run that was stopped, cancelled or killed, from its last committed tick.

    For example:

        pitboss runs resume 3f9a
    """
    from pitboss.bootstrap.runner import document
    from pitboss.cli.results import show_run
    from pitboss.cli.running import go_on

    with place.workspace() as workspace:
        ended = go_on(workspace, place, workspace.runs.find(run))
        if json:
            screen.put_json(document(ended.run))
        elif not ended.code:
            show_run(workspace, place, ended.run)
        return ended.code


@app.command
def verify(run: RunId, /, *, json: Json = False, place: Here) -> int:
    """Check a stored run byte for byte: every row, the chain of digests, the metrics. Exit code 1 on any difference.

    For example:

        pitboss runs verify 3f9a
    """
    from pitboss.cli.verifying import verify_stored

    run_id, digest, problems = verify_stored(place, run)
    if json:
        screen.put_json({"ok": not problems, "run_id": run_id, "digest": digest, "problems": problems})
    elif problems:
        for problem in problems:
            screen.put(f"DIFFERENT: {problem}")
    else:
        screen.put(f"OK {digest or 'no digest yet: the run is not complete'}")
    return 1 if problems else 0


@app.command
def export(
    run: RunId,
    /,
    *,
    what: Annotated[What, given("--what", "What to print.")],
    place: Here,
) -> int:
    """Print what happened in a run as JSON lines. Amounts are exact decimals in strings, times ISO-8601 UTC.

    Exported decisions can be run again with `pitboss backtest --decisions`.

    For example:

        pitboss runs export 3f9a --what fills
        pitboss runs export 3f9a --what decisions > decisions.jsonl
    """
    from pitboss.bootstrap.exports import lines
    from pitboss.bootstrap.runner import journal_of

    with place.workspace() as workspace:
        found = workspace.runs.get(run)
        for line in lines(what, found.id, journal_of(workspace, found).records()):
            sys.stdout.write(line.decode() + "\n")
    return 0


@app.command
def diff(first: RunId, second: RunId, /, *, json: Json = False, place: Here) -> int:
    """Compare two runs: the first record in which they differ, and the metrics that do.

    For example:

        pitboss runs diff 3f9a 81c0
    """
    from pitboss.cli.comparing import compare

    with place.workspace() as workspace:
        found = compare(workspace, workspace.runs.get(first), workspace.runs.get(second))
    if json:
        screen.put_json(found)
        return 0
    if found["same"]:
        screen.put("the two runs are the same")
        return 0
    place_ = found["first_difference"]
    if place_ is None:
        screen.put("every record is the same")
    else:
        screen.put(f"first difference: record {place_['seq']} at {place_['tick_at']}, in {', '.join(place_['fields'])}")
    rows = [(name, str(one["first"]), str(one["second"])) for name, one in found["metrics"].items()]
    if rows:
        screen.put_table(("metric", found["first"], found["second"]), rows, folds=(1, 2))
    return 0


@app.command
def delete(
    run: RunId,
    /,
    *,
    force: Annotated[bool, given("--force", "Also if it is being worked on.")] = False,
    json: Json = False,
    place: Here,
) -> int:
    """Remove a run with all its records and its report.

    For example:

        pitboss runs delete 3f9a
    """
    with place.workspace() as workspace:
        run_id = workspace.runs.find(run)
        workspace.runs.delete(run_id, force=force)
        workspace.report_path(run_id).unlink(missing_ok=True)
    if json:
        screen.put_json({"run_id": run_id, "deleted": True})
    else:
        screen.put(f"run {run_id} is gone")
    return 0
