"""The audit itself: many times over, stand at a tick three times, with three futures, and compare every byte.

A run is honest if nothing that it is told at a tick changes when everything after the tick is deleted or becomes a lie.
One difference is a leak; none in so many cuts is the only pass. What was never compared is named, not assumed.
"""

import gc
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from numpy.random import PCG64, Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.audit import rebuild
from pitboss.audit.evidence import Evidence, PastOf, past_of
from pitboss.audit.rebuild import AnyTool, Outside, RebuiltTick, ToolAnswer
from pitboss.audit.replayed_states import Moment, Trail, walk
from pitboss.audit.tool_arguments import throw
from pitboss.audit.truncation import corrupted, deleted
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.instant import INTERVALS, Instant, interval_ms
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.course import PerpCourse
from pitboss.venues.perp.sections import sections

DELETED, CORRUPTED = "deleted", "corrupted"
MOST_FOUND = 20
"""Differences that are kept with their lines; the rest is counted."""
TOOLS_A_CUT = 3
KEPT = "markets kept"
RERUN = "ticks run again"
RERUN_EVERY, RERUN_TICKS = 10, 30
"""At every tenth cut the ticks before it are run again on the copies: what ticks carry to later ones must be the same."""


@dataclass(frozen=True, slots=True)
class Leak:
    """One leak: what came out differently when the future was deleted or changed, with the first line that differs."""

    at: Instant
    what: str
    symbol: str
    future: str
    whole: str
    without: str
    arguments: str = ""


@dataclass(slots=True)
class Count:
    """How often something was compared, how often it was an error, and how often it differed."""

    compared: int = 0
    failed: int = 0
    differences: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class AuditSetup:
    """Everything an audit stands on. `market_type` is how copies of the market are made, `past_of` a run's past."""

    script: PerpCourse
    held: Evidence
    trail: Trail
    tools: Mapping[str, AnyTool]
    not_audited: Mapping[str, str] = field(default_factory=dict[str, str])
    market_type: type[Market] = Market
    past_of: PastOf = past_of


@dataclass(slots=True)
class LookaheadResult:
    """What came of it."""

    cuts: int = 0
    counts: dict[str, Count] = field(default_factory=dict[str, Count])
    found: list[Leak] = field(default_factory=list[Leak])
    differences: int = 0
    not_covered: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def comparisons(self) -> int:
        """All of them together."""
        return sum(count.compared for count in self.counts.values())


async def audit(
    ground: AuditSetup,
    cuts: int,
    seed: int,
    told: Callable[[float], None] = lambda share: None,
    stop: Callable[[], bool] = lambda: False,
) -> LookaheadResult:
    """Cut `cuts` times. The same ground and seed give the same cuts."""
    auditor = _CutAuditor(ground, seed)
    for number in range(cuts):
        if stop():
            break
        await auditor.cut(number)
        told((number + 1) / cuts)
    return auditor.close()


