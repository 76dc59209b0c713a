"""A workspace with the demo market and a skill, and clients of the server over it."""

import asyncio
import hashlib
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mcp import Client

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import look_into
from pitboss.server.mcp import tool_list
from pitboss.server.mcp.workspace import ServerWorkspace

SKILL = """\
pitboss: 1
name: crossing
venue: perp
model: policy/sma_cross
schedule: {every: 1h}
strategy: {mode: thesis, thesis: Trends go on., avoid: Ranges.}
tools: {built_in: [fetch_recent_bars, get_portfolio]}
context: {symbols: [BTC, ETH], bars_interval: 1h, bars_lookback: 40}
risk: {max_orders_per_hour: 1, max_total_exposure_pct: 3}
"""
RANGE = {"from": "2025-03-16", "to": "2025-03-20"}


def make_server_workspace(folder: Path, market: Path) -> ServerWorkspace:
    shutil.copytree(market, folder / ".pitboss" / "lake")
    (folder / "crossing.yaml").write_text(SKILL)
    return workspace_of(folder, writes=True)


def workspace_of(folder: Path, writes: bool = False) -> ServerWorkspace:
    return ServerWorkspace(load_settings(folder / ".pitboss"), folder, writes)


def run_ids(server_workspace: ServerWorkspace) -> list[str]:
    with look_into(server_workspace.settings) as workspace:
        return [run.id for run in workspace.runs.listing().runs]


async def call(client: Client, name: str, /, **arguments: Any) -> dict[str, Any]:
    """The values of an answer that is no error."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


async def call_refused(client: Client, name: str, /, **arguments: Any) -> str:
    """The words of an answer that is an error."""
    result: Any = await client.call_tool(name, arguments)
    assert result.is_error
    return result.content[0].text


def with_client(server_workspace: ServerWorkspace, work: Callable[[Client], Awaitable[Any]]) -> Any:
    """A client of the server in this process."""

    async def main() -> Any:
        async with Client(tool_list.create(server_workspace), mode="legacy") as client:
            return await work(client)

    return asyncio.run(main())


def file_digests(folder: Path) -> dict[str, str]:
    """Every file below a folder with its digest. A lock is held for reading too, and holds nothing."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }
