"""The parts of the settings page for those who manage the workspace: keys, users, MCP approvals, the audit log."""

import json
from typing import Any
from urllib.parse import quote

from fastapi import Request

from pitboss.bootstrap.accounts import user_document
from pitboss.bootstrap.key_entries import known_keys
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import iso
from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import section
from pitboss.report.table import LEFT, table
from pitboss.runs.mcp_list import server_rows
from pitboss.server.access.caller import Caller
from pitboss.server.pages.components import (
    badge,
    empty_state,
    field,
    link_button,
    notice,
    select,
    short_time,
    text_input,
)
from pitboss.server.pages.settings_forms import ROLE_TEXTS, role_select, send_button, send_form
from pitboss.store.passwords import SHORTEST

ENTRIES = 100
ROLE_CHOICES = [("", "stays as it is"), *ROLE_TEXTS.items()]
TOOL_STATES = {"approved": "ok", "changed": "bad", "not approved": "warn"}


def keys(request: Request, caller: Caller, workspace: Workspace) -> Html:
    """Provider keys: which are set, and forms to set and remove them. No value is ever shown."""
    del request, caller
    rows = known_keys(workspace.settings)
    columns = [(name, LEFT) for name in ("Key", "State", "", "Used by", "Sent to")]
    cells = [
        (
            tag("code", row["name"]),
            _key_state(row),
            send_button("Remove", f"DELETE /api/keys/{row['name']}", f"Remove {row['name']}?", "danger")
            if row["set_at"]
            else "",
            ", ".join(row["providers"]) or "none",
            tag("span", ", ".join(row["hosts"]) or "nowhere", class_="wrap"),
        )
        for row in sorted(rows, key=lambda row: (row["set_at"] is None, not row["in_environment"], row["name"]))
    ]
    names = tag("datalist", *[tag("option", value=row["name"]) for row in rows], id="key-names")
    form = send_form(
        "PUT /api/keys/{name}",
        "Store the key",
        field(
            "name",
            "Key",
            text_input("name", required=True, list="key-names", maxlength=64),
            "A provider or a variable.",
        ),
        field(
            "value",
            "Value",
            text_input("value", type="password", autocomplete="off", required=True),
            "Stored encrypted. It cannot be read back here or by any other route.",
        ),
        names,
        done="The key is stored.",
    )
    return join(
        [section("set-key", "Set a key", form), section("keys", "Provider keys", table("Keys", columns, cells))]
    )


def _key_state(row: dict[str, Any]) -> Html:
    if row["in_environment"]:
        return badge("in the environment", "now")
    return badge(f"set {row['set_at'][:10]}", "ok") if row["set_at"] else badge("not set")


def users(request: Request, caller: Caller, workspace: Workspace) -> Html:
    """Users: adding one, roles, disabling, new passwords."""
    del workspace
    rows = [user_document(user) for user in request.app.state.credentials.accounts.users.list()]
    columns = [(name, LEFT) for name in ("Name", "Role", "Sees", "State", "Created", "")]
    cells = [
        (
            row["name"],
            row["role"],
            row["owner"],
            badge("disabled", "bad") if row["disabled"] else badge("active", "ok"),
            short_time(row["created_at"]),
            _user_actions(row, caller),
        )
        for row in rows
    ]
    listed = (
        table("Users", columns, cells)
        if cells
        else empty_state("No users yet", "Until there is one, only the link that the terminal prints opens the app.")
    )
    form = send_form(
        "POST /api/users",
        "Add the user",
        field(
            "name", "Name", text_input("name", required=True, maxlength=64), "Lower-case letters, digits and . _ @ -"
        ),
        field("role", "Role", role_select("role")),
        field(
            "owner", "Sees what belongs to", text_input("owner", maxlength=64), "Empty: its own. local: what is here."
        ),
        field(
            "password",
            "Password",
            text_input("password", type="password", autocomplete="new-password", required=True, minlength=SHORTEST),
            f"At least {SHORTEST} characters.",
        ),
    )
    change = send_form(
        "PATCH /api/users/{user}",
        "Change the user",
        field("user", "User", select("user", [(row["name"], row["name"]) for row in rows])),
        field("new-role", "New role", select("new-role", ROLE_CHOICES, data_name="role", data_optional="1")),
        field(
            "new-password",
            "New password",
            text_input(
                "new-password",
                type="password",
                autocomplete="new-password",
                minlength=SHORTEST,
                data_name="password",
                data_optional="1",
            ),
            "Empty: it stays. With a new one all sessions of the user end.",
        ),
    )
    parts = [section("users", "Users", listed), section("add-user", "Add a user", form)]
    return join([*parts, section("change-user", "Change a user", change)] if rows else parts)


