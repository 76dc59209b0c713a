"""The look-ahead audit: reruns random ticks of a run on data that ends there, or goes on differently, and compares.

A run has no look-ahead if nothing that it records at a tick changes when everything after the tick is deleted or
changed. A single difference is a leak; the audit passes only without any. What was not compared is listed as such.
"""

import gc
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from numpy.random import PCG64, Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.audit import record_facts
from pitboss.audit.audited_run import AuditedRun, Rerun
from pitboss.audit.changed_future import ChangedFuture
from pitboss.audit.cut_lake import CutLake, SourceRows
from pitboss.audit.record_facts import STATE, TOOL
from pitboss.audit.tool_arguments import random_arguments
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.snapshot import Record
from pitboss.data.lake import Lake
from pitboss.sim.prepared_run import PreparedRun

DELETED, CHANGED, STORED = "deleted", "changed", "stored"
MAX_EXAMPLES = 20
"""Maximum number of differences that are listed; all are counted."""
CALLS_PER_CUT = 12
RERUN_TICKS, RERUN_ALL_EVERY = 4, 20
"""The ticks before a cut that are run again; at every twentieth cut all of them are."""
KEPT_MARKETS, FAILED = "markets kept", "the run"

NOT_PROVED = (
    "what the model itself knows of this past: it is not asked; see `pitboss audit memory`",
    "that the stored data is right: a bar, a headline or a time that was wrong when it was imported is wrong on every side",
    "the ticks that were not cut, and the first one, before which a run has no data",
    "funding rows stamped inside the hour of a cut: funding is paid in the hour of its timestamp, so they stay",
    "digests of earlier records that a tool shows: how an equity curve is packed depends on the data of the whole range",
    "what a program reads from elsewhere (the network, its own files): no copy of that can be made",
)


