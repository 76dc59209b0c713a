"""What tools add to a tick that calls none: every built-in tool and a connected MCP server, compared with no tools.

Both sides go through the real replay and its journal with a scripted model that only decides. The server is the shipped
one in a process of its own, connected once before the first tick, as in a run.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from statistics import median
from time import process_time

from pitboss.bootstrap.mcp_servers import catalogue, open_connection
from pitboss.bootstrap.mcp_tools import RequestedTool, guarded_tool
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import TransientError, UserError
from pitboss.core.ports import Tool
from pitboss.runs.venues import venue_of
from pitboss.sim.connections import NO_SERVER_TOOLS, Connections, ServerTools
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.replay import replay
from pitboss.sim.watch import Watch
from pitboss.store.recordings import StoredRecordings
from pitboss.tools.mcp.tool_names import name_of
from pitboss_dev.bench.backtests import model_request, new_journal, prepare, trading_model
from pitboss_dev.bench.market import MarketShape
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import BenchRow, RatioGate, skipped

NAME, UNIT, REFERENCE = "model tick with tools and a server", "µs", "the same tick without"
SERVER = "hyperliquid-info-mcp"
GATE = RatioGate("at most", 1.10)


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Ticks with tools and without, in turn."""
    ticks = bench.scale.model_ticks
    shape = MarketShape(max(8, 4 + ticks // 288))
    tools = venue_of(model_request(shape, ticks).skill).tools()
    offered = [name for name, tool in tools.items() if "write" in tool.modes and not tool.decides]
    with bench.folder.workspace(shape, "one") as workspace:
        bare, equipped = (_prepared(workspace, shape, ticks, names) for names in ([], offered))
        try:
            server_tools, pairs = asyncio.run(_connected_pairs(workspace, equipped, bare, 4 * bench.repeats))
        except (TransientError, UserError) as error:
            yield skipped(NAME, UNIT, str(error), REFERENCE, GATE)
            return
    without_tools = median(without for _, without in pairs)
    with_tools = without_tools * median(equipped_s / bare_s for equipped_s, bare_s in pairs)
    decision = next(name for name, tool in tools.items() if tool.decides)
    note = f"{len(offered) + 1} built-in tools with {decision}, {server_tools} of a connected server"
    yield BenchRow(NAME, with_tools * 1e6, UNIT, REFERENCE, without_tools * 1e6, GATE, note)


def _prepared(workspace: Workspace, shape: MarketShape, ticks: int, names: list[str]) -> PreparedRun:
    request = model_request(shape, ticks)
    return prepare(workspace, replace(request, skill={**request.skill, "tools": {"built_in": names}}))


async def _connected_pairs(
    workspace: Workspace, equipped: PreparedRun, bare: PreparedRun, count: int
) -> tuple[int, list[tuple[float, float]]]:
    """The number of the server's tools; and pairs of seconds of a tick with these and the built-in ones, and without.

    In pairs, measured directly after each other: tools add a fiftieth of a tick, and the speed of a machine varies by a
    fifth between runs.
    """
    entry = catalogue(workspace.settings).find(SERVER)
    async with open_connection(workspace.home, entry) as connection:
        tools: dict[str, Tool] = {}
        for name, definition in (await connection.definitions()).items():
            requested = RequestedTool(name_of(entry.id, name), entry, name, definition)
            tools[requested.name] = guarded_tool(workspace, requested, connection, definition)

        def at(instant: int) -> dict[str, Tool]:
            del instant
            connection.begin_tick()
            return tools

        server_tools = ServerTools(tuple(tool.spec for tool in tools.values()), at)
        pairs: list[tuple[float, float]] = []
        for number in range(count):
            bare_first = number % 2 == 1
            bare_s = await _tick_seconds(workspace, bare) if bare_first else 0.0
            equipped_s = await _tick_seconds(workspace, equipped, server_tools)
            pairs.append((equipped_s, bare_s if bare_first else await _tick_seconds(workspace, bare)))
        return len(tools), pairs


async def _tick_seconds(
    workspace: Workspace, prepared: PreparedRun, server_tools: ServerTools = NO_SERVER_TOOLS
) -> float:
    """Processor time of one tick: the gate is tighter than the noise of a clock on a busy machine."""
    model, journal = trading_model(), new_journal(workspace, prepared)
    recordings = StoredRecordings(workspace.database)
    course = prepared.course(Connections(model=model, server_tools=server_tools, recordings=recordings))
    venue = venue_of(prepared.request.skill)
    start = process_time()
    await replay(course, journal, venue.first_state(course), Watch())
    return (process_time() - start) / model.requests


MEASURE = Measure("hydration", "what tools and a connected MCP server add to a tick", measure, 21)
