"""The built-in tools of a venue, found in its `tools` package, and the subset that an agent may have.

A new tool is a new file with `TOOL = define_tool(...)`; nothing here changes. Modes are enforced before tools are built,
so a tool that its mode does not allow is never built at all.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pitboss.core.discovery import definitions
from pitboss.core.errors import InvariantError, UserError
from pitboss.core.ports import Tool
from pitboss.core.suggestion import suggestion
from pitboss.tools.define import Mode, ToolContext, ToolDefinition

Registry = Mapping[str, ToolDefinition]
"""Every tool of a venue by name, sorted."""


def hydrate(registry: Registry, names: Iterable[str], context: ToolContext, simulated: bool = True) -> dict[str, Tool]:
    """Build the named tools for one tick, in the order of `names`, refusing what `permit` refuses."""
    return {tool.name: tool.build(context) for tool in permit(registry, names, context.mode, simulated)}


def permit(registry: Registry, names: Iterable[str], mode: Mode, simulated: bool = True) -> list[ToolDefinition]:
    """The named tools, if all of them are allowed; a name that is listed twice counts once.

    Unknown names, tools that the mode does not allow and, in a simulation, tools that know only the present are
    refused, so that a run can be checked before it starts.
    """
    tools: list[ToolDefinition] = []
    for name in dict.fromkeys(names):
        tool = lookup(registry, name)
        if mode not in tool.modes:
            allowed = " or ".join(sorted(tool.modes))
            raise UserError(f"Tool {name} not allowed in mode {mode}", f"it runs in {allowed} mode only")
        if simulated and tool.reach == "live_only":
            raise UserError(
                f"tool {name} knows only the present and cannot be used in a simulation",
                "take it out of tools.built_in for backtests: its answers would come from after the tick",
            )
        tools.append(tool)
    return tools


def lookup(registry: Registry, name: str) -> ToolDefinition:
    """One tool by name."""
    if name not in registry:
        hint = suggestion(name, registry, "tools:")
        raise UserError(f"Unknown tool: {_printable(name)}", hint)
    return registry[name]


def _printable(name: str) -> str:
    """An untrusted name, printable and short, for a message."""
    return name if name.isprintable() and len(name) <= 64 else ascii(name[:64])


def catalogue(registry: Registry) -> list[dict[str, Any]]:
    """Every tool as plain values, by name: for the editor, the docs and the API."""
    return [
        {
            "name": tool.name,
            "category": tool.category,
            "description": tool.description,
            "ui_hint": tool.ui_hint,
            "modes": sorted(tool.modes),
            "input_schema": tool.schema,
            "example": tool.example,
            "reach": tool.reach,
        }
        for tool in registry.values()
    ]


def agent_tools(registry: Registry) -> dict[str, str]:
    """Every tool by name, with the reason why the agent of a skill cannot have it; empty where it can."""
    reason = "is for questions about a run, not for an agent that decides"
    return {name: "" if "write" in tool.modes else reason for name, tool in registry.items()}


@cache
def registry_of(package: str) -> Registry:
    """The tools in a package, by its dotted name."""
    return discover(package)


def discover(package: str) -> dict[str, ToolDefinition]:
    """Import the tools of a package. A file without a tool, or two tools of one name, is an `InvariantError`."""
    tools: dict[str, ToolDefinition] = {}
    for tool in definitions(package, "TOOL", ToolDefinition, "define_tool"):
        if tool.name in tools:
            raise InvariantError(f"two built-in tools are named {tool.name}")
        tools[tool.name] = tool
    return dict(sorted(tools.items()))