@dataclass(frozen=True, slots=True)
class AuditedTool:
    """A tool to call: its schema and an example, or for a tool answered from recordings the recorded arguments."""

    name: str
    schema: Mapping[str, Any]
    example: Mapping[str, Any]
    recorded: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that differs when the future is deleted or changed, with the first line that differs."""

    at: Instant
    fact: str
    run: str
    future: str
    original: str
    altered: str


@dataclass(slots=True)
class ComparisonCount:
    """Comparisons of one fact, and how many of them were failed tool calls and differences."""

    compared: int = 0
    failed: int = 0
    differences: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class AuditSetup:
    """The inputs of an audit: the runs to audit over the same ticks, their lake, and the tools to call."""

    runs: Sequence[AuditedRun]
    lake: Lake
    from_at: Instant
    tools: Sequence[AuditedTool] = ()
    not_audited: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def ticks(self) -> list[Instant]:
        """The ticks at which the audit can cut: all but the first, because a range before it is empty."""
        return [at for at in self.runs[0].ticks[1:] if at >= self.from_at]


@dataclass(slots=True)
class LookaheadResult:
    """The result of an audit."""

    cuts: int = 0
    counts: dict[str, ComparisonCount] = field(default_factory=dict[str, ComparisonCount])
    examples: list[Difference] = field(default_factory=list[Difference])
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
        with TemporaryDirectory(prefix="pitboss-audit-", ignore_cleanup_errors=True) as folder:
            await auditor.cut(number, Path(folder))
        progress((number + 1) / cuts)
    return auditor.close()


class _CutAuditor:
    """Performs cuts and counts comparisons."""

    def __init__(self, setup: AuditSetup, seed: int) -> None:
        self._setup = setup
        self._dice = Generator(PCG64(seed))
        self._result = LookaheadResult()
        self._source = SourceRows(setup.lake)
        self._ticks = setup.ticks
        possible = set(self._ticks)
        eventful = [sorted(possible.intersection(ticks)) for run in setup.runs for ticks in run.eventful_ticks()]
        self._choices = [choice for choice in (self._ticks, *eventful) if choice]
        self._skipped: dict[str, tuple[int, str]] = {}

    async def cut(self, number: int, folder: Path) -> None:
        """Cut at one tick and compare every run on both copies of the data."""
        choice = self._choices[number % len(self._choices)]
        at = choice[int(self._dice.integers(len(choice)))]
        copies = self._copies(at, folder)
        markets: list[weakref.ref[Market]] = []
        compared = 0
        for run in self._setup.runs:
            # The copies are used first: code that caches the first market it sees then keeps a copy, which is detected.
            prepared = {future: self._prepare(run, future, lake, at, folder) for future, lake in copies.items()}
            compared += sum(copy is not None for copy in prepared.values())
            markets += [weakref.ref(market) for copy in prepared.values() if copy for market in copy.markets()]
            await self._compare_run(run, prepared, at, number)
            del prepared
        self._result.cuts += bool(compared)
        self._check_kept(markets, at)

    def _copies(self, at: Instant, folder: Path) -> dict[str, CutLake]:
        to_at = self._setup.runs[0].prepared.request.to_at
        changed = ChangedFuture(at, to_at, self._source.symbols, Generator(PCG64([int(self._dice.integers(1 << 30))])))
        return {
            DELETED: CutLake(self._source, folder / DELETED, at),
            CHANGED: CutLake(self._source, folder / CHANGED, at, changed),
        }

    def _prepare(self, run: AuditedRun, future: str, lake: CutLake, at: Instant, folder: Path) -> PreparedRun | None:
        to_at = at if future == DELETED else run.prepared.request.to_at
        try:
            return run.prepare_on(lake, at, to_at, folder)
        except UserError as error:
            key = f"cuts with the future {future}"
            self._skipped[key] = self._skipped.get(key, (0, ""))[0] + 1, error.message
        except Exception as error:  # noqa: BLE001 – data that cannot be prepared without its future depends on it
            self._fail(run, future, at, error)
        return None

    async def _compare_run(
        self, run: AuditedRun, prepared: Mapping[str, PreparedRun | None], at: Instant, number: int
    ) -> None:
        if run.probe is not None:
            run.probe.calls = self._calls(at, number)
        start = run.state_before(at, RERUN_TICKS)
        first = start if number % RERUN_ALL_EVERY else run.start
        reruns: dict[str, Rerun] = {}
        for future, copy in prepared.items():
            if copy is None:
                continue
            recordings = run.recordings.cut(at, changed=future == CHANGED)
            try:
                reruns[future] = await run.rerun_on(copy, recordings, first, at)
            except Exception as error:  # noqa: BLE001 – a run that fails without its future depends on it
                self._fail(run, future, at, error)
        whole = await run.rerun_whole(start, at)
        seq, first_seq = (0 if state is None else state.seq for state in (start, first))
        original = [*run.reference.new[first_seq:seq], *whole.new]
        for future, rerun in reruns.items():
            self._compare(run, future, (original, whole), (rerun.new, rerun))
        if run.stored:
            new = whole.new[:-1] if whole.new[-1].kind == "span" else whole.new  # a span of holds ends at the cut
            recorded = Rerun(run.stored[:seq], new=list(run.stored[seq : seq + len(new)]))
            self._compare(run, STORED, (recorded.new, recorded), (new, whole))
        for name in record_facts.failed_tools(whole.new[-1]):
            self._count(f"{TOOL}{name}").failed += len(reruns)

    def _calls(self, at: Instant, number: int) -> list[tuple[str, Mapping[str, Any]]]:
        """The tool calls of a cut, in rotation."""
        tools, dice = self._setup.tools, self._dice
        symbols = sorted(self._source.symbols) or [""]
        step = self._ticks[1] - self._ticks[0] if len(self._ticks) > 1 else 1
        calls: list[tuple[str, Mapping[str, Any]]] = []
        for index in range(min(CALLS_PER_CUT, len(tools))):
            tool = tools[(number * CALLS_PER_CUT + index) % len(tools)]
            symbol = symbols[int(dice.integers(len(symbols)))]
            if tool.recorded:
                arguments = codec.loads_exact(tool.recorded[int(dice.integers(len(tool.recorded)))])
            else:
                arguments = random_arguments(tool.schema, tool.example, at, step, symbol, dice)
            calls.append((tool.name, arguments))
        return calls

    def _compare(
        self,
        run: AuditedRun,
        future: str,
        side: tuple[Sequence[Record], Rerun],
        copied_side: tuple[Sequence[Record], Rerun],
    ) -> None:
        """Compare records up to the first that differs, from which the later ones follow, and that of the cut itself."""
        (original, rerun), (copied, copied_rerun) = side, copied_side
        digests, copied_digests = rerun.digests(), copied_rerun.digests()
        if len(original) != len(copied):
            message = f"{len(original)} records", f"{len(copied)} records"
            self._add(FAILED, Difference(copied[-1].tick_at if copied else 0, FAILED, run.name, future, *message))
        pairs = list(zip(original, copied, strict=False))
        differs = False
        for number, (record, copy) in enumerate(pairs, 1):
            if differs and number < len(pairs):
                continue
            facts = copied_facts = record_facts.facts(record, digests)
            if record.digest != copy.digest:
                copied_facts = record_facts.facts(copy, copied_digests)
            self._compare_facts(run, future, record.tick_at, facts, copied_facts)
            differs = facts != copied_facts
        if rerun.states and copied_rerun.states:
            state, copied_state = rerun.states[-1], copied_rerun.states[-1]
            texts = {STATE: record_facts.state_text(state)}, {STATE: record_facts.state_text(copied_state)}
            self._compare_facts(run, future, state.tick_at or 0, *texts)

    def _compare_facts(
        self, run: AuditedRun, future: str, at: Instant, facts: Mapping[str, str], copied_facts: Mapping[str, str]
    ) -> None:
        for name in {**facts, **copied_facts}:
            self._count(name).compared += 1
            texts = facts.get(name, "(nothing)"), copied_facts.get(name, "(nothing)")
            if texts[0] != texts[1]:
                lines = record_facts.first_difference(*texts)
                self._add(name, Difference(at, name, run.name, future, *lines))

    def _check_kept(self, markets: Sequence["weakref.ref[Market]"], at: Instant) -> None:
        """Check that no reference to a market remains after its run; later answers could be made from it."""
        if any(market() is not None for market in markets):
            gc.collect()
        self._count(KEPT_MARKETS).compared += len(markets)
        if any(market() is not None for market in markets):
            tools = ", ".join(sorted({name for run in self._setup.runs if run.probe for name, _ in run.probe.calls}))
            message = "a reference to the market of a run is kept after the run", f"called at this cut: {tools}"
            self._add(KEPT_MARKETS, Difference(at, KEPT_MARKETS, self._setup.runs[-1].name, DELETED, *message))

    def _fail(self, run: AuditedRun, future: str, at: Instant, error: Exception) -> None:
        message = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        self._count(FAILED).compared += 1
        self._add(FAILED, Difference(at, FAILED, run.name, future, "runs", f"fails: {message}"))

    def _add(self, name: str, difference: Difference) -> None:
        self._count(name).differences += 1
        self._result.differences += 1
        if len(self._result.examples) < MAX_EXAMPLES:
            self._result.examples.append(difference)

    def _count(self, name: str) -> ComparisonCount:
        return self._result.counts.setdefault(name, ComparisonCount())

    def close(self) -> LookaheadResult:
        """The result, with the list of what was not covered."""
        result, setup = self._result, self._setup
        result.not_covered = {f"{TOOL}{name}": reason for name, reason in setup.not_audited.items()}
        for tool in setup.tools:
            count = result.counts.get(f"{TOOL}{tool.name}")
            if count is None:
                result.not_covered[f"{TOOL}{tool.name}"] = "it was not called; make more cuts, or allow more steps"
            elif count.failed >= count.compared:
                result.not_covered[f"{TOOL}{tool.name}"] = "every call of it failed"
        for key, (count, message) in self._skipped.items():
            result.not_covered[key] = f"{count} were left out, because the data up to then is refused: {message}"
        return result