def _user_actions(row: dict[str, Any], caller: Caller) -> object:
    if row["name"] == caller.name:
        return tag("span", "you", class_="muted")
    path, name = f"PATCH /api/users/{quote(row['name'], safe='')}", row["name"]
    if row["disabled"]:
        return send_button("Enable", path, body=json.dumps({"disabled": False}))
    question = f"Disable {name}? Its sessions end, and its tokens are refused."
    return send_button("Disable", path, question, "danger", json.dumps({"disabled": True}))


def mcp(request: Request, caller: Caller, workspace: Workspace) -> Html:
    """The tools of MCP servers and whether they are approved."""
    del request
    may_approve = caller.may("operator")
    rows = server_rows(workspace)
    about = tag(
        "p",
        "A tool of an MCP server is offered to an agent only in exactly the form that a person has read and approved. "
        + ("" if may_approve else "Approving needs the role operator."),
        class_="note",
    )
    if not rows:
        return join([about, empty_state("No servers", "The setting mcp_catalog names a file with servers.")])
    cards = [section(f"server-{number}", row["title"], _server(row, may_approve)) for number, row in enumerate(rows)]
    return join([about, *cards])


def _server(row: dict[str, Any], may_approve: bool) -> Html:
    columns = [(name, LEFT) for name in ("Tool", "State", "Approved", "")]
    cells = [
        (
            tag("code", tool["name"]),
            badge(tool["state"], TOOL_STATES.get(tool["state"], "")),
            "by the catalogue" if tool["pinned"] and not tool["approved_at"] else short_time(tool["approved_at"], ""),
            send_button(
                "Withdraw",
                f"DELETE /api/mcp/approvals/{quote(row['id'], safe='')}/{quote(tool['name'], safe='')}",
                f"Withdraw the approval of {tool['name']}?",
                "danger",
            )
            if may_approve and tool["approved_at"] and not tool["pinned"]
            else "",
        )
        for tool in row["tools"]
    ]
    path = f"POST /api/mcp/approvals/{quote(row['id'], safe='')}/inspect"
    look = send_button("Look at its tools now", path, after="tools")
    key = row["key"]
    needs = [f"{key['name']} is {'set' if key['present'] else 'not set'}"] if key else []
    needs += [f"{name['name']} is {'set' if name['present'] else 'not set'}" for name in row["variables"]]
    return join(
        [
            tag("p", tag("code", row["id"]), " ", badge(row["transport"]), class_="note"),
            tag("p", row["note"], class_="note") if row["note"] else tag("p", hidden=True),
            tag("p", "; ".join(needs), class_="note") if needs else tag("p", hidden=True),
            notice(row["unusable"]) if row["unusable"] else tag("p", hidden=True),
            table("Tools", columns, cells) if cells else tag("p", "It may offer no tools.", class_="note"),
            tag("div", look, class_="after") if may_approve and not row["unusable"] else tag("p", hidden=True),
        ]
    )


def audit(request: Request, caller: Caller, workspace: Workspace) -> Html:
    """Who has changed what, newest first."""
    del caller, workspace
    before = request.query_params.get("before", "")
    entries = request.app.state.audit.listing(ENTRIES, int(before) if before.isdecimal() and len(before) < 18 else None)
    columns = [(name, LEFT) for name in ("When", "Who", "From", "What", "Object", "Detail")]
    cells = [
        (
            short_time(iso(entry.at)),
            entry.user_name,
            entry.address,
            tag("code", entry.action, class_="wrap"),
            tag("span", entry.object, class_="wrap"),
            tag("span", entry.detail, "" if entry.intact else " (changed after it was written)", class_="wrap"),
        )
        for entry in entries
    ]
    if not cells:
        return section("audit", "Audit log", empty_state("Nothing yet", "Every write by anybody is listed here."))
    older = (
        tag("p", link_button("Older entries", f"/settings?tab=audit&before={entries[-1].id}"), class_="after")
        if len(entries) == ENTRIES
        else tag("p", hidden=True)
    )
    return section("audit", "Audit log", join([table("Audit log", columns, cells), older]))
