"""The setup of a look-ahead audit from a workspace: a skill on the available data, or a stored run, with its tools.

No model is called and nothing is written. Without a skill the audit uses a default one for the available symbols.
"""

import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pitboss.bootstrap import mcp_tools as mcp
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, INTERVALS, Instant, interval_ms
from pitboss.core.past import Recording
from pitboss.data.feed import choose_venue
from pitboss.data.lake import Lake
from pitboss.runs.fork import without_model
from pitboss.runs.preview import ANY_GAP, newest_tick
from pitboss.runs.stored import journal_of, request_of
from pitboss.store.recordings import StoredRecordings
from pitboss.tools.define import ToolDefinition
from pitboss.tools.registry import lookup
from pitboss.venues.perp.assembly import prepare as prepare_run
from pitboss.venues.perp.assembly import read_skill
from pitboss.venues.perp.assembly import tools as builtin_tools
from pitboss.venues.perp.audit.evidence import Evidence, MemoryRecordings
from pitboss.venues.perp.audit.lookahead import AuditSetup
from pitboss.venues.perp.audit.rebuild import AnyTool, RecordedMcpTool
from pitboss.venues.perp.audit.replayed_states import RandomDecider, RecordedDecider, RecordedReflections, replay_ticks
from pitboss.venues.perp.course import PerpCourse
from pitboss.venues.perp.intents import TERMINAL
from pitboss.venues.perp.reflection import TradeReflector
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.standin.analyst import Analyst
from pitboss.venues.perp.tools import get_top_traders

DAYS = 21
"""The default range: so many days before the newest data."""
MAX_SYMBOLS = 5
DECIDER = "policy/hold"


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """The options of an audit. Without a skill and a run, a default skill is used."""

    skill: Mapping[str, Any] | None = None
    run: str = ""
    symbols: tuple[str, ...] = ()
    from_at: Instant | None = None
    to_at: Instant | None = None
    tools: tuple[str, ...] = ()
    tool_files: tuple[Path, ...] = ()
    venue: str = ""
    seed: int = 0


async def prepare(workspace: Workspace, options: AuditRequest) -> AuditSetup:
    """Load the data and replay the range once, so that the audit can rebuild any of its ticks."""
    extra = [load_tool(path) for path in options.tool_files]
    course = _course_of_run(workspace, options) if options.run else _course_of_skill(workspace, options)
    mcp_tools, not_asked = _recorded_mcp_tools(workspace, course.ports.skill)
    tools, not_audited = _tools(options.tools, extra, mcp_tools)
    if not options.tools:
        not_audited |= not_asked
    replayed = await replay_ticks(course)
    if options.from_at is not None:  # a run is replayed from its first tick, and audited from here on
        replayed = replace(replayed, ticks=tuple(tick for tick in replayed.ticks if tick.at >= options.from_at))
        if not replayed.ticks:
            raise UserError("no tick lies between --from and --to", "choose an earlier --from")
    recordings = _recordings(workspace, mcp_tools.values(), course.tick_at.tolist())
    return AuditSetup(course, Evidence(course.market, replayed.records, recordings), replayed, tools, not_audited)


# The run --------------------------------------------------------------------------------------------------------------


def _course_of_run(workspace: Workspace, options: AuditRequest) -> PerpCourse:
    if options.skill is not None or options.symbols:
        raise UserError("a run has its own skill and symbols", "give either --run, or a skill and --symbols")
    run = workspace.runs.get(options.run)
    request = replace(without_model(request_of(run)), prompts=True)
    from_at, to_at = options.from_at or request.from_at, options.to_at or request.to_at
    if not request.from_at <= from_at < to_at <= request.to_at:
        raise UserError("--from and --to are not within the run", "leave them out, or choose a part of its range")
    course = prepare_run(replace(request, max_gap=ANY_GAP), workspace.lake, workspace.settings).course()
    records = list(journal_of(workspace, run).records())
    ports = course.ports
    reflector = ports.reflector and replace(ports.reflector, model=RecordedReflections(records))
    ports = replace(ports, decider=RecordedDecider(records), reflector=reflector)
    ticks = course.tick_at
    # The state of a tick depends on all ticks before it, so only the end of the range can be cut off.
    return replace(course, ports=ports, tick_at=ticks[ticks < to_at])


def _course_of_skill(workspace: Workspace, options: AuditRequest) -> PerpCourse:
    lake, settings = workspace.lake, workspace.settings
    data_venue = options.venue or settings.data_venue
    plain = dict(options.skill) if options.skill is not None else _default_skill(lake, data_venue, options.symbols)
    if options.symbols:
        plain["context"] = {**plain.get("context", {}), "symbols": list(options.symbols)}
    skill = read_skill(plain)
    symbols, period = skill.context.sorted_symbols, interval_ms(skill.schedule.every)
    to_at = options.to_at
    if to_at is None:
        to_at = newest_tick(lake, data_venue, symbols, period)
    from_at = to_at - DAYS * DAY_MS if options.from_at is None else options.from_at
    if options.from_at is None:
        venue = choose_venue(data_venue, lake, symbols)
        from_at = max(from_at, _first_bar_at(lake, venue, symbols, period))
    request = PerpRequest(
        skill=plain,
        from_at=from_at,
        to_at=to_at,
        model=DECIDER,
        data_venue=data_venue,
        seed=options.seed,
        prompts=True,
        max_gap=ANY_GAP,
    )
    course = prepare_run(request, lake, settings).course()
    ports = course.ports
    reflector = ports.memory_settings and TradeReflector(
        Analyst(), ports.context, skill.context.memory.reflection_every
    )
    ports = replace(ports, decider=RandomDecider(options.seed), reflector=reflector)
    return replace(course, ports=ports)


