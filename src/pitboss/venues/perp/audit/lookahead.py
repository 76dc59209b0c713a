"""The look-ahead audit: rebuilds random ticks three times, with three different futures, and compares every byte.

A run has no look-ahead if its inputs at a tick stay the same when everything after the tick is deleted or changed. A
single difference is a leak; the audit passes only without any. What was never compared is listed as not covered.
"""

import gc
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from numpy.random import PCG64, Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.instant import INTERVALS, Instant, interval_ms
from pitboss.venues.perp.audit import rebuild
from pitboss.venues.perp.audit.evidence import Evidence, PastOf, past_of
from pitboss.venues.perp.audit.rebuild import AnyTool, RebuiltTick, RecordedMcpTool, ToolAnswer
from pitboss.venues.perp.audit.replayed_states import ReplayedTicks, TickStart, replay_ticks
from pitboss.venues.perp.audit.tool_arguments import random_arguments
from pitboss.venues.perp.audit.truncation import with_changed_future, without_future
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.course import PerpCourse
from pitboss.venues.perp.sections import sections

DELETED, CORRUPTED = "deleted", "corrupted"
MAX_LISTED = 20
"""Maximum number of differences that are listed; all are counted."""
TOOLS_PER_CUT = 3
KEPT_MARKETS = "markets kept"
RERUN = "ticks run again"
RERUN_EVERY, RERUN_TICKS = 10, 30
"""At every tenth cut the ticks before it are run again on the copies, to compare the state that ticks carry on."""


@dataclass(frozen=True, slots=True)
class Leak:
    """One leak: an input that differs when the future is deleted or changed, with the first line that differs."""

    at: Instant
    input_name: str
    symbol: str
    future: str
    original: str
    altered: str
    arguments: str = ""


@dataclass(slots=True)
class ComparisonCount:
    """Comparisons of one input, and how many of them were errors and differences."""

    compared: int = 0
    failed: int = 0
    differences: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class AuditSetup:
    """The inputs of an audit. `market_type` is the class of the market's copies, `past_of` makes a run's history."""

    course: PerpCourse
    evidence: Evidence
    replayed: ReplayedTicks
    tools: Mapping[str, AnyTool]
    not_audited: Mapping[str, str] = field(default_factory=dict[str, str])
    market_type: type[Market] = Market
    past_of: PastOf = past_of


@dataclass(slots=True)
class LookaheadResult:
    """The result of an audit."""

    cuts: int = 0
    counts: dict[str, ComparisonCount] = field(default_factory=dict[str, ComparisonCount])
    leaks: list[Leak] = field(default_factory=list[Leak])
    differences: int = 0
    not_covered: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def comparisons(self) -> int:
        """The number of all comparisons."""
        return sum(count.compared for count in self.counts.values())


async def audit(
    setup: AuditSetup,
    cuts: int,
    seed: int,
    progress: Callable[[float], None] = lambda share: None,
    stop: Callable[[], bool] = lambda: False,
) -> LookaheadResult:
    """Audit `cuts` random ticks. The same setup and seed give the same cuts."""
    auditor = _CutAuditor(setup, seed)
    for number in range(cuts):
        if stop():
            break
        await auditor.cut(number)
        progress((number + 1) / cuts)
    return auditor.close()


