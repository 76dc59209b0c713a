"""The tools of MCP servers for one run: their selection, their connections, and the digest stored with the run.

In a simulation answers come from recordings; a server is contacted only for tools that the catalogue marks as safe to
call later about an earlier time. Otherwise every tool is called and its answers are recorded. A server that is
unreachable or not approved becomes a note to the agent, never a failure of the run; a name missing from the catalogue
is an error before the run starts.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pitboss.bootstrap import mcp_servers as servers
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import Instant
from pitboss.core.past import Recording
from pitboss.core.ports import Tool, ToolSpec
from pitboss.sim.connections import NO_SERVER_TOOLS, ServerTools
from pitboss.sim.prepared_run import PreparedRun
from pitboss.skill.schema import SkillDocument
from pitboss.store.approvals import Approvals
from pitboss.store.recordings import MOST_CHARS, StoredRecording, StoredRecordings
from pitboss.tools.mcp import definition as definitions
from pitboss.tools.mcp.definition import Definition
from pitboss.tools.mcp.recorded_tool import RecordedTool
from pitboss.tools.mcp.server_entry import ServerEntry
from pitboss.tools.mcp.tool_names import names_of
from pitboss.tools.registry import Registry

if TYPE_CHECKING:
    from pitboss.tools.mcp.connection import Connection
    from pitboss.tools.mcp.guarded_tool import GuardedTool

PIN = "outside"
"""The parameter under which a run stores the digest of what it can see of MCP servers."""


@dataclass(frozen=True, slots=True)
class RequestedTool:
    """One tool that a skill requests. `approved` is its approved definition, None if there is none."""

    name: str
    entry: ServerEntry
    tool: str
    approved: Definition | None

    @property
    def digest(self) -> str:
        """The digest of the approved definition; empty if there is none."""
        return self.approved.digest if self.approved else ""

    @property
    def as_of_safe(self) -> bool:
        """Whether a simulation may call the server itself."""
        return self.entry.tools[self.tool].as_of_safe

    def spec(self, definition: Definition) -> ToolSpec:
        """The tool as it is offered to a model."""
        return definitions.tool_spec(definition, self.name)


def requested_tools(workspace: Workspace, skill: SkillDocument, registry: Registry) -> list[RequestedTool]:
    """The tools that a skill requests, in its own order. Raises `UserError` for names that cannot exist."""
    if not skill.mcp_servers:
        return []
    approvals, catalogue = Approvals(workspace.database, workspace.now), servers.catalogue(workspace.settings)
    decisions = [name for name, tool in registry.items() if tool.decides]
    requested: list[RequestedTool] = []
    for server in skill.mcp_servers:
        entry = catalogue.find(server.id)
        tools = [servers.find_tool(entry, tool) for tool in server.tool_filter or entry.tools]
        names, refused = names_of(entry.id, tools, {*decisions, *(tool.name for tool in requested)})
        refused += [f"{name} is a tool of pitboss itself" for name in names.values() if name in registry]
        if refused:
            raise UserError(refused[0], "exclude it with tool_filter, or rename the server in its catalogue")
        approved = approvals.of(entry.id)
        for tool, name in names.items():
            definition = servers.approved_definition(entry, tool, approved.get(tool))
            requested.append(RequestedTool(name, entry, tool, definition))
    return requested


def pin(workspace: Workspace, prepared: PreparedRun, registry: Registry) -> dict[str, Any]:
    """The digest of what a run can see of MCP servers, to be stored with it.

    It covers approved definitions, and recordings up to the run's end. Empty for a run that sees none. Raises what
    `requested_tools` raises, so it is also the check before a start.
    """
    skill = prepared.skill
    tools = requested_tools(workspace, skill, registry)
    reads_recordings = any(registry[name].reach == "recorded" for name in skill.tool_names if name in registry)
    if prepared.request.blind or (not tools and not reads_recordings):  # a blind run sees no MCP servers
        return {}
    recorded: dict[str, list[str]] = {}
    for tool in tools:
        if not tool.as_of_safe:
            recorded.setdefault(tool.entry.id, []).append(tool.tool)
    recordings_digest = StoredRecordings(workspace.database).digest(
        None if reads_recordings else recorded, prepared.request.to_at
    )
    offers = [[tool.name, servers.trusted(tool.entry, tool.tool, tool.digest), tool.as_of_safe] for tool in tools]
    return {PIN: codec.digest({"tools": offers, "recordings": recordings_digest})}


def check_pin(workspace: Workspace, prepared: PreparedRun, registry: Registry, params: Mapping[str, Any]) -> None:
    """Refuse to resume a run if the MCP definitions or recordings that it can see have changed."""
    now = pin(workspace, prepared, registry)
    if params.get(PIN) and params[PIN] != now.get(PIN):
        raise UserError(
            "recordings or approvals of MCP tools have changed since this run began",
            "start a new backtest: resuming this one would mix both versions",
        )


@asynccontextmanager
async def open_server_tools(
    workspace: Workspace,
    skill: SkillDocument,
    registry: Registry,
    simulated: bool,
    record: bool = False,
) -> AsyncIterator[ServerTools]:
    """Connect the servers that a skill names, provide their tools inside a block, and close the connections after it.

    `record` stores the answers for later simulations of this time: used by live and paper accounts, not by ad-hoc
    calls.
    """
    tools = requested_tools(workspace, skill, registry)
    if not tools:
        yield NO_SERVER_TOOLS
        return
    entries = {tool.entry.id: tool.entry for tool in tools if tool.as_of_safe or not simulated}
    async with AsyncExitStack() as stack:
        connections = await _connect_all(stack, workspace, entries)
        yield await _ToolSelection(workspace, simulated, record and not simulated, connections).of(tools)


async def preview_server_tools(workspace: Workspace, skill: SkillDocument, registry: Registry) -> ServerTools:
    """The tools that a backtest of a skill would be offered, for display only: the connections are closed again."""
    async with open_server_tools(workspace, skill, registry, simulated=True) as server_tools:
        notes = server_tools.notes()
        return replace(server_tools, notes=lambda: notes)


async def _connect_all(
    stack: AsyncExitStack, workspace: Workspace, entries: Mapping[str, ServerEntry]
) -> "dict[str, Connection | str]":
    """Open all connections concurrently, so that slow servers are not waited for one after the other."""
    pending = (_connect(stack, workspace, entry) for entry in entries.values())
    # waits for all of them, so that every open connection is in the stack
    results = await asyncio.gather(*pending, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return {
        name: result for name, result in zip(entries, results, strict=True) if not isinstance(result, BaseException)
    }


async def _connect(stack: AsyncExitStack, workspace: Workspace, entry: ServerEntry) -> "Connection | str":
    """Open a connection, or return why that failed."""
    try:
        return await stack.enter_async_context(servers.open_connection(workspace.home, entry))
    except (TransientError, UserError) as error:
        return str(error)


class _ToolSelection:
    """Selects the tools that a run gets from those it requested."""

    def __init__(
        self, workspace: Workspace, simulated: bool, record: bool, connections: "Mapping[str, Connection | str]"
    ) -> None:
        self._workspace = workspace
        self._simulated = simulated
        self._record = record
        self._connections = connections
        self._recordings = StoredRecordings(workspace.database)
        self._notes: list[str] = [connection for connection in connections.values() if isinstance(connection, str)]

    async def of(self, tools: Sequence[RequestedTool]) -> ServerTools:
        """The available tools, in the order in which they were requested."""
        live_tools: dict[str, GuardedTool] = {}
        replayed: dict[str, tuple[ToolSpec, RequestedTool]] = {}
        specs: list[ToolSpec] = []
        for requested in tools:
            if requested.entry.id in self._connections and (requested.as_of_safe or not self._simulated):
                tool = await self._live_tool(requested)
                if tool is not None:
                    live_tools[requested.name] = tool
                    specs.append(tool.spec)
            elif requested.approved is None:
                pinned = requested.tool in requested.entry.pins
                reason = (
                    f"nobody has asked {requested.entry.id} here yet (`pitboss mcp test` does)"
                    if pinned
                    else _REASONS["not approved"]
                )
                self._notes.append(f"{requested.name} is not available: {reason}")
            else:
                spec = requested.spec(requested.approved)
                replayed[requested.name] = spec, requested
                specs.append(spec)
        open_connections = [connection for connection in self._connections.values() if not isinstance(connection, str)]
        return ServerTools(
            tuple(specs),
            self._bind(specs, live_tools, replayed, open_connections),
            self._notes_reader(open_connections),
        )

    async def _live_tool(self, requested: RequestedTool) -> "GuardedTool | None":
        """The tool of an open connection, if the server's definition of it is the approved one."""
        connection = self._connections[requested.entry.id]
        if isinstance(connection, str):
            return None
        try:
            server_definitions = await connection.definitions()
        except TransientError as error:
            self._notes.append(str(error))
            return None
        definition = server_definitions.get(requested.tool)
        state = servers.state_of(requested.entry, requested.tool, requested.digest, definition)
        if state != "approved" or definition is None:
            self._notes.append(f"{requested.name} is not available: {_REASONS[state]}")
            return None
        if self._record:
            store_pinned_definition(self._workspace, requested.entry, definition)
        return guarded_tool(self._workspace, requested, connection, definition, self._store if self._record else None)

    def _store(self, recording: StoredRecording) -> None:
        self._recordings.add([recording])

    def _bind(
        self,
        specs: Sequence[ToolSpec],
        live_tools: "Mapping[str, GuardedTool]",
        replayed: Mapping[str, tuple[ToolSpec, RequestedTool]],
        connections: "Sequence[Connection]",
    ) -> Callable[[Instant], Mapping[str, Tool]]:
        names = [spec.name for spec in specs]
        recordings = self._recordings

        def at(instant: Instant) -> Mapping[str, Tool]:
            for connection in connections:
                connection.begin_tick()
            tools: dict[str, Tool] = {}
            for name in names:
                if name in live_tools:
                    tools[name] = live_tools[name]
                else:
                    spec, requested = replayed[name]
                    tools[name] = RecordedTool(spec, requested.entry.id, requested.tool, recordings, instant)
            return tools

        return at

    def _notes_reader(self, connections: "Sequence[Connection]") -> Callable[[], tuple[str, ...]]:
        fixed_notes = tuple(dict.fromkeys(self._notes))

        def notes() -> tuple[str, ...]:
            # Read before the tools of a tick are bound, so it is about the previous tick.
            return (
                *fixed_notes,
                *(
                    f"{connection.entry.id} did not answer at the last tick"
                    for connection in connections
                    if connection.broken
                ),
            )

        return notes


