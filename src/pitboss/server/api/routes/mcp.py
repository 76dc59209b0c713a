"""`/api/mcp`: the MCP servers of the catalogue, whose tools a skill may use."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field

from pitboss.runs.mcp_list import server_rows
from pitboss.server.access.caller import OwnWorkspace
from pitboss.server.problem import responses

router = APIRouter(prefix="/mcp", tags=["mcp"], responses=responses())


class ListedServerTool(BaseModel):
    """A tool that a server may offer, and whether it is approved."""

    name: str
    state: str = Field(examples=["approved"])
    pinned: bool
    approved_at: str | None
    as_of_safe: bool


class NamedValue(BaseModel):
    """A key or variable by its name, and whether it is set."""

    name: str
    present: bool


class ListedServer(BaseModel):
    """A server of the catalogue. `unusable` says what it lacks."""

    id: str = Field(examples=["hyperliquid-info"])
    title: str
    transport: str
    origin: str
    tools: list[ListedServerTool]
    key: NamedValue | None
    variables: list[NamedValue]
    unusable: str
    note: str


@router.get("/servers", response_model=list[ListedServer], operation_id="list_mcp_servers", summary="List MCP servers")
def list_servers(workspace: OwnWorkspace) -> list[dict[str, Any]]:
    """The list of `pitboss mcp list`. No server is started or contacted."""
    return server_rows(workspace)
