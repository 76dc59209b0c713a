"""What tools cost a tick that does not use them: every built-in one and a connected MCP server, against none.

Both sides go through the real replay and its journal, with a scripted model that only decides. The server is the shipped
one, in a process of its own, connected once before the first tick, as in a run.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from statistics import median
from time import process_time

from pitboss.bootstrap.mcp_servers import catalogue, reach
from pitboss.bootstrap.mcp_tools import Offered, RequestedTool, guard, with_mcp
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import TransientError, UserError
from pitboss.core.ports import Tool
from pitboss.sim.replay import replay
from pitboss.sim.request import PreparedRun
from pitboss.sim.watch import Watch
from pitboss.store.recordings import StoredRecordings
from pitboss.tools.mcp.tool_names import name_of
from pitboss.tools.registry import registry
from pitboss.venues.perp.course import first_state
from pitboss.venues.perp.intents import TERMINAL
from pitboss_dev.bench.market import MarketShape
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import BenchRow, RatioGate, skipped
from pitboss_dev.bench.trial import assembled, journal, model_request, trader, with_model

NAME, UNIT, REFERENCE = "model tick with tools and a server", "µs", "the same tick without"
SERVER = "hyperliquid-info-mcp"
GATE = RatioGate("at most", 1.10)


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Ticks with tools and without, in turn."""
    ticks = bench.scale.model_ticks
    shape = MarketShape(max(8, 4 + ticks // 288))
    looks = [name for name, tool in registry().items() if "write" in tool.modes and name != TERMINAL]
    with bench.grounds.workspace(shape, "one") as workspace:
        bare, equipped = (_loaded(workspace, shape, ticks, names) for names in ([], looks))
        try:
            count = asyncio.run(_tools(workspace))
        except (TransientError, UserError) as error:
            yield skipped(NAME, UNIT, str(error), REFERENCE, GATE)
            return
        # By pairs: what is added is a fiftieth of a tick, and the machine itself differs by a fifth from run to run.
        pairs = [_pair(workspace, equipped, bare, number % 2 == 0) for number in range(4 * bench.repeats)]
    alone = median(without for _, without in pairs)
    added = alone * median(with_tools / without for with_tools, without in pairs)
    note = f"{len(looks) + 1} built-in tools with {TERMINAL}, {count} of a connected server"
    yield BenchRow(NAME, added * 1e6, UNIT, REFERENCE, alone * 1e6, GATE, note)


def _pair(workspace: Workspace, equipped: PreparedRun, bare: PreparedRun, first: bool) -> tuple[float, float]:
    """A tick with tools and one without, side by side; who comes first alternates."""
    without = 0.0 if first else asyncio.run(_ticked(workspace, bare))
    with_tools = asyncio.run(_connected(workspace, equipped))
    return with_tools, without or asyncio.run(_ticked(workspace, bare))


def _loaded(workspace: Workspace, shape: MarketShape, ticks: int, names: list[str]) -> PreparedRun:
    request = model_request(shape, ticks)
    return assembled(workspace, replace(request, skill={**request.skill, "tools": {"built_in": names}}))


async def _tools(workspace: Workspace) -> int:
    async with reach(workspace.home, catalogue(workspace.settings).find(SERVER)) as line:
        return len(await line.definitions())


async def _connected(workspace: Workspace, assembly: PreparedRun) -> float:
    """Seconds of one tick with the server's tools beside the built-in ones."""
    entry = catalogue(workspace.settings).find(SERVER)
    async with reach(workspace.home, entry) as line:
        tools: dict[str, Tool] = {}
        for name, said in (await line.definitions()).items():
            wanted = RequestedTool(name_of(entry.id, name), entry, name, said)
            tools[wanted.name] = guard(workspace, wanted, line, said)

        def at(instant: int) -> dict[str, Tool]:
            del instant
            line.begin_tick()
            return tools

        offered = Offered(tuple(tool.spec for tool in tools.values()), at)
        return await _ticked(workspace, with_mcp(assembly, offered, StoredRecordings(workspace.database)))


async def _ticked(workspace: Workspace, assembly: PreparedRun) -> float:
    """Seconds of one tick: of the processor's, for the gate is tighter than what a busy machine does to a clock."""
    model = trader()
    ready, into = with_model(assembly, model), journal(workspace, assembly)
    began = process_time()
    await replay(ready.script, into, first_state(ready.script), Watch())
    return (process_time() - began) / model.asked


MEASURE = Measure("hydration", "what tools and a connected MCP server add to a tick", measure, 21)