_REASONS: Mapping[str, str] = {
    "changed": "its definition is not the approved one any more",
    "not approved": "it has not been approved",
    "not allowed": "the catalogue does not allow it",
    "missing": "its server does not have it",
}


def store_pinned_definition(workspace: Workspace, entry: ServerEntry, definition: Definition) -> None:
    """Store a definition that the catalogue pins, so that simulations can offer it without contacting the server."""
    if entry.pins.get(definition.name) == definition.digest:
        approvals = Approvals(workspace.database, workspace.now)
        approvals.approve(entry.id, definition.name, definition.digest, servers.write_definition(definition))


def guarded_tool(
    workspace: Workspace,
    requested: RequestedTool,
    connection: "Connection",
    definition: Definition,
    record: Callable[[StoredRecording], object] | None = None,
) -> "GuardedTool":
    """Wrap one tool of an open connection; its answers are passed to `record`."""
    from pitboss.tools.mcp.guarded_tool import GuardedTool
    from pitboss.tools.mcp.recording_tool import RecordingTool

    parts = (
        requested.spec(definition),
        connection,
        requested.tool,
        requested.entry,
        definition.digest,
        definition.schema,
    )
    if record is None:
        return GuardedTool(*parts)

    def keep(arguments: str, result: str, failed: bool) -> None:
        recording = Recording(
            requested.entry.id, requested.tool, arguments, workspace.now(), result[:MOST_CHARS], failed
        )
        record(StoredRecording(recording, definition.digest))

    return RecordingTool(*parts, keep=keep)
