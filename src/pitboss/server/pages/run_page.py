"""`/runs/{id}`: one run. While it is executed a page that follows it; when it has ended its report, with charts that zoom, a table
of all decisions and a drawer for each of them. Also the fragments that the scripts of the page fetch.
"""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from pitboss.core.errors import UserError
from pitboss.report import figures
from pitboss.report.chart_series import NO_SERIES
from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import CHART_SCRIPTS, ReportPage
from pitboss.report.why_idle import why_idle
from pitboss.runs.lineage import forked_from
from pitboss.runs.run_charts import run_chart
from pitboss.runs.run_index import RowFilter, RunIndex
from pitboss.runs.venues import venue_of
from pitboss.server.access.caller import Caller, OwnWorkspace, Viewer
from pitboss.server.api.routes.decisions import decision_values
from pitboss.server.api.run_access import Conditions, Ended, IndexOfRun, NamedRun, Reader, SeriesOfRun, run_tag
from pitboss.server.api.tagged import not_modified, tag_headers
from pitboss.server.pages.components import button, link_button, notice, status_badge
from pitboss.server.pages.decision_table import decision_drawer, decision_table
from pitboss.server.pages.decision_view import ask_again_form, decision_view
from pitboss.server.pages.frame import app_page, report_content
from pitboss.server.pages.run_difference import difference_view
from pitboss.server.pages.run_live import live_content, run_title
from pitboss.server.problem import Problem
from pitboss.store.lifecycle import ENDED
from pitboss.store.retry import Unreachable
from pitboss.store.runs import Run

router = APIRouter()
MOST_MS = 2**53
STYLES = ("run.css",)
SCRIPTS = (*CHART_SCRIPTS, "finer_charts.js", "decisions.js", "run.js")


@router.get("/runs/{run_id}")
def run_page(run: NamedRun, caller: Viewer, ended: Ended) -> HTMLResponse:
    """The page of a run."""
    title = f"{run.params['skill'].get('name') or 'Run'} {run.id}"
    if ended is None:
        content = live_content(run, _bar(run, caller))
        return app_page(caller, title, "/runs", content, scripts=("run.js", "run_live.js"), styles=STYLES)
    if ended.page is None:
        content = join([_bar(run, caller), run_title(run), _failure(run) if ended.is_empty else _preparing(run)])
        return app_page(caller, title, "/runs", content, scripts=("run.js",), styles=STYLES)
    page = _with_app_parts(ended.page, run, ended.index, caller)
    return app_page(
        caller,
        title,
        "/runs",
        report_content(page),
        decision_drawer(),
        scripts=SCRIPTS,
        styles=STYLES,
        style=page.style,
    )


@router.get("/runs/{run_id}/ready")
def is_ready(caller: Viewer, ended: Ended) -> dict[str, bool]:
    """Whether the page of a run is composed."""
    del caller
    return {"ready": ended is not None and ended.page is not None}


@router.get("/runs/{run_id}/charts/{part:path}")
def chart_fragment(
    run: NamedRun,
    part: str,
    caller: Viewer,
    index: IndexOfRun,
    series: SeriesOfRun,
    request: Request,
    from_: Annotated[int | None, Query(alias="from", ge=0, le=MOST_MS)] = None,
    to: Annotated[int | None, Query(ge=0, le=MOST_MS)] = None,
) -> Response:
    """A chart of the page for a part of its time, in milliseconds."""
    del caller
    etag = run_tag(run, "chart")
    if etag and (unchanged := not_modified(request, etag)):
        return unchanged
    window = None if from_ is None or to is None else (from_, to)
    chart = run_chart(run, part, index, series or NO_SERIES, window)
    if chart is None:
        raise Problem(404, "not_found", f"run {run.id} has no chart {part!r}")
    return HTMLResponse(chart, headers=tag_headers(etag) if etag and series else None)


@router.get("/runs/{run_id}/decisions/{seq}")
def decision_fragment(
    run: NamedRun,
    seq: int,
    caller: Viewer,
    workspace: OwnWorkspace,
    index: IndexOfRun,
    conditions: Conditions,
) -> HTMLResponse:
    """One decision for the drawer. The conditions are those of the table, so that the next decision is the next of the table."""
    values = decision_values(workspace, run, seq)
    near = _neighbours(index, seq, conditions)
    may_fork = caller.may("author") and run.status in ENDED and not run.params.get("mode")
    again = ask_again_form(run.id, values, run.model, run.params["skill"]) if may_fork else None
    return HTMLResponse(decision_view(values, venue_of(run.params["skill"]), near, again))


