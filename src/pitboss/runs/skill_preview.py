"""The prompt of one tick as every surface shows it: `skill preview`, the editor of the web app, the MCP server."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import Instant, iso
from pitboss.runs.preview import Preview
from pitboss.runs.tick_cost import tick_cost
from pitboss.runs.venues import venue_of
from pitboss.skill.load import read_skill

if TYPE_CHECKING:
    from pitboss.data.lake import Lake
    from pitboss.sim.connections import ServerTools

NO_FIELDS: Mapping[str, Any] = {}


def preview_skill(
    plain: Mapping[str, Any],
    lake: "Lake",
    settings: Settings,
    open_workspace: Callable[[], AbstractContextManager[Workspace]],
    *,
    at: Instant | None = None,
    data_venue: str = "",
    fields: Mapping[str, Any] = NO_FIELDS,
) -> Preview:
    """Byte for byte what a model would receive at the first tick of a run that starts at `at`, by default the newest.

    `open_workspace` is called only for a skill that has MCP servers; `fields` are further fields of the request.
    """
    venue = venue_of(plain)
    request = venue.request_type()(skill=plain, from_at=0, to_at=1, data_venue=data_venue, **fields)
    return venue.preview(request, lake, settings, at, _server_tools(plain, open_workspace))


def preview_document(prompt: Preview, plain: Mapping[str, Any], settings: Settings, model: str = "") -> dict[str, Any]:
    """The output of `pitboss skill preview --json`."""
    return {
        "system": prompt.system,
        "user": prompt.user,
        "tools": list(prompt.tools),
        "tokens_estimate": prompt.tokens_estimate,
        "at": iso(prompt.at),
        "cost_per_tick": tick_cost(settings, plain, prompt.tokens_estimate, model),
    }


def _server_tools(
    plain: Mapping[str, Any], open_workspace: Callable[[], AbstractContextManager[Workspace]]
) -> "ServerTools | None":
    """The tools that the MCP servers of a skill offer to a backtest."""
    if not plain.get("tools", {}).get("mcp_servers"):
        return None
    from pitboss.bootstrap.mcp_tools import preview_server_tools

    venue = venue_of(plain)
    with open_workspace() as workspace:
        return asyncio.run(preview_server_tools(workspace, read_skill(plain, venue.skill_type()), venue.tools()))
