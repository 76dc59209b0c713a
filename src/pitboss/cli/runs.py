"""`pitboss runs …`: list, show, resume, verify, export, fork and delete runs."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from pitboss.cli import runs_prune as pruning
from pitboss.cli.runs_list import list_
from pitboss.core.errors import UserError
from pitboss.terminal import screen
from pitboss.terminal.options import Amount, Json, Name, Override, RunId, option
from pitboss.terminal.workspace_options import Location

app = App(name="runs", help="List, show, resume, verify, fork, export, import, compare, delete and prune runs.")
app.command(list_, name="list")
pruning.register(app)

ExportKind = Literal["snapshots", "fills", "trades", "equity", "receipts", "decisions"]


@app.command
def show(run: RunId, /, *, json: Json = False, location: Location) -> int:
    """Show one run: results, labels, digest, report.

    For example:

        pitboss runs show 3f9a --json
    """
    from pitboss.cli.run_result import show_run
    from pitboss.runs.stored import long_document

    with location.existing_workspace() as workspace:
        stored = workspace.runs.get(run)
        if json:
            screen.put_json(long_document(workspace, stored))
        else:
            show_run(workspace, location, stored)
    return 0


@app.command
def cancel(run: RunId, /, *, json: Json = False, location: Location) -> int:
    """Stop a run at its next tick, or at once if no process executes it. It keeps what is done and can be resumed.

    For example:

        pitboss runs cancel 3f9a
    """
    from pitboss.runs.run import request_cancel

    with location.existing_workspace() as workspace:
        run_id = workspace.runs.find(run)
        status = request_cancel(workspace, run_id)
    if json:
        screen.put_json({"run_id": run_id, "status": status, "cancel_requested": True})
    else:
        screen.put(f"run {run_id} is {status}" + ("" if status == "cancelled" else " and will stop at its next tick"))
    return 0


@app.command
def resume(
    run: RunId,
    /,
    *,
    max_cost_usd: Annotated[
        Amount | None, option("--max-cost-usd", "New limit: stop when the model has cost this much over the whole run.")
    ] = None,
    take_over: Annotated[
        bool,
        option("--take-over", "Continue the run here even if another process is executing it; that process stops."),
    ] = False,
    json: Json = False,
    location: Location,
) -> int:
    """Continue a run that was stopped, cancelled or killed, from its last committed tick.

    For example:

        pitboss runs resume 3f9a
        pitboss runs resume 3f9a --max-cost-usd 5
    """
    from pitboss.cli.run_result import show_run
    from pitboss.cli.run_work import resume_run
    from pitboss.runs.stored import document

    with location.existing_workspace() as workspace:
        finished = resume_run(workspace, location, workspace.runs.find(run), max_cost_usd, take_over)
        if json:
            screen.put_json(document(workspace, finished.run))
        elif finished.is_complete:
            show_run(workspace, location, finished.run)
        return finished.code


@app.command
def verify(
    run: Annotated[
        str, Parameter(help="Id of a run, its first characters, `last`, or a file that `runs export --bundle` wrote.")
    ],
    /,
    *,
    json: Json = False,
    location: Location,
) -> int:
    """Check a run byte for byte: every row, the chain of digests, the metrics. Exit code 1 on any difference.

    A bundle is checked without a workspace or a network; what cannot be proven from it alone is listed.

    For example:

        pitboss runs verify 3f9a
        pitboss runs verify run.pitboss.zip
    """
    from pitboss.cli.runs_verify import verify_here

    if "." in run or os.sep in run:  # ids contain neither
        from pitboss.cli.runs_bundle import verify_file

        return verify_file(Path(run), json)
    verified = verify_here(location, run)
    run_id, digest, problems = verified.run_id, verified.digest, verified.problems
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
    what: Annotated[ExportKind | None, option("--what", "Contents to print or write.")] = None,
    format_: Annotated[
        Literal["jsonl", "csv", "parquet"] | None,
        option("--format", "Form of the contents. Default: that of the file's name, else JSON lines."),
    ] = None,
    out: Annotated[Path | None, option("--out", "File to write the contents to, instead of printing them.")] = None,
    bundle: Annotated[
        Path | None, option("--bundle", "Write the complete run with the replies of its model to this file instead.")
    ] = None,
    location: Location,
) -> int:
    """Print the contents of a run, or write them to a file. Amounts are exact decimals in strings, times ISO-8601 UTC.

    Trades are round trips, from flat to flat; those that are open at the end have no exit. Exported decisions can be run again with `pitboss backtest --decisions`. A bundle holds the whole run: it can be
    checked with `pitboss runs verify FILE` and imported with `pitboss runs import FILE`.

    For example:

        pitboss runs export 3f9a --what fills
        pitboss runs export last --what trades --out trades.csv
        pitboss runs export 3f9a --what equity --format parquet --out equity.parquet
        pitboss runs export 3f9a --what decisions > decisions.jsonl
        pitboss runs export 3f9a --bundle run.pitboss.zip
    """
    from pitboss.runs.export import export_rows
    from pitboss.runs.export_file import format_of, write_file, write_text
    from pitboss.runs.stored import journal_of

    if (what is None) == (bundle is None):
        raise UserError("give either --what or --bundle", "for example --what fills, or --bundle run.pitboss.zip")
    if bundle is not None and (out is not None or format_ is not None):
        raise UserError("a bundle has its own form", "leave --format and --out out")
    with location.existing_workspace() as workspace:
        if bundle is not None:
            from pitboss.cli.runs_bundle import export_file

            return export_file(workspace, run, bundle)
        stored = workspace.runs.get(run)
        rows = export_rows(what or "", stored, journal_of(workspace, stored).records())
        if out is None:
            write_text(rows, format_of(None, format_), sys.stdout)
        else:
            count = write_file(rows, format_of(out, format_), out)
            screen.note(f"wrote {count:,} {'row' if count == 1 else 'rows'} to {out}")
    return 0


@app.command(name="import")
def import_(
    file: Path,
    /,
    *,
    answers: Annotated[
        bool,
        option("--answers", "Also add its model replies to the cache that your runs use. Only for bundles you trust."),
    ] = False,
    json: Json = False,
    location: Location,
) -> int:
    """Import a run from a file that `runs export --bundle` wrote. It is checked first; nothing is overwritten.

    For example:

        pitboss runs import run.pitboss.zip

    Parameters
    ----------
    file
        A bundle.
    """
    from pitboss.cli.runs_bundle import import_file

    return import_file(location, file, answers, json)


@app.command
def fork(
    run: RunId,
    /,
    *,
    at: Annotated[str, option("--at", "First tick to decide again: a time (UTC), or the number of its record.")],
    set_: Override = (),
    model: Annotated[Name, option("--model", "Model to use from that tick on.")] = "",
    max_cost_usd: Annotated[Amount | None, option("--max-cost-usd", "Stop when the model has cost this much.")] = None,
    price_in: Annotated[Amount | None, option("--price-in", "Price of a million input tokens, in USD.")] = None,
    price_out: Annotated[Amount | None, option("--price-out", "Price of a million output tokens, in USD.")] = None,
    yes: Annotated[
        bool,
        option("--yes", "Accept a model without a known price, and a cost above confirm_above_usd ($5 unless set)."),
    ] = False,
    json: Json = False,
    location: Location,
) -> int:
    """Copy a run up to a tick and decide again from there, with another model, strategy or caps.

    Prints a comparison of both runs, which `pitboss runs diff` repeats later. The shared part costs nothing.

    For example:

        pitboss runs fork 3f9a --at 2025-02-20T12:00:00Z --set risk.max_leverage=2
        pitboss runs fork 3f9a --at 2025-02-20 --model policy/sma_cross
    """
    from pitboss.cli.runs_fork import fork_run

    if (price_in is None) != (price_out is None):
        raise UserError("--price-in and --price-out go together", "for example --price-in 0.5 --price-out 1.5")
    money = {"max_cost_usd": max_cost_usd, "price_in": price_in, "price_out": price_out, "any_price": yes or None}
    changes = tuple((name, value) for name, value in money.items() if value is not None)
    return fork_run(location, run, at, model, set_, changes, yes, json)


@app.command
def compare(
    *runs: Annotated[str, Parameter(help="Ids of two to eight runs, or their first characters.")],
    out: Annotated[
        Path | None, option("--out", "File of the page. Default: reports/compare-….html in the workspace.")
    ] = None,
    json: Json = False,
    location: Location,
) -> int:
    """Compare runs: what differs in their inputs, metrics, results and first decisions. Writes a page with their equity.

    Differences are from the first run. `pitboss runs diff` compares two runs byte by byte.

    For example:

        pitboss runs compare 3f9a 81c0
        pitboss runs compare 3f9a 81c0 77d2 --out leverage.html
    """
    from pitboss.cli.runs_compare import show_comparison
    from pitboss.runs.comparison import comparison
    from pitboss.runs.comparison_page import write_comparison
    from pitboss.runs.indexed_runs import IndexedRuns

    with location.existing_workspace() as workspace:
        stored, indexed = [workspace.runs.get(run) for run in runs], IndexedRuns()
        document = comparison(workspace, stored, lambda run: indexed.index(workspace, run))
        document["report"] = str(write_comparison(workspace, stored, document, indexed, out))
    if json:
        screen.put_json(document)
    else:
        show_comparison(document)
    return 0


@app.command
def diff(first: RunId, second: RunId, /, *, json: Json = False, location: Location) -> int:
    """Compare two runs byte by byte: the first record that differs, and every figure that differs, unrounded.

    `pitboss runs compare` shows what the difference means.

    For example:

        pitboss runs diff 3f9a 81c0
    """
    from pitboss.cli.runs_diff import show_difference
    from pitboss.runs.compare import compare

    with location.existing_workspace() as workspace:
        difference = compare(workspace, workspace.runs.get(first), workspace.runs.get(second))
    if json:
        screen.put_json(difference)
    else:
        show_difference(difference)
    return 0


@app.command
def delete(
    run: RunId,
    /,
    *,
    force: Annotated[bool, option("--force", "Delete the run even if it is active.")] = False,
    yes: Annotated[bool, option("--yes", "Delete without asking; needed where there is no terminal.")] = False,
    json: Json = False,
    location: Location,
) -> int:
    """Delete a run with all its records and its report. Asks first.

    For example:

        pitboss runs delete 3f9a
        pitboss runs delete 3f9a --yes
    """
    from pitboss.cli.consent import asker

    with location.existing_workspace() as workspace:
        run_id = workspace.runs.find(run)
        if not yes:
            ask = asker(json)
            if ask is None:
                raise UserError(
                    f"run {run_id} would be deleted for good, with all its records", "add --yes to delete it"
                )
            screen.note(f"run {run_id} will be deleted for good, with all its records")
            if not ask():
                raise UserError("nothing is deleted", "answer y to delete the run")
        workspace.runs.delete(run_id, force=force)
        workspace.remove_files(run_id)
    if json:
        screen.put_json({"run_id": run_id, "deleted": True})
    else:
        screen.put(f"run {run_id} is deleted")
    return 0
