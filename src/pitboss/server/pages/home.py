"""`/`: what runs now, spend today against the budget, the latest runs and live agents; for an empty workspace the first steps."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import DAY_MS, date_range
from pitboss.core.money import ZERO
from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import section
from pitboss.report.table import LEFT, RIGHT, gain_or_loss, table
from pitboss.runs.costs import budget_document
from pitboss.runs.deployment_activity import foreground_rows, open_rows
from pitboss.runs.first_steps import FROM, TO, FirstRun, first_run
from pitboss.runs.listing import result_text, short
from pitboss.server.access.caller import Caller, OwnWorkspace, Viewer
from pitboss.server.pages.components import badge, button, link_button, page_head, status_badge
from pitboss.server.pages.deployment_parts import STYLE as DEPLOYMENT_STYLE
from pitboss.server.pages.deployment_parts import deployment_table
from pitboss.server.pages.frame import app_page
from pitboss.server.pages.skill_links import skill_path
from pitboss.store.lifecycle import ACTIVE, Status
from pitboss.store.runs import Run
from pitboss.store.spend import spend

router = APIRouter()
LATEST, WATCHED, SEARCHED = 8, 6, 200


@router.get("/")
def home(caller: Viewer, workspace: OwnWorkspace) -> HTMLResponse:
    """The first page."""
    runs = workspace.runs.listing(SEARCHED).runs
    if not runs:
        content = [_first_steps(first_run(workspace))]
    else:
        content = [
            page_head("Home", link_button("New skill", "/skills/new"), link_button("Backtest", "/backtest", "primary")),
            _tiles(caller, workspace),
            tag("div", _now(workspace), id="now"),
            _deployments(workspace),
            section("latest", "Latest runs", _latest(workspace, runs)),
        ]
    return app_page(caller, "Home", "/", *content, scripts=("home.js",), styles=("home.css", DEPLOYMENT_STYLE))


@router.get("/now")
def now(caller: Viewer, workspace: OwnWorkspace) -> HTMLResponse:
    """The runs that are worked on now, for the script of the page."""
    del caller
    return HTMLResponse(_now(workspace))


def is_live(run: Run) -> bool:
    """Whether a run is a live agent's: only those store the time between their ticks."""
    return "every_ms" in run.params


def _active(workspace: Workspace) -> list[Run]:
    statuses: list[Status] = [*sorted(ACTIVE), "queued"]
    runs = [run for status in statuses for run in workspace.runs.listing(4 * WATCHED, status).runs]
    active = [run for run in runs if not is_live(run)]  # those are among the deployments
    return sorted(active, key=lambda run: (run.status != "queued", run.created_at), reverse=True)


def _now(workspace: Workspace) -> Html:
    active = _active(workspace)
    if not active:
        return tag("section", tag("h2", "Running now"), tag("p", "Nothing runs now.", class_="note"), data_active="0")
    rows = [_progress(short(run, workspace.now())) for run in active[:WATCHED]]
    more = len(active) - WATCHED
    rest = tag("p", f"and {more} more", class_="note") if more > 0 else None
    return tag("section", tag("h2", "Running now"), tag("ul", *rows, class_="running"), rest, data_active=len(active))


def _progress(run: Mapping[str, Any]) -> Html:
    percent = round(float(run["progress_pct"] or 0))
    return tag(
        "li",
        tag("a", run["skill"] or run["run_id"][:8], href=f"/runs/{run['run_id']}"),
        tag("span", run["model"], class_="muted model"),
        status_badge(run["status"]),
        tag("progress", f"{percent} %", value=percent, max=100, aria_label=f"Progress of {run['skill']}"),
        tag("span", f"{percent} %", class_="num"),
        tag("span", figures.usd(run["cost_usd"]), class_="num muted"),
    )


