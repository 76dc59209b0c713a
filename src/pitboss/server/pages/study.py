"""`/studies/{id}`: the progress of a study while it runs, then its report inside the app."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from pitboss.jobs.study_page import page_of, result_document
from pitboss.jobs.study_status import progress_of_study, runs_of
from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.measures import run_value
from pitboss.report.metric import metric_meaning
from pitboss.report.shell import section
from pitboss.report.table import LEFT, RIGHT, table
from pitboss.runs.venues import venue_of
from pitboss.server.access.caller import Caller, OwnWorkspace, Viewer
from pitboss.server.api.lookup import named_study
from pitboss.server.pages.components import button, link_button, notice, page_head, status_badge
from pitboss.server.pages.frame import app_page, report_content
from pitboss.server.pages.studies import KINDS
from pitboss.sim.study.axis import describe_point
from pitboss.store.studies import StudyRun

router = APIRouter()
MOST_LISTED = 200


@router.get("/studies/{study_id}")
def study_page(study_id: str, caller: Viewer, workspace: OwnWorkspace) -> HTMLResponse:
    """A study or an arena."""
    full_id = named_study(workspace, study_id)
    progress = progress_of_study(workspace, full_id)
    if not progress["is_ended"]:
        definition = workspace.studies.document(full_id)
        return _running(caller, definition, progress, runs_of(workspace, full_id))
    document = result_document(workspace, full_id)
    page = page_of(_linked(document))
    download = link_button("Download the report", f"/api/studies/{full_id}/report")
    return app_page(
        caller,
        page.name or "Study",
        "/studies",
        tag("div", link_button("All studies", "/studies", "quiet"), download, class_="study-bar"),
        notice(f"It was not carried on: {progress['stopped_text']}.") if progress["stopped_text"] else Html(),
        report_content(page),
        styles=("studies.css",),
        style=page.style,
    )


def _linked(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with a link from every run to its page."""
    name = "entries" if "entries" in document else "trials"
    entries = [
        {**entry, "runs": [{**run, "href": f"/runs/{run['run_id']}"} for run in entry["runs"]]}
        for entry in document[name]
    ]
    return {**document, name: entries}


def _running(
    caller: Caller, definition: Mapping[str, Any], progress: Mapping[str, Any], runs: Sequence[StudyRun]
) -> HTMLResponse:
    kind = KINDS.get(definition["kind"], definition["kind"])
    name = definition["name"] or definition["skill"].get("name", "")
    actions = [button("Cancel the study", "cancel-study", "danger")] if caller.may("author") else []
    varied = "; ".join(definition["vary"]) or "nothing"
    card = tag(
        "div",
        tag(
            "progress", id="study-progress", value=progress["progress_pct"], max=100, aria_label="Progress of the study"
        ),
        tag(
            "p",
            tag("b", f"{progress['progress_pct']:.0f} %", id="study-pct"),
            " of ",
            figures.plural(progress["expected_runs"], "run"),
            " · ",
            tag("span", _counts(progress["counts"]), id="study-counts"),
            class_="study-numbers",
        ),
        class_="study-progress",
    )
    return app_page(
        caller,
        f"{name} {kind}",
        "/studies",
        page_head(
            f"{name} · {kind}", *actions, about=f"Varied: {varied}. The report follows when all runs have ended."
        ),
        tag("div", section("progress", "Progress", card), data_study=progress["study_id"], class_="study-now"),
        section("runs", "Runs", _runs(definition, runs)),
        scripts=("study.js",),
        styles=("studies.css",),
    )


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in sorted(counts.items()))


def _runs(definition: Mapping[str, Any], runs: Sequence[StudyRun]) -> Html:
    by, venue = definition["by"], venue_of(definition["skill"])
    meaning = metric_meaning(by, venue.metrics())
    rows = [
        (
            tag("a", run.id, href=f"/runs/{run.id}"),
            describe_point(run.mark.get("point", {})),
            run.model,
            status_badge(run.status),
            run_value(run.metrics, by, meaning.form),
        )
        for run in runs[:MOST_LISTED]
    ]
    columns = [("Run", LEFT), ("Point", LEFT), ("Model", LEFT), ("Status", LEFT), (meaning.label, RIGHT)]
    more = tag("p", f"The first {MOST_LISTED} of {len(runs)} runs.", class_="note") if len(runs) > MOST_LISTED else None
    return join([more or Html(), table("Runs of the study", columns, rows, style="studies", tall=len(rows) > 30)])
