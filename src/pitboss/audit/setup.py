"""The setup of a look-ahead audit from a workspace: the runs of a skill on the available data, or a stored run.

A skill is audited with its own decider where that is a program, and with the stand-in in place of a model, whose calls
also try the tools. A stored run repeats its recorded replies. No model is called and nothing is written.
"""

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pitboss.agent.loop import ToolLoop
from pitboss.agent.request_policy import read_policy
from pitboss.audit.audited_run import AuditedRun, Connect
from pitboss.audit.default_range import with_range
from pitboss.audit.lookahead import AuditedTool, AuditSetup
from pitboss.audit.recordings import AuditRecordings
from pitboss.audit.tool_probe import ToolProbe
from pitboss.bootstrap import mcp_tools as mcp
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import ReplayMismatch, ToolFailed, UserError
from pitboss.core.instant import BeforeEnd, Instant, parse_instant, resolved
from pitboss.core.ports import Tool
from pitboss.core.snapshot import Record
from pitboss.core.state import State
from pitboss.models.replayed import Replayed
from pitboss.runs.fork import STAND_IN, RecordedDecider, rebuild_past, without_model
from pitboss.runs.run import prepare_stored, refuse_live
from pitboss.runs.stored import journal_of, request_of
from pitboss.runs.venues import venue_of
from pitboss.sim.connections import UNCONNECTED, Connections, ServerTools
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.request import BacktestRequest
from pitboss.sim.watch import Watch
from pitboss.store.recordings import StoredRecordings
from pitboss.store.runs import Run
from pitboss.tools.define import ToolContext, ToolDefinition
from pitboss.tools.mcp.recorded_tool import RecordedTool
from pitboss.tools.registry import lookup

MOST_TICKS = 2_000
"""The default range has at most so many ticks."""


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """The options of an audit: a skill, or a stored run."""

    skill: Mapping[str, Any] | None = None
    run: str = ""
    from_at: Instant | BeforeEnd | None = None
    to_at: Instant | BeforeEnd | None = None
    tools: tuple[str, ...] = ()
    tool_files: tuple[Path, ...] = ()
    data_venue: str = ""
    seed: int = 0


async def prepare(workspace: Workspace, options: AuditRequest, watch: Watch | None = None) -> AuditSetup:
    """Load the data and replay each run once, so that the audit can run any of its ticks again."""
    recordings = AuditRecordings(StoredRecordings(workspace.database))
    if options.run:
        setup, to_at = await _of_run(workspace, options, recordings)
    else:
        setup, to_at = _of_skill(workspace, options, recordings)
    for run in setup.runs:
        await run.replay_all(to_at, watch or Watch())
    if not setup.ticks:
        raise UserError("no tick but the first lies between --from and --to", "choose a longer range")
    return setup


# A skill --------------------------------------------------------------------------------------------------------------


def _of_skill(workspace: Workspace, options: AuditRequest, recordings: AuditRecordings) -> tuple[AuditSetup, Instant]:
    if options.skill is None:
        raise UserError("name a skill, or a stored run with --run", "for example `pitboss audit lookahead SKILL`")
    venue = venue_of(options.skill)
    request = venue.request_type()(
        skill=options.skill,
        from_at=0,
        to_at=0,
        data_venue=options.data_venue,
        seed=options.seed,
        max_gap=workspace.settings.max_gap,
    )
    request = with_range(workspace, request, options.from_at, options.to_at, MOST_TICKS)
    runs: list[AuditedRun] = []
    if request.is_program:
        runs.append(_program(workspace, request, recordings))
    prepared = venue.prepare(replace(request, model=STAND_IN), workspace.lake, workspace.settings)
    outside = _recorded_servers(workspace, prepared)
    tools, definitions, not_audited = _tools(options, venue.tools(), outside, recordings)
    loop = prepared.course().ports.decider
    if isinstance(loop, ToolLoop):
        probe = ToolProbe(loop.model)
        runs.append(
            AuditedRun(
                STAND_IN,
                venue,
                prepared,
                workspace.settings,
                lambda recordings, seq, exact: Connections(
                    model=probe, tools=definitions, server_tools=outside.at(recordings), recordings=recordings
                ),
                recordings,
                probe=probe,
            )
        )
    return AuditSetup(
        runs, workspace.lake, request.from_at, tools, {**not_audited, **outside.not_audited}
    ), request.to_at