@router.get("/runs/{run_id}/changes")
def difference_fragment(run: NamedRun, caller: Viewer, workspace: OwnWorkspace, reader: Reader) -> HTMLResponse:
    """A fork beside the run that it was forked from."""
    del caller
    origin = forked_from(run)
    source = None if origin is None or not origin["run_id"] else _run_or_none(workspace, origin["run_id"])
    if source is None:
        return HTMLResponse(tag("p", "The run that it was forked from is not in this workspace.", class_="note"))
    return HTMLResponse(difference_view(workspace, reader.indexed, source, run))


def _run_or_none(workspace: Any, run_id: str) -> Run | None:
    try:
        run = workspace.runs.get(run_id)
    except Unreachable:
        raise
    except UserError:
        return None
    return run if run.id == run_id else None


def _neighbours(index: RunIndex, seq: int, conditions: RowFilter) -> dict[str, int | None]:
    """The records before and after one in the list of those that fulfil the conditions, and its place in that list."""
    matches = index.find(conditions)
    numbers = index.numbers["seq"][matches]
    first, last = int(numbers.searchsorted(seq)), int(numbers.searchsorted(seq, side="right"))
    return {
        "previous": int(numbers[first - 1]) if first > 0 else None,
        "next": int(numbers[last]) if last < len(numbers) else None,
        "position": first if first < last else None,
        "total": len(matches),
    }


def _with_app_parts(page: ReportPage, run: Run, index: RunIndex, caller: Caller) -> ReportPage:
    """The page of a report with what the app adds: actions, links to the sections, the table of decisions."""
    parts = [part if part[0] != "decisions" else (*part[:3], decision_table(run.id, index)) for part in page.parts]
    if forked_from(run) is not None:
        loading = tag(
            "div", tag("p", "Comparing…", class_="note"), data_fetch=f"/runs/{run.id}/changes", aria_live="polite"
        )
        parts.insert(0, ("changes", "Changes", "Against the run it was forked from", loading))
    links = tag(
        "nav",
        *[tag("a", short, href=f"#{key}") for key, short, _, _ in parts],
        class_="tabs sections",
        aria_label="Sections",
    )
    idle = why_idle(run.metrics or {}, venue_of(run.params["skill"]).rule_meanings())
    reason = [notice(idle, " ", tag("a", "By rule", href="#refused"))] if idle else []
    failure = [_failure(run)] if run.status != "complete" else []
    return replace(page, top=[_bar(run, caller), *failure, *page.top, *reason, links], parts=parts)


def _bar(run: Run, caller: Caller) -> Html:
    """Where the page is, and what can be done with the run."""
    is_complete, has_ended = run.status == "complete", run.status in ENDED
    may_write = caller.may("author")
    origin = forked_from(run)
    actions: list[Html] = []
    if has_ended and not is_complete and may_write and not run.params.get("mode"):
        actions.append(button("Resume", "resume-run", "primary"))
    if run.params.get("deployed"):  # it takes commands, and ends with its deployment
        actions.append(link_button("Deployment", f"/deployments/{run.id}"))
    elif not has_ended and may_write:
        actions.append(button("Cancel", "cancel-run", "danger"))
    if has_ended and origin is not None and origin["run_id"]:
        actions.append(link_button("Compare with source", f"/compare?run={origin['run_id']}&run={run.id}"))
    if is_complete:
        actions += [
            button("Verify", "verify-run"),
            tag("a", "Report", href=f"/api/runs/{run.id}/report", class_="button", download=f"{run.id}.html"),
            tag("a", "Bundle", href=f"/api/runs/{run.id}/bundle", class_="button", download=True),
        ]
    return tag(
        "div",
        tag("a", "Runs", href="/runs"),
        tag("span", "/", class_="muted", aria_hidden="true"),
        tag("code", run.id),
        None if has_ended else tag("span", status_badge(run.status), data_show="status"),
        tag("div", *actions, class_="actions"),
        tag("div", class_="run-result", hidden=True, role="status"),
        class_="run-bar",
        data_run=run.id,
        data_digest=run.digest,
    )


def _preparing(run: Run) -> Html:
    words = f"The page of a run with {figures.count(run.ticks)} ticks is composed once; this takes a while."
    return tag(
        "section",
        tag("h2", "Preparing the page"),
        tag("p", words, class_="note"),
        tag("progress", aria_label="Preparing"),
        data_wait=f"/runs/{run.id}/ready",
    )


def _failure(run: Run) -> Html:
    if run.status == "cancelled":
        return notice("This run was cancelled. What was done until then is kept; resume continues from there.")
    return notice(tag("strong", "This run failed: "), run.error_text or "No reason was stored.", tone="bad")
