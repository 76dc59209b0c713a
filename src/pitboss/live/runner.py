"""The live driver: at each slot of the schedule it updates the world, calls `tick()`, commits, and then reports the entry.

One loop for every venue; a venue supplies its ports and a `WorldSource`. The world is also updated between ticks, so that
settlements and fills are recorded when they happen and not at the next tick. A tick is one transaction of record and
state, as in the simulator: a killed process loses at most what was not committed, and a resumed one continues from there.
Every wait has a bound. Decisions are made by the ports, not here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from decimal import localcontext
from typing import Any, Protocol

from pitboss.core.curve import Curve
from pitboss.core.errors import InvariantError, TransientError
from pitboss.core.instant import SECOND_MS, Instant, iso
from pitboss.core.money import CONTEXT
from pitboss.core.noun import noun
from pitboss.core.ports import Clock, Journal
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import ZERO_COST_EXTRA, Record, RecordKind, seal
from pitboss.core.state import State
from pitboss.live.board import Board, Entry
from pitboss.live.deadline import with_deadline
from pitboss.live.schedule import TickSchedule
from pitboss.tick import Ports, WorldEvents, tick

FEED_TIMEOUT = "feed_timeout"
MAX_FEED_MS = 5 * SECOND_MS
TROUBLE_INTERVAL_MS = 10 * SECOND_MS
"""Minimum time between two remarks about the feed."""

Pause = Callable[[int], Awaitable[object]]
"""Waits for a number of milliseconds, or until a stop is requested."""


@noun
class WorldUpdate:
    """The updated world, with the receipts of what happened."""

    world: Any
    receipts: tuple[Receipt, ...] = ()


class WorldSource(Protocol):
    """Supplies a venue's world during a live run."""

    async def update(self, world: Any, before: Instant) -> WorldUpdate:
        """The world updated with all known events before an instant, since the last update.

        May be cancelled: events that were not returned must be returned by the next call.
        """
        ...

    def hold_flag(self, world: Any, at: Instant) -> str:
        """Why no decision may be made on this world, as the flag of a no-op; empty if one may."""
        ...

    def pending(self, world: Any) -> bool:
        """Whether an executed intent still awaits its outcome."""
        ...

    def equity(self, world: Any, at: Instant, period_ms: int) -> Curve:
        """The account's equity at a tick."""
        ...

    def trouble(self) -> str:
        """The current problem of the feed, as text; empty if there is none."""
        ...


def no_listener(entry: Entry) -> None:
    """Ignore an entry."""
    del entry


def never() -> bool:
    """No stop is requested."""
    return False


@dataclass(frozen=True, slots=True)
class Pace:
    """Timing: the slots, the time limits of a decision and of the feed, and the interval of updates between ticks."""

    schedule: TickSchedule
    deadline_ms: int
    feed_ms: int
    update_ms: int

    def __post_init__(self) -> None:
        if not 0 < self.feed_ms + self.deadline_ms < self.schedule.period_ms:
            raise InvariantError("the time limits of a tick must be shorter than the period")