def _program(workspace: Workspace, request: BacktestRequest, recordings: AuditRecordings) -> AuditedRun:
    venue = venue_of(request.skill)
    prepared = venue.prepare(request, workspace.lake, workspace.settings)
    return AuditedRun(request.source, venue, prepared, workspace.settings, _unconnected, recordings)


def _unconnected(recordings: AuditRecordings, seq: int, exact: bool) -> Connections:
    del recordings, seq, exact
    return UNCONNECTED


# A stored run ---------------------------------------------------------------------------------------------------------


async def _of_run(
    workspace: Workspace, options: AuditRequest, recordings: AuditRecordings
) -> tuple[AuditSetup, Instant]:
    if options.tools or options.tool_files or options.data_venue:
        raise UserError("a run has its own tools and data", "give a skill for --tools, --tool-file and --data-venue")
    run = workspace.runs.get(options.run)
    refuse_live(run)
    request = request_of(run)
    from_at = resolved(options.from_at or request.from_at, lambda: request.to_at)
    to_at = resolved(options.to_at or request.to_at, lambda: request.to_at)
    if not request.from_at <= from_at < to_at <= request.to_at:
        raise UserError("--from and --to are not within the run", "leave them out, or choose a part of its range")
    records = [record for record in journal_of(workspace, run).records() if record.kind != "close"]
    if not records:
        raise UserError(f"run {run.id} has no ticks", "audit its skill instead")
    prepared = prepare_stored(workspace, run, without_model(request))
    start = await _state_at_fork(workspace, run)
    if start is not None:
        from_at = max(from_at, parse_instant(run.params["forked_from"]["at"]))
    outside = _recorded_servers(workspace, prepared)
    audited = AuditedRun(
        f"run {run.id}",
        venue_of(request.skill),
        prepared,
        workspace.settings,
        _connect_stored(run, request, records, outside),
        recordings,
        records,
        start,
    )
    setup = AuditSetup([audited], workspace.lake_of(run.params), from_at, (), outside.not_audited)
    return setup, min(to_at, _last_tick(records) + 1)


def _connect_stored(
    run: Run, request: BacktestRequest, records: Sequence[Record], outside: "_RecordedServers"
) -> Connect:
    """Connections that repeat what the run recorded: the replies of its model, or its decisions."""
    if request.is_program:
        return _unconnected
    policy = read_policy(run.params.get("manner"))

    def connect(recordings: AuditRecordings, seq: int, exact: bool) -> Connections:
        model = Replayed(records[seq:])
        if outside.not_audited or not exact:
            return Connections(model=model, decider=RecordedDecider(records))
        return Connections(
            model=model,
            policy=policy,
            server_tools=outside.at(recordings),
            recordings=recordings,
        )

    return connect


async def _state_at_fork(workspace: Workspace, run: Run) -> State | None:
    """The state in which a fork begins, from a replay of its source; None for a run that is no fork."""
    origin = run.params.get("forked_from")
    if origin is None:
        return None
    source = workspace.runs.get(origin["run_id"])
    prepared = prepare_stored(workspace, source, without_model(request_of(source)))
    try:
        records = journal_of(workspace, source).records()
        return (await rebuild_past(workspace, source, prepared, records, parse_instant(origin["at"])))[1]
    except ReplayMismatch as error:
        raise UserError(f"the source of this fork cannot be replayed: {error}", "audit the skill instead") from None


def _last_tick(records: Sequence[Record]) -> Instant:
    last = records[-1]
    return last.body()["until_at"] if last.kind == "span" else last.tick_at


# The tools ------------------------------------------------------------------------------------------------------------


