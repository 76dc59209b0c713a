"""`Toolbox`: the tools of a skill, built again for every tick."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pitboss.agent.decider import Judge
from pitboss.core.instant import Instant
from pitboss.core.past import NO_PAST, NO_RECORDINGS, Past, Recordings
from pitboss.core.ports import Tool
from pitboss.core.trace import SILENT, Tracer
from pitboss.tools.define import ToolContext, ToolDefinition
from pitboss.tools.traced import traced


class PastFilter(Protocol):
    """Changes what tools see of the run's past, as a blind run does."""

    def past(self, past: Past) -> Past: ...


@dataclass(frozen=True, slots=True, eq=False)
class Toolbox:
    """Builds the built-in tools and those of MCP servers for one observation."""

    definitions: tuple[ToolDefinition, ...]
    past: Past = NO_PAST
    recordings: Recordings = NO_RECORDINGS
    server_tools: Callable[[Instant], Mapping[str, Tool]] | None = None
    past_filter: PastFilter | None = None
    tracer: Tracer = SILENT

    def __call__(self, observation: Any, judge: Judge) -> Mapping[str, Tool]:
        """The tools of one tick."""
        past = self.past if self.past_filter is None else self.past_filter.past(self.past)
        context = ToolContext(observation, "write", judge, past, self.recordings)
        tools: Mapping[str, Tool] = {definition.name: definition.build(context) for definition in self.definitions}
        if self.server_tools is not None:
            tools = {**tools, **self.server_tools(observation.at)}
        return traced(tools, self.tracer)
