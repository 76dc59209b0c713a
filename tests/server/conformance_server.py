"""A server with the tools that the public conformance suite asks for by name, made and started as ours are.

What is tested with it is `servers.serving`: how a tool is offered, how it answers and fails, how progress is told, how the
server listens. It has what our servers can do and nothing else: they answer in text, and ask their client for nothing.
"""

import sys
from collections.abc import Mapping
from typing import Any

from pitboss.core.errors import UserError
from pitboss.server.tool_server import (
    BackgroundWork,
    OfferedTool,
    OutputFilter,
    ToolOutput,
    create,
    read_address,
    serve,
)

NOTHING: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
DIALECT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


def text_tool(given: Mapping[str, Any], side: BackgroundWork) -> ToolOutput:
    """Words."""
    del given, side
    return ToolOutput("This is a simple text response for testing.")


def failing_tool(given: Mapping[str, Any], side: BackgroundWork) -> ToolOutput:
    """A tool that always fails with an error of the user."""
    raise UserError("This tool intentionally returns an error for testing")


def progress_tool(given: Mapping[str, Any], side: BackgroundWork) -> ToolOutput:
    """Says how far it is."""
    del given
    for share in (0.0, 0.5, 1.0):
        side.progress(share, f"{share:.0%}")
    return ToolOutput("done")


def offered_tool(name: str, work: Any, schema: dict[str, Any] = NOTHING) -> OfferedTool:
    return OfferedTool(name, name, f"The suite's {name}.", schema, work)


OFFERS = [
    offered_tool("test_simple_text", text_tool),
    offered_tool("test_error_handling", failing_tool),
    offered_tool("test_tool_with_progress", progress_tool),
    offered_tool("json_schema_2020_12_tool", text_tool, DIALECT),
]

if __name__ == "__main__":
    made = create("suite", "Suite", "1", "For the conformance suite.", OFFERS, OutputFilter())
    serve(made, read_address(sys.argv[1]), lambda words: print(words, file=sys.stderr, flush=True))
