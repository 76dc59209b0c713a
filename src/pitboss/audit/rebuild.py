"""What an agent would be told at a tick, made from whatever is held: the account, the message, waking, tags, answers.

Each side of a comparison is one `RebuiltTick`. The side that was not changed keeps one `PerpPrompts` for all its ticks, as a run
does, so that what a memo carries from a later tick to an earlier one would show; the copies have a fresh one each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import localcontext
from typing import Any

import numpy as np

from pitboss.audit.evidence import Evidence, PastOf
from pitboss.audit.replayed_states import Moment
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
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.course import PerpCourse, first_state
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo, sections
from pitboss.venues.perp.skill import MoveAtr, PerpSkill
from pitboss.venues.perp.tape import Tape, make_tape
from pitboss.venues.perp.world import advance

PRICES = ("mark", "oracle")
_WINDOW = 200
"""Bars of the finest interval that are put together into coarser ones."""


@dataclass(frozen=True, slots=True)
class Outside:
    """A tool of an MCP server as a simulation has it."""

    name: str
    server: str
    tool: str
    spec: Any


AnyTool = ToolDefinition | Outside


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool said. `failed`: it refused, or broke."""

    text: str
    failed: bool


@dataclass(slots=True, eq=False)
class RebuiltTick:
    """One side at one tick. `happened` is what the world did since the tick before."""

    held: Evidence
    script: PerpCourse
    state: State
    observation: Observation
    happened: tuple[Receipt, ...]
    account: bytes
    past_of: PastOf

    def judge(self, intent: Any) -> Any:
        """What the engine would say."""
        observation = self.observation
        return self.script.ports.guard(observation, self.state, intent, observation.at).verdict

    async def ask(self, tool: AnyTool, arguments: Mapping[str, Any]) -> ToolAnswer:
        """One call of a tool, built for this tick."""
        try:
            built = self._built(tool)
            return ToolAnswer(codec.printable(await built.call(dict(arguments))), False)
        except ToolFailed as error:
            return ToolAnswer(str(error), True)
        except Exception as error:  # noqa: BLE001 – a tool that breaks is named as not covered, and the audit goes on
            return ToolAnswer(f"{type(error).__name__}: {error}", True)

    def _built(self, tool: AnyTool) -> Tool:
        at, recordings = self.observation.at, self.held.recordings
        if isinstance(tool, Outside):
            return RecordedTool(tool.spec, tool.server, tool.tool, recordings, at)
        prior, later = self.held.split(at)
        past = self.past_of(prior, self.happened, later)
        mode = "write" if "write" in tool.modes else "read"
        return tool.build(ToolContext(self.observation, mode, self.judge, past, recordings))


async def stand(held: Evidence, script: PerpCourse, moment: Moment, past_of: PastOf) -> RebuiltTick:
    """A side at a tick: the account is taken as the tick before left it and brought here over this side's own bars.

    What has happened on the way is remembered, and lessons are written where they are due, as a tick does it.
    """
    at, ports = moment.at, replace(script.ports, view=held.market.view)
    with localcontext(CONTEXT):
        tape = _tape(held.market, script, moment)
        stretch = advance(moment.before.world, ports.terms, tape, 0, tape.index_of(at))
        fresh = first_state(replace(script, market=held.market, tick_at=np.array([at], np.int64)))
        state = replace(moment.before, world=stretch.world)
        told = {
            "world": state.world,
            "receipts": stretch.receipts,
            "equity": list(
                curve.points(stretch.equity)
            ),  # how a curve is packed may depend on the tape; its points may not
            "fresh": fresh.world,
        }
        state, observation = recollect(state, at, stretch.receipts, ports)
        state, observation, _ = await reflect(state, observation, ports)
        told["portfolio"], told["room"] = observation.portfolio(), observation.room()
    return RebuiltTick(held, script, state, observation, stretch.receipts, codec.dumps(told), past_of)


def _tape(market: Market, script: PerpCourse, moment: Moment) -> Tape:
    """The base bars around the tick, with those after it where this side has any."""
    return _tape_between(market, script, moment.since, moment.at + 12 * script.tape.interval_ms)


