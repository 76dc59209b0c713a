"""`/deployments` and `/deployments/{id}`: what runs live, and one deployment with its account, its entries and its commands.

`deployments.js` fetches the parts that change again and sends commands; what a deployment does is decided elsewhere.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.deployment import COMMAND_MEANINGS, Command
from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import section
from pitboss.report.table import LEFT, facts, table
from pitboss.runs.deployment_activity import activity_details, foreground_rows, listed_rows
from pitboss.server.access.caller import OwnWorkspace, Viewer
from pitboss.server.access.reauthentication import has_password
from pitboss.server.api.lookup import named_deployment
from pitboss.server.pages.components import (
    button,
    dialog,
    empty_state,
    field,
    form_actions,
    link_button,
    notice,
    page_head,
    short_time,
    text_input,
)
from pitboss.server.pages.deployment_account import account_view
from pitboss.server.pages.deployment_caps import SCRIPT as CAPS_SCRIPT
from pitboss.server.pages.deployment_caps import caps_drawer, caps_view
from pitboss.server.pages.deployment_entries import entry_list
from pitboss.server.pages.deployment_parts import (
    STYLE,
    deployment_table,
    mode_badge,
    money,
    state_badge,
)
from pitboss.server.pages.frame import app_page
from pitboss.server.pages.skill_links import skill_path
from pitboss.store.deployments import MAX_REASON_CHARS, Deployment

router = APIRouter()
PATH = "/deployments"
Plain = Mapping[str, Any]
POSSIBLE: Mapping[Command, str] = {
    "pause": "running",
    "resume": "paused halted",
    "snapshot": "running paused halted",
    "acknowledge": "running paused halted",
    "flatten": "running paused halted",
    "stop": "running paused halted",
    "kill": "running paused halted",
}
"""The states in which a command does something."""
TONES: Mapping[str, str] = {"resume": "primary", "flatten": "danger", "stop": "danger", "kill": "danger"}


@router.get(PATH)
def deployments(caller: Viewer, workspace: OwnWorkspace) -> HTMLResponse:
    """The list of deployments; `live.js` keeps it current."""
    content = tag("div", _list(workspace), data_live=f"{PATH}/now")
    return app_page(caller, "Deployments", PATH, content, scripts=("live.js",), styles=(STYLE,))


@router.get(f"{PATH}/now")
def deployments_now(caller: Viewer, workspace: OwnWorkspace) -> HTMLResponse:
    """The content of the list alone."""
    del caller
    return HTMLResponse(tag("div", _list(workspace)))


def _list(workspace: Workspace) -> Html:
    about = "Skills that run on live data, with the process that works on them. Halted ones wait for a person."
    rows = sorted(listed_rows(workspace), key=lambda row: _RANK.get(row["state"], 0))
    rows += foreground_rows(workspace)
    if not rows:
        steps = "Open a skill and choose Deploy. On paper it needs no account, no key and no money."
        content = empty_state("Nothing is deployed", steps, link_button("Skills", "/skills", "primary"))
    else:
        content = deployment_table(rows)
    return join([page_head("Deployments", about=about), tag("section", content, class_="card")])


_RANK = {"halted": -3, "running": -2, "paused": -1}
"""Which deployments come first in the list; those of one state stay in their order."""


@router.get(f"{PATH}/{{deployment_id}}")
def deployment_page(request: Request, deployment_id: str, caller: Viewer, workspace: OwnWorkspace) -> HTMLResponse:
    """One deployment."""
    deployment = named_deployment(workspace, deployment_id)
    details = activity_details(workspace, deployment)
    may_command = caller.may("operator")
    content = tag(
        "div",
        _bar(details),
        tag("div", _state(details), data_part="state"),
        _controls(details) if may_command else None,
        tag("div", _account(details), data_part="account"),
        tag("div", caps_view(details, may_command), data_part="caps"),
        tag("div", _entries(details), data_part="entries"),
        class_="deployment",
        data_deployment=deployment.id,
        data_run=deployment.run_id,
        data_mode=deployment.mode,
        data_account=deployment.account,
    )
    drawers = [_drawer(deployment), caps_drawer(details, deployment, has_password(request, caller))]
    drawer = join(drawers) if may_command else None
    title = f"{deployment.skill} {deployment.id}"
    scripts = ("deployments.js", CAPS_SCRIPT)
    return app_page(caller, title, PATH, content, drawer, scripts=scripts, styles=(STYLE,))


@router.get(f"{PATH}/{{deployment_id}}/now")
def deployment_now(deployment_id: str, caller: Viewer, workspace: OwnWorkspace) -> HTMLResponse:
    """The parts of the page that change."""
    details = activity_details(workspace, named_deployment(workspace, deployment_id))
    caps = caps_view(details, caller.may("operator"))
    changing = {"state": _state(details), "account": _account(details), "caps": caps, "entries": _entries(details)}
    parts = [tag("div", part, data_part=name) for name, part in changing.items()]
    return HTMLResponse(join(parts))


def _bar(details: Plain) -> Html:
    return tag(
        "div",
        tag("a", "Deployments", href=PATH),
        tag("span", "/", class_="muted", aria_hidden="true"),
        tag("code", details["deployment_id"]),
        tag(
            "div",
            link_button("Records and chart", f"/runs/{details['run_id']}"),
            link_button("Skill", f"{skill_path(details['skill'])}?version={details['skill_version']}"),
            class_="actions",
        ),
        class_="bar",
    )


def _state(details: Plain) -> Html:
    """The state, why it is so, and the figures."""
    state, attended = details["state"], details["attended"]
    head = tag(
        "header",
        tag("h1", details["skill"], tag("small", f" @{details['skill_version']}")),
        tag("p", mode_badge(details["mode"], state), state_badge(state), class_="badges"),
        class_="deployment-head",
    )
    about = [("Account", details["account"] or "paper money"), ("Venue", details["venue"]), ("Model", details["model"])]
    every = details["every_s"]
    tiles = [
        _tile("Equity", money(details["equity"], details["venue"]), "after the last record"),
        _tile("Last record", short_time(details["last_record_at"]), f"one tick every {_period(every)}" if every else ""),
        _tile("Process", "yes" if attended else "no", join(["reported ", short_time(details["heartbeat_at"])])),
        _tile("Spent on the model", figures.usd(details["cost_usd"]), f"run {details['status'] or 'is gone'}".replace("_", " ")),
    ]  # fmt: skip
    return tag(
        "div",
        head,
        facts(about),
        _why(details),
        _alarm(details["alarm"]),
        tag("div", *tiles, class_="tiles even"),
        data_state=state,
        data_attended="yes" if attended else "no",
    )


def _why(details: Plain) -> Html | None:
    """Why it is not running, or why nothing happens although it is."""
    state = details["state"]
    since = short_time(details["changed_at"])
    words = details["reason"] or ""
    code = [tag("code", details["code"]), " "] if details["code"] else []
    if state == "halted":
        lead = tag("strong", "Halted. ")
        rest = " since ", since, ". Nothing opens until a person resumes it with a reason."
        return notice(lead, *code, words, *rest, tone="bad")
    if state in ("paused", "stopped"):
        return notice(tag("strong", f"{state.capitalize()}. "), *code, words, " since ", since, ".")
    if not details["attended"]:
        lead = "No process works on it now. One of this machine begins within seconds, or "
        error = tag("p", "Last error: ", details["error_text"], class_="after") if details["error_text"] else ""
        return notice(lead, tag("code", "pitboss live host"), " runs one.", error)
    return None


def _alarm(alarm: Plain | None) -> Html | None:
    """An alarm, unless a person has acknowledged it."""
    if alarm is None or alarm["read_at"] is not None:
        return None
    rest = " since ", short_time(alarm["raised_at"]), ". Acknowledge it: unread for a minute, it halts the deployment."
    return notice(tag("strong", "Alarm. "), alarm["text"], *rest, tone="bad")


def _tile(name: str, value: object, below: object) -> Html:
    return tag("div", tag("h2", name), tag("p", value, class_="value"), tag("p", below, class_="below"), class_="tile")


def _period(seconds: float) -> str:
    return f"{figures.amount(seconds)} s" if seconds < 60 else figures.span(seconds * 1_000)


def _controls(details: Plain) -> Html:
    state = details["state"]
    buttons = [
        button(
            command.capitalize(),
            "command",
            TONES.get(command, ""),
            data_command=command,
            data_states=states,
            disabled=state not in states.split(),
            title=COMMAND_MEANINGS[command],
        )
        for command, states in POSSIBLE.items()
    ]
    reason = field(
        "reason",
        "Reason",
        text_input("reason", maxlength=MAX_REASON_CHARS, placeholder="What you saw, and what you did"),
        "It is recorded with the command. Required to resume after a halt.",
    )
    return section(
        "controls", "Commands", tag("div", reason, tag("div", *buttons, class_="buttons"), class_="controls")
    )


def _drawer(deployment: Deployment) -> Html:
    """The question before flatten, stop and kill, and before resuming after a halt or with real money."""
    form = tag(
        "form",
        tag("p", id="command-meaning", class_="sentence"),
        tag("p", "Real orders are sent again: ", tag("strong", deployment.account), class_="notice bad", id="command-live", hidden=True)
        if deployment.mode == "live"
        else None,
        field(
            "command-reason",
            "Reason",
            text_input("command-reason", maxlength=MAX_REASON_CHARS),
            "It is recorded with the command.",
        ),
        tag(
            "div",
            field(
                "command-confirm",
                f"Type {deployment.account} to confirm",
                text_input("command-confirm", spellcheck="false", autocapitalize="off"),
            ),
            id="command-confirm-field",
            hidden=True,
        ),
        tag("p", id="command-problem", class_="notice bad", role="alert", hidden=True),
        id="command-form",
        class_="stack",
    )  # fmt: skip
    meanings = [tag("li", text, data_meaning=name) for name, text in COMMAND_MEANINGS.items()]
    hidden = tag("ul", *meanings, hidden=True, id="command-meanings")
    return dialog(
        "command", "Command", hidden, form, actions=form_actions("Send", "command-form", "command-send"), drawer=True
    )


def _account(details: Plain) -> Html:
    parts = [
        section("sent", "Commands sent", _commands(details["commands"])),
        section("account", "Account", account_view(details["account_after"], details["venue"])),
    ]
    return join(parts)


def _entries(details: Plain) -> Html:
    return section("entries", "Newest entries", entry_list(details["entries"], details["venue"]))


def _commands(commands: Sequence[Plain]) -> Html:
    if not commands:
        return tag("p", "No command has been sent.", class_="note")
    columns = [("Sent (UTC)", LEFT), ("Command", LEFT), ("By", LEFT), ("State after", LEFT), ("Reason", LEFT)]
    rows = [
        (
            short_time(each["sent_at"]),
            each["command"],
            each["user_name"],
            state_badge(each["state"]) if each["state"] else tag("span", "waits for a process", class_="badge"),
            tag("span", each["reason"], tag("small", f" {each['note']}" if each["note"] else ""), class_="why"),
        )
        for each in commands
    ]
    return table("Commands", columns, rows, style="sent")
