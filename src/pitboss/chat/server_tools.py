"""The tools of MCP servers for the chat: those of the skill in question, called now, and only those that change nothing.

A tool is offered if the user has approved its definition and that definition says that it is read-only. A definition that says
nothing about it, or says otherwise, is not offered here, whatever the skill's own agent may call.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from pitboss.bootstrap.mcp_tools import open_server_tools, requested_tools
from pitboss.chat.context import ReadContext
from pitboss.core.ports import Tool
from pitboss.runs.venues import venue_of
from pitboss.skill.load import read_skill
from pitboss.tools.mcp.definition import Definition


def changes_nothing(definition: Definition | None) -> bool:
    """Whether an approved definition says that its tool is read-only."""
    annotations = None if definition is None else definition.raw.get("annotations")
    if not isinstance(annotations, Mapping):
        return False
    return annotations.get("readOnlyHint") is True and annotations.get("destructiveHint") is not True


@asynccontextmanager
async def server_tools(context: ReadContext) -> AsyncIterator[dict[str, Tool]]:
    """The tools while their servers are connected; none for a conversation about no run, or a skill without servers."""
    plain = context.run().params["skill"] if context.about else {}
    if not (plain.get("tools") or {}).get("mcp_servers"):
        yield {}
        return
    venue = venue_of(plain)
    skill = read_skill(plain, venue.skill_type())
    readable = {
        tool.name for tool in requested_tools(context.workspace, skill, venue.tools()) if changes_nothing(tool.approved)
    }
    if not readable:
        yield {}
        return
    async with open_server_tools(context.workspace, skill, venue.tools(), simulated=False) as connected:
        tools = connected.at(context.workspace.now())
        yield {name: tool for name, tool in tools.items() if name in readable}