class _CutAuditor:
    """Goes from cut to cut and keeps count."""

    def __init__(self, ground: AuditSetup, seed: int) -> None:
        self._ground = ground
        self._dice = Generator(PCG64(seed))
        self._result = LookaheadResult()
        skill = ground.script.ports.skill
        self._skill, self._symbols = skill, skill.context.sorted_symbols
        self._context = PerpPrompts(skill)
        self._waking = rebuild.waking_skills(skill)
        self._intervals = (skill.context.bars_interval, *skill.context.timeframes())
        base = ground.script.base_interval
        self._coarser = [name for name, length in INTERVALS.items() if 1 < length // interval_ms(base) <= 48]
        self._tools = list(ground.tools)

    async def cut(self, number: int) -> None:
        """One instant, one symbol, some of the tools."""
        ground, dice = self._ground, self._dice
        place = int(dice.integers(len(ground.trail.moments)))
        moment = ground.trail.moments[place]
        symbol = self._symbols[int(dice.integers(len(self._symbols)))]
        script, at = ground.script, moment.at
        base = script.base_interval
        # The copies come first: whoever keeps the first market that he sees shall keep one that we can miss.
        futures = {
            DELETED: deleted(ground.held, at, ground.market_type),
            CORRUPTED: corrupted(ground.held, at, self._symbols, base, dice, ground.market_type),
        }
        alive = [weakref.ref(held.market) for held in futures.values()]
        sides = {name: await rebuild.stand(held, script, moment, ground.past_of) for name, held in futures.items()}
        whole = await rebuild.stand(ground.held, script, moment, ground.past_of)
        self._parts(whole, sides, symbol)
        asked = await self._ask(whole, sides, symbol, number)
        self._result.cuts += 1
        if not number % RERUN_EVERY:
            await self._again(ground.trail.moments[max(0, place - RERUN_TICKS)], moment, futures, symbol)
        del futures, sides, whole
        self._left(alive, asked, at, symbol)

    async def _again(self, start: Moment, moment: Moment, futures: Mapping[str, Evidence], symbol: str) -> None:
        """Everything that ticks carry to later ones: the account, the last decision, what is remembered."""
        mine = _carried(moment)
        for name, held in futures.items():
            script = rebuild.between(self._ground.script, held.market, start, moment.at)
            theirs = _carried((await walk(script, start)).moments[-1])
            self._compare(RERUN, symbol, name, moment.at, mine, theirs)

    def _parts(self, whole: RebuiltTick, sides: Mapping[str, RebuiltTick], symbol: str) -> None:
        skill = self._skill
        own = rebuild.message(whole, self._context)
        parts = rebuild.by_section(sides[DELETED], skill)
        for name in parts:
            self._count(f"section {name}").compared += len(sides)
        # The one without a future is put together from its parts, the changed one comes from a context of its own.
        theirs = {
            DELETED: "\n\n".join(parts.values()).encode(),
            CORRUPTED: rebuild.message(sides[CORRUPTED], PerpPrompts(skill)),
        }
        for name, side in sides.items():
            self._compare("user message", symbol, name, whole.observation.at, own, theirs[name])
            if own != theirs[name]:
                self._blame(rebuild.by_section(whole, skill), rebuild.by_section(side, skill))
        lookback = skill.context.bars_lookback
        base = self._ground.script.base_interval
        length = self._coarser[int(self._dice.integers(len(self._coarser)))] if self._coarser else base
        kinds: dict[str, Callable[[RebuiltTick], bytes]] = {
            "account and marks": lambda side: side.account,
            "memory": rebuild.remembered,
            "reflection": rebuild.reflected,
            "wake conditions": lambda side: rebuild.waking(side, self._waking),
            "regime tag": lambda side: rebuild.tags(side, symbol, self._intervals, lookback),
            "coarser bars": lambda side: rebuild.coarser(side, symbol, base, length),
        }
        for what, make in kinds.items():
            mine = make(whole)
            for name, side in sides.items():
                self._compare(what, symbol, name, whole.observation.at, mine, make(side))

    async def _ask(self, whole: RebuiltTick, sides: Mapping[str, RebuiltTick], symbol: str, number: int) -> list[str]:
        names = self._turn(number)
        step = interval_ms(self._skill.schedule.every)
        for name in names:
            tool = self._ground.tools[name]
            arguments = self._arguments(tool, whole.observation.at, step, symbol)
            theirs = {future: await side.ask(tool, arguments) for future, side in sides.items()}
            mine = await whole.ask(tool, arguments)
            shown = codec.dumps(codec.number_fragments(arguments)).decode()
            for future, answer in theirs.items():
                self._compare(f"tool {name}", symbol, future, whole.observation.at, _said(mine), _said(answer), shown)
            count = self._count(f"tool {name}")
            count.failed += len(sides) if mine.failed else 0
        return names

    def _turn(self, number: int) -> list[str]:
        """Whose turn it is: everybody's, one after the other."""
        tools = self._tools
        if number < len(tools):  # alone at first, so that whoever keeps a market is known by name
            return [tools[number]]
        few = min(TOOLS_A_CUT, len(tools))
        return [tools[(number * few + place) % len(tools)] for place in range(few)]

    def _arguments(self, tool: AnyTool, at: Instant, step: int, symbol: str) -> dict[str, Any]:
        if not isinstance(tool, Outside):
            return throw(tool.schema, tool.example, at, step, symbol, self._dice)
        recorded = [
            one.arguments
            for one in self._ground.held.recordings.all
            if (one.server, one.tool) == (tool.server, tool.tool)
        ]
        if not recorded:
            return {}
        return codec.loads_exact(recorded[int(self._dice.integers(len(recorded)))])

    def _left(self, alive: Sequence[Any], asked: list[str], at: Instant, symbol: str) -> None:
        """Whether somebody still holds a market after its tick is over: he could answer from it for ever."""
        if any(ref() is not None for ref in alive):
            gc.collect()
        count = self._count(KEPT)
        count.compared += len(alive)
        if all(ref() is None for ref in alive):
            return
        count.differences += 1
        asked_here = f"asked at this cut: {', '.join(asked) or 'nothing'}"
        words = "somebody keeps the market of a tick after the tick is over"
        self._find(Leak(at, KEPT, symbol, DELETED, words, asked_here))

    def _compare(
        self, what: str, symbol: str, future: str, at: Instant, mine: bytes, theirs: bytes, arguments: str = ""
    ) -> None:
        count = self._count(what)
        count.compared += 1
        if mine == theirs:
            return
        count.differences += 1
        one, other = _first_line(mine, theirs)
        self._find(Leak(at, what, symbol, future, one, other, arguments))

    def _blame(self, mine: Mapping[str, str], theirs: Mapping[str, str]) -> None:
        """Put a difference of the message down to its sections."""
        for name in sorted({*mine, *theirs}):
            if mine.get(name) != theirs.get(name):
                self._count(f"section {name}").differences += 1

    def _find(self, difference: Leak) -> None:
        self._result.differences += 1
        if len(self._result.found) < MOST_FOUND:
            self._result.found.append(difference)

    def _count(self, what: str) -> Count:
        return self._result.counts.setdefault(what, Count())

    def close(self) -> LookaheadResult:
        """The result, with the names of what was never compared."""
        result, ground = self._result, self._ground
        result.not_covered = {f"tool {name}": why for name, why in ground.not_audited.items()}
        for name in self._tools:
            count = result.counts.get(f"tool {name}")
            if count is None:
                result.not_covered[f"tool {name}"] = "its turn did not come; make more cuts"
            elif count.failed == count.compared:
                result.not_covered[f"tool {name}"] = "it only ever answered with an error"
        for section in sections():
            name = rebuild.section_name(section)
            if f"section {name}" not in result.counts:
                result.not_covered[f"section {name}"] = "it was never part of the message"
        return result


def _carried(moment: Moment) -> bytes:
    """The state before a tick, without the digest of the records: how a curve is packed there is not what is told."""
    return codec.dumps(replace(moment.before, prev_digest=""))


def _said(answer: ToolAnswer) -> bytes:
    return (("error: " if answer.failed else "") + answer.text).encode("utf-8", "surrogatepass")


def _first_line(mine: bytes, theirs: bytes) -> tuple[str, str]:
    """The first line in which two texts differ, of each."""
    ours, others = (text.decode("utf-8", "replace").split("\n") for text in (mine, theirs))
    for one, other in zip_longest(ours, others, fillvalue="(nothing)"):
        if one != other:
            return _short(one, other), _short(other, one)
    return "", ""


def _short(line: str, other: str) -> str:
    """The part of a long line around the first character that differs."""
    place = next((n for n, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), min(len(line), len(other)))
    start = max(0, place - 60)
    shown = line[start : place + 100]
    return ("…" if start else "") + shown + ("…" if place + 100 < len(line) else "")
