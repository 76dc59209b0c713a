"""A tool whose calls are seen from outside: a span and a figure each. Neither arguments nor results are told.

Tools are wrapped only where somebody observes, so that nobody else pays for it.
"""

from collections.abc import Mapping
from typing import Any

from pitboss.core.errors import ToolFailed
from pitboss.core.ports import Tool
from pitboss.core.trace import Tracer


class TracedTool:
    """`inner`, observed."""

    def __init__(self, inner: Tool, tracer: Tracer) -> None:
        self.inner = inner
        self.tracer = tracer
        self.spec = inner.spec

    async def call(self, arguments: Any) -> str:
        """Call it, and say that it was called."""
        name = self.spec.name
        about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        self.tracer.count("pitboss.tool.calls", 1, about)
        with self.tracer.span(f"execute_tool {name}", about) as span:
            try:
                return await self.inner.call(arguments)
            except ToolFailed:
                span.fail("ToolFailed")  # told to the model, and no fault of the program
                raise


def traced(tools: Mapping[str, Tool], tracer: Tracer) -> Mapping[str, Tool]:
    """These tools, observed if somebody observes."""
    return {name: TracedTool(tool, tracer) for name, tool in tools.items()} if tracer.on else tools
