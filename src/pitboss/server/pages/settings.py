"""`/settings`: the caller's own account and tokens, and for those who may: budgets, keys, users, MCP approvals, the audit log.

The page shows; its script (`settings.js`) sends what is changed to the API, so that there is one place that changes anything.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from pitboss.bootstrap.accounts import token_document
from pitboss.bootstrap.settings_file import EDITABLE, source_of
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.money import text as money_text
from pitboss.core.role import ROLES, Role
from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import section
from pitboss.report.table import LEFT, facts, table
from pitboss.server.access.caller import Caller, OwnWorkspace, Viewer
from pitboss.server.pages import settings_admin as admin
from pitboss.server.pages.components import (
    badge,
    button,
    dialog,
    empty_state,
    field,
    page_head,
    select,
    short_time,
    text_input,
)
from pitboss.server.pages.frame import app_page
from pitboss.server.pages.settings_forms import role_select, send_button, send_form
from pitboss.store.passwords import SHORTEST

router = APIRouter()
STATES = {"valid": "ok", "revoked": "bad", "expired": "warn"}
SOURCES = {
    "environment": "Set in the environment of the server, which takes precedence: change it there.",
    "file": "Set in settings.toml of the workspace.",
    "default": "This is the default. A change is written to settings.toml of the workspace.",
}
MEANINGS = {
    "daily_usd": ("Daily budget in USD", "The most that one owner may spend on models in a day. 0: no limit."),
    "confirm_above_usd": (
        "Ask above USD",
        "A run or study whose estimated cost is higher is started only after a confirmation.",
    ),
}


@dataclass(frozen=True, slots=True)
class SettingsTab:
    """A part of the page, and the role that it needs."""

    key: str
    name: str
    role: Role
    content: Callable[[Request, Caller, Workspace], Html]


@router.get("/settings")
def settings(
    request: Request, caller: Viewer, workspace: OwnWorkspace, tab: Annotated[str, Query(max_length=20)] = ""
) -> HTMLResponse:
    """One part of the settings; the first if none is named or the caller may not see it."""
    tabs = [each for each in TABS if caller.may(each.role)]
    current = next((each for each in tabs if each.key == tab), tabs[0])
    links = [
        tag(
            "a",
            each.name,
            href=f"/settings?tab={each.key}",
            aria_current="page" if each is current else None,
        )
        for each in tabs
    ]
    return app_page(
        caller,
        f"{current.name} – Settings",
        "/settings",
        page_head("Settings"),
        tag("nav", *links, class_="tabs", aria_label="Settings"),
        current.content(request, caller, workspace),
        _dialogs(),
        scripts=("settings.js",),
        styles=("settings.css",),
    )


def _account(request: Request, caller: Caller, workspace: Workspace) -> Html:
    del request
    rows: list[tuple[str, object]] = [
        ("Name", caller.name),
        ("Role", caller.role),
        ("Sees what belongs to", caller.owner),
    ]
    if caller.may("admin"):
        rows.append(("Workspace", tag("code", str(workspace.home))))
    about = facts(rows)
    leave = tag(
        "form",
        tag("input", type="hidden", name="csrf", value=caller.csrf),
        tag("button", "Sign out", type="submit"),
        method="post",
        action="/sign-out",
        class_="after",
    )
    parts = [section("me", "Your account", join([about, leave]))]
    if caller.name == "local":
        note = (
            "You came by the link of the terminal, which needs no password. Users with passwords are added under Users."
        )
        parts.append(section("password", "Password", tag("p", note, class_="note")))
    else:
        parts.append(section("password", "Password", _password_form()))
    return join(parts)


def _password_form() -> Html:
    hint = f"At least {SHORTEST} characters. Your other sessions end."
    present = text_input("present", type="password", autocomplete="current-password", required=True)
    new = text_input("password", type="password", autocomplete="new-password", required=True, minlength=SHORTEST)
    return send_form(
        "PUT /api/me/password",
        "Change the password",
        field("present", "Present password", present),
        field("password", "New password", new, hint),
        done="The password is changed.",
    )


def _budgets(request: Request, caller: Caller, workspace: Workspace) -> Html:
    del request
    today = workspace.budget()
    spent = facts(
        [
            ("Spent today", f"${money_text(today.spent_usd)}"),
            ("Reserved by runs that have not ended", f"${money_text(today.reserved_usd)}"),
        ],
        "facts wide",
    )
    forms = [_budget_form(workspace, key, caller.may("admin")) for key in EDITABLE]
    return join([section("today", "Today", spent), section("budgets", "Budgets", tag("div", *forms, class_="stack"))])


def _budget_form(workspace: Workspace, key: str, may_change: bool) -> Html:
    label, meaning = MEANINGS[key]
    source = source_of(workspace.settings, key)
    changeable = may_change and source != "environment"
    value = money_text(getattr(workspace.settings, key))
    control = text_input(
        f"{key}-value", value, inputmode="decimal", disabled=not changeable, required=True, data_name="value"
    )
    place = tag("span", SOURCES[source], class_="hint")
    body = (field(f"{key}-value", label, control, meaning), place)
    if not changeable:
        return tag("div", *body, class_="budget")
    return send_form(f"PUT /api/settings/{key}", "Save", *body, style="budget", done="The budget is changed.")


def _tokens(request: Request, caller: Caller, workspace: Workspace) -> Html:
    del workspace
    accounts = request.app.state.credentials.accounts
    rows = [token_document(token, accounts.now()) for token in accounts.tokens.list(caller.name)]
    columns = [(name, LEFT) for name in ("Label", "Role", "Scopes", "State", "Last used", "Expires", "Created", "")]
    cells = [
        (
            tag("span", row["label"], class_="wrap"),
            row["role"],
            tag("span", ", ".join(row["scopes"]), class_="wrap") if row["scopes"] else "all of its role",
            badge(row["state"], STATES[row["state"]]),
            short_time(row["last_used_at"], "never"),
            short_time(row["expires_at"], "never"),
            short_time(row["created_at"]),
            send_button("Revoke", f"DELETE /api/tokens/{row['id']}", f"Revoke the token “{row['label']}”?", "danger")
            if row["state"] == "valid"
            else "",
        )
        for row in rows
    ]
    listed = (
        table("Your tokens", columns, cells)
        if cells
        else empty_state("No tokens", "A token lets a program use the API as you, within a role.")
    )
    roles: list[Role] = [role for role in ROLES if caller.may(role)]
    days = select(
        "days", [("", "never"), ("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "a year")], "90"
    )
    new = send_form(
        "POST /api/tokens",
        "Create a token",
        field("label", "What it is for", text_input("label", required=True, maxlength=200)),
        field("role", "It may at most", role_select("role", roles)),
        field("days", "It expires after", days),
        _scope_choice([scope for scope, role in request.app.state.scopes.items() if caller.may(role)]),
        after="token",
    )
    return join([section("tokens", "Your tokens", listed), section("new-token", "New token", new)])


def _scope_choice(scopes: list[str]) -> Html:
    boxes = [
        tag("label", tag("input", type="checkbox", name="scopes", value=scope, data_many="1"), tag("span", scope))
        for scope in scopes
    ]
    hint = "It is limited to what is ticked; write includes read. Nothing ticked: whatever its role allows."
    return tag(
        "fieldset",
        tag("legend", "Scopes"),
        tag("div", *boxes, class_="scopes"),
        tag("span", hint, class_="hint"),
        class_="wide field",
    )


def _dialogs() -> Html:
    yes = tag("button", "Yes", type="button", class_="danger", id="confirm-yes")
    no = button("Cancel", "close-dialog")
    token_field = tag("input", id="token-value", readonly=True, class_="code", aria_label="The new token", value="")
    copy = tag("button", "Copy", type="button", id="token-copy", class_="primary")
    return join(
        [
            dialog("confirm", "Are you sure?", tag("p", id="confirm-text"), actions=(no, yes)),
            dialog(
                "token",
                "The new token",
                tag("p", "Copy it now: it is not shown again.", class_="note"),
                token_field,
                actions=(copy,),
            ),
            dialog("tools", "Tools of the server", tag("div", id="tools-list", class_="stack"), drawer=True),
        ]
    )


TABS = (
    SettingsTab("account", "Account", "viewer", _account),
    SettingsTab("tokens", "Tokens", "viewer", _tokens),
    SettingsTab("budgets", "Budgets", "viewer", _budgets),
    SettingsTab("keys", "Provider keys", "admin", admin.keys),
    SettingsTab("mcp", "MCP approvals", "viewer", admin.mcp),
    SettingsTab("users", "Users", "admin", admin.users),
    SettingsTab("audit", "Audit log", "admin", admin.audit),
)
