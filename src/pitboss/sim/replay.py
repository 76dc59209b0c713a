"""Replay: advance the world to each tick, call `tick()`, and store the records.

A model is called at every tick. A planned decider (a policy, a file of decisions) says when it acts next, so that the
ticks in between become one span record and cost next to nothing; spans end at the next acting tick and at every UTC
midnight, so the digest does not depend on how the work was batched. Records are committed together with the state they
lead to, in one transaction: a crash loses at most what was not committed, and a resumed run ends in the same digest.
"""

import asyncio
import gc
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from decimal import localcontext
from functools import cache
from typing import Any

from pitboss.core.curve import Curve, Piece, join, split
from pitboss.core.errors import RunCancelled, TransientError
from pitboss.core.instant import DAY_MS, Instant, iso
from pitboss.core.money import CONTEXT, ZERO
from pitboss.core.ports import Journal
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import ZERO_COST_EXTRA, Record, seal
from pitboss.core.state import LastDecision, State
from pitboss.core.trace import Value
from pitboss.sim.course import Course, Leg
from pitboss.sim.outcome import Ledger
from pitboss.sim.speculator import MOST_TURNS, Speculator
from pitboss.sim.watch import Watch
from pitboss.tick import TickResult, WorldEvents, tick

PROGRESS_RECORDS = 10
"""Number of records between two progress reports."""


async def replay(script: Course, journal: Journal, state: State, watch: Watch, ledger: Ledger | None = None) -> State:
    """Run a range to its end, from its beginning or from a stored state.

    Raises `RunCancelled` when a stop is requested, with all finished records committed. `ledger` holds the earlier
    records and receives the new ones, so that they need not be read back for the metrics.
    """
    _spare_what_is_loaded()
    with localcontext(CONTEXT):
        return await _replay(script, _Pen(script, journal, state, watch, ledger or Ledger()))


@cache
def _spare_what_is_loaded() -> None:
    """Exempt loaded modules from garbage collection, once per process; each collection of them took 50 to 90 ms."""
    gc.freeze()


async def _replay(script: Course, pen: "_Pen") -> State:
    if script.past is not None:
        script.past.begin(pen.journal.records, pen.state.seq)
    try:
        if script.planned:
            await _leap_through(script, pen)
        else:
            await _ask_at_every_tick(script, pen)
        await pen.close()
    except BaseException:
        await pen.commit()  # commit finished records whatever ended the replay
        raise
    await pen.commit()
    return pen.state


class _Pen:
    """The position of the replay: records not committed yet, the state after the last record, and the next place.

    Between two records only `world` and `place` run ahead; `state` is what a commit stores.
    """

    def __init__(self, script: Course, journal: Journal, state: State, watch: Watch, ledger: Ledger) -> None:
        self.script = script
        self.journal = journal
        self.watch = watch
        self.ledger = ledger
        self.state = state
        self.world: Any = state.world
        self.records: list[Record] = []
        self.stable = (0, state)
        self.due = False
        self.tick_at: list[Instant] = script.tick_at.tolist()
        self.places = script.places()
        self.index = 0 if state.tick_at is None else bisect_right(self.tick_at, state.tick_at)
        self.place = 0 if state.tick_at is None else self.places[self.index - 1]

    def advance(self, stop: int, pause_before_change: bool = False) -> Leg:
        """Compute what the world does until place `stop`; nothing is kept until `keep`."""
        return self.script.advance(self.world, self.place, stop, pause_before_change)

    def keep(self, leg: Leg) -> Leg:
        """Accept a leg: the world moves to its end."""
        self.place, self.world = leg.index, leg.world
        return leg

    def check(self) -> None:
        """Raise `RunCancelled` between two ticks if a stop was requested."""
        if self.watch.stop():
            raise RunCancelled

    async def add(self, record: Record, state: State, at_once: bool = False, later: bool = False) -> None:
        """Add a record and the state after it. With `later`, the commit is deferred to the next wait."""
        self.records.append(record)
        self.state, self.world = state, state.world
        self.stable = len(self.records), state
        if not len(self.records) % PROGRESS_RECORDS:
            self.watch.progress(self.done())
        if at_once or len(self.records) >= self.script.commit_records:
            self.due = True
            if not later:
                await self.commit()

    def prepare(self, record: Record, state: State) -> None:
        """Add a record whose state is only consistent together with the next record; both are committed together."""
        self.records.append(record)
        self.state = state

    async def commit(self) -> None:
        """Commit all pending records and the state in one transaction."""
        self.due = False
        count, state = self.stable
        if count:
            records, self.records = self.records[:count], self.records[count:]
            self.stable = 0, state
            await self.journal.commit(records, state, self.done())
            self.watch.progress(self.done())

    async def commit_meanwhile(self) -> None:
        """Commit once the requests of the next tick are on their way."""
        for _ in range(MOST_TURNS):
            await asyncio.sleep(0)
        await self.commit()

    def done(self) -> float:
        """Share of the ticks that are done."""
        return self.index / max(1, len(self.script.tick_at))

    async def close(self) -> None:
        """Write the closing record: what happens after the last tick, up to the end."""
        if self.state.tick_at is not None and self.state.tick_at >= self.script.to_at:
            return  # a finished run that was resumed
        script = self.script
        rest = self.keep(script.finish(self.world, self.place))
        covered = {
            "receipts": rest.receipts,
            "equity": rest.equity,
            "after": script.ports.summary(self.world),
            "flags": [],
        }
        record = seal(self.state.seq, "close", script.to_at, self.state.prev_digest, covered, ZERO_COST_EXTRA)
        self.ledger.take("close", covered, rest.receipts, ZERO)
        await self.add(
            record,
            self.state.after(
                world=self.world,
                seq=self.state.seq + 1,
                prev_digest=record.digest,
                tick_at=script.to_at,
                seen={},
            ),
        )


