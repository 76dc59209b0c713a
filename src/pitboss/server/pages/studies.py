"""`/studies`: the sweeps and arenas of a workspace, and the form that starts one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.instant import DAY_MS, iso, parse_instant
from pitboss.jobs.study_status import study_list
from pitboss.report import figures
from pitboss.report.markup import Html, tag
from pitboss.report.shell import section
from pitboss.report.table import LEFT, RIGHT, table
from pitboss.runs.listing import holdings
from pitboss.runs.venues import venues
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.pages.components import (
    badge,
    button,
    dialog,
    empty_state,
    field,
    form_actions,
    page_head,
    select,
    text_input,
)
from pitboss.server.pages.frame import app_page
from pitboss.store.lifecycle import ACTIVE, ENDED

router = APIRouter()
KINDS = {"grid": "sweep", "random": "random sweep", "search": "search", "walk": "walk-forward", "arena": "arena"}
Row = Mapping[str, Any]
USUAL_DAYS = 28
MOST_PATHS = 200


@router.get("/studies")
def studies_page(caller: Viewer, workspace: OwnWorkspace) -> HTMLResponse:
    """The list of studies, and the form for a new one."""
    studies = study_list(workspace)
    may_start = caller.may("author")
    actions = [button("New sweep", "new-sweep"), button("New arena", "new-arena", "primary")] if may_start else []
    about = "A sweep varies the settings of one skill, an arena compares models. Both say how much of a result may be chance."
    content = (
        section("list", "All studies", _table(studies))
        if studies
        else tag(
            "section",
            empty_state("There are no studies yet", "Start a sweep over settings, or an arena of models.", *actions),
        )
    )
    return app_page(
        caller,
        "Studies",
        "/studies",
        page_head("Studies", *(actions if studies else []), about=about),
        content,
        *([_form(workspace), _confirmation()] if may_start else []),
        scripts=("studies.js",),
        styles=("studies.css",),
    )


def _table(studies: Sequence[Row]) -> Html:
    columns = [
        ("Study", LEFT),
        ("Kind", LEFT),
        ("Skill", LEFT),
        ("Varied", LEFT),
        ("Runs", RIGHT),
        ("Progress", LEFT),
        ("Started", LEFT),
    ]
    rows = [
        (
            tag("a", study["name"] or study["study_id"], href=f"/studies/{study['study_id']}"),
            KINDS.get(study["kind"], study["kind"]),
            study["skill"],
            "; ".join(study["vary"]) or figures.NONE,
            figures.count(study["runs"]),
            progress_badges(study["counts"]),
            (study["first_at"] or figures.NONE)[:16].replace("T", " "),
        )
        for study in studies
    ]
    return table("Studies", columns, rows, style="studies")


def progress_badges(counts: Mapping[str, int]) -> Html:
    """The number of runs by status, with a bar of those that have ended."""
    total, ended = sum(counts.values()), sum(counts.get(status, 0) for status in ENDED)
    active = sum(counts.get(status, 0) for status in ACTIVE)
    parts: list[Html] = []
    if total and ended == total and counts.get("complete") == total:
        parts.append(badge("complete", "ok"))
    elif ended < total:
        parts.append(tag("progress", value=ended, max=total, aria_label="Runs that have ended"))
        parts.append(badge(f"{ended} of {total}", "now" if active else ""))
    parts += [
        badge(f"{counts[status]} {words}", tone)
        for status, words, tone in (("error", "failed", "bad"), ("cancelled", "cancelled", "warn"))
        if counts.get(status)
    ]
    return tag("span", *parts, class_="progress-badges")


def _form(workspace: Workspace) -> Html:
    """The drawer with the form of a sweep or an arena."""
    skills = [line.name for line in workspace.skills.list()]
    data_venues, usual_venue, from_day, to_day = _usual_data(workspace)
    baselines = sorted({f"policy/{name}" for venue in venues() for name in venue.policies()})
    models = ["standin/analyst", *baselines]
    form = tag(
        "form",
        field("skill", "Skill", select("skill", [(name, name) for name in skills]), wide=True),
        field("from", "From", text_input("from", from_day, type="date", required=True)),
        field("to", "To", text_input("to", to_day, type="date", required=True), "The end, exclusive."),
        field(
            "data_venue",
            "Data of",
            select("data_venue", [(name, name) for name in data_venues], usual_venue),
        ),
        tag(
            "div",
            field("model", "Model", text_input("model", list="models", placeholder="that of the skill")),
            data_kind="sweep",
        ),
        tag(
            "fieldset",
            tag("legend", "What is varied"),
            tag("div", id="axes"),
            button("Add a field", "add-axis", "quiet"),
            tag(
                "p",
                "Values separated by commas, or a range such as 50..200:50. Also model, seed, run.taker_bps.",
                class_="hint",
            ),
            class_="wide",
            data_kind="sweep",
        ),
        tag(
            "div",
            field("random", "Points at random", text_input("random", type="number", min=1), "All of them if empty."),
            data_kind="sweep",
        ),
        tag(
            "div",
            field(
                "search",
                "Points by search",
                text_input("search", type="number", min=1),
                "Each chosen from the results of the earlier ones.",
            ),
            data_kind="sweep",
        ),
        tag(
            "div",
            field(
                "walk_forward",
                "Walk forward",
                text_input("walk_forward", placeholder="30d/10d"),
                "Select on one period, test on the next.",
            ),
            data_kind="sweep",
        ),
        tag(
            "fieldset",
            tag("legend", "Models"),
            tag("div", id="entrants"),
            button("Add a model", "add-model", "quiet"),
            tag("p", "The baselines of the venue take part besides.", class_="hint"),
            class_="wide",
            data_kind="arena",
        ),
        field(
            "repeats",
            "Repeats",
            text_input("repeats", "1", type="number", min=1, max=100),
            "Runs for each, with other seeds.",
        ),
        field("name", "Name", text_input("name"), "Optional. Equal studies with other names are different ones."),
        tag("div", id="study-estimate", class_="wide notice", role="status", hidden=True),
        tag("datalist", *[tag("option", value=name) for name in models], id="models"),
        tag("datalist", *[tag("option", value=path) for path in _paths(workspace, skills)], id="paths"),
        id="study-form",
        class_="form",
    )
    nothing = (
        tag("p", "There is no saved skill yet: save one first, under Skills.", class_="notice") if not skills else None
    )
    return dialog("study", "New study", nothing, form, actions=form_actions("Start", "study-form"), drawer=True)


def _confirmation() -> Html:
    actions = [button("Cancel", "close-dialog"), button("Confirm and start", "confirm-study", "primary")]
    return dialog(
        "confirm",
        "Confirm the cost",
        tag("p", id="confirm-text"),
        tag("ul", id="confirm-basis", class_="plain"),
        actions=actions,
    )


def _usual_data(workspace: Workspace) -> tuple[list[str], str, str, str]:
    """The venues with bars, the one that runs use by default, and the last weeks of its bars."""
    bars = [row for row in holdings(workspace.lake) if row["kind"] == "bars" and row["last_at"]]
    names = sorted({row["venue"] for row in bars})
    usual = next((name for name in (workspace.settings.data_venue, "hyperliquid", *names) if name in names), "")
    ends = [parse_instant(row["last_at"]) for row in bars if row["venue"] == usual]
    if not ends:
        return names, usual, "", ""
    to_at = max(ends) // DAY_MS * DAY_MS
    return names, usual, iso(to_at - USUAL_DAYS * DAY_MS)[:10], iso(to_at)[:10]


def _paths(workspace: Workspace, skills: Sequence[str]) -> list[str]:
    """Fields of the newest skills that can be varied, for suggestions."""
    paths: dict[str, None] = {}
    for name in skills[:5]:
        paths |= dict.fromkeys(_leaves(codec.loads(workspace.skills.get(name).body)))
    return list(paths)[:MOST_PATHS]


def _leaves(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif path.partition(".")[0] not in ("name", "pitboss", "venue", "model") and not isinstance(value, list):
        yield path
