"""The live driver: by the clock bring the world up to date, call the one `tick()`, commit, and only then tell.

One loop for every venue: what a venue brings is its ports and a `WorldSource`. Between ticks the world goes on too, so that
what settles or fills is recorded when it happens and not when somebody is next asked. A tick is one transaction of record
and state, as in the simulator: whoever kills the process loses at most what was not committed, and the next one goes on
from there. Nothing in here waits without a bound, and nothing here decides.
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
from pitboss.live.asking import bounded
from pitboss.live.board import Board, Entry
from pitboss.live.schedule import TickSchedule
from pitboss.tick import Happened, Ports, tick

FEED_TIMEOUT = "feed_timeout"
MOST_FEED_MS = 5 * SECOND_MS
QUIET_MS = 10 * SECOND_MS
"""A feed that comes and goes is not told of more often than this."""

Pause = Callable[[int], Awaitable[object]]
"""Waits so many milliseconds, or until somebody asks for a stop."""


@noun
class WorldUpdate:
    """The world after what happened, with the receipts of it."""

    world: Any
    receipts: tuple[Receipt, ...] = ()


class WorldSource(Protocol):
    """Where a venue's world comes from while a run is live."""

    async def bring(self, world: Any, before: Instant) -> WorldUpdate:
        """The world with everything that is known to have happened before an instant, since it was last brought.

        May be given up half way: what it did not give back it must be able to give again.
        """
        ...

    def unfit(self, world: Any, at: Instant) -> str:
        """Why nobody may decide on this world at a tick, as the flag of a no-op; empty where they may."""
        ...

    def pending(self, world: Any) -> bool:
        """Whether something that was decided is still on its way."""
        ...

    def equity(self, world: Any, at: Instant, period_ms: int) -> Curve:
        """What the account is worth at a tick."""
        ...

    def trouble(self) -> str:
        """What is wrong with the feed just now, in words; empty where nothing is."""
        ...


def nobody(entry: Entry) -> None:
    """Nobody listens."""
    del entry


def never() -> bool:
    """Nobody asks for a stop."""
    return False


@dataclass(frozen=True, slots=True)
class Pace:
    """How time is kept: slots, how long a decision and the feed may take, how often the world is brought up in between."""

    schedule: TickSchedule
    deadline_ms: int
    feed_ms: int
    bring_ms: int

    def __post_init__(self) -> None:
        if not 0 < self.feed_ms + self.deadline_ms < self.schedule.period_ms:
            raise InvariantError("a tick must have less time than there is until the next one")