async def _ask_at_every_tick(script: Course, pen: _Pen) -> None:
    """Call the decider and write a record at every tick. A speculator may run ahead; it only affects speed."""
    plan, ahead = script.speculation, None
    if plan is not None and plan.window != 0:
        ahead = Speculator(plan, script)
    try:
        while pen.index < len(script.tick_at):
            pen.check()
            leg = pen.keep(pen.advance(pen.places[pen.index]))
            await _one_tick(script, pen, leg.receipts, leg.equity, ahead)
    finally:
        if ahead is not None:
            await ahead.close()


async def _one_tick(
    script: Course, pen: _Pen, receipts: Sequence[Receipt], equity: Curve, ahead: Speculator | None = None
) -> None:
    at = pen.tick_at[pen.index]
    before = pen.state if pen.state.world is pen.world else pen.state.after(world=pen.world)
    if ahead is not None:
        await ahead.before(pen.index, before, receipts)
    past = script.past
    if past is not None:
        past.happened(receipts)
    tracer = script.ports.tracer
    saving = asyncio.create_task(pen.commit_meanwhile()) if pen.due else None
    try:
        with tracer.span("pitboss.tick") as span:
            done = await tick(before, at, WorldEvents(receipts, equity), script.ports)
            if tracer.on:
                tracer.count("pitboss.ticks")
                span.set(_told(at, done))
        if ahead is not None:
            ahead.after(pen.index, before, done)
    finally:
        if saving is not None:
            await saving
    if past is not None:
        past.take(done.record, done.receipts[len(receipts) :], done.decision.flags)
    cost_usd, errors = done.decision.cost_usd, done.state.model_errors
    pen.index += 1
    pen.ledger.take("tick", done.covered, done.receipts, cost_usd, done.decision.saved_usd)
    # With speculation the cache stores every reply before it is used, so the ticks of a window share a transaction,
    # which is committed while the next window is awaited.
    at_once = cost_usd != ZERO and (ahead is None or ahead.begins(pen.index))
    await pen.add(done.record, done.state, at_once, later=ahead is not None)
    if errors >= script.most_errors:
        raise TransientError(f"the model failed {errors} times in a row; last: {done.decision.text}")


def _told(at: Instant, done: TickResult) -> dict[str, Value]:
    """The figures of a tick for observers, without its texts."""
    decision = done.decision
    cost: dict[str, Value] = {} if decision.cost_usd is None else {"pitboss.cost_usd": float(decision.cost_usd)}
    return {
        "pitboss.tick_at": iso(at),
        "pitboss.steps": len(decision.steps),
        "pitboss.flags": decision.flags,
        "pitboss.outcomes": tuple(str(one["outcome"]) for one in done.covered["verdicts"]),
        "gen_ai.usage.input_tokens": decision.usage.input_tokens,
        "gen_ai.usage.output_tokens": decision.usage.output_tokens,
        "pitboss.saved_usd": float(decision.saved_usd),
        **cost,
    }


