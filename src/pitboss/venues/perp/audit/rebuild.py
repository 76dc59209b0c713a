"""An agent's inputs at a tick, rebuilt from given data: the account, the message, wake conditions, tags, tool answers.

Each side of a comparison is one `RebuiltTick`. The unchanged side uses one `PerpPrompts` for all its ticks, as a run
does, so that a cache that carries data from a later tick to an earlier one is detected; each copy has a fresh one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import localcontext
from typing import Any

import numpy as np

from pitboss.core import codec, curve
from pitboss.core.asof import Market
from pitboss.core.errors import ToolFailed
from pitboss.core.instant import HOUR_MS, Instant
from pitboss.core.market import Bars, Points
from pitboss.core.money import CONTEXT
from pitboss.core.ports import Tool
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.data.resample import resample
from pitboss.tick import recollect, reflect
from pitboss.tools.define import ToolContext, ToolDefinition
from pitboss.tools.mcp.recorded_tool import RecordedTool
from pitboss.venues.perp import regime, wake
from pitboss.venues.perp.audit.evidence import Evidence, PastOf
from pitboss.venues.perp.audit.replayed_states import TickStart
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.course import PerpCourse, first_state
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo, sections
from pitboss.venues.perp.skill import MoveAtr, PerpSkill
from pitboss.venues.perp.tape import Tape, make_tape
from pitboss.venues.perp.world import advance

PRICES = ("mark", "oracle")
_WINDOW = 200
"""Base bars from which coarser bars are resampled."""


@dataclass(frozen=True, slots=True)
class RecordedMcpTool:
    """A tool of an MCP server that a simulation answers from recordings."""

    name: str
    server: str
    tool: str
    spec: Any


AnyTool = ToolDefinition | RecordedMcpTool


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """A tool's answer. `failed`: it refused or raised."""

    text: str
    failed: bool


@dataclass(slots=True, eq=False)
class RebuiltTick:
    """One side at one tick. `happened` are the receipts since the tick before."""

    evidence: Evidence
    course: PerpCourse
    state: State
    observation: Observation
    happened: tuple[Receipt, ...]
    account: bytes
    past_of: PastOf

    def judge(self, intent: Any) -> Any:
        """The engine's verdict on an intent."""
        observation = self.observation
        return self.course.ports.guard(observation, self.state, intent, observation.at).verdict

    async def ask(self, tool: AnyTool, arguments: Mapping[str, Any]) -> ToolAnswer:
        """One call of a tool, built for this tick."""
        try:
            hydrated = self._hydrate(tool)
            return ToolAnswer(codec.printable(await hydrated.call(dict(arguments))), False)
        except ToolFailed as error:
            return ToolAnswer(str(error), True)
        except Exception as error:  # noqa: BLE001 – a tool that raises is reported as not covered; the audit continues
            return ToolAnswer(f"{type(error).__name__}: {error}", True)

    def _hydrate(self, tool: AnyTool) -> Tool:
        at, recordings = self.observation.at, self.evidence.recordings
        if isinstance(tool, RecordedMcpTool):
            return RecordedTool(tool.spec, tool.server, tool.tool, recordings, at)
        prior, later = self.evidence.split(at)
        past = self.past_of(prior, self.happened, later)
        mode = "write" if "write" in tool.modes else "read"
        return tool.build(ToolContext(self.observation, mode, self.judge, past, recordings))


async def rebuild_tick(evidence: Evidence, course: PerpCourse, tick_start: TickStart, past_of: PastOf) -> RebuiltTick:
    """One side at a tick: the account after the tick before, advanced to this tick over the side's own bars.

    The events in between are added to the memory, and lessons are written if they are due, as in a tick.
    """
    at, ports = tick_start.at, replace(course.ports, view=evidence.market.view)
    with localcontext(CONTEXT):
        tape = _tape(evidence.market, course, tick_start)
        stretch = advance(tick_start.before.world, ports.terms, tape, 0, tape.index_of(at))
        fresh = first_state(replace(course, market=evidence.market, tick_at=np.array([at], np.int64)))
        state = replace(tick_start.before, world=stretch.world)
        inputs = {
            "world": state.world,
            "receipts": stretch.receipts,
            "equity": list(curve.points(stretch.equity)),  # points, because their packing may depend on the tape
            "fresh": fresh.world,
        }
        state, observation = recollect(state, at, stretch.receipts, ports)
        state, observation, _ = await reflect(state, observation, ports)
        inputs["portfolio"], inputs["room"] = observation.portfolio(), observation.room()
    return RebuiltTick(evidence, course, state, observation, stretch.receipts, codec.dumps(inputs), past_of)


def _tape(market: Market, course: PerpCourse, tick_start: TickStart) -> Tape:
    """The base bars around the tick, including later ones if this side has any."""
    return _tape_between(market, course, tick_start.since, tick_start.at + 12 * course.tape.interval_ms)


