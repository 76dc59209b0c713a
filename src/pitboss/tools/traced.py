"""A wrapper that traces tool calls: one span and one count each. Arguments and results are not recorded.

Tools are wrapped only if the run has a collector, so that other runs have no overhead.
"""

from collections.abc import Mapping
from typing import Any

from pitboss.core.errors import ToolFailed
from pitboss.core.ports import Tool
from pitboss.core.trace import Tracer


class TracedTool:
    """`inner` with tracing."""

    def __init__(self, inner: Tool, tracer: Tracer) -> None:
        self.inner = inner
        self.tracer = tracer
        self.spec = inner.spec

    async def call(self, arguments: Any) -> str:
        """Call the tool inside a span."""
        name = self.spec.name
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        self.tracer.count("pitboss.tool.calls", 1, attributes)
        with self.tracer.span(f"execute_tool {name}", attributes) as span:
            try:
                return await self.inner.call(arguments)
            except ToolFailed:
                span.fail("ToolFailed")  # shown to the model; not a failure of the program
                raise


def traced(tools: Mapping[str, Tool], tracer: Tracer) -> Mapping[str, Tool]:
    """The tools, wrapped if the tracer is on."""
    return {name: TracedTool(tool, tracer) for name, tool in tools.items()} if tracer.on else tools