def _tape_between(market: Market, script: PerpCourse, start: Instant, end: Instant) -> Tape:
    base, symbols = script.base_interval, script.tape.symbols

    def points(kind: str) -> dict[str, Points]:
        found: dict[str, Points] = {}
        for symbol in symbols:
            series = market.points.get((kind, symbol))
            if series is not None:
                low, high = series.at.searchsorted((start - HOUR_MS, end))
                found[symbol] = Points(symbol, series.kind, series.at[low:high], series.value[low:high])
        return found

    prices = {symbol: series for kind in PRICES for symbol, series in points(kind).items()}
    bars = {symbol: market.bars[symbol, base] for symbol in symbols}
    return make_tape(bars, start, end, points("funding"), prices, script.tape.books)


def between(script: PerpCourse, market: Market, start: Moment, at: Instant) -> PerpCourse:
    """The same run over another market, from one tick to another, both included."""
    ticks = script.tick_at[(script.tick_at >= start.at) & (script.tick_at <= at)]
    tape = _tape_between(market, script, start.since, at + 12 * script.tape.interval_ms)
    return replace(script, market=market, ports=replace(script.ports, view=market.view), tick_at=ticks, tape=tape)


# The message ----------------------------------------------------------------------------------------------------------


def message(side: RebuiltTick, context: PerpPrompts) -> bytes:
    """The whole user message."""
    return context.prompt(side.observation).user.encode()


def by_section(side: RebuiltTick, skill: PerpSkill) -> dict[str, str]:
    """The same message in its parts, made with nothing kept from before; a part that is not there is left out."""
    memo = Memo(skill)
    found: dict[str, str] = {}
    for section in sections():
        text = section(side.observation, memo)
        if text is not None:
            found[section_name(section)] = text
    return found


def section_name(section: Any) -> str:
    """A section goes by the name of its file."""
    return str(section.__module__).rpartition(".")[2]


# Memory, waking, tags, coarser bars -------------------------------------------------------------------------------------------


def remembered(side: RebuiltTick) -> bytes:
    """Everything that is remembered: trades with their excursions, refusals, the day, the notes."""
    return codec.dumps(side.observation.memory)


def reflected(side: RebuiltTick) -> bytes:
    """What would be shown to whoever writes lessons here, whether they are due or not."""
    reflector = side.script.ports.reflector
    return b"" if reflector is None else "\n".join(reflector.prompt(side.observation)).encode()


def waking(side: RebuiltTick, skills: tuple[PerpSkill, ...]) -> bytes:
    """Whether each condition holds, and what they are worked out from."""
    told: list[Any] = [sorted(wake.closes(side.observation).items()), side.observation.view.news_count()]
    state = side.state
    for skill in skills:
        asked = replace(side.observation, skill=skill)
        told.append([wake.awake(asked, closes, state.news_seen) for closes in (state.asked_close, _moved(side))])
    return codec.dumps(told)


def waking_skills(skill: PerpSkill) -> tuple[PerpSkill, ...]:
    """The skill with each condition of waking alone."""
    conditions = ("position_open", "new_news", MoveAtr.model_validate({"move_atr": 1}))
    return tuple(
        skill.model_copy(update={"schedule": skill.schedule.model_copy(update={"wake_when": (condition,)})})
        for condition in conditions
    )


def _moved(side: RebuiltTick) -> dict[str, float]:
    """Closes of four hours ago, in the place of those at which the model was last asked."""
    shown, view = side.observation.skill.context, side.observation.view
    found: dict[str, float] = {}
    for symbol in shown.symbols:
        bars = view.bars(symbol, shown.bars_interval, 1, view.at - 4 * HOUR_MS)
        if len(bars):
            found[symbol] = float(bars.close[-1])
    return found


def tags(side: RebuiltTick, symbol: str, intervals: tuple[str, ...], lookback: int) -> bytes:
    """The regime of a symbol in each interval, with the range it moves in."""
    told: list[Any] = []
    for interval in intervals:
        if side.observation.view.has_bars(symbol, interval):
            bars, closed = side.observation.view.series(symbol, interval)
            told.append([interval, closed, regime.tag(bars, closed, lookback), regime.atr(bars, closed)])
    return codec.dumps(told)


def coarser(side: RebuiltTick, symbol: str, base: str, interval: str) -> bytes:
    """Bars of a longer interval put together from the newest base bars of this side, as far as they have closed."""
    bars: Bars = side.held.market.bars[symbol, base]
    at = side.observation.at
    first = int(bars.open_at.searchsorted(at - _WINDOW * bars.interval_ms))
    made = resample(bars.slice(first, len(bars)), interval)
    stop = int(made.open_at.searchsorted(at - made.interval_ms, side="right"))
    columns = (made.open_at, made.open, made.high, made.low, made.close, made.volume)
    return b"\n".join(column[:stop].tobytes() for column in columns)
