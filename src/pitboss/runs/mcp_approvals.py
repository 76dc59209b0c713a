"""Approving tools of MCP servers: what a server says of its tools now, compared with what was approved, and the decision about it.

An approval is for exactly the definition that a person has read. The catalogue itself is in `mcp_list.py`.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from pitboss.bootstrap.mcp_servers import (
    ToolStatus,
    catalogue,
    find_tool,
    open_connection,
    read_definition,
    tool_statuses,
    write_definition,
)
from pitboss.bootstrap.mcp_tools import store_pinned_definition
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.store.approvals import Approval, Approvals
from pitboss.tools.mcp.definition import Definition
from pitboss.tools.mcp.server_entry import ServerEntry


@dataclass(frozen=True, slots=True)
class Inspection:
    """The tools of a server as it reports them now, and the approvals so far."""

    entry: ServerEntry
    statuses: tuple[ToolStatus, ...]
    approved: dict[str, Approval]


def inspect_server(workspace: Workspace, server: str) -> Inspection:
    """Contact a server. Definitions that the catalogue pins are stored for later runs."""
    entry = catalogue(workspace.settings).find(server)
    definitions = asyncio.run(_current_definitions(workspace, entry))
    for definition in definitions.values():
        store_pinned_definition(workspace, entry, definition)
    approved = Approvals(workspace.database, workspace.now).of(entry.id)
    return Inspection(entry, tuple(tool_statuses(entry, approved, definitions)), approved)


def approve_tool(workspace: Workspace, entry: ServerEntry, definition: Definition) -> bool:
    """Approve a definition; returns whether that is new."""
    approvals = Approvals(workspace.database, workspace.now)
    return approvals.approve(entry.id, definition.name, definition.digest, write_definition(definition))


def approve_read(workspace: Workspace, server: str, tool: str, digest: str) -> bool:
    """Approve the definition of this digest, which a person has read, if the server still reports it."""
    inspection = inspect_server(workspace, server)
    find_tool(inspection.entry, tool)
    definition = next((status.definition for status in inspection.statuses if status.tool == tool), None)
    if definition is None:
        raise UserError(f"{server} has no tool {tool} now", "look at its tools again")
    if definition.digest != digest:
        raise UserError(f"the definition of {tool} has changed since you read it", "read it again")
    return approve_tool(workspace, inspection.entry, definition)


def withdraw(workspace: Workspace, server: str, tool: str) -> None:
    """Withdraw an approval. What the catalogue itself pins stays approved."""
    entry = catalogue(workspace.settings).find(server)
    if tool in entry.pins:
        raise UserError(
            f"{tool} of {entry.id} is approved by the catalogue", "change that in the file of the setting mcp_catalog"
        )
    if not Approvals(workspace.database, workspace.now).withdraw(entry.id, tool):
        raise UserError(f"{tool} of {entry.id} is not approved")


def inspection_document(inspection: Inspection) -> dict[str, Any]:
    """What a person reads before an approval: each tool with its state, its definition, and the approved one if it differs."""
    return {
        "server": inspection.entry.id,
        "tools": [_tool_row(status, inspection.approved.get(status.tool)) for status in inspection.statuses],
    }


def definition_lines(definition: Definition) -> list[str]:
    """A definition as lines of JSON, with invisible characters escaped."""
    document = {"server": definition.server, "version": definition.version, **definition.raw}
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=True).splitlines()


def _tool_row(status: ToolStatus, approval: Approval | None) -> dict[str, Any]:
    definition = status.definition
    differs = approval is not None and definition is not None and approval.digest != definition.digest
    return {
        "name": status.tool,
        "state": status.state,
        "digest": definition.digest if definition else "",
        "definition": "\n".join(definition_lines(definition)) if definition else "",
        "approved_definition": "\n".join(definition_lines(read_definition(approval))) if differs and approval else "",
        "approved_at": iso(approval.approved_at) if approval else None,
    }


async def _current_definitions(workspace: Workspace, entry: ServerEntry) -> dict[str, Definition]:
    async with open_connection(workspace.home, entry) as connection:
        return await connection.definitions()