async def _leap_through(script: Course, pen: _Pen) -> None:
    """Jump from one acting tick to the next, for deciders that can plan their holds."""
    plan, count, span = script.plan(), len(script.tick_at), _Span()
    while pen.index < count:
        pen.check()
        here = pen.index
        leg = pen.advance(pen.places[here])
        over = script.over(leg.world)
        acts = count if over else plan.next_tick(here, leg.world)
        if span.ticks and (acts <= here or pen.tick_at[here] // DAY_MS != span.day):
            await span.flush(pen)
        pen.keep(leg)
        if acts <= here:
            await _one_tick(script, pen, leg.receipts, leg.equity)
            continue
        span.add(pen, here, here, leg.receipts, leg.equity, over)
        pen.index = here + 1
        await _leap(script, pen, span, here, acts, over)
    await span.flush(pen)


async def _leap(script: Course, pen: _Pen, span: "_Span", here: int, acts: int, over: bool) -> None:
    """Jump from the hold at `here` over the following holds, up to the acting tick itself if it is on the same day."""
    tomorrow = bisect_left(pen.tick_at, (span.day + 1) * DAY_MS)
    reaches = acts < tomorrow
    last = min(acts, tomorrow) - 1
    goal = acts if reaches else last
    if goal == here:
        return
    leap = pen.advance(pen.places[goal], pause_before_change=True)
    if leap.index < pen.places[goal]:  # the account changes there: stop at the tick before that place
        last = bisect_right(pen.places, leap.index) - 1
        if leap.index > pen.places[last]:
            leap = pen.advance(pen.places[last])
        reaches = False
    if not reaches:
        if last > here:
            pen.keep(leap)
            span.add(pen, here + 1, last, leap.receipts, leap.equity, over)
            pen.index = last + 1
        return
    receipts, equity = leap.receipts, leap.equity
    if last > here:
        until = pen.tick_at[last]
        early = receipts and script.early(receipts, until)
        before, equity = split(equity, pen.places[last] - pen.place)
        span.add(pen, here + 1, last, early, before, over)
        receipts = receipts[len(early) :]
    pen.keep(leap)
    pen.index = acts
    span.seal(pen)
    await _one_tick(script, pen, receipts, equity)


class _Span:
    """Consecutive no-op ticks of one UTC day, collected into one record."""

    def __init__(self) -> None:
        self.ticks = 0
        self.day = 0
        self.first_at = self.last_at = 0
        self.ruined = 0
        self.receipts: list[Receipt] = []
        self.equity: list[Piece] = []

    def add(self, pen: _Pen, first: int, last: int, receipts: Sequence[Receipt], equity: Curve, over: bool) -> None:
        """Add the ticks `first` to `last`, and what happened up to them, to the span."""
        if not self.ticks:
            self.first_at = pen.tick_at[first]
            self.day = self.first_at // DAY_MS
        self.last_at = pen.tick_at[last]
        self.ticks += last - first + 1
        self.ruined += (last - first + 1) if over else 0
        self.receipts.extend(receipts)
        join(self.equity, equity)

    async def flush(self, pen: _Pen) -> None:
        """Store the span, if there is one, while the world stands at its last tick."""
        if self.ticks:
            record, state = self._close(pen)
            await pen.add(record, state)

    def seal(self, pen: _Pen) -> None:
        """Store the span although the world has advanced to the acting tick after it."""
        pen.prepare(*self._close(pen))

    def _close(self, pen: _Pen) -> tuple[Record, State]:
        covered = {
            "until_at": self.last_at,
            "ticks": self.ticks,
            "receipts": self.receipts,
            "equity": self.equity,
            "flags": {"ruined": self.ruined} if self.ruined else {},
        }
        before = pen.state
        record = seal(before.seq, "span", self.first_at, before.prev_digest, covered, ZERO_COST_EXTRA)
        pen.ledger.take("span", covered, self.receipts, ZERO)
        state = before.after(
            world=pen.world,
            seq=before.seq + 1,
            prev_digest=record.digest,
            tick_at=self.last_at,
            seen={},
            last=LastDecision(self.last_at, "noop", "ruined" if self.ruined else ""),
        )
        self.__init__()
        return record, state
