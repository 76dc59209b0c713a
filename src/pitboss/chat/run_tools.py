"""The tools of a venue in read mode, at a tick of a stored run, as `pitboss tools call --run` offers them.

Each takes two more arguments: the run, and the tick, by default the latest. The account at that tick is rebuilt by replaying the
recorded decisions. A tool that only decides, or that knows only the present, is never built here.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pitboss.chat.chat_tool import RUN, TICK, ChatTool, ToolFinding
from pitboss.chat.citations import cite
from pitboss.chat.context import ReadContext
from pitboss.core.errors import ToolFailed
from pitboss.core.ports import ToolSpec
from pitboss.runs import tool_context
from pitboss.runs.stored import end_of_run
from pitboss.runs.tool_call import call_tool
from pitboss.runs.venues import venue_of
from pitboss.tools.define import ToolContext, ToolDefinition
from pitboss.tools.history_text import moment

OWN = ("run", "tick")


def run_tools(context: ReadContext) -> dict[str, ChatTool]:
    """The tools of the venue of the run that the conversation is about; none for the whole workspace.

    The prices that a live run saw are not stored, so it has none either: its records are read by the other tools.
    """
    if not context.about:
        return {}
    run = context.run()
    if run.params.get("mode"):
        return {}
    registry = venue_of(run.params["skill"]).tools()
    readable = [
        tool
        for tool in registry.values()
        if "read" in tool.modes
        and not tool.decides
        and tool.reach != "live_only"
        and not {*OWN} & {*tool.schema["properties"]}
    ]
    return {tool.name: ChatTool(_spec(tool), context, _finder(tool)) for tool in readable}


def _spec(tool: ToolDefinition) -> ToolSpec:
    properties = {
        **tool.schema["properties"],
        "run": RUN,
        "tick": {
            **TICK,
            "description": f"{TICK['description']} The tool answers as of this tick; left out: the latest.",
        },
    }
    return ToolSpec(tool.name, tool.description, {**tool.schema, "properties": properties})


def _finder(tool: ToolDefinition) -> Callable[[ReadContext, Mapping[str, Any]], Awaitable[ToolFinding]]:
    async def find(context: ReadContext, arguments: Mapping[str, Any]) -> ToolFinding:
        run = context.run(arguments.get("run", ""))
        registry = venue_of(run.params["skill"]).tools()
        if registry.get(tool.name) is not tool:
            raise ToolFailed(f"run {run.id} is of another venue, which has no tool {tool.name}")
        at = moment(arguments, "tick", lambda: end_of_run(context.workspace, run)) if arguments.get("tick") else None
        bound = await _bound(context, run.id, at)
        own = {name: value for name, value in arguments.items() if name not in OWN}
        text = await call_tool(registry, tool.name, bound, own)
        return ToolFinding(text, [cite(run.id, bound.observation.at)])

    return find


async def _bound(context: ReadContext, run_id: str, at: int | None) -> ToolContext:
    key = (run_id, at)
    if key in context.ticks:
        return context.ticks[key]
    return context.keep(key, await tool_context.of_run(context.workspace, run_id, at, "read"))
