"""Print the result of a finished run: a table, one explained refusal, and suggested next commands."""

from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import iso
from pitboss.models import cutoffs
from pitboss.models.cutoff_text import cutoff_text
from pitboss.models.providers import PROGRAMS
from pitboss.report import figures
from pitboss.report.meaning import METRICS
from pitboss.report.source import mapping, number
from pitboss.runs.result_table import ResultTable, counts, metrics_table
from pitboss.runs.stored import decision_rows, is_synthetic, journal_of, one_line, request_of
from pitboss.runs.venues import venue_of
from pitboss.store.database import journal_note
from pitboss.store.runs import Run
from pitboss.terminal import screen
from pitboss.terminal.workspace_options import WorkspaceOptions

Plain = Mapping[str, Any]
MOST_ERROR = 2_000


def show_run(workspace: Workspace, place: WorkspaceOptions, run: Run) -> None:
    """Print the result of a run, complete or not."""
    request = request_of(run)
    screen.put(
        f"{request.skill.get('name', '')} · {one_line(run.model)} · {iso(request.from_at)} to {iso(request.to_at)}",
        "bold",
    )
    for label in labels(workspace, run):
        screen.put(label, "yellow")
    screen.put(cutoff_words(workspace, run))
    metrics = mapping(run.metrics)
    if metrics:
        venue = venue_of(run.params["skill"])
        _show_tables(venue.result_tables(run) or [metrics_table(run, venue.metrics())])
        _show_warnings(metrics)
        for words in run.params.get("universe", ()):
            screen.put(f"note: {one_line(str(words), MOST_ERROR)}")
        show_refusal(workspace, run)
    else:
        screen.put(f"{run.status} after {run.progress:.0%}; a run has results when it is complete")
    if run.error_text:
        screen.put(f"error: {one_line(run.error_text, MOST_ERROR)}", "red")
    screen.put()
    screen.put(f"run     {run.id} ({run.status}, {run.wall_s:.1f} s)")
    if run.digest:
        screen.put(f"digest  {run.digest}")
    if run.report:
        screen.put(f"report  {run.report}")
    _show_next(place, run)


def show_journal_note(workspace: Workspace) -> None:
    """Print a note about the database, once."""
    told = journal_note(workspace.database)
    if told:
        screen.note(f"note: {told}")


def labels(workspace: Workspace, run: Run) -> list[str]:
    """Labels that affect the meaning of every figure."""
    found: list[str] = []
    if is_synthetic(workspace, run):
        found.append("SYNTHETIC DATA: this market was generated; nothing follows from it about a real one")
    if run.model.startswith(PROGRAMS):
        found.append(f"NOT A LANGUAGE MODEL: {one_line(run.model)} is a fixed program")
    if run.params.get("blind"):
        notes = venue_of(run.params["skill"]).blind_notes(run.params)
        found += [f"BLIND: {one_line(words, MOST_ERROR)}" for words in notes]
    return found


def cutoff_words(workspace: Workspace, run: Run) -> str:
    """The training cutoff of the deciding model, and whether the run lies before or after it."""
    request, cutoff = request_of(run), cutoffs.cutoff_of(run.model, workspace.settings.model_cutoffs)
    return one_line(cutoff_text(cutoff, request.from_at, request.to_at), MOST_ERROR)


def _show_tables(tables: Sequence[ResultTable]) -> None:
    for table in tables:
        screen.put()
        if table.lead:
            screen.put(table.lead, "bold")
        screen.put_table(table.headings, table.rows, right=table.right, folds=table.folds)


def show_summary(summary: Mapping[str, Mapping[str, float | None]], digests: Sequence[str | None]) -> None:
    """Print the table of repeated runs."""
    rows = [
        (METRICS[name].label if name in METRICS else name, *(_figure(name, one[key]) for key in ("mean", "lo", "hi")))
        for name, one in summary.items()
    ]
    screen.put()
    screen.put_table(("metric", "mean", "95 % from", "to"), rows, right=(1, 2, 3), title=f"{len(digests)} runs")
    if len(digests) > 1 and len(set(digests)) == 1:
        screen.put("all runs are identical: nothing in this one depends on the seed")


def show_refusal(workspace: Workspace, run: Run) -> None:
    """Print one refused order: the proposal, the rule, its limit, and the excess."""
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
    screen.put(f"One refused order, at {iso(row['tick_at'])}:")
    (row,) = venue.reveal([row], run.params)
    for name, words in refusal(row, venue).items():
        screen.put(f"  {name:<12}{words}")


def _show_warnings(metrics: Plain) -> None:
    funnel = mapping(metrics.get("funnel"))
    if funnel and not number(funnel.get("fills")):
        screen.put()
        screen.put("Nothing was traded. Where it went:", "bold")
        steps = [(key, figures.count(funnel.get(key))) for key in ("ticks", "asked", "proposals", "accepted", "fills")]
        refused = counts(funnel.get("refused"))
        steps.insert(3, ("refused", refused or "0"))
        screen.put_table(("", ""), [(name, value) for name, value in steps])
        quiet = counts(metrics.get("noops_by_flag"))
        if quiet:
            screen.put(f"ticks that ended in nothing: {quiet}")
    for warning in metrics.get("warnings") or ():
        screen.put(f"note: {one_line(warning, MOST_ERROR)}")


def _show_next(place: WorkspaceOptions, run: Run) -> None:
    screen.put()
    screen.put("next:")
    if run.status == "complete":
        screen.put(f"  {place.typed(f'runs verify {run.id}')}")
        screen.put(f"  {place.typed(f'runs show {run.id} --json')}")
        screen.put(f"  {place.typed(f'runs export {run.id} --what fills')}")
    else:
        screen.put(f"  {place.typed(f'runs resume {run.id}')}")


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return figures.NONE
    form = METRICS[name].form if name in METRICS else "ratio"
    if form in ("percent", "signed_percent"):
        return figures.percent(value, signed=form.startswith("signed"))
    if form in ("share", "signed_share"):
        return figures.share(value, signed=form.startswith("signed"))
    return figures.usd(value) if form == "usd" else figures.plain(value)
