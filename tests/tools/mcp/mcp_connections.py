"""Connections to MCP servers of the tests, calls through the wrapper, and a check for leftover processes."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from pitboss.core.errors import ToolFailed
from pitboss.tools.mcp import definition
from pitboss.tools.mcp.connection import Connection, connect
from pitboss.tools.mcp.guarded_tool import GuardedTool
from pitboss.tools.mcp.server_entry import ServerEntry, ServerLimits, ToolPolicy
from pitboss.tools.mcp.tool_names import name_of

SERVERS = Path(__file__).parent / "servers"
PYTHON = (sys.executable, "-I", "-S")
LIMITS = ServerLimits(connect_s=10, grace_s=0.3)
MARK = {"PITBOSS_TEST_MARK": ""}
"""The environment of a server, by which its processes are found; `conftest.py` sets it in each process."""
LOOK: dict[str, Any] = {
    "name": "look",
    "description": "Looks.",
    "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}},
}


def hostile_entry(behaviour: str, *more: str, **fields: Any) -> ServerEntry:
    """The entry of `hostile.py BEHAVIOUR`."""
    argv = (*PYTHON, str(SERVERS / "hostile.py"), behaviour, *more)
    defaults: dict[str, Any] = {"tools": {"look": ToolPolicy()}, "timeout_s": 5.0}
    return ServerEntry("srv", "A server of the tests", argv=argv, **defaults | fields)


def approved_definition(
    raw: Mapping[str, Any] = LOOK, server: str = "hostile", version: str = "1"
) -> definition.Definition:
    """A tool definition as it was approved."""
    return definition.read_definition(server, version, raw)


def guarded_tool(
    connection: Connection, approved: definition.Definition, entry: ServerEntry | None = None
) -> GuardedTool:
    """The wrapper around a tool of a connection."""
    entry = entry or connection.entry
    spec = definition.tool_spec(approved, name_of(entry.id, approved.name))
    return GuardedTool(spec, connection, approved.name, entry, approved.digest, approved.schema)


@asynccontextmanager
async def checked_connection(
    entry: ServerEntry, limits: ServerLimits = LIMITS, **how: Any
) -> AsyncIterator[Connection]:
    """A connection; asserts that it leaves no process behind."""
    async with connect(entry, environment=MARK, limits=limits, **how) as connection:
        yield connection
    assert leftover_processes() == []


async def call_or_failure(tool: GuardedTool, arguments: Any) -> str:
    """The answer of a call, or `FAILED` and the message."""
    try:
        return await tool.call(arguments)
    except ToolFailed as failure:
        return f"FAILED {failure}"


async def until_disabled(tool: GuardedTool) -> str:
    """Call until the notice of changed tools has arrived: the first failure, or the answer after five seconds."""
    answer = await call_or_failure(tool, {})
    for _ in range(500):
        if answer.startswith("FAILED"):
            break
        await asyncio.sleep(0.01)
        answer = await call_or_failure(tool, {})
    return answer


def leftover_processes() -> list[int]:
    """The ids of all processes that servers of this test process are or have started, by their mark."""
    pids: list[int] = []
    for place in Path("/proc").iterdir():
        with suppress(OSError):
            if place.name.isdigit() and MARK["PITBOSS_TEST_MARK"].encode() in (place / "environ").read_bytes():
                pids.append(int(place.name))
    return pids


@contextmanager
def running_process(*argv: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process, such as an HTTP server, that is killed at the end of the block."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.kill()
