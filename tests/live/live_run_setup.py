"""`LiveRunSetup`: a live run in virtual time with scripted prices and a journal in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pitboss.core import codec
from pitboss.core.curve import Curve
from pitboss.core.errors import RunCancelled
from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.core.snapshot import GENESIS, check
from pitboss.core.state import State
from pitboss.live.board import Board, Entry
from pitboss.live.pace import Pace
from pitboss.live.runner import Runner
from pitboss.live.schedule import TickSchedule, schedule
from pitboss.live.world_source import WorldUpdate
from pitboss.testing.journal import MemoryJournal
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.execution import apply_update
from pitboss.venues.predict.ports import PredictPorts
from pitboss.venues.predict.svi import FLOAT
from pitboss.venues.predict.world import feed
from venues.predict.predict_ticks import VOLATILITY, new_state, ports
from venues.predict.scene import NOW

SPOT = 63_213 * FLOAT


@dataclass
class PauseClock:
    """A clock that advances only during pauses, and can be set."""

    at: Instant = NOW
    jumps: dict[int, int] = field(default_factory=dict)
    """Extra milliseconds by which the n-th pause advances it."""
    waits: int = 0
    looks_ms: int = 0
    """Milliseconds by which each reading advances it."""

    def now(self) -> Instant:
        self.at += self.looks_ms
        return self.at

    async def pause(self, wait_ms: int) -> None:
        assert wait_ms > 0
        self.at += wait_ms + self.jumps.get(self.waits, 0)
        self.waits += 1


@dataclass
class ScriptedSource:
    """A source with a price every two seconds by default."""

    caps: Any
    price: Callable[[Instant], int] = lambda at: SPOT
    silent: Callable[[Instant], bool] = lambda at: False
    hang: Callable[[Instant], Any] | None = None
    step_ms: int = 2_000
    trouble_text: str = ""
    first: Instant = NOW - 10_000

    async def update(self, world: Desk, before: Instant) -> WorldUpdate:
        if self.hang is not None:
            await self.hang(before)
        known = world.world.feeds.get("BTC")
        at = self.first if known is None else known.at + self.step_ms
        receipts: list[Any] = []
        while at < before:
            if not self.silent(at):
                step = feed(world.world, "BTC", self.price(at), at, VOLATILITY, tiers=("15m", "1h"))
                world, happened = apply_update(world, step, self.caps, at)
                receipts += happened
            at += self.step_ms
        return WorldUpdate(world, tuple(receipts))

    def hold_flag(self, world: Desk, at: Instant) -> str:
        known = world.world.feeds.get("BTC")
        return "no_feed" if known is None else "stale_prices" if at - known.at > 30_000 else ""

    def pending(self, world: Desk) -> bool:
        return bool(world.waiting)

    def equity(self, world: Desk, at: Instant, period_ms: int) -> Curve:
        return ((at, period_ms, "100", 1),)

    def trouble(self) -> str:
        return self.trouble_text


@dataclass
class LiveRunSetup:
    """The parts of one live run, and what it has recorded."""

    decider: Any
    clock: PauseClock = field(default_factory=PauseClock)
    journal: MemoryJournal = field(default_factory=MemoryJournal)
    board: Board = field(default_factory=Board)
    entries: list[Entry] = field(default_factory=list)
    source: ScriptedSource | None = None
    stop: Callable[[], bool] = lambda: False
    slots: TickSchedule = field(default_factory=lambda: schedule(MINUTE_MS))
    state: State | None = None

    def runner(self, ticks: int | None = None, **more: Any) -> Runner:
        given: PredictPorts = ports(self.decider, build_prompts=False)
        self.source = self.source or ScriptedSource(given.caps)
        self.source.caps = given.caps
        period_ms = self.slots.period_ms
        return Runner(
            ports=given,
            source=self.source,
            journal=more.pop("journal", self.journal),
            clock=self.clock,
            pace=Pace(self.slots, more.pop("deadline_ms", period_ms // 2), more.pop("feed_ms", period_ms // 3), 2_000),
            state=self.state or new_state(),
            board=self.board,
            pause=self.clock.pause,
            stop=self.stop,
            on_entry=self.entries.append,
            most_ticks=ticks,
        )

    def bodies(self, kind: str = "tick") -> list[dict[str, Any]]:
        return [codec.loads(record.covered) for record in self.journal.records() if record.kind == kind]

    def ticks(self) -> list[Instant]:
        return [record.tick_at for record in self.journal.records() if record.kind == "tick"]

    def missed(self) -> int:
        return sum(body.get("missed", 0) for body in self.bodies("span"))

    def verified_records(self) -> Sequence[Any]:
        """The records, after their chain was verified."""
        prev, records = GENESIS, list(self.journal.records())
        for seq, record in enumerate(records):
            check(record, seq, prev)
            prev = record.digest
        return records


class KilledRun(RunCancelled):
    """The process was killed."""


class KillableJournal(MemoryJournal):
    """A journal that kills the process before or after a commit."""

    def __init__(self, earlier: MemoryJournal | None, dies_at: int, after: bool) -> None:
        super().__init__(earlier)
        self._dies_at = dies_at
        self._after = after

    async def commit(self, batch: Any, state: State, progress: float) -> None:
        if self.commits == self._dies_at and not self._after:
            raise KilledRun
        await super().commit(batch, state, progress)
        if self.commits > self._dies_at:
            raise KilledRun
