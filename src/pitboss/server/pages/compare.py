"""`/compare?run=…&run=…`: the page of a comparison of runs inside the app."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from pitboss.report.markup import Html, tag
from pitboss.report.shell import CHART_SCRIPTS
from pitboss.runs.comparison import MOST_RUNS, comparison
from pitboss.runs.comparison_page import comparison_page
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.api.lookup import named_run
from pitboss.server.api.run_access import Reader
from pitboss.server.pages.components import empty_state, link_button
from pitboss.server.pages.frame import app_page, report_content

router = APIRouter()
TITLE, PATH = "Compare", "/runs"


@router.get("/compare")
def compare_page(
    caller: Viewer,
    workspace: OwnWorkspace,
    reader: Reader,
    run: Annotated[list[str] | None, Query()] = None,
) -> HTMLResponse:
    """Runs side by side."""
    ids = list(dict.fromkeys(run or []))[:MOST_RUNS]
    if len(ids) < 2:
        text = "Tick runs in the list and press Compare."
        return app_page(caller, TITLE, PATH, _nothing("Choose at least two runs", text))
    runs = list({found.id: found for found in (named_run(workspace, run_id) for run_id in ids)}.values())
    if len(runs) < 2:
        return app_page(caller, TITLE, PATH, _nothing("This is one run", "Choose a second one."))
    document = comparison(workspace, runs, partial(reader.indexed.index, workspace))
    linked = {**document, "runs": [{**each, "href": f"/runs/{each['run_id']}"} for each in document["runs"]]}
    page = comparison_page(workspace, runs, linked, reader.indexed)
    return app_page(caller, TITLE, PATH, report_content(page), scripts=CHART_SCRIPTS, style=page.style)


def _nothing(title: str, text: str) -> Html:
    return tag("section", empty_state(title, text, link_button("Runs", "/runs", "primary")))
