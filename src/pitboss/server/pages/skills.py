"""`/skills` and `/skills/{name}`: saved skills and examples; one skill with its versions, their differences and its runs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import date_range
from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import section
from pitboss.report.table import LEFT, RIGHT, gain_or_loss, table
from pitboss.runs.listing import result_text, short
from pitboss.runs.skill_listing import (
    example_rows,
    field_differences,
    find_version,
    skill_rows,
    version_document,
    version_rows,
)
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.access.reauthentication import has_password
from pitboss.server.pages.components import badge, button, empty_state, link_button, page_head, status_badge
from pitboss.server.pages.deploy_form import SCRIPT as DEPLOY_SCRIPT
from pitboss.server.pages.deploy_form import deploy_form
from pitboss.server.pages.deployment_parts import STYLE
from pitboss.server.pages.frame import app_page
from pitboss.server.pages.skill_links import backtest_path, edit_path, new_path, skill_path
from pitboss.server.problem import Problem

router = APIRouter()
RUNS = 20
VersionNumber = Annotated[int | None, Query(ge=1, le=1_000_000_000)]


@router.get("/skills")
def skills(caller: Viewer, workspace: OwnWorkspace) -> HTMLResponse:
    """The saved skills, and the shipped examples as starting points."""
    rows = skill_rows(workspace)
    head = page_head(
        "Skills",
        link_button("New skill", "/skills/new", "primary"),
        about="A skill is one document: what the agent is to do, what it is shown, which tools it may call, and hard limits.",
    )
    saved = _saved(rows) if rows else empty_state("No skill is saved yet", "Start from one of the examples below.")
    return app_page(
        caller,
        "Skills",
        "/skills",
        head,
        section("saved", "Saved skills", saved),
        section("examples", "Examples", _examples(example_rows())),
        styles=("skills.css",),
    )


def _saved(rows: Iterable[Mapping[str, Any]]) -> Html:
    columns = [("Skill", LEFT), ("Version", RIGHT), ("Venue", LEFT), ("Model", LEFT), ("Saved", LEFT), ("Last run", LEFT), ("Result", RIGHT), ("", LEFT)]  # fmt: skip
    return table("Saved skills", columns, [_saved_row(row) for row in rows], style="skills")


def _saved_row(row: Mapping[str, Any]) -> tuple[object, ...]:
    run = row["last_run"]
    name = tag("a", row["name"], href=skill_path(row["name"]))
    about = tag("small", row["description"]) if row["description"] else None
    return (
        tag("span", name, about, class_="named"),
        row["version"],
        badge(row["venue"]),
        row["model"],
        row["saved_at"][:16].replace("T", " "),
        tag("a", status_badge(run["status"]), href=f"/runs/{run['run_id']}") if run else tag("span", "never", class_="muted"),
        _result(run) if run else figures.NONE,
        tag("span", link_button("Edit", edit_path(row["name"])), link_button("Backtest", backtest_path(row["name"])), class_="row-actions"),
    )  # fmt: skip


def _result(run: Mapping[str, Any]) -> Html:
    return gain_or_loss(result_text(run), None if run["result_label"] else figures.tone(run["result"]))


def _examples(rows: Sequence[Mapping[str, Any]]) -> Html:
    cards = [
        tag(
            "li",
            tag("div", tag("h3", row["name"]), badge(row["venue"]), class_="card-head"),
            tag("p", row["description"] or "An example of this venue."),
            tag("p", row["model"], class_="muted model"),
            tag("div", link_button("Start from it", new_path(row["reference"])), link_button("Backtest", backtest_path(row["reference"]), "quiet"), class_="row-actions"),
        )
        for row in rows
    ]  # fmt: skip
    return tag("ul", *cards, class_="cards")


@router.get("/skills/{name:path}")
def skill(
    request: Request,
    name: str,
    caller: Viewer,
    workspace: OwnWorkspace,
    version: VersionNumber = None,
    first: Annotated[int | None, Query(alias="from", ge=1, le=1_000_000_000)] = None,
    second: Annotated[int | None, Query(alias="to", ge=1, le=1_000_000_000)] = None,
) -> HTMLResponse:
    """One skill: a version of its document, all versions, the difference between two of them, and its runs."""
    stored = find_version(workspace, name, version)
    if stored is None:
        raise missing_skill(name, version)
    document, versions = version_document(workspace, stored), version_rows(workspace, name)
    form = deploy_form(workspace, stored, has_password(request, caller)) if caller.may("operator") else None
    head = page_head(
        name,
        link_button("Copy", new_path(name)),
        *([button("Deploy", "deploy", aria_haspopup="dialog", aria_controls="deploy")] if form else []),
        link_button("Backtest", backtest_path(name)),
        link_button("Edit", edit_path(name), "primary"),
        about=str(document["plain"].get("description", "")),
    )
    latest = versions[0]["version"]
    second = second or stored.version
    first = first or max(second - 1, 1)
    kicker = f"Version {stored.version}" + ("" if stored.version == latest else f" of {latest}")
    content = [
        section("document", kicker, tag("pre", tag("code", document["text"]), class_="document", tabindex="0")),
        section("versions", "Versions", _versions(name, versions, stored.version)),
        section("runs", "Runs", _runs(workspace, name)),
    ]
    if len(versions) > 1:
        content.insert(1, section("difference", "Difference", _difference(workspace, name, versions, first, second)))
    scripts = (DEPLOY_SCRIPT,) if form else ()
    return app_page(caller, name, "/skills", head, *content, form, scripts=scripts, styles=("skills.css", STYLE))


def missing_skill(name: str, version: int | None) -> Problem:
    """The problem of a skill that is not stored, or has no such version."""
    detail = f"there is no skill {name!r}" if version is None else f"there is no skill {name!r} with version {version}"
    return Problem(404, "not_found", detail, "the page Skills lists them")


def _versions(name: str, rows: Sequence[Mapping[str, Any]], current: int) -> Html:
    columns = [("Version", LEFT), ("Saved", LEFT), ("Digest", LEFT), ("", LEFT)]
    return table(
        "Versions",
        columns,
        [
            (
                tag("a", f"Version {row['version']}", href=f"{skill_path(name)}?version={row['version']}", aria_current="true" if row["version"] == current else None),
                row["saved_at"][:16].replace("T", " "),
                tag("code", row["digest"][:12]),
                tag("span", link_button("Edit from here", f"{edit_path(name)}?version={row['version']}", "quiet"), class_="row-actions"),
            )
            for row in rows
        ],
        style="versions",
    )  # fmt: skip


def _difference(workspace: Workspace, name: str, rows: Sequence[Mapping[str, Any]], first: int, second: int) -> Html:
    one, other = find_version(workspace, name, first), find_version(workspace, name, second)
    options = [str(row["version"]) for row in rows]
    form = tag(
        "form",
        tag("label", "From ", _version_select("from", options, first)),
        tag("label", "to ", _version_select("to", options, second)),
        tag("button", "Compare", type="submit"),
        method="get",
        action=f"{skill_path(name)}#difference",
        class_="compare",
    )
    if one is None or other is None:
        return join([form, tag("p", "There is no such version.", class_="note")])
    changes = field_differences(one, other)
    if not changes:
        return join([form, tag("p", "Both versions have the same content.", class_="note")])
    return join([form, tag("dl", *[_change(change) for change in changes], class_="changes")])


def _version_select(name: str, options: Iterable[str], chosen: int) -> Html:
    elements = [tag("option", f"version {option}", value=option, selected=option == str(chosen)) for option in options]
    return tag("select", *elements, name=name)


def _change(change: Mapping[str, Any]) -> Html:
    kinds = {"+": "added", "-": "removed", "@": "place"}
    lines = [
        tag("span", line or " ", class_=kinds.get(line[:1], "same"))
        for line in change["lines"]
        if not line.startswith("@@")
    ]
    return tag("div", tag("dt", tag("code", change["path"])), tag("dd", tag("pre", *lines, class_="text-diff")))


def _runs(workspace: Workspace, name: str) -> Html:
    runs = [short(run, workspace.now()) for run in workspace.runs.listing(RUNS, skill=name).runs]
    if not runs:
        return empty_state(
            "It has not run yet", "A backtest shows what it does.", link_button("Backtest", backtest_path(name))
        )
    columns = [("Run", LEFT), ("Model", LEFT), ("Range", LEFT), ("Started", LEFT), ("Status", LEFT), ("Result", RIGHT)]
    rows = [
        (
            tag("a", tag("code", run["run_id"][:8]), href=f"/runs/{run['run_id']}"),
            run["model"],
            date_range(run["from"], run["to"]),
            str(run["created_at"])[:16].replace("T", " "),
            status_badge(run["status"]),
            _result(run),
        )
        for run in runs
    ]
    return table("Runs", columns, rows, style="runs")
