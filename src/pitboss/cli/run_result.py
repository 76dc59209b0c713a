"""Print the result of a finished run: a table, one explained refusal, and suggested next commands."""

from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import iso
from pitboss.report import figures
from pitboss.report.fork_text import fork_sentence, program_names
from pitboss.report.meaning import METRICS
from pitboss.report.quality import quality_warnings
from pitboss.report.source import mapping, number
from pitboss.runs.lineage import is_by_programs
from pitboss.runs.result_table import ResultTable, counts, metrics_table
from pitboss.runs.stored import (
    decision_rows,
    document,
    endpoint_text,
    is_synthetic,
    journal_of,
    one_line,
    request_of,
    speculation_of,
    spend_of,
)
from pitboss.runs.venues import venue_of
from pitboss.store.database import journal_note
from pitboss.store.runs import Run
from pitboss.terminal import screen
from pitboss.terminal.workspace_options import WorkspaceOptions

Plain = Mapping[str, Any]
MAX_ERROR = 2_000


def show_run(workspace: Workspace, location: WorkspaceOptions, run: Run) -> None:
    """Print the result of a run, complete or not."""
    request = request_of(run)
    screen.put(
        f"{request.skill.get('name', '')} · {_decider(run)} · {iso(request.from_at)} to {iso(request.to_at)}",
        "bold",
    )
    for label in labels(workspace, run):
        screen.put(label, "yellow")
    screen.put(cutoff_line(workspace, run))
    for warning in quality_warnings(run.metrics):
        screen.put(f"WARNING: {one_line(warning, MAX_ERROR)}", "yellow")
    metrics = mapping(run.metrics)
    if metrics:
        venue = venue_of(run.params["skill"])
        _show_tables(venue.result_tables(run) or [metrics_table(run, venue.metrics())])
        _show_warnings(metrics, venue.has_account)
        for note in run.params.get("universe", ()):
            screen.put(f"note: {one_line(str(note), MAX_ERROR)}")
        show_refusal(workspace, run)
    else:
        screen.put(f"{run.status} after {run.progress:.0%}; a run has results when it is complete")
    if run.error_text:
        screen.put(f"error: {one_line(run.error_text, MAX_ERROR)}", "red")
    uncertain_usd = spend_of(workspace, run)["uncertain_usd"]
    if uncertain_usd:
        screen.put(
            f"note: up to {figures.usd(uncertain_usd)} more may have been charged, for calls that were cut off before their reply"
        )
    ahead = speculation_of(workspace, run)
    if ahead is not None:
        unused = ahead["asked"] - ahead["used"]
        screen.put(
            f"note: {figures.plural(ahead['asked'], 'decision')} asked for ahead of time: {ahead['used']} used, {unused} unused"
        )
    screen.put()
    screen.put(f"run     {run.id} ({run.status}, {run.wall_s:.1f} s)")
    if run.digest:
        screen.put(f"digest  {run.digest}")
    if run.report:
        screen.put(f"report  {run.report}")
    _show_next(location, run)


def _decider(run: Run) -> str:
    """The model of a run and the server that answered, if there was one."""
    endpoint = endpoint_text(run)
    return one_line(run.model if endpoint is None else f"{run.model} at {endpoint}")


def show_journal_note(workspace: Workspace) -> None:
    """Print a note about the database, once."""
    text = journal_note(workspace.database)
    if text:
        screen.note(f"note: {text}")


def labels(workspace: Workspace, run: Run) -> list[str]:
    """Labels that affect the meaning of every figure."""
    texts: list[str] = []
    if is_synthetic(workspace, run):
        texts.append("SYNTHETIC DATA: this market was generated; its results say nothing about a real one")
    if is_by_programs(run):
        texts.append(f"NOT A LANGUAGE MODEL: decided by {one_line(program_names(document(workspace, run)))}")
    if sentence := fork_sentence(document(workspace, run)):
        texts.append(f"FORK: {one_line(sentence, MAX_ERROR)}")
    if run.params.get("blind"):
        notes = venue_of(run.params["skill"]).blind_notes(run.params)
        texts += [f"BLIND: {one_line(note, MAX_ERROR)}" for note in notes]
    return texts


