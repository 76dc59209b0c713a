"""The catalogue of tools: the built-in ones of every venue, and those of MCP servers with their server."""

from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.runs.venue import Venue
from pitboss.runs.venues import venue_named, venues
from pitboss.tools.define import Mode
from pitboss.tools.registry import catalogue


def built_in_rows(venue: str = "", mode: Mode | None = None) -> list[dict[str, Any]]:
    """The built-in tools of a venue, or of all of them, that may be used in a mode."""
    selected = [venue_named(venue)] if venue else venues()
    rows = [{"venue": entry.name, **tool} for entry in selected for tool in catalogue(entry.tools())]
    return [row for row in rows if mode is None or mode in row["modes"]]


def tool_rows(workspace: Workspace, venue: str = "", mode: Mode | None = None) -> list[dict[str, Any]]:
    """All tools that agents may have. MCP tools come last; they belong to every venue whose skills name MCP servers."""
    from pitboss.runs.mcp_list import server_tool_rows

    built_in = [{**row, "server": None, "approved": True} for row in built_in_rows(venue, mode)]
    if venue and not takes_servers(venue_named(venue)):
        return built_in
    external = [{"venue": None, **row} for row in server_tool_rows(workspace)]
    return built_in + [row for row in external if mode is None or mode in row["modes"]]


def takes_servers(venue: Venue) -> bool:
    """Whether skills of a venue may name MCP servers."""
    from pitboss.skill.spelling import fields

    return ("tools", "mcp_servers") in dict(fields(venue.skill_type()))


def one_tool(name: str, venue: str = "") -> dict[str, Any]:
    """One built-in tool by name. Raises `UserError` if there is none, or if several venues have one of that name."""
    from pitboss.tools.registry import lookup

    offered = [venue_named(venue)] if venue else venues()
    rows = [row for row in built_in_rows(venue) if row["name"] == name]
    if len(rows) > 1:
        names = ", ".join(row["venue"] for row in rows)
        raise UserError(
            f"several venues have a tool {name}: give venue, one of {names}", f"for example {rows[0]['venue']}"
        )
    if not rows:
        lookup({key: tool for entry in offered for key, tool in entry.tools().items()}, name)
    return rows[0]
