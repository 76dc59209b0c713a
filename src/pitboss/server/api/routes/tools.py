"""`/api/tools`: the catalogue of the tools that agents may have, those of MCP servers included."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from pitboss.runs.tool_catalogue import tool_rows
from pitboss.runs.venues import installed
from pitboss.server.access.caller import OwnWorkspace
from pitboss.server.problem import Problem, responses

router = APIRouter(prefix="/tools", tags=["catalogue"], responses=responses())


class CatalogTool(BaseModel):
    """A tool: what it does, when it may be used and what it takes. `server` is null for built-in tools."""

    name: str = Field(examples=["fetch_recent_bars"])
    venue: str | None = Field(examples=["perp"], description="Null for tools of MCP servers, which any venue may use.")
    category: str = Field(examples=["market_data"])
    description: str
    ui_hint: str
    modes: list[Literal["read", "write"]]
    reach: str = Field(examples=["as_of"])
    input_schema: dict[str, Any]
    example: Any = None
    server: str | None = Field(None, examples=["hyperliquid-info"])
    tool: str | None = Field(None, description="Its name at the server.")
    approved: bool = Field(description="Whether a person or the catalogue has approved its definition.")


@router.get("/catalog", response_model=list[CatalogTool], operation_id="list_tools", summary="List tools")
def catalog(
    workspace: OwnWorkspace,
    venue: Annotated[str, Query(max_length=64, description="Only tools for skills of this venue.")] = "",
    mode: Annotated[Literal["read", "write"] | None, Query(description="Only tools of this mode.")] = None,
) -> list[dict[str, Any]]:
    """Every tool of every venue and of the MCP servers of the catalogue. No server is contacted."""
    if venue and venue not in installed():
        raise Problem(422, "user_error", f"there is no venue {venue!r}", f"installed: {', '.join(installed())}")
    return tool_rows(workspace, venue, mode)