def _first_bar_at(lake: Lake, venue: str, symbols: Sequence[str], period: int) -> Instant:
    """The first instant from which every symbol has bars that fit the schedule."""
    firsts: list[Instant] = []
    for symbol in symbols:
        extents = [
            extent[0]
            for interval in lake.intervals(venue, symbol)
            if period % INTERVALS[interval] == 0 and (extent := lake.extent(venue, symbol, interval))
        ]
        firsts.append(min(extents, default=0))
    return max(firsts)


def _default_skill(lake: Lake, venue: str, symbols: tuple[str, ...]) -> dict[str, Any]:
    if not symbols:
        stored_symbols = lake.symbols(choose_venue(venue, lake, ()))
        symbols = tuple(stored_symbols[:MAX_SYMBOLS])
    if not symbols:
        raise UserError("there is no data here to audit", "import some, or make some with `pitboss data demo`")
    return {
        "pitboss": 1,
        "name": "audit",
        "venue": "perp",
        "model": DECIDER,
        "schedule": {"every": "15m"},
        "strategy": {
            "mode": "thesis",
            "thesis": "What is known is known in time.",
            "avoid": "The future.",
        },
        "context": {
            "symbols": list(symbols),
            "bars_interval": "15m",
            "bars_lookback": 30,
            "news_lookback_hours": 24,
            "events": {"enabled": True, "lookahead_hours": 168},
        },
    }


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


def _tools(
    names: Sequence[str], extra: Sequence[ToolDefinition], mcp_tools: Mapping[str, RecordedMcpTool]
) -> tuple[dict[str, AnyTool], dict[str, str]]:
    """The named tools, or all; a tool of a file replaces a built-in one of the same name."""
    own: dict[str, AnyTool] = {tool.name: tool for tool in extra}
    built_in = builtin_tools()
    available = {**built_in, **mcp_tools, **own}
    selected = [available[name] if name in available else lookup(built_in, name) for name in names or available]
    tools: dict[str, AnyTool] = dict(own)
    not_audited: dict[str, str] = {}
    for tool in selected:
        if tool.name == TERMINAL:
            not_audited[tool.name] = "it is the decision itself and returns no data"
        elif not isinstance(tool, RecordedMcpTool) and tool.reach == "live_only":
            not_audited[tool.name] = "it is live only and refused in simulations"
        else:
            tools[tool.name] = tool
    return tools, not_audited


def _recorded_mcp_tools(workspace: Workspace, skill: PerpSkill) -> tuple[dict[str, RecordedMcpTool], dict[str, str]]:
    """The tools of the skill's MCP servers that a simulation answers from recordings."""
    tools: dict[str, RecordedMcpTool] = {}
    not_audited: dict[str, str] = {}
    for tool in mcp.requested_tools(workspace, skill, builtin_tools()):
        if tool.as_of_safe:
            not_audited[tool.name] = "its server is called in simulations, so its answers cannot be audited"
        elif tool.approved is None:
            not_audited[tool.name] = "it is not approved, so no run has it"
        else:
            tools[tool.name] = RecordedMcpTool(tool.name, tool.entry.id, tool.tool, tool.spec(tool.approved))
    return tools, not_audited


# Recordings -----------------------------------------------------------------------------------------------------------


class _AuditRecordings(MemoryRecordings):
    """The workspace's recordings, read as a run reads them, and synthetic ones; all in memory, so that they can be copied."""

    def __init__(
        self, stored: StoredRecordings, recordings: Iterable[Recording], synthetic: Iterable[Recording]
    ) -> None:
        stored_recordings = list(recordings)
        super().__init__([*stored_recordings, *synthetic])
        self._stored = stored
        self._stored_tools = {(recording.server, recording.tool) for recording in stored_recordings}

    def latest(self, server: str, tool: str, arguments: str, by: Instant) -> Recording | None:
        """From the database, if it has recordings of the tool."""
        source = self._stored if (server, tool) in self._stored_tools else super()
        return source.latest(server, tool, arguments, by)

    def count(self, server: str, tool: str, by: Instant) -> int:
        """From the database, if it has recordings of the tool."""
        source = self._stored if (server, tool) in self._stored_tools else super()
        return source.count(server, tool, by)


def _recordings(
    workspace: Workspace, mcp_tools: Iterable[RecordedMcpTool], ticks: Sequence[Instant]
) -> MemoryRecordings:
    """All recordings of the audited tools; synthetic ones for a built-in tool without any."""
    stored = StoredRecordings(workspace.database)
    own = (get_top_traders.SERVER, get_top_traders.TOOL_NAME)
    keys = dict.fromkeys([own, *((tool.server, tool.tool) for tool in mcp_tools)])
    stored_recordings = {key: [row.recording for row in stored.of(*key)] for key in keys}
    synthetic = [] if stored_recordings[own] else synthetic_recordings(*own, ticks)
    return _AuditRecordings(
        stored, [recording for group in stored_recordings.values() for recording in group], synthetic
    )


def synthetic_recordings(server: str, tool: str, ticks: Sequence[Instant]) -> list[Recording]:
    """Synthetic answers at every tenth tick for several arguments, so that the tool has something to return."""
    return [
        Recording(server, tool, f'{{"count":{count}}}', at, f"made up for the audit: {count} traders at {at}")
        for index, at in enumerate(ticks[::10])
        for count in (1, 2, 3, 5)
        if (index + count) % 2
    ]
