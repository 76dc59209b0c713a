"""Every built-in tool, found by looking into the folder of its venue, and the whitelist that an agent gets of them.

`tools/builtin/` has those of the perp venue, `tools/predict/` those of the predict venue. A new tool is one new file
with `TOOL = define_tool(...)`; nothing here changes. Modes are enforced when tools are
hydrated, so a tool that its mode does not allow is never built at all.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from pitboss.core.errors import InvariantError, UserError
from pitboss.core.ports import Tool
from pitboss.tools.define import Mode, ToolContext, ToolDefinition
from pitboss.venues.perp import tools as builtin
from pitboss.venues.predict import tools as predict

FOLDERS = {"perp": builtin, "predict": predict}
"""Where the tools of a venue are."""


def hydrate(names: Iterable[str], context: ToolContext, simulated: bool = True, venue: str = "perp") -> dict[str, Tool]:
    """Build the named tools for one tick, in the order of `names`, refusing what `permit` refuses."""
    return {tool.name: tool.build(context) for tool in permit(names, context.mode, simulated, venue)}


def permit(names: Iterable[str], mode: Mode, simulated: bool = True, venue: str = "perp") -> list[ToolDefinition]:
    """The named tools, if all of them are allowed; a name that comes twice counts once.

    Unknown names, tools that the mode does not allow and, in a simulation, tools that know only the present are
    refused, so a run can ask before it starts.
    """
    tools: list[ToolDefinition] = []
    for name in dict.fromkeys(names):
        tool = lookup(name, venue)
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


def lookup(name: str, venue: str = "perp") -> ToolDefinition:
    """One tool of a venue by name."""
    known = registry(venue)
    if name not in known:
        close = get_close_matches(name, known, 1)
        raise UserError(
            f"Unknown tool: {_seen(name)}", f"did you mean {close[0]}?" if close else f"tools: {', '.join(known)}"
        )
    return known[name]


def _seen(name: str) -> str:
    """A name that a stranger may have written, as one short word of a message."""
    return name if name.isprintable() and len(name) <= 64 else ascii(name[:64])


def catalogue(venue: str = "perp") -> list[dict[str, Any]]:
    """Every tool of a venue as plain values, by name: for the editor, the docs and the API."""
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
        for tool in registry(venue).values()
    ]


@cache
def registry(venue: str = "perp") -> Mapping[str, ToolDefinition]:
    """Every built-in tool of a venue by name, sorted."""
    return discover(venue)


def discover(venue: str = "perp") -> dict[str, ToolDefinition]:
    """Look into the package afresh. A file without a tool, or two tools of one name, stop the program."""
    folder = FOLDERS[venue]
    found: dict[str, ToolDefinition] = {}
    for module in sorted(iter_modules(folder.__path__), key=lambda module: module.name):
        tool = getattr(import_module(f"{folder.__name__}.{module.name}"), "TOOL", None)
        if not isinstance(tool, ToolDefinition):
            raise InvariantError(
                f"{folder.__name__.removeprefix('pitboss.').replace('.', '/')}/{module.name}.py has no TOOL = define_tool(...)"
            )
        if tool.name in found:
            raise InvariantError(f"two built-in tools are named {tool.name}")
        found[tool.name] = tool
    return dict(sorted(found.items()))