def load_tool(path: Path) -> ToolDefinition:
    """The tool of a file with `TOOL = define_tool(...)`. The file is executed: it is the user's own code."""
    spec = importlib.util.spec_from_file_location(f"pitboss_audited_{path.stem}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise UserError(f"--tool-file: {path} is not a Python file", "a file with TOOL = define_tool(...)")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001 – any error in the file is the user's to fix
        raise UserError(f"--tool-file: {path} cannot be loaded: {type(error).__name__}: {error}") from None
    tool = getattr(module, "TOOL", None)
    if not isinstance(tool, ToolDefinition):
        raise UserError(f"--tool-file: {path} has no TOOL = define_tool(...)", "docs/tools.md shows one")
    return tool


class _FailingAsText:
    """A tool whose errors are answers, so that one that raises does not end the audit."""

    def __init__(self, inner: Tool) -> None:
        self.spec = inner.spec
        self.inner = inner

    async def call(self, arguments: Any) -> str:
        try:
            return await self.inner.call(arguments)
        except ToolFailed:
            raise
        except Exception as error:  # noqa: BLE001 – the tool is reported as failed
            raise ToolFailed(f"{type(error).__name__}: {error}") from None


def _failing_as_text(tool: ToolDefinition) -> ToolDefinition:
    def build(context: ToolContext) -> Tool:
        return _FailingAsText(tool.build(context))

    return replace(tool, build=build)


def _tools(
    options: AuditRequest,
    built_in: Mapping[str, ToolDefinition],
    outside: "_RecordedServers",
    recordings: AuditRecordings,
) -> tuple[list[AuditedTool], tuple[ToolDefinition, ...], dict[str, str]]:
    """The named tools, or all; a tool of a file replaces a built-in one of the same name."""
    own = {tool.name: _failing_as_text(tool) for tool in map(load_tool, options.tool_files)}
    available = {**built_in, **own}
    selected = [
        name
        for name in options.tools or (*available, *outside.names)
        if name in outside.names or lookup(available, name)
    ]
    tools: list[AuditedTool] = []
    definitions: list[ToolDefinition] = []
    not_audited: dict[str, str] = {}
    for name in dict.fromkeys((*own, *selected)):
        if name in outside.names:
            tools.append(outside.tool(name, recordings))
        elif available[name].decides:
            not_audited[name] = "it is the decision itself and returns no data"
        elif available[name].reach == "live_only":
            not_audited[name] = "it is live only and refused in simulations"
        else:
            tool = available[name]
            definitions.append(tool)
            tools.append(AuditedTool(name, tool.schema, tool.example))
    return tools, tuple(definitions), not_audited


@dataclass(frozen=True, slots=True)
class _RecordedServers:
    """The tools of the skill's MCP servers that a simulation answers from recordings."""

    requested: Mapping[str, mcp.RequestedTool]
    not_audited: Mapping[str, str]

    @property
    def names(self) -> Iterable[str]:
        return self.requested.keys()

    def tool(self, name: str, recordings: AuditRecordings) -> AuditedTool:
        """One of them, with the arguments for which there are answers."""
        requested = self.requested[name]
        recorded = [row.arguments for row in recordings.of(requested.entry.id, requested.tool)]
        return AuditedTool(name, {}, {}, recorded or ("{}",))

    def at(self, recordings: AuditRecordings) -> ServerTools:
        """The tools on these recordings."""
        specs = {name: tool.spec(tool.approved) for name, tool in self.requested.items() if tool.approved is not None}

        def bind(instant: Instant) -> Mapping[str, Tool]:
            return {
                name: RecordedTool(spec, self.requested[name].entry.id, self.requested[name].tool, recordings, instant)
                for name, spec in specs.items()
            }

        return ServerTools(tuple(specs.values()), bind)


def _recorded_servers(workspace: Workspace, prepared: PreparedRun) -> _RecordedServers:
    tools: dict[str, mcp.RequestedTool] = {}
    not_audited: dict[str, str] = {}
    registry = venue_of(prepared.request.skill).tools()
    for tool in mcp.requested_tools(workspace, prepared.skill, registry):
        if tool.as_of_safe:
            not_audited[tool.name] = "its server is called in simulations, so its answers cannot be audited"
        elif tool.approved is None:
            not_audited[tool.name] = "it is not approved, so no run has it"
        else:
            tools[tool.name] = tool
    return _RecordedServers(tools, not_audited)
