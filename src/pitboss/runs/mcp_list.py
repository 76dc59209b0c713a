"""The MCP servers of the catalogue and their tools, as lists show them. No server is started or contacted."""

from typing import Any

from pitboss.bootstrap.mcp_servers import access, approved_definition, catalogue
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import iso
from pitboss.store.approvals import Approval, Approvals
from pitboss.tools.mcp import definition as definitions
from pitboss.tools.mcp.catalog import missing_setup
from pitboss.tools.mcp.server_entry import ServerEntry
from pitboss.tools.mcp.tool_names import name_of


def server_rows(workspace: Workspace) -> list[dict[str, Any]]:
    """The list of `pitboss mcp list`."""
    servers, approvals = catalogue(workspace.settings), Approvals(workspace.database, workspace.now)
    rows: list[dict[str, Any]] = []
    for entry in servers.values():
        credentials, approved = access(workspace.home, entry), approvals.of(entry.id)
        rows.append(
            {
                "id": entry.id,
                "title": entry.title,
                "transport": entry.transport,
                "origin": servers.origin(entry.id),
                "tools": [_approval_row(entry, tool, approved.get(tool)) for tool in entry.tools],
                "key": {"name": entry.secret, "present": credentials.bearer is not None} if entry.secret else None,
                "variables": [{"name": name, "present": name in credentials.variables} for name in entry.env],
                "unusable": missing_setup(entry),
                "note": " ".join(entry.note.split()),
            }
        )
    return rows


def _approval_row(entry: ServerEntry, tool: str, approval: Approval | None) -> dict[str, Any]:
    pin = entry.pins.get(tool)
    differs = pin is not None and approval is not None and approval.digest != pin
    return {
        "name": tool,
        "state": "changed" if differs else "approved" if approval or pin else "not approved",
        "pinned": pin is not None,
        "approved_at": iso(approval.approved_at) if approval else None,
        "as_of_safe": entry.tools[tool].as_of_safe,
    }


def server_tool_rows(workspace: Workspace) -> list[dict[str, Any]]:
    """Every tool that the catalogue allows, in the form of the built-in tools, with its server and whether it is approved.

    The definition is the approved one: what a server says about itself now is not shown before a person has approved it.
    """
    approvals = Approvals(workspace.database, workspace.now)
    rows: list[dict[str, Any]] = []
    for entry in catalogue(workspace.settings).values():
        approved = approvals.of(entry.id)
        for tool, policy in entry.tools.items():
            definition, name = approved_definition(entry, tool, approved.get(tool)), name_of(entry.id, tool)
            spec = definitions.tool_spec(definition, name) if definition else None
            rows.append(
                {
                    "name": name,
                    "category": "external",
                    "description": spec.description if spec else "",
                    "ui_hint": f"{entry.title}. "
                    + ("Backtests may call it." if policy.as_of_safe else "Backtests use its recorded answers."),
                    "modes": ["read", "write"],
                    "input_schema": dict(spec.schema) if spec else {"type": "object"},
                    "example": {},
                    "reach": "recorded",
                    "server": entry.id,
                    "tool": tool,
                    "approved": spec is not None,
                }
            )
    return rows
