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
from pitboss.bootstrap.machine import environment
from pitboss.bootstrap.mcp_servers import Variables
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
    """One tool that a skill requests. `approved` is the definition that the user approved, None if there is none."""

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

    def spec(self, text: Definition) -> ToolSpec:
        """The tool as it is offered to a model."""
        return definitions.tool_spec(text, self.name)


def wanted(workspace: Workspace, skill: SkillDocument, registry: Registry) -> list[RequestedTool]:
    """The tools that a skill requests, in its own order. Raises `UserError` for names that cannot exist."""
    if not skill.mcp_servers:
        return []
    approvals, known = Approvals(workspace.database, workspace.now), servers.catalogue(workspace.settings)
    decisions = [name for name, tool in registry.items() if tool.decides]
    found: list[RequestedTool] = []
    for server in skill.mcp_servers:
        entry = known.find(server.id)
        tools = [servers.find_tool(entry, tool) for tool in server.tool_filter or entry.tools]
        names, refused = names_of(entry.id, tools, {*decisions, *(one.name for one in found)})
        refused += [f"{name} is a tool of pitboss itself" for name in names.values() if name in registry]
        if refused:
            raise UserError(refused[0], "leave it out with tool_filter, or rename the server in its catalogue")
        kept = approvals.of(entry.id)
        for tool, name in names.items():
            text = servers.read_definition(kept[tool]) if tool in kept else None
            found.append(RequestedTool(name, entry, tool, text))
    return found


def pin(workspace: Workspace, prepared: PreparedRun, registry: Registry) -> dict[str, Any]:
    """The digest of what a run can see of MCP servers, to be stored with it.

    It covers approved definitions, and recordings up to the run's end. Empty for a run that sees none. Raises what
    `wanted` raises, so it is also the check before a start.
    """
    skill = prepared.skill
    tools = wanted(workspace, skill, registry)
    reads = any(registry[name].reach == "recorded" for name in skill.tool_names if name in registry)
    if prepared.request.blind or (not tools and not reads):  # a blind run sees no MCP servers
        return {}
    recorded: dict[str, list[str]] = {}
    for one in tools:
        if not one.as_of_safe:
            recorded.setdefault(one.entry.id, []).append(one.tool)
    seen = StoredRecordings(workspace.database).digest(None if reads else recorded, prepared.request.to_at)
    offers = [[one.name, servers.trusted(one.entry, one.tool, one.digest), one.as_of_safe] for one in tools]
    return {PIN: codec.digest({"tools": offers, "recordings": seen})}


def check_pin(workspace: Workspace, prepared: PreparedRun, registry: Registry, params: Mapping[str, Any]) -> None:
    """Refuse to resume a run if the MCP definitions or recordings that it can see have changed."""
    now = pin(workspace, prepared, registry)
    if params.get(PIN) and params[PIN] != now.get(PIN):
        raise UserError(
            "what this run can see of MCP servers has changed since it began (recordings or approvals)",
            "start a new backtest: going on would mix two pasts",
        )


@asynccontextmanager
async def offered(
    workspace: Workspace,
    skill: SkillDocument,
    registry: Registry,
    simulated: bool,
    record: bool = False,
    variables: Variables = environment,
) -> AsyncIterator[ServerTools]:
    """Connect the servers that a skill names, provide their tools inside a block, and close the connections after it.

    `record` stores the answers for later simulations of this time: used by live and paper accounts, not by ad-hoc
    calls.
    """
    tools = wanted(workspace, skill, registry)
    if not tools:
        yield NO_SERVER_TOOLS
        return
    asked = {one.entry.id: one.entry for one in tools if one.as_of_safe or not simulated}
    async with AsyncExitStack() as stack:
        lines = await _lines(stack, workspace, asked, variables)
        yield await _Offer(workspace, simulated, record and not simulated, lines).of(tools)


async def glance(workspace: Workspace, skill: SkillDocument, registry: Registry) -> ServerTools:
    """The tools that a backtest of a skill would be offered, for display only: the connections are closed again."""
    async with offered(workspace, skill, registry, simulated=True) as found:
        told = found.notes()
        return replace(found, notes=lambda: told)