def _tape_between(market: Market, course: PerpCourse, start: Instant, end: Instant) -> Tape:
    base, symbols = course.base_interval, course.tape.symbols

    def points(kind: str) -> dict[str, Points]:
        by_symbol: dict[str, Points] = {}
        for symbol in symbols:
            series = market.points.get((kind, symbol))
            if series is not None:
                low, high = series.at.searchsorted((start - HOUR_MS, end))
                by_symbol[symbol] = Points(symbol, series.kind, series.at[low:high], series.value[low:high])
        return by_symbol

    prices = {symbol: series for kind in PRICES for symbol, series in points(kind).items()}
    bars = {symbol: market.bars[symbol, base] for symbol in symbols}
    return make_tape(bars, start, end, points("funding"), prices, course.tape.books)


def course_between(course: PerpCourse, market: Market, start: TickStart, at: Instant) -> PerpCourse:
    """The same run over another market, from one tick to another, both inclusive."""
    ticks = course.tick_at[(course.tick_at >= start.at) & (course.tick_at <= at)]
    tape = _tape_between(market, course, start.since, at + 12 * course.tape.interval_ms)
    return replace(course, market=market, ports=replace(course.ports, view=market.view), tick_at=ticks, tape=tape)


# The message ----------------------------------------------------------------------------------------------------------


def message(side: RebuiltTick, context: PerpPrompts) -> bytes:
    """The user message."""
    return context.prompt(side.observation).user.encode()


def by_section(side: RebuiltTick, skill: PerpSkill) -> dict[str, str]:
    """The sections of the user message by name, resampled without a cache; absent sections are left out."""
    memo = Memo(skill)
    texts: dict[str, str] = {}
    for section in sections():
        text = section(side.observation, memo)
        if text is not None:
            texts[section_name(section)] = text
    return texts


def section_name(section: Any) -> str:
    """The name of a section: that of its file."""
    return str(section.__module__).rpartition(".")[2]


# Memory, waking, tags, coarser bars -------------------------------------------------------------------------------------------


def memory_bytes(side: RebuiltTick) -> bytes:
    """The memory: trades with their excursions, refusals, the day, the notes."""
    return codec.dumps(side.observation.memory)


def reflection_prompt(side: RebuiltTick) -> bytes:
    """The prompt of a reflection at this tick, whether it is due or not."""
    reflector = side.course.ports.reflector
    return b"" if reflector is None else "\n".join(reflector.prompt(side.observation)).encode()


def wake_conditions(side: RebuiltTick, skills: tuple[PerpSkill, ...]) -> bytes:
    """Whether each wake condition holds, and its inputs."""
    inputs: list[Any] = [sorted(wake.closes(side.observation).items()), side.observation.view.news_count()]
    state = side.state
    for skill in skills:
        observation = replace(side.observation, skill=skill)
        inputs.append(
            [wake.awake(observation, closes, state.news_seen) for closes in (state.asked_close, _earlier_closes(side))]
        )
    return codec.dumps(inputs)


def wake_skills(skill: PerpSkill) -> tuple[PerpSkill, ...]:
    """The skill with each wake condition alone."""
    conditions = ("position_open", "new_news", MoveAtr.model_validate({"move_atr": 1}))
    return tuple(
        skill.model_copy(update={"schedule": skill.schedule.model_copy(update={"wake_when": (condition,)})})
        for condition in conditions
    )


def _earlier_closes(side: RebuiltTick) -> dict[str, float]:
    """Closes of four hours ago, in place of those of the last model call."""
    context, view = side.observation.skill.context, side.observation.view
    closes: dict[str, float] = {}
    for symbol in context.symbols:
        bars = view.bars(symbol, context.bars_interval, 1, view.at - 4 * HOUR_MS)
        if len(bars):
            closes[symbol] = float(bars.close[-1])
    return closes


def regime_tags(side: RebuiltTick, symbol: str, intervals: tuple[str, ...], lookback: int) -> bytes:
    """The regime and the average true range of a symbol in each interval."""
    inputs: list[Any] = []
    for interval in intervals:
        if side.observation.view.has_bars(symbol, interval):
            bars, closed = side.observation.view.series(symbol, interval)
            inputs.append([interval, closed, regime.tag(bars, closed, lookback), regime.atr(bars, closed)])
    return codec.dumps(inputs)


def coarser_bars(side: RebuiltTick, symbol: str, base: str, interval: str) -> bytes:
    """Closed bars of a longer interval, resampled from the newest base bars of this side."""
    bars: Bars = side.evidence.market.bars[symbol, base]
    at = side.observation.at
    first = int(bars.open_at.searchsorted(at - _WINDOW * bars.interval_ms))
    resampled = resample(bars.slice(first, len(bars)), interval)
    stop = int(resampled.open_at.searchsorted(at - resampled.interval_ms, side="right"))
    columns = (resampled.open_at, resampled.open, resampled.high, resampled.low, resampled.close, resampled.volume)
    return b"\n".join(column[:stop].tobytes() for column in columns)