class _CutAuditor:
    """Performs cuts and counts comparisons."""

    def __init__(self, setup: AuditSetup, seed: int) -> None:
        self._setup = setup
        self._dice = Generator(PCG64(seed))
        self._result = LookaheadResult()
        skill = setup.course.ports.skill
        self._skill, self._symbols = skill, skill.context.sorted_symbols
        self._context = PerpPrompts(skill)
        self._waking = rebuild.wake_skills(skill)
        self._intervals = (skill.context.bars_interval, *skill.context.timeframes())
        base = setup.course.base_interval
        self._coarser = [name for name, length in INTERVALS.items() if 1 < length // interval_ms(base) <= 48]
        self._tools = list(setup.tools)

    async def cut(self, number: int) -> None:
        """Audit one tick with one symbol and some of the tools."""
        setup, dice = self._setup, self._dice
        index = int(dice.integers(len(setup.replayed.ticks)))
        tick_start = setup.replayed.ticks[index]
        symbol = self._symbols[int(dice.integers(len(self._symbols)))]
        course, at = setup.course, tick_start.at
        base = course.base_interval
        # The copies are used first: code that caches the first market it sees then keeps a copy, which `_check_kept_markets` detects.
        futures = {
            DELETED: without_future(setup.evidence, at, setup.market_type),
            CORRUPTED: with_changed_future(setup.evidence, at, self._symbols, base, dice, setup.market_type),
        }
        alive = [weakref.ref(evidence.market) for evidence in futures.values()]
        sides = {
            name: await rebuild.rebuild_tick(evidence, course, tick_start, setup.past_of)
            for name, evidence in futures.items()
        }
        unchanged = await rebuild.rebuild_tick(setup.evidence, course, tick_start, setup.past_of)
        self._compare_parts(unchanged, sides, symbol)
        called = await self._call_tools(unchanged, sides, symbol, number)
        self._result.cuts += 1
        if not number % RERUN_EVERY:
            await self._rerun(setup.replayed.ticks[max(0, index - RERUN_TICKS)], tick_start, futures, symbol)
        del futures, sides, unchanged
        self._check_kept_markets(alive, called, at, symbol)

    async def _rerun(
        self, start: TickStart, tick_start: TickStart, futures: Mapping[str, Evidence], symbol: str
    ) -> None:
        """Compare the state that ticks carry on: the account, the last decision, the memory."""
        original = _state_bytes(tick_start)
        for name, evidence in futures.items():
            course = rebuild.course_between(self._setup.course, evidence.market, start, tick_start.at)
            copied = _state_bytes((await replay_ticks(course, start)).ticks[-1])
            self._compare(RERUN, symbol, name, tick_start.at, original, copied)

    def _compare_parts(self, unchanged: RebuiltTick, sides: Mapping[str, RebuiltTick], symbol: str) -> None:
        skill = self._skill
        original = rebuild.message(unchanged, self._context)
        parts = rebuild.by_section(sides[DELETED], skill)
        for name in parts:
            self._count(f"section {name}").compared += len(sides)
        # The copy without a future is assembled from its sections, the changed one comes from a context of its own.
        copied = {
            DELETED: "\n\n".join(parts.values()).encode(),
            CORRUPTED: rebuild.message(sides[CORRUPTED], PerpPrompts(skill)),
        }
        for name, side in sides.items():
            self._compare("user message", symbol, name, unchanged.observation.at, original, copied[name])
            if original != copied[name]:
                self._blame_sections(rebuild.by_section(unchanged, skill), rebuild.by_section(side, skill))
        lookback = skill.context.bars_lookback
        base = self._setup.course.base_interval
        length = self._coarser[int(self._dice.integers(len(self._coarser)))] if self._coarser else base
        kinds: dict[str, Callable[[RebuiltTick], bytes]] = {
            "account and marks": lambda side: side.account,
            "memory": rebuild.memory_bytes,
            "reflection": rebuild.reflection_prompt,
            "wake conditions": lambda side: rebuild.wake_conditions(side, self._waking),
            "regime tag": lambda side: rebuild.regime_tags(side, symbol, self._intervals, lookback),
            "coarser bars": lambda side: rebuild.coarser_bars(side, symbol, base, length),
        }
        for input_name, make in kinds.items():
            original = make(unchanged)
            for name, side in sides.items():
                self._compare(input_name, symbol, name, unchanged.observation.at, original, make(side))

    async def _call_tools(
        self, unchanged: RebuiltTick, sides: Mapping[str, RebuiltTick], symbol: str, number: int
    ) -> list[str]:
        """Compare the answers of some tools, and return the names of these tools."""
        names = self._tools_of_cut(number)
        step = interval_ms(self._skill.schedule.every)
        for name in names:
            tool = self._setup.tools[name]
            arguments = self._arguments(tool, unchanged.observation.at, step, symbol)
            copied = {future: await side.ask(tool, arguments) for future, side in sides.items()}
            original = await unchanged.ask(tool, arguments)
            text = codec.dumps(codec.number_fragments(arguments)).decode()
            for future, answer in copied.items():
                self._compare(
                    f"tool {name}",
                    symbol,
                    future,
                    unchanged.observation.at,
                    _answer_bytes(original),
                    _answer_bytes(answer),
                    text,
                )
            count = self._count(f"tool {name}")
            count.failed += len(sides) if original.failed else 0
        return names

    def _tools_of_cut(self, number: int) -> list[str]:
        """The tools of a cut, in rotation."""
        tools = self._tools
        if number < len(tools):  # one tool at a time first, so that a tool that keeps a market is identified
            return [tools[number]]
        few = min(TOOLS_PER_CUT, len(tools))
        return [tools[(number * few + index) % len(tools)] for index in range(few)]

    def _arguments(self, tool: AnyTool, at: Instant, step: int, symbol: str) -> dict[str, Any]:
        if not isinstance(tool, RecordedMcpTool):
            return random_arguments(tool.schema, tool.example, at, step, symbol, self._dice)
        recorded = [
            recording.arguments
            for recording in self._setup.evidence.recordings.all
            if (recording.server, recording.tool) == (tool.server, tool.tool)
        ]
        if not recorded:
            return {}
        return codec.loads_exact(recorded[int(self._dice.integers(len(recorded)))])

    def _check_kept_markets(self, alive: Sequence[Any], called: list[str], at: Instant, symbol: str) -> None:
        """Check that no reference to a market remains after its tick; later answers could be made from it."""
        if any(ref() is not None for ref in alive):
            gc.collect()
        count = self._count(KEPT_MARKETS)
        count.compared += len(alive)
        if all(ref() is None for ref in alive):
            return
        count.differences += 1
        asked_here = f"asked at this cut: {', '.join(called) or 'nothing'}"
        message = "a reference to the market of a tick is kept after the tick"
        self._add_leak(Leak(at, KEPT_MARKETS, symbol, DELETED, message, asked_here))

    def _compare(
        self,
        input_name: str,
        symbol: str,
        future: str,
        at: Instant,
        original: bytes,
        copied: bytes,
        arguments: str = "",
    ) -> None:
        count = self._count(input_name)
        count.compared += 1
        if original == copied:
            return
        count.differences += 1
        line, altered_line = _first_line(original, copied)
        self._add_leak(Leak(at, input_name, symbol, future, line, altered_line, arguments))

    def _blame_sections(self, original: Mapping[str, str], copied: Mapping[str, str]) -> None:
        """Attribute a difference of the message to its sections."""
        for name in sorted({*original, *copied}):
            if original.get(name) != copied.get(name):
                self._count(f"section {name}").differences += 1

    def _add_leak(self, difference: Leak) -> None:
        self._result.differences += 1
        if len(self._result.leaks) < MAX_LISTED:
            self._result.leaks.append(difference)

    def _count(self, input_name: str) -> ComparisonCount:
        return self._result.counts.setdefault(input_name, ComparisonCount())

    def close(self) -> LookaheadResult:
        """The result, with the list of what was not covered."""
        result, setup = self._result, self._setup
        result.not_covered = {f"tool {name}": reason for name, reason in setup.not_audited.items()}
        for name in self._tools:
            count = result.counts.get(f"tool {name}")
            if count is None:
                result.not_covered[f"tool {name}"] = "it was not reached; make more cuts"
            elif count.failed == count.compared:
                result.not_covered[f"tool {name}"] = "every call of it failed"
        for section in sections():
            name = rebuild.section_name(section)
            if f"section {name}" not in result.counts:
                result.not_covered[f"section {name}"] = "it was never part of the message"
        return result


def _state_bytes(tick_start: TickStart) -> bytes:
    """The state before a tick without the digest of the records, which also depends on how a curve is packed."""
    return codec.dumps(replace(tick_start.before, prev_digest=""))


def _answer_bytes(answer: ToolAnswer) -> bytes:
    return (("error: " if answer.failed else "") + answer.text).encode("utf-8", "surrogatepass")


def _first_line(original: bytes, copied: bytes) -> tuple[str, str]:
    """The first line of each text in which they differ."""
    lines, copy_lines = (text.decode("utf-8", "replace").split("\n") for text in (original, copied))
    for line, copy_line in zip_longest(lines, copy_lines, fillvalue="(nothing)"):
        if line != copy_line:
            return _short(line, copy_line), _short(copy_line, line)
    return "", ""


def _short(line: str, reference: str) -> str:
    """The part of a long line around the first character that differs from another line."""
    pairs = enumerate(zip(line, reference, strict=False))
    index = next((index for index, (a, b) in pairs if a != b), min(len(line), len(reference)))
    start = max(0, index - 60)
    excerpt = line[start : index + 100]
    return ("…" if start else "") + excerpt + ("…" if index + 100 < len(line) else "")
