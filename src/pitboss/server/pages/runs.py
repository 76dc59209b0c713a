"""`/runs`: the runs of a workspace, by status, skill and model, with boxes to compare some of them."""

from typing import Annotated, Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from pitboss.core.instant import date_range, parse_instant
from pitboss.report import figures
from pitboss.report.markup import Html, tag
from pitboss.report.table import LEFT, RIGHT, gain_or_loss, table
from pitboss.runs.comparison import MOST_RUNS
from pitboss.runs.listing import result_text, short
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.api.lookup import page_of_runs, run_cursor
from pitboss.server.pages.components import (
    empty_state,
    field,
    link_button,
    notice,
    page_head,
    select,
    status_badge,
    text_input,
)
from pitboss.server.pages.frame import app_page
from pitboss.store.lifecycle import ACTIVE, Status

router = APIRouter()
PAGE = 50


@router.get("/runs")
def runs_page(
    caller: Viewer,
    workspace: OwnWorkspace,
    status: Annotated[str, Query(max_length=40)] = "",
    skill: Annotated[str, Query(max_length=200)] = "",
    model: Annotated[str, Query(max_length=300)] = "",
    before: Annotated[str, Query(max_length=100)] = "",
) -> HTMLResponse:
    """The list, newest first."""
    statuses: tuple[Status, ...] = get_args(Status)
    chosen: Status | None = next((name for name in statuses if name == status), None)
    filters: dict[str, Any] = {name: value for name, value in (("skill", skill), ("model", model)) if value}
    listing, cursor = page_of_runs(workspace, PAGE, chosen, before=run_cursor(before), **filters)
    rows = [short(run, workspace.now()) for run in listing.runs]
    more = ""
    if cursor:
        query = {"status": chosen or "", **filters, "before": cursor}
        more = "/runs?" + urlencode({name: value for name, value in query.items() if value})
    is_filtered = bool(chosen or filters or before)
    content: list[object] = [
        page_head("Runs", link_button("New backtest", "/backtest", "primary"), about="Every backtest, newest first."),
        _filters(statuses, chosen or "", skill, model) if rows or is_filtered else None,
        *[
            notice(f"Run {run_id} is not listed: its row was changed after it was written.")
            for run_id in listing.damaged
        ],
        _list(rows, is_filtered),
        tag("nav", link_button("Older runs", more), class_="pages", aria_label="Pages") if more else None,
    ]
    return app_page(caller, "Runs", "/runs", *content, scripts=("runs.js",), styles=("run.css",))


def _filters(statuses: tuple[Status, ...], status: str, skill: str, model: str) -> Html:
    options = [("", "any"), *[(name, name.replace("_", " ")) for name in statuses]]
    return tag(
        "form",
        field("status", "Status", select("status", options, status)),
        field("skill", "Skill", text_input("skill", skill, placeholder="any")),
        field("model", "Model", text_input("model", model, placeholder="any")),
        tag(
            "div",
            tag("button", "Filter", type="submit"),
            link_button("Clear", "/runs", "quiet") if status or skill or model else None,
            class_="form-actions",
        ),
        method="get",
        action="/runs",
        class_="form list-filters",
        aria_label="Filter the runs",
    )


def _list(rows: list[dict[str, Any]], is_filtered: bool) -> Html:
    if not rows:
        if is_filtered:
            return tag(
                "section",
                empty_state("No such run", "No run fulfils these conditions.", link_button("Show all", "/runs")),
            )
        return tag(
            "section",
            empty_state(
                "No runs yet", "A backtest of a skill appears here.", link_button("Start one", "/backtest", "primary")
            ),
        )
    columns = [
        ("Run", LEFT),
        ("Skill", LEFT),
        ("Model", LEFT),
        ("Status", LEFT),
        ("Period", LEFT),
        ("Result", RIGHT),
        ("Cost", RIGHT),
        ("Created (UTC)", LEFT),
    ]
    listed = table("Runs", columns, [_row(row) for row in rows], style="run-list")
    return tag(
        "section",
        tag(
            "form",
            listed,
            tag(
                "div",
                tag("button", "Compare", type="submit", class_="primary", disabled=True, data_do="compare"),
                tag("span", f"Tick two to {MOST_RUNS} runs to see them side by side.", class_="muted"),
                class_="compare-bar",
            ),
            action="/compare",
            method="get",
            class_="compare-form",
            data_most=MOST_RUNS,
        ),
    )


def _row(row: dict[str, Any]) -> tuple[object, ...]:
    run_id = row["run_id"]
    box = tag("input", type="checkbox", name="run", value=run_id, aria_label=f"Compare {run_id}")
    return (
        tag("span", box, tag("a", run_id, href=f"/runs/{run_id}"), class_="pick"),
        row["skill"],
        row["model"],
        tag("span", status_badge(row["status"]), _share(row)),
        date_range(row["from"], row["to"]),
        gain_or_loss(result_text(row), None if row["result_label"] else figures.tone(row["result"])),
        figures.usd(row["cost_usd"]),
        figures.clock(parse_instant(row["created_at"])),
    )


def _share(row: dict[str, Any]) -> Html | None:
    return tag("small", f" {row['progress_pct']:.0f} %") if row["status"] in ACTIVE else None