def pace(schedule: TickSchedule, update_ms: int) -> Pace:
    """Three quarters of the period for a decision and an eighth for the feed; the rest is reserve."""
    period = schedule.period_ms
    return Pace(schedule, period * 3 // 4, min(MAX_FEED_MS, period // 8), min(update_ms, period))


@dataclass(slots=True, eq=False)
class Runner:
    """A live run. `on_entry` receives every entry after its commit; `stop` is polled between steps."""

    ports: Ports
    source: WorldSource
    journal: Journal
    clock: Clock
    pace: Pace
    state: State
    board: Board
    pause: Pause
    stop: Callable[[], bool] = never
    on_entry: Callable[[Entry], None] = no_listener
    most_ticks: int | None = None
    ticked: int = 0
    """Ticks of this process."""
    _last: Instant = field(default=0, init=False)
    _trouble: str = field(default="", init=False)
    _trouble_at: Instant = field(default=-TROUBLE_INTERVAL_MS, init=False)
    _clock_is_back: bool = field(default=False, init=False)

    async def run(self) -> State:
        """Tick until a stop is requested or `most_ticks` is reached; in the second case wait for pending outcomes.

        Everything is committed when this returns.
        """
        with localcontext(CONTEXT):
            last = self.state.tick_at
            self._last = self.pace.schedule.before(self.clock.now()) if last is None else last
            while not self.over():
                await self._step()
            until = self.clock.now() + self.pace.schedule.period_ms
            while self.source.pending(self.state.world) and not self.stop() and self.clock.now() < until:
                await self.pause(self.pace.update_ms)
                await self._between()
            return self.state

    def over(self) -> bool:
        """Whether a stop is requested or `most_ticks` is reached."""
        return self.stop() or (self.most_ticks is not None and self.ticked >= self.most_ticks)

    @property
    def next_at(self) -> Instant:
        """The slot of the next tick."""
        period = self.pace.schedule.period_ms
        return self._last // period * period + period

    async def close(self) -> State:
        """Write the closing record; the run can no longer be resumed."""
        covered = {"after": self.ports.summary(self.state.world), "flags": []}
        at = max(self.clock.now(), self._last)
        curve = self.source.equity(self.state.world, at, self.pace.schedule.period_ms)
        with localcontext(CONTEXT):
            await self._record("close", at, at, self.state.world, (), covered, curve)
        return self.state

    async def _step(self) -> None:
        due = self.pace.schedule.look(self.clock.now(), self._last)
        if due.back_ms > self.pace.schedule.period_ms and not self._clock_is_back:
            self._remark(f"the clock went back: nothing is done before {iso(self._last)}")
        self._clock_is_back = due.back_ms > self.pace.schedule.period_ms
        if due.missed_slots and due.passed_at is not None:
            first = due.passed_at - (due.missed_slots - 1) * self.pace.schedule.period_ms
            covered = {"until_at": due.passed_at, "ticks": 0, "flags": {}, "missed": due.missed_slots}
            await self._record("span", first, due.passed_at, self.state.world, (), covered)
            self._last = due.passed_at
        if due.at is not None:
            await self._tick(due.at)
        await self._between()
        if not self.over():
            due = self.pace.schedule.look(self.clock.now(), self._last)
            if due.at is None and not due.missed_slots:
                await self.pause(min(due.wait_ms, self.pace.update_ms))

    async def _tick(self, at: Instant) -> None:
        receipts = await self._update_world(at)
        world = self.state.world
        flag = FEED_TIMEOUT if receipts is None else self.source.hold_flag(world, at)
        ports = with_deadline(self.ports, self.pace.deadline_ms / SECOND_MS, flag)
        curve = self.source.equity(world, at, self.pace.schedule.period_ms)
        result = await tick(self.state, at, WorldEvents(receipts or (), curve), ports)
        await self.journal.commit([result.record], result.state, self._progress(1))
        self.state, self._last = result.state, at
        self.ticked += 1
        self.on_entry(self.board.add(result.record))

    async def _between(self) -> None:
        """Update the world between ticks and record events at once, so that none is lost with the process."""
        before = min(self.clock.now(), self.next_at)  # a tick must not see events after its slot
        if self._last > before:  # the clock was set back: the world is ahead of it
            return
        receipts = await self._update_world(before)
        if receipts:
            after = self.ports.summary(self.state.world)
            covered = {"until_at": before, "ticks": 0, "flags": {}, "after": after}
            await self._record("span", before, self.state.tick_at, self.state.world, receipts, covered)

    async def _update_world(self, before: Instant) -> tuple[Receipt, ...] | None:
        """Update the world and return the receipts; None after a timeout or failure, which leave the world unchanged."""
        try:
            async with asyncio.timeout(self.pace.feed_ms / SECOND_MS):
                update = await self.source.update(self.state.world, before)
        except TimeoutError:
            self._report_trouble("the feed does not answer in time")
            return None
        except TransientError as error:
            self._report_trouble(str(error))
            return None
        self._report_trouble(self.source.trouble())
        if update.world is not self.state.world:
            self.state = replace(self.state, world=update.world)
        return update.receipts

    async def _record(
        self,
        kind: RecordKind,
        at: Instant,
        done_at: Instant | None,
        world: Any,
        receipts: tuple[Receipt, ...],
        covered: dict[str, Any],
        curve: Curve = (),
    ) -> None:
        """Seal and commit a record that is not a tick. `done_at` is the newest slot that it covers."""
        state = self.state
        body = {**covered, "receipts": receipts, "equity": curve}
        record: Record = seal(state.seq, kind, at, state.prev_digest, body, ZERO_COST_EXTRA)
        after = replace(state, world=world, seq=state.seq + 1, prev_digest=record.digest, tick_at=done_at, seen={})
        await self.journal.commit([record], after, self._progress(0))
        self.state = after
        self.on_entry(self.board.add(record))

    def _progress(self, more: int) -> float:
        return 0.0 if self.most_ticks is None else min(1.0, (self.ticked + more) / max(1, self.most_ticks))

    def _report_trouble(self, trouble: str) -> None:
        """Add a remark when a problem of the feed begins, changes or ends."""
        now = self.clock.now()
        if trouble == self._trouble or 0 <= now - self._trouble_at < TROUBLE_INTERVAL_MS:
            return
        self._trouble_at = now
        self._remark(f"feed: {trouble}" if trouble else "feed: prices come again")
        self._trouble = trouble

    def _remark(self, text: str) -> None:
        self.on_entry(self.board.remark(self.clock.now(), text))
