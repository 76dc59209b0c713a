"""Opens the connections of a backtest before its ports are built: MCP servers, recordings, the model, the tracer."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from pitboss.bootstrap import decider_source, mcp_tools
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.past import NO_RECORDINGS
from pitboss.core.trace import SILENT, Tracer
from pitboss.sim.connections import NO_SERVER_TOOLS, Connections
from pitboss.sim.prepared_run import PreparedRun
from pitboss.store.recordings import StoredRecordings
from pitboss.tools.registry import Registry

if TYPE_CHECKING:
    from pitboss.bootstrap.model_stack import ModelConnection


@asynccontextmanager
async def connected(
    workspace: Workspace, prepared: PreparedRun, registry: Registry, run_id: str, tracer: Tracer = SILENT
) -> "AsyncIterator[tuple[Connections, ModelConnection | None]]":
    """Provide everything a run is connected to inside a block.

    `registry` holds the built-in tools of the venue, whose names MCP tools must not use. A blind run sees no MCP
    servers and no recordings: their answers cannot be anonymised.
    """
    request, skill = prepared.request, prepared.skill
    async with AsyncExitStack() as stack:
        server_tools, recordings = NO_SERVER_TOOLS, NO_RECORDINGS
        if not request.is_program and not request.blind:
            offered = mcp_tools.open_server_tools(workspace, skill, registry, simulated=True)
            server_tools = await stack.enter_async_context(offered)
            recordings = StoredRecordings(workspace.database)
        model_connection = await decider_source.open_model(stack, workspace, request, skill, run_id, tracer)
        if model_connection is None:
            yield Connections(server_tools=server_tools, recordings=recordings, tracer=tracer), None
        else:
            connections = Connections(
                model=model_connection.model,
                policy=model_connection.policy,
                speculation=model_connection.speculation,
                server_tools=server_tools,
                recordings=recordings,
                tracer=tracer,
            )
            yield connections, model_connection
