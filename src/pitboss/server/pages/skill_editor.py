"""`/skills/new` and `/skills/{name}/edit`: the editor of skills, a form beside the text, and what the agent sees."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.report.markup import Html, tag
from pitboss.runs.documents import venue_of_text
from pitboss.runs.mcp_list import server_rows
from pitboss.runs.model_list import suggested_models
from pitboss.runs.skill_listing import find_version, version_text
from pitboss.runs.skill_reference import EXAMPLES, FIRST_EXAMPLE, example_named
from pitboss.runs.tool_catalogue import built_in_rows
from pitboss.runs.venue import Venue
from pitboss.runs.venues import default_venue, installed, venue_named
from pitboss.server.access.caller import Author, Caller, OwnWorkspace, Viewer
from pitboss.server.pages.components import button, field, link_button, select, text_input
from pitboss.server.pages.frame import app_page
from pitboss.server.pages.skill_form import MODELS, skill_form
from pitboss.server.pages.skill_links import backtest_path, skill_path
from pitboss.server.pages.skills import VersionNumber, missing_skill
from pitboss.server.problem import Problem

router = APIRouter()
PANES = (("form", "Form"), ("text", "Text"), ("preview", "What the agent sees"))


@router.get("/skills/new")
def new_skill(
    caller: Author, workspace: OwnWorkspace, source: Annotated[str, Query(alias="from", max_length=300)] = ""
) -> HTMLResponse:
    """The editor with a shipped example, a copy of a saved skill, or a first example."""
    stored = None if not source or source.startswith(EXAMPLES) else find_version(workspace, source)
    example = None if stored is not None else example_named(source or FIRST_EXAMPLE)
    if example is None and stored is None:
        raise Problem(404, "not_found", f"there is no skill {source!r} to start from", "the page Skills lists them")
    text = example.text if example is not None else version_text(workspace, stored) if stored else ""
    return _editor(caller, workspace, "New skill", text, "", 0)


@router.get("/skills/form")
def form(caller: Viewer, workspace: OwnWorkspace, venue: Annotated[str, Query(max_length=64)]) -> HTMLResponse:
    """The form of a venue's skills alone, for a text that names another venue now."""
    del caller
    if venue not in installed():
        raise Problem(404, "not_found", f"there is no venue {venue!r}")
    return HTMLResponse(_form(venue_named(venue), workspace))


@router.get("/skills/{name:path}/edit")
def edit_skill(name: str, caller: Author, workspace: OwnWorkspace, version: VersionNumber = None) -> HTMLResponse:
    """The editor of a saved skill, by default of its latest version."""
    stored = find_version(workspace, name, version)
    if stored is None:
        raise missing_skill(name, version)
    return _editor(caller, workspace, name, version_text(workspace, stored), name, stored.version)


def _form(venue: Venue, workspace: Workspace) -> Html:
    return skill_form(venue, built_in_rows(venue.name, "write"), server_rows(workspace))


def _editor(caller: Caller, workspace: Workspace, title: str, text: str, name: str, version: int) -> HTMLResponse:
    try:
        venue = venue_of_text(text, ".yaml")
    except UserError:
        venue = default_venue()
    state = f"version {version}" if version else "not saved yet"
    head = tag(
        "div",
        tag("h1", title, id="skill-title"),
        tag("span", state, class_="badge", id="saved-state"),
        tag("span", venue.name, class_="badge", id="skill-venue"),
        tag("span", class_="badge", id="check-state", role="status"),
        tag(
            "div",
            link_button("Versions", skill_path(name)) if name else None,
            link_button("Backtest", backtest_path(name)),
            button("Save", "save", "primary", id="save", title="Ctrl+S"),
            class_="actions",
        ),
        class_="page-head",
    )
    tabs = tag(
        "div",
        *[
            tag("button", label, type="button", role="tab", data_pane=key, id=f"tab-{key}", aria_controls=f"pane-{key}")
            for key, label in PANES
        ],
        role="tablist",
        aria_label="Parts of the editor",
        class_="tabs",
    )
    models = tag(
        "datalist", *[tag("option", about, value=model) for model, about in suggested_models(workspace.home)], id=MODELS
    )
    body = tag(
        "div",
        tabs,
        tag("div", _form(venue, workspace), id="pane-form", class_="pane", role="tabpanel", aria_labelledby="tab-form"),
        tag("div", _text_pane(text), id="pane-text", class_="pane", role="tabpanel", aria_labelledby="tab-text"),
        tag(
            "div",
            _preview_pane(workspace),
            id="pane-preview",
            class_="pane",
            role="tabpanel",
            aria_labelledby="tab-preview",
        ),
        models,
        class_="editor",
        data_pane="form",
        data_name=name,
        data_saved="true" if version else None,
    )
    page = app_page(caller, title, "/skills", head, body, scripts=("editor.js",), styles=("editor.css",))
    return page


def _text_pane(text: str) -> Html:
    area = tag(
        "textarea", "\n" + text, id="skill-text", class_="code", spellcheck="false", wrap="off", autocapitalize="off",
        autocomplete="off", aria_label="The skill as YAML", aria_describedby="text-errors",
    )  # fmt: skip
    gutter = tag("ol", id="gutter", aria_hidden="true")
    return tag(
        "div",
        tag("div", gutter, area, class_="code-editor"),
        tag("ul", id="text-errors", class_="problems", aria_live="polite"),
    )


def _preview_pane(workspace: Workspace) -> Html:
    venues = [("", "Default"), *((venue, venue) for venue in workspace.lake.venues())]
    ticks = tag(
        "div",
        button("‹", "earlier", aria_label="Earlier tick", title="Earlier tick"),
        text_input("preview-at", placeholder="the newest tick", spellcheck="false", maxlength=40),
        button("›", "later", aria_label="Later tick", title="Later tick"),
        button("Newest", "newest"),
        class_="ticks",
    )
    controls = tag(
        "div",
        field("preview-venue", "Data", select("preview-venue", venues)),
        field("preview-at", "Tick (UTC)", ticks),
        field(
            "preview-model",
            "Price for model",
            text_input("preview-model", placeholder="that of the skill", list=MODELS),
        ),
        class_="form preview-controls",
    )
    parts = [
        tag(
            "section",
            tag("h3", label),
            tag("button", "Copy", type="button", class_="quiet", data_do="copy", data_target=f"preview-{key}"),
            tag("pre", id=f"preview-{key}", tabindex="0", aria_label=label),
            class_="shown",
        )
        for key, label in (("system", "System prompt"), ("user", "User message"))
    ]
    return tag(
        "div",
        controls,
        tag("p", "", id="preview-problem", class_="notice bad", role="status", hidden=True),
        tag(
            "div",
            tag("dl", id="preview-facts", class_="facts"),
            *parts,
            tag("section", tag("h3", "Tools offered"), tag("div", id="preview-tools"), class_="shown"),
            id="preview-result",
        ),
        aria_busy="false",
        id="preview",
    )
