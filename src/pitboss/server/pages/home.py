"""`/`: what runs now, the latest runs, and for an empty workspace the first steps."""

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from pitboss.report.markup import tag
from pitboss.report.shell import section
from pitboss.report.table import LEFT, RIGHT, table
from pitboss.runs.listing import result_text, short
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.pages.components import page_head, status_badge
from pitboss.server.pages.frame import app_page

router = APIRouter()
LATEST = 10


@router.get("/")
def home(caller: Viewer, workspace: OwnWorkspace) -> HTMLResponse:
    """The first page."""
    runs = [short(run, workspace.now()) for run in workspace.runs.listing(LATEST).runs]
    columns = [("Run", LEFT), ("Skill", LEFT), ("Model", LEFT), ("Status", LEFT), ("Result", RIGHT)]
    rows = [
        (
            tag("a", run["run_id"], href=f"/runs/{run['run_id']}"),
            run["skill"],
            run["model"],
            status_badge(run["status"]),
            result_text(run),
        )
        for run in runs
    ]
    latest = table("Latest runs", columns, rows) if rows else tag("p", "There are no runs yet.", class_="note")
    return app_page(caller, "Home", "/", page_head("Home"), section("latest", "Latest runs", latest))
