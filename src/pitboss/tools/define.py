"""The definition of a tool, from which the tool is built for every tick.

A tool looks and never changes anything; it gets the observation of its tick and reads the market through that
observation's as-of view only. Its modes, arguments and reach are data, so that the registry can
refuse it before anything runs and the catalogue can show it without building it.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pitboss.agent.decider import Judge
from pitboss.core.decision_format import DecisionFormat
from pitboss.core.errors import InvariantError
from pitboss.core.past import NO_PAST, NO_RECORDINGS, Past, Recordings
from pitboss.core.ports import Tool, ToolSpec
from pitboss.tools import arguments as shape

Mode = Literal["read", "write"]
"""read: questions about a run (chat). write: an agent decides at a tick."""

Category = Literal["market_data", "news", "portfolio", "execution", "introspection", "external"]
Reach = Literal["as_of", "recorded", "live_only"]
"""as_of: computed from the as-of view. recorded: replays recordings. live_only: knows only the present."""

CATEGORIES: tuple[Category, ...] = ("market_data", "news", "portfolio", "execution", "introspection", "external")
MODES: tuple[Mode, ...] = ("read", "write")
REACHES: tuple[Reach, ...] = ("as_of", "recorded", "live_only")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool is built with. `judge` asks the engine for a verdict without sending an order; None without an engine."""

    observation: Any
    mode: Mode
    judge: Judge | None = None
    past: Past = NO_PAST
    recordings: Recordings = NO_RECORDINGS


Look = Callable[[ToolContext, Mapping[str, Any]], Awaitable[str]]
"""The tool itself: checked arguments → compact text that is the same for the same context and arguments."""


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool before it is built. `example` holds valid arguments for the docs and the tests."""

    name: str
    category: Category
    description: str
    ui_hint: str
    modes: frozenset[Mode]
    schema: Mapping[str, Any]
    example: Mapping[str, Any]
    reach: Reach
    build: Callable[[ToolContext], Tool]
    decides: bool = False
    """Whether calling it is the decision of a tick."""


@dataclass(slots=True)
class BuiltTool:
    """A tool bound to one tick."""

    spec: ToolSpec
    context: ToolContext
    look: Look
    checked: bool

    async def call(self, arguments: Any) -> str:
        """Check the arguments, then look."""
        return await self.look(self.context, shape.check(self.spec.schema, arguments) if self.checked else arguments)


def define_tool(
    *,
    name: str,
    category: Category,
    description: str,
    schema: Mapping[str, Any],
    example: Mapping[str, Any],
    look: Look,
    ui_hint: str = "",
    modes: Collection[Mode] = MODES,
    reach: Reach = "as_of",
    checked: bool = True,
    decides: bool = False,
) -> ToolDefinition:
    """Define a tool. `checked=False` passes the arguments unchecked, for tools that pass them to the engine."""
    if not _NAME.fullmatch(name):
        raise InvariantError(f"tool name {name!r} is not snake_case")
    if category not in CATEGORIES or reach not in REACHES or not modes or not set(modes) <= set(MODES):
        raise InvariantError(f"tool {name}: unknown category, reach or mode")
    if not description:
        raise InvariantError(f"tool {name} has no description")
    if checked:
        shape.require_known(name, schema)
    else:
        shape.require_closed(name, schema)
    spec = ToolSpec(name, description, schema)
    return ToolDefinition(
        name=name,
        category=category,
        description=description,
        ui_hint=ui_hint,
        modes=frozenset(modes),
        schema=schema,
        example=example,
        reach=reach,
        build=lambda context: BuiltTool(spec, context, look, checked),
        decides=decides,
    )


def define_decision(decision: DecisionFormat, *, example: Mapping[str, Any], ui_hint: str) -> ToolDefinition:
    """Define the terminal tool of a venue: calling it is the decision, which the agent loop reads instead of running a tool.

    It is a tool so that it is offered, catalogued and refused in read mode like any other.
    """

    async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
        # A tool run that gets here would be a way around the guard.
        raise InvariantError(f"{decision.tool} was run as a tool; it is a decision, taken by the agent loop")

    return define_tool(
        name=decision.tool,
        category="execution",
        description=decision.description,
        ui_hint=ui_hint,
        modes=("write",),
        schema=decision.schema,
        example=example,
        look=look,
        checked=False,
        decides=True,
    )