def pace(schedule: TickSchedule, bring_ms: int) -> Pace:
    """Three quarters of the period for a decision and an eighth for the feed; the rest is for everything else."""
    period = schedule.period_ms
    return Pace(schedule, period * 3 // 4, min(MOST_FEED_MS, period // 8), min(bring_ms, period))


@dataclass(slots=True, eq=False)
class Runner:
    """A live run. `tell` is given every entry once it is committed; `stop` is asked between two steps."""

    ports: Ports
    source: WorldSource
    journal: Journal
    clock: Clock
    pace: Pace
    state: State
    board: Board
    pause: Pause
    stop: Callable[[], bool] = never
    tell: Callable[[Entry], None] = nobody
    most_ticks: int | None = None
    ticked: int = 0
    """Ticks of this process."""
    _last: Instant = field(default=0, init=False)
    _trouble: str = field(default="", init=False)
    _heard_at: Instant = field(default=-QUIET_MS, init=False)
    _back: bool = field(default=False, init=False)

    async def run(self) -> State:
        """Tick until a stop is asked for or the ticks are used up; in the second case see what is under way through.

        Everything done is committed when this returns.
        """
        with localcontext(CONTEXT):
            last = self.state.tick_at
            self._last = self.pace.schedule.before(self.clock.now()) if last is None else last
            while not self.over():
                await self._step()
            until = self.clock.now() + self.pace.schedule.period_ms
            while self.source.pending(self.state.world) and not self.stop() and self.clock.now() < until:
                await self.pause(self.pace.bring_ms)
                await self._between()
            return self.state

    def over(self) -> bool:
        """Whether there is nothing more to do."""
        return self.stop() or (self.most_ticks is not None and self.ticked >= self.most_ticks)

    @property
    def next_at(self) -> Instant:
        """The slot of the next tick, as far as it is known."""
        period = self.pace.schedule.period_ms
        return self._last // period * period + period

    async def close(self) -> State:
        """The closing record of a run that has come to its end: it can be resumed no more."""
        covered = {"after": self.ports.summary(self.state.world), "flags": []}
        at = max(self.clock.now(), self._last)
        with localcontext(CONTEXT):
            await self._record("close", at, at, self.state.world, (), covered)
        return self.state

    async def _step(self) -> None:
        due = self.pace.schedule.look(self.clock.now(), self._last)
        if due.back_ms > self.pace.schedule.period_ms and not self._back:
            self._say(f"the clock went back: nothing is done before {iso(self._last)}")
        self._back = due.back_ms > self.pace.schedule.period_ms
        if due.missed and due.passed_at is not None:
            first = due.passed_at - (due.missed - 1) * self.pace.schedule.period_ms
            missed = {"until_at": due.passed_at, "ticks": 0, "flags": {}, "missed": due.missed}
            await self._record("span", first, due.passed_at, self.state.world, (), missed)
            self._last = due.passed_at
        if due.at is not None:
            await self._tick(due.at)
        await self._between()
        if not self.over():
            due = self.pace.schedule.look(self.clock.now(), self._last)
            if due.at is None and not due.missed:
                await self.pause(min(due.wait_ms, self.pace.bring_ms))

    async def _tick(self, at: Instant) -> None:
        late = await self._bring(at)
        world = self.state.world
        flag = FEED_TIMEOUT if late is None else self.source.unfit(world, at)
        ports = bounded(self.ports, self.pace.deadline_ms / SECOND_MS, flag)
        curve = self.source.equity(world, at, self.pace.schedule.period_ms)
        done = await tick(self.state, at, Happened(late or (), curve), ports)
        await self.journal.commit([done.record], done.state, self._progress(1))
        self.state, self._last = done.state, at
        self.ticked += 1
        self.tell(self.board.take(done.record))

    async def _between(self) -> None:
        """What happens between ticks is recorded at once: a settlement must not be lost with the process."""
        before = min(self.clock.now(), self.next_at)  # a tick must not find what came after its slot
        if self._last > before:  # the clock went back: the world is ahead of it
            return
        happened = await self._bring(before)
        if happened:
            after = self.ports.summary(self.state.world)
            covered = {"until_at": before, "ticks": 0, "flags": {}, "after": after}
            await self._record("span", before, self.state.tick_at, self.state.world, happened, covered)

    async def _bring(self, before: Instant) -> tuple[Receipt, ...] | None:
        """Bring the world up; None where that took too long, and then the world is as it was."""
        try:
            async with asyncio.timeout(self.pace.feed_ms / SECOND_MS):
                brought = await self.source.bring(self.state.world, before)
        except TimeoutError:
            self._heard("the feed does not answer in time")
            return None
        except TransientError as error:
            self._heard(str(error))
            return None
        self._heard(self.source.trouble())
        if brought.world is not self.state.world:
            self.state = replace(self.state, world=brought.world)
        return brought.receipts

    async def _record(
        self,
        kind: RecordKind,
        at: Instant,
        done_at: Instant | None,
        world: Any,
        receipts: tuple[Receipt, ...],
        covered: dict[str, Any],
    ) -> None:
        """Seal and commit something that is not a tick. `done_at` is the slot that is done by it."""
        state = self.state
        whole = {**covered, "receipts": receipts, "equity": ()}
        record: Record = seal(state.seq, kind, at, state.prev_digest, whole, ZERO_COST_EXTRA)
        after = replace(state, world=world, seq=state.seq + 1, prev_digest=record.digest, tick_at=done_at, seen={})
        await self.journal.commit([record], after, self._progress(0))
        self.state = after
        self.tell(self.board.take(record))

    def _progress(self, more: int) -> float:
        return 0.0 if self.most_ticks is None else min(1.0, (self.ticked + more) / max(1, self.most_ticks))

    def _heard(self, trouble: str) -> None:
        """Trouble with the feed is told when it begins, when it changes and when it ends."""
        now = self.clock.now()
        if trouble == self._trouble or 0 <= now - self._heard_at < QUIET_MS:
            return
        self._heard_at = now
        self._say(f"feed: {trouble}" if trouble else "feed: prices come again")
        self._trouble = trouble

    def _say(self, words: str) -> None:
        self.tell(self.board.remark(self.clock.now(), words))
