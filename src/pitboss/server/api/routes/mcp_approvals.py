"""`/api/mcp/approvals`: reading what an MCP server says of its tools, approving them, and withdrawing an approval."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from pitboss.bootstrap.mcp_servers import catalogue
from pitboss.bootstrap.workspace import Workspace
from pitboss.runs.mcp_approvals import approve_read, inspect_server, inspection_document, withdraw
from pitboss.server.access.caller import Operator, OwnWorkspace
from pitboss.server.problem import Problem, responses

router = APIRouter(prefix="/mcp/approvals", tags=["mcp"], responses=responses())
ServerName = Annotated[str, Path(max_length=64, examples=["hyperliquid-info"])]
ToolName = Annotated[str, Path(max_length=128, examples=["get_markets"])]


class InspectedTool(BaseModel):
    """A tool as its server describes it now."""

    name: str
    state: str = Field(examples=["not approved"])
    digest: str
    definition: str = Field(description="All that is approved, as JSON text.")
    approved_definition: str = Field(description="What was approved before, if it differs.")
    approved_at: str | None


class InspectedServer(BaseModel):
    """A server with its tools as it describes them now."""

    server: str
    tools: list[InspectedTool]


class ReadDefinition(BaseModel):
    """The digest of the definition that was read."""

    digest: str = Field(pattern="^[0-9a-f]{64}$", examples=["5" * 64])


class ApprovalResult(BaseModel):
    """Whether the approval is new."""

    new: bool = Field(examples=[True])


@router.post(
    "/{server}/inspect", response_model=InspectedServer, responses=responses(404), operation_id="inspect_mcp_server"
)
def inspect(caller: Operator, workspace: OwnWorkspace, server: ServerName) -> dict[str, Any]:
    """Contact a server and return its tools, to be read before they are approved."""
    del caller
    _require_known(workspace, server)
    return inspection_document(inspect_server(workspace, server))


@router.put("/{server}/{tool}", response_model=ApprovalResult, operation_id="approve_mcp_tool")
def approve(
    request: Request,
    caller: Operator,
    workspace: OwnWorkspace,
    server: ServerName,
    tool: ToolName,
    definition: ReadDefinition,
) -> dict[str, Any]:
    """Approve the definition of this digest, if the server still reports it."""
    del caller
    request.state.audit = definition.digest
    return {"new": approve_read(workspace, server, tool, definition.digest)}


@router.delete("/{server}/{tool}", status_code=204, responses=responses(404), operation_id="withdraw_mcp_approval")
def withdraw_approval(caller: Operator, workspace: OwnWorkspace, server: ServerName, tool: ToolName) -> None:
    """Withdraw an approval: runs that start from now on are not offered the tool."""
    del caller
    _require_known(workspace, server)
    withdraw(workspace, server, tool)


def _require_known(workspace: Workspace, server: str) -> None:
    if server not in catalogue(workspace.settings):
        raise Problem(404, "not_found", "there is no such server in the catalogue", "`GET /api/mcp/servers` lists them")
