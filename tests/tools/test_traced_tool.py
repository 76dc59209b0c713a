"""A traced tool answers as the tool within; its arguments and results stay between it and the model."""

import asyncio
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pitboss.bootstrap.telemetry import Telemetry
from pitboss.core.errors import ToolFailed
from pitboss.core.ports import ToolSpec
from pitboss.core.trace import SILENT
from pitboss.tools.traced import TracedTool, traced


class EchoTool:
    """Returns its arguments; without any it fails."""

    spec = ToolSpec("echo", "Say it again.", {})

    async def call(self, arguments: Any) -> str:
        if arguments is None:
            raise ToolFailed("nothing was said")
        return str(arguments)


def test_a_call_is_a_span_without_arguments_or_result() -> None:
    spans = InMemorySpanExporter()
    tracer = Telemetry(SimpleSpanProcessor(spans), InMemoryMetricReader())
    (tool,) = traced({"echo": EchoTool()}, tracer).values()
    assert tool.spec.name == "echo"
    assert asyncio.run(tool.call("a-word")) == "a-word"
    with pytest.raises(ToolFailed, match="nothing was said"):
        asyncio.run(tool.call(None))
    tracer.close()
    fine, failed = spans.get_finished_spans()
    assert (fine.name, fine.status.is_ok or fine.status.is_unset) == ("execute_tool echo", True)
    assert dict(fine.attributes or {}) == {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "echo"}
    assert (failed.attributes or {})["error.type"] == "ToolFailed"
    assert "nothing was said" not in failed.to_json()


def test_without_a_listener_tools_are_not_wrapped() -> None:
    tools = {"echo": EchoTool()}
    assert traced(tools, SILENT) is tools
    assert not isinstance(tools["echo"], TracedTool)
