"""Our client as the public conformance suite runs it: `conformance_client.py [SCENARIO] URL`.

Connects, lists, and calls every tool that it can make arguments for, through the same `connect` that runs use.
"""

import asyncio
import sys
from typing import Any

from pitboss.tools.mcp.connection import connect
from pitboss.tools.mcp.server_entry import ServerEntry
from pitboss.tools.mcp.transport import CheckedTransport

VALUES: dict[str, Any] = {"number": 2, "integer": 2, "string": "word", "boolean": True}


async def run(url: str) -> None:
    """One visit."""
    entry = ServerEntry("suite", "The suite's server", transport="http", url=url, loopback=True)
    async with connect(entry, environment={}, transport=CheckedTransport) as connection:
        for name, one in (await connection.definitions()).items():
            wanted = one.schema.get("properties", {})
            arguments = {key: VALUES.get(part.get("type", ""), "word") for key, part in wanted.items()}
            result = await connection.call(name, arguments)
            print(name, [block.type for block in result.content], "error" if result.is_error else "ok")


if __name__ == "__main__":
    asyncio.run(run(sys.argv[-1]))