def _tiles(caller: Caller, workspace: Workspace) -> Html:
    today = workspace.now() // DAY_MS * DAY_MS
    spent = sum((row.cost_usd for row in spend(workspace.database, today, today + DAY_MS, caller.owner)), ZERO)
    used = budget_document(workspace)
    daily, reserved = used["daily_usd"], used["reserved_usd"]
    budget: list[object] = ["no daily budget is set"]
    if daily:
        share = min(100, round(100 * (used["spent_usd"] + reserved) / daily))
        budget = [
            tag("progress", f"{share} %", value=share, max=100, aria_label="Share of the daily budget"),
            f"{figures.usd(used['left_usd'])} left of {figures.usd(daily)} a day"
            + (f", {figures.usd(reserved)} reserved" if reserved else ""),
        ]
    counts = workspace.runs.count()
    active = sum(count for status, count in counts.items() if status in ACTIVE)
    active -= sum(is_live(run) for status in ACTIVE for run in workspace.runs.listing(SEARCHED, status).runs)
    tiles = [
        _tile("Spent today", figures.usd(spent), *budget),
        _tile("Running now", figures.count(active), f"{figures.count(counts.get('queued', 0))} queued"),
        _tile("Runs", figures.count(sum(counts.values())), f"{figures.count(counts.get('complete', 0))} complete"),
        _tile("Skills", figures.count(len(workspace.skills.list())), tag("a", "see them", href="/skills")),
    ]
    return tag("div", *tiles, class_="tiles even")


def _tile(name: str, value: str, *below: object) -> Html:
    return tag("div", tag("h2", name), tag("p", value, class_="value"), tag("p", *below, class_="below"), class_="tile")


def _latest(workspace: Workspace, runs: Sequence[Run]) -> Html:
    columns = [("Run", LEFT), ("Skill", LEFT), ("Model", LEFT), ("Range", LEFT), ("Status", LEFT), ("Cost", RIGHT), ("Result", RIGHT)]  # fmt: skip
    rows = [_run_row(short(run, workspace.now())) for run in [run for run in runs if not is_live(run)][:LATEST]]
    more = tag("p", tag("a", "All runs", href="/runs"), class_="after")
    return join([table("Latest runs", columns, rows, style="runs"), more])


def _run_row(run: Mapping[str, Any]) -> tuple[object, ...]:
    return (
        tag("a", tag("code", run["run_id"][:8]), href=f"/runs/{run['run_id']}"),
        tag("a", run["skill"], href=skill_path(run["skill"])) if run["skill"] else "",
        run["model"],
        date_range(run["from"], run["to"]),
        status_badge(run["status"]),
        figures.usd(run["cost_usd"]),
        gain_or_loss(result_text(run), figures.tone(run["result"]) if not run["result_label"] else None),
    )


def _deployments(workspace: Workspace) -> Html:
    """Deployments that have not ended, halted ones first, and live runs in the foreground that are active."""
    rows = open_rows(workspace, LATEST)
    rows += [row for row in foreground_rows(workspace) if row["status"] in ACTIVE][: LATEST - len(rows)]
    everything = tag("p", tag("a", "All deployments", href="/deployments"), class_="after")
    if not rows:
        text = tag("p", "No agent is deployed. The page of a skill has the button that deploys it.", class_="note")
        return section("deployments", "Deployments", join([text, everything]))
    return section("deployments", "Deployments", join([deployment_table(rows), everything]))


def _first_steps(prepared: FirstRun | None) -> Html:
    first = tag(
        "li",
        tag("h3", "Get a market and a skill"),
        tag(
            "p",
            "Writes three months of generated prices, news and events (they are not real), and saves an example skill.",
        ),
        badge("done", "ok") if prepared else button("Set up the demo", "prepare", "primary"),
        class_="done" if prepared else "next",
    )
    request = json.dumps(prepared.request()) if prepared else None
    second = tag(
        "li",
        tag("h3", "Run a first backtest"),
        tag("p", f"{FROM} to {TO} with standin/analyst: a small program, not a language model. It needs no key and costs nothing."),
        button("Start the backtest", "first-run", "primary" if prepared else "", data_request=request, disabled=not prepared),
        class_="next" if prepared else None,
    )  # fmt: skip
    third = tag(
        "li",
        tag("h3", "Make it yours"),
        tag("p", "Change the skill, see exactly what the agent is shown, choose a model, bring your own data."),
        link_button("Skills", "/skills"),
        link_button("Examples of all venues", "/skills#examples"),
        link_button("Data", "/data"),
    )
    return tag(
        "div",
        tag("div", tag("h1", "A first backtest in two steps"), class_="page-head"),
        tag("p", "This workspace is empty. An agent trades from a skill, a text with hard limits, over a market of the past.", class_="note lead"),
        tag("ol", first, second, third, class_="first-steps"),
    )  # fmt: skip
