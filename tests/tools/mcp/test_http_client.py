"""A server at an address: which headers a key is sent in, and that it goes nowhere else."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from pitboss.tools.mcp.connection import connect
from pitboss.tools.mcp.server_entry import ServerEntry, ToolPolicy

KEY = "canary-0123456789"


class FakeSecret:
    """A secret whose value is the key of these tests."""

    def reveal(self) -> str:
        return KEY


class HeaderRecordingServer:
    """A server of one tool that records the headers of every request."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.headers.append(dict(request.headers))
        if request.method != "POST":
            return httpx2.Response(405)
        asked = json.loads(await request.aread())
        if "id" not in asked:
            return httpx2.Response(202)
        result: dict[str, Any] = {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}
        if asked["method"] == "initialize":
            version = asked["params"]["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": asked["id"], "result": result})


@pytest.mark.parametrize(
    ("header", "kept", "sent"),
    [
        ("", FakeSecret(), {"authorization": f"Bearer {KEY}"}),
        ("X-Api-Key", FakeSecret(), {"x-api-key": KEY}),
        ("X-Api-Key", None, {}),
        ("", None, {}),
    ],
)
def test_a_key_is_sent_in_the_header_of_its_entry_and_in_no_other(
    header: str, kept: FakeSecret | None, sent: dict[str, str]
) -> None:
    address = HeaderRecordingServer()
    entry = ServerEntry(
        "srv",
        "At an address",
        transport="http",
        url="https://mcp.example.com/mcp",
        secret="SRV_API_KEY",
        secret_header=header,
        tools={"look": ToolPolicy()},
    )

    async def visit() -> None:
        async with connect(
            entry, environment={}, bearer=kept, transport=lambda loopback: httpx2.MockTransport(address)
        ) as connection:
            assert list(await connection.definitions()) == ["look"]

    asyncio.run(visit())
    assert len(address.headers) >= 3
    for headers in address.headers:
        assert {name: value for name, value in headers.items() if KEY in value} == sent
        assert ("authorization" in headers) == ("authorization" in sent)
