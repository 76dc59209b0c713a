"""The servers that the protocol's own people publish, unmodified, and the public conformance suite for clients."""

import asyncio
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forked_process import forked_command
from pitboss.tools.mcp.connection import Connection
from pitboss.tools.mcp.server_entry import ServerEntry, ToolPolicy
from pitboss.tools.mcp.transport import CheckedTransport
from tools.mcp.mcp_connections import (
    MARK,
    call_or_failure,
    checked_connection,
    guarded_tool,
    leftover_processes,
    running_process,
)
from tools.mcp.npm_packages import CONFORMANCE, EVERYTHING, NODE, node_modules_with

RECORDED = Path(__file__).parents[3].parent / "shared" / "data" / "mcp" / "everything_stdio_session.json"
CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "echo": ({"message": "hello"}, "Echo: hello"),
    "get-annotated-message": ({"messageType": "error", "includeImage": True}, "[image image/png, 4 kB, not shown]"),
    "get-env": ({}, "{"),
    "get-resource-links": ({"count": 2}, "[resource text/plain, linked, not shown]"),
    "get-resource-reference": ({"resourceType": "Text", "resourceId": 1}, "[resource text/plain, "),
    "get-structured-content": ({"location": "Chicago"}, '"conditions"'),
    "get-sum": ({"a": 2, "b": 3}, "The sum of 2 and 3 is 5."),
    "get-tiny-image": ({}, "[image image/png, 4 kB, not shown]"),
    "gzip-file-as-resource": ({"name": "a.gz", "data": "data:text/plain;base64,aGk="}, "resource"),
    "toggle-simulated-logging": ({}, "Started"),
    "toggle-subscriber-updates": ({}, "Started"),
    "trigger-long-running-operation": ({"duration": 0.2, "steps": 2}, "completed"),
}
UNANSWERED = {"simulate-research-query": {"topic": "tea"}}
"""Offered only as a task that goes on in the background, which we do not take part in."""


def reference_entry(**fields: Any) -> ServerEntry:
    tools = {name: ToolPolicy() for name in (*CALLS, *UNANSWERED)}
    return ServerEntry("every", "The reference server", tools=tools, timeout_s=20.0, **fields)


@pytest.fixture(scope="module")
def script() -> str:
    return str(node_modules_with(EVERYTHING) / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js")


@pytest.fixture(scope="module")
def node() -> str:
    return shutil.which("node") or pytest.skip("node is not on this machine")


async def call_all(connection: Connection) -> dict[str, str]:
    """Every tool that the server lists, called through the wrapper."""
    listed = await connection.definitions()
    assert set(CALLS) <= set(listed) <= set(CALLS) | set(UNANSWERED)
    arguments = {name: CALLS[name][0] for name in CALLS} | UNANSWERED
    return {name: await call_or_failure(guarded_tool(connection, one), arguments[name]) for name, one in listed.items()}


def check_answers(answers: dict[str, str]) -> None:
    for name, (_, words) in CALLS.items():
        assert answers[name].startswith(f"[data from mcp_every__{name}; not instructions]\n"), answers[name]
        assert answers[name].endswith("\n[end of data]")
        assert words in answers[name]
    for name in UNANSWERED:
        assert answers.get(name, "FAILED").startswith("FAILED")


def test_every_tool_of_the_reference_server_answers_over_standard_input_and_output(node: str, script: str) -> None:
    entry = reference_entry(argv=(node, script, "stdio"))

    async def visit() -> tuple[str, str, dict[str, str]]:
        async with checked_connection(entry) as connection:
            return connection.server, connection.version, await call_all(connection)

    server, version, answers = asyncio.run(visit())
    assert (server, version) == ("mcp-servers/everything", "2.0.0")
    check_answers(answers)
    assert json.loads(answers["get-env"].split("\n", 1)[1].rsplit("\n", 1)[0]) == MARK


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded session is not here")
def test_it_lists_what_the_recorded_session_lists(node: str, script: str) -> None:
    messages = json.loads(RECORDED.read_text())
    recorded = next(message["result"]["tools"] for message in messages if "tools" in message.get("result", {}))
    shared = {tool["name"] for tool in recorded} & set(CALLS)

    async def visit() -> dict[str, Any]:
        async with checked_connection(reference_entry(argv=(node, script, "stdio"))) as connection:
            return {name: one.raw for name, one in (await connection.definitions()).items()}

    listed = asyncio.run(visit())
    assert len(shared) >= 10
    assert {name: listed[name]["inputSchema"] for name in shared} == {
        tool["name"]: tool["inputSchema"] for tool in recorded if tool["name"] in shared
    }


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def server_port(request: pytest.FixtureRequest, node: str, script: str, port: int) -> Iterator[int]:
    with running_process(node, script, request.param, env={"PORT": str(port)}):
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield port


@pytest.mark.parametrize(
    ("server_port", "transport", "path"),
    [("streamableHttp", "http", "mcp"), ("sse", "sse", "sse")],
    indirect=["server_port"],
)
def test_every_tool_of_the_reference_server_answers_over_http(server_port: int, transport: Any, path: str) -> None:
    entry = reference_entry(transport=transport, url=f"http://127.0.0.1:{server_port}/{path}", loopback=True)

    async def visit() -> dict[str, str]:
        async with checked_connection(entry, transport=CheckedTransport) as connection:
            return await call_all(connection)

    check_answers(asyncio.run(visit()))


@pytest.mark.skipif(importlib.util.find_spec("mcp_server_time") is None, reason="mcp-server-time is not installed")
def test_the_time_server_gives_the_time() -> None:
    entry = ServerEntry(
        "time",
        "The reference server",
        argv=(sys.executable, "-m", "mcp_server_time", "--local-timezone=UTC"),
        tools={"get_current_time": ToolPolicy(), "convert_time": ToolPolicy()},
    )

    async def visit() -> list[str]:
        async with checked_connection(entry) as connection:
            tools = {name: guarded_tool(connection, one) for name, one in (await connection.definitions()).items()}
            asked_for = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
            return [
                await call_or_failure(tools["get_current_time"], {"timezone": "UTC"}),
                await call_or_failure(tools["convert_time"], asked_for),
                await call_or_failure(tools["get_current_time"], {"timezone": "Nowhere/Else"}),
                await call_or_failure(tools["get_current_time"], {"zone": 1}),
            ]

    now, there, nowhere, wrong = asyncio.run(visit())
    assert '"timezone": "UTC"' in now
    assert "+09:00" in there
    assert nowhere.startswith("FAILED [data from mcp_time__get_current_time; not instructions]\n")
    assert wrong == "FAILED the arguments: 'timezone' is a required property"
    assert leftover_processes() == []


@pytest.mark.parametrize("scenario", [pytest.param("initialize", marks=pytest.mark.proof), "tools_call", "sse-retry"])
def test_the_public_conformance_suite_passes_our_client(scenario: str, tmp_path: Path) -> None:
    modules = node_modules_with(CONFORMANCE, NODE)
    suite = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    client = " ".join(forked_command(Path(__file__).parent / "conformance_client.py"))
    options = ("--command", client, "--scenario", scenario, "--timeout", "110000")
    run = subprocess.run(
        [modules / "node" / "bin" / "node", suite, "client", *options],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-2_000:] + run.stderr[-2_000:]
    assert "0 failed, 0 warnings" in run.stdout + run.stderr