def cutoff_line(workspace: Workspace, run: Run) -> str:
    """The training cutoff of the deciding model, and whether the run lies before or after it."""
    return one_line(document(workspace, run)["cutoff"]["words"], MAX_ERROR)


def _show_tables(tables: Sequence[ResultTable]) -> None:
    for table in tables:
        screen.put()
        if table.lead:
            screen.put(table.lead, "bold")
        screen.put_table(table.headings, table.rows, right=table.right, folds=table.folds)


def show_summary(summary: Mapping[str, Mapping[str, float | None]], digests: Sequence[str | None]) -> None:
    """Print the table of repeated runs."""
    rows = [
        (
            METRICS[name].label if name in METRICS else name,
            *(_figure(name, interval[key]) for key in ("mean", "lo", "hi")),
        )
        for name, interval in summary.items()
    ]
    screen.put()
    screen.put_table(
        ("metric", "mean", "95 % from", "to"), rows, right=(1, 2, 3), title=figures.plural(len(digests), "run")
    )
    if len(digests) > 1 and len(set(digests)) == 1:
        screen.put("all runs are identical: nothing in them depends on the seed")


def show_refusal(workspace: Workspace, run: Run) -> None:
    """Print one refused intent: the proposal, the rule, its limit, and the excess."""
    if not mapping(mapping(run.metrics).get("rejections_by_rule")):
        return
    refused = (
        row
        for record in journal_of(workspace, run).records()
        if record.kind == "tick"
        for row in decision_rows(record)
        if row["outcome"] == "refused"
    )
    row = next(refused, None)
    if row is None:
        return
    from pitboss.runs.explain import refusal

    venue = venue_of(run.params["skill"])
    screen.put()
    screen.put(f"One refused {venue.intent_noun}, at {iso(row['tick_at'])}:")
    (row,) = venue.reveal([row], run.params)
    for name, text in refusal(row, venue).items():
        screen.put(f"  {name:<12}{text}")


def _show_warnings(metrics: Plain, has_account: bool) -> None:
    funnel = mapping(metrics.get("funnel"))
    if funnel and not number(funnel.get("fills" if has_account else "accepted")):
        screen.put()
        ticks = f"{figures.count(funnel.get('asked'))} of {figures.plural(funnel.get('ticks'), 'tick')}"
        screen.put(f"Nothing was {'traded' if has_account else 'done'}. A decision was asked for at {ticks}.", "bold")
        reasons = counts(metrics.get("noops_by_flag"))
        if reasons:
            screen.put(f"ticks without a proposal: {reasons}")
    for warning in metrics.get("warnings") or ():
        screen.put(f"note: {one_line(warning, MAX_ERROR)}")


def _show_next(location: WorkspaceOptions, run: Run) -> None:
    screen.put()
    screen.put("next:")
    if run.status == "complete":
        screen.put(f"  {location.command_line(f'runs verify {run.id}')}")
        screen.put(f"  {location.command_line(f'runs show {run.id} --json')}")
        kind = "fills" if venue_of(run.params["skill"]).has_account else "receipts"
        screen.put(f"  {location.command_line(f'runs export {run.id} --what {kind}')}")
    else:
        from pitboss.cli.run_work import resume_command  # loads what executes runs

        screen.put(f"  {location.command_line(resume_command(run))}")


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return figures.NONE
    form = METRICS[name].form if name in METRICS else "ratio"
    if form in ("percent", "signed_percent"):
        return figures.percent(value, signed=form.startswith("signed"))
    if form in ("share", "signed_share"):
        return figures.share(value, signed=form.startswith("signed"))
    return figures.usd(value) if form == "usd" else figures.plain(value)
