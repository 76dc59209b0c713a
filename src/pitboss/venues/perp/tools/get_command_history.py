"""Tool `get_command_history`: the commands that people gave to a run, such as pause, resume or close everything.

A simulation has no commands.
"""

from collections.abc import Mapping
from typing import Any

from pitboss.core.instant import iso
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.tools.history_text import count_of

FEW, MOST = 20, 50

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": [],
    "properties": {"count": count_of("commands", MOST, FEW)},
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return one line for each command, newest first."""
    at = context.observation.at
    commands = context.past.commands(at, arguments.get("count", FEW))
    if not commands:
        return f"no commands before {iso(at)}: nobody told this run what to do, and in a simulation nobody can"
    return "\n".join((f"{len(commands)} commands before {iso(at)}, newest first", *map(render.fence, commands)))


TOOL = define_tool(
    name="get_command_history",
    category="introspection",
    description="Get the commands that people gave to the run, newest first. A simulation has none.",
    ui_hint="To tell what an agent did from what a person made it do.",
    modes=("read",),
    schema=SCHEMA,
    example={"count": 10},
    look=look,
)
