"""What the tests of this package share: an entry for a test server, one question through the wrapper, what is left."""

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
"""All that a child gets to see, and what its children inherit; `conftest.py` sets it in each process."""
LOOK: dict[str, Any] = {
    "name": "look",
    "description": "Looks.",
    "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}},
}


def hostile(behaviour: str, *more: str, **fields: Any) -> ServerEntry:
    """The entry of `hostile.py BEHAVIOUR`."""
    argv = (*PYTHON, str(SERVERS / "hostile.py"), behaviour, *more)
    defaults: dict[str, Any] = {"tools": {"look": ToolPolicy()}, "timeout_s": 5.0}
    return ServerEntry("srv", "A server of the tests", argv=argv, **defaults | fields)


def pinned(raw: Mapping[str, Any] = LOOK, server: str = "hostile", version: str = "1") -> definition.Definition:
    """A definition as it was approved some time ago."""
    return definition.read_definition(server, version, raw)


def guard(connection: Connection, approved: definition.Definition, entry: ServerEntry | None = None) -> GuardedTool:
    """The wrapper around a tool of a connection."""
    entry = entry or connection.entry
    spec = definition.tool_spec(approved, name_of(entry.id, approved.name))
    return GuardedTool(spec, connection, approved.name, entry, approved.digest, approved.schema)


@asynccontextmanager
async def connected(entry: ServerEntry, limits: ServerLimits = LIMITS, **how: Any) -> AsyncIterator[Connection]:
    """A connection, and nothing left after it."""
    async with connect(entry, environment=MARK, limits=limits, **how) as connection:
        yield connection
    assert left_over() == []


async def asked(tool: GuardedTool, arguments: Any) -> str:
    """The answer, or the failure with a mark in front of it."""
    try:
        return await tool.call(arguments)
    except ToolFailed as failure:
        return f"FAILED {failure}"


async def until_disabled(tool: GuardedTool) -> str:
    """Ask until the server's word that its tools changed is here: the first failure, or the answer after five seconds."""
    said = await asked(tool, {})
    for _ in range(500):
        if said.startswith("FAILED"):
            break
        await asyncio.sleep(0.01)
        said = await asked(tool, {})
    return said


def left_over() -> list[int]:
    """Processes of this test process that were started by a server or are one: they carry its mark."""
    found: list[int] = []
    for place in Path("/proc").iterdir():
        with suppress(OSError):
            if place.name.isdigit() and MARK["PITBOSS_TEST_MARK"].encode() in (place / "environ").read_bytes():
                found.append(int(place.name))
    return found


@contextmanager
def started(*argv: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process of the test's own, such as an HTTP server, ended with the block."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process
        finally:
            process.kill()