async def _lines(
    stack: AsyncExitStack, workspace: Workspace, asked: Mapping[str, ServerEntry], variables: Variables
) -> "dict[str, Connection | str]":
    """Open all connections concurrently, so that slow servers are not waited for one after the other."""
    opening = (_line(stack, workspace, entry, variables) for entry in asked.values())
    # waits for all of them, so that every open connection is in the stack
    found = await asyncio.gather(*opening, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return {name: one for name, one in zip(asked, found, strict=True) if not isinstance(one, BaseException)}


async def _line(
    stack: AsyncExitStack, workspace: Workspace, entry: ServerEntry, variables: Variables
) -> "Connection | str":
    """Open a connection, or return why that failed."""
    try:
        return await stack.enter_async_context(servers.reach(workspace.home, entry, variables))
    except (TransientError, UserError) as error:
        return str(error)


class _Offer:
    """Selects the tools that a run gets from those it requested."""

    def __init__(
        self, workspace: Workspace, simulated: bool, record: bool, lines: "Mapping[str, Connection | str]"
    ) -> None:
        self._workspace = workspace
        self._simulated = simulated
        self._record = record
        self._lines = lines
        self._recordings = StoredRecordings(workspace.database)
        self._notes: list[str] = [line for line in lines.values() if isinstance(line, str)]

    async def of(self, tools: Sequence[RequestedTool]) -> ServerTools:
        """The available tools, in the order in which they were requested."""
        asked: dict[str, GuardedTool] = {}
        replayed: dict[str, tuple[ToolSpec, RequestedTool]] = {}
        specs: list[ToolSpec] = []
        for one in tools:
            if one.entry.id in self._lines and (one.as_of_safe or not self._simulated):
                tool = await self._asked(one)
                if tool is not None:
                    asked[one.name] = tool
                    specs.append(tool.spec)
            elif one.approved is None:
                pinned = one.tool in one.entry.pins
                why = (
                    f"nobody has asked {one.entry.id} here yet (`pitboss mcp test` does)"
                    if pinned
                    else _WHY["not approved"]
                )
                self._notes.append(f"{one.name} is not available: {why}")
            else:
                spec = one.spec(one.approved)
                replayed[one.name] = spec, one
                specs.append(spec)
        open_lines = [line for line in self._lines.values() if not isinstance(line, str)]
        return ServerTools(tuple(specs), self._bind(specs, asked, replayed, open_lines), self._noticing(open_lines))

    async def _asked(self, one: RequestedTool) -> "GuardedTool | None":
        """The tool of an open connection, if the server's definition of it is the approved one."""
        line = self._lines[one.entry.id]
        if isinstance(line, str):
            return None
        try:
            said = await line.definitions()
        except TransientError as error:
            self._notes.append(str(error))
            return None
        found = said.get(one.tool)
        state = servers.state_of(one.entry, one.tool, one.digest, found)
        if state != "approved" or found is None:
            self._notes.append(f"{one.name} is not available: {_WHY[state]}")
            return None
        if self._record:
            remember(self._workspace, one.entry, found)
        return guard(self._workspace, one, line, found, self._keep if self._record else None)

    def _keep(self, kept: StoredRecording) -> None:
        self._recordings.add([kept])

    def _bind(
        self,
        specs: Sequence[ToolSpec],
        asked: "Mapping[str, GuardedTool]",
        replayed: Mapping[str, tuple[ToolSpec, RequestedTool]],
        lines: "Sequence[Connection]",
    ) -> Callable[[Instant], Mapping[str, Tool]]:
        names = [spec.name for spec in specs]
        recordings = self._recordings

        def at(instant: Instant) -> Mapping[str, Tool]:
            for line in lines:
                line.begin_tick()
            tools: dict[str, Tool] = {}
            for name in names:
                if name in asked:
                    tools[name] = asked[name]
                else:
                    spec, one = replayed[name]
                    tools[name] = RecordedTool(spec, one.entry.id, one.tool, recordings, instant)
            return tools

        return at

    def _noticing(self, lines: "Sequence[Connection]") -> Callable[[], tuple[str, ...]]:
        told = tuple(dict.fromkeys(self._notes))

        def notes() -> tuple[str, ...]:
            # Read before the tools of a tick are bound, so it is about the previous tick.
            return (*told, *(f"{line.entry.id} did not answer at the last tick" for line in lines if line.broken))

        return notes


_WHY: Mapping[str, str] = {
    "changed": "its definition is not the approved one any more",
    "not approved": "it has not been approved",
    "not allowed": "the catalogue does not allow it",
    "missing": "its server does not have it",
}


def remember(workspace: Workspace, entry: ServerEntry, said: Definition) -> None:
    """Store a definition that the catalogue pins, so that simulations can offer it without contacting the server."""
    if entry.pins.get(said.name) == said.digest:
        approvals = Approvals(workspace.database, workspace.now)
        approvals.approve(entry.id, said.name, said.digest, servers.write_definition(said))


def guard(
    workspace: Workspace,
    one: RequestedTool,
    line: "Connection",
    said: Definition,
    record: Callable[[StoredRecording], object] | None = None,
) -> "GuardedTool":
    """Wrap one tool of an open connection; its answers are passed to `record`."""
    from pitboss.tools.mcp.guarded_tool import GuardedTool
    from pitboss.tools.mcp.recording_tool import RecordingTool

    parts = (one.spec(said), line, one.tool, one.entry, said.digest, said.schema)
    if record is None:
        return GuardedTool(*parts)

    def keep(arguments: str, result: str, failed: bool) -> None:
        known = Recording(one.entry.id, one.tool, arguments, workspace.now(), result[:MOST_CHARS], failed)
        record(StoredRecording(known, said.digest))

    return RecordingTool(*parts, keep=keep)
