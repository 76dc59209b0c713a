"""Replay: advance the world to each tick, call `tick()`, and store the records.

A model is called at every tick. A planned decider (a policy, a file of decisions) says when it acts next, so that the
ticks in between become one span record and cost next to nothing; spans end at the next acting tick and at every UTC
midnight, so the digest does not depend on how the work was batched. Records are committed together with the state they
lead to, in one transaction: a crash loses at most what was not committed, and a resumed run ends in the same digest.
"""

import asyncio
import gc
from bisect import bisect_right
from collections.abc import Sequence
from decimal import localcontext
from functools import cache
from typing import Any

from pitboss.agent.decider import Plan
from pitboss.core.curve import Curve, split
from pitboss.core.errors import RunCancelled, TransientError
from pitboss.core.instant import DAY_MS, Instant, iso
from pitboss.core.leg import Leg
from pitboss.core.market import plain_ints
from pitboss.core.money import CONTEXT, ZERO
from pitboss.core.ports import Journal
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import ZERO_COST_EXTRA, Record, seal
from pitboss.core.state import State
from pitboss.core.trace import Value
from pitboss.sim.course import Course
from pitboss.sim.hold_span import HoldSpan
from pitboss.sim.outcome import Ledger
from pitboss.sim.speculator import MOST_TURNS, Speculator
from pitboss.sim.watch import Watch
from pitboss.tick import TickResult, WorldEvents, tick

PROGRESS_RECORDS = 10
"""Number of records between two progress reports."""


async def replay(course: Course, journal: Journal, state: State, watch: Watch, ledger: Ledger | None = None) -> State:
    """Run a range to its end, from its beginning or from a stored state.

    Raises `RunCancelled` when a stop is requested, with all finished records committed. `ledger` holds the earlier
    records and receives the new ones, so that they need not be read back for the metrics.
    """
    _freeze_loaded_modules()
    with localcontext(CONTEXT):
        return await _replay(course, _Cursor(course, journal, state, watch, ledger or Ledger()))


@cache
def _freeze_loaded_modules() -> None:
    """Exempt loaded modules from garbage collection, once per process; each collection of them took 50 to 90 ms."""
    gc.freeze()


async def _replay(course: Course, cursor: "_Cursor") -> State:
    if course.past is not None:
        course.past.begin(cursor.journal.records, cursor.state.seq)
    try:
        if course.planned:
            await _leap_through(course, cursor)
        else:
            await _ask_at_every_tick(course, cursor)
        await cursor.close()
    except TransientError:
        await cursor.commit()  # without the ticks at which the model failed last: a resumed run asks it again
        raise
    except BaseException:
        cursor.keep_failures()
        await cursor.commit()  # commit finished records whatever ended the replay
        raise
    await cursor.commit()
    return cursor.state


class _Cursor:
    """The position of the replay: records not committed yet, the state after the last record, and the next offset.

    Between two records only `world` and `offset` run ahead; `state` is what a commit stores.
    """

    def __init__(self, course: Course, journal: Journal, state: State, watch: Watch, ledger: Ledger) -> None:
        self.course = course
        self.journal = journal
        self.watch = watch
        self.ledger = ledger
        self.state = state
        self.world: Any = state.world
        self.records: list[Record] = []
        self.stable = (0, state)
        self.model_failed = False
        self.due = False
        self.tick_at = plain_ints(course.tick_at)
        self.offsets = course.tick_offsets()
        self.index = 0 if state.tick_at is None else bisect_right(self.tick_at, state.tick_at)
        self.offset = 0 if state.tick_at is None else self.offsets[self.index - 1]

    def advance(self, stop: int, pause_before_change: bool = False) -> Leg:
        """Compute what the world does until the offset `stop`; nothing changes until `keep`."""
        return self.course.advance(self.world, self.offset, stop, pause_before_change)

    def keep(self, leg: Leg) -> Leg:
        """Accept a leg: the world moves to its end."""
        self.offset, self.world = leg.index, leg.world
        return leg

    def check(self) -> None:
        """Raise `RunCancelled` between two ticks if a stop was requested."""
        if self.watch.stop():
            raise RunCancelled

    async def add(self, record: Record, state: State, at_once: bool = False, later: bool = False) -> None:
        """Add a record and the state after it. With `later`, the commit is deferred to the next wait.

        A tick at which the model failed is committed with the next record, or by `keep_failures`.
        """
        self.records.append(record)
        self.state, self.world = state, state.world
        if record.kind == "tick" and state.model_errors:
            self.model_failed = True
            return
        self.stable, self.model_failed = (len(self.records), state), False
        if not len(self.records) % PROGRESS_RECORDS:
            self.watch.progress(self.progress())
        if at_once or len(self.records) >= self.course.commit_records:
            self.due = True
            if not later:
                await self.commit()

    async def add_span(self, span: HoldSpan) -> None:
        """Add the record of a span, if it has ticks, while the world stands at its last tick."""
        if span.ticks:
            await self.add(*span.close(self.state, self.world, self.ledger))

    def keep_failures(self) -> None:
        """Let the next commit include the ticks at which the model failed last."""
        if self.model_failed:
            self.stable, self.model_failed = (len(self.records), self.state), False

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
            await self.journal.commit(records, state, self.progress())
            self.watch.progress(self.progress())

    async def commit_meanwhile(self) -> None:
        """Commit once the requests of the next tick are on their way."""
        for _ in range(MOST_TURNS):
            await asyncio.sleep(0)
        await self.commit()

    def progress(self) -> float:
        """The share of the ticks that are finished."""
        return self.index / max(1, len(self.course.tick_at))

    async def close(self) -> None:
        """Write the closing record: what happens after the last tick, up to the end."""
        if self.state.tick_at is not None and self.state.tick_at >= self.course.to_at:
            return  # a finished run that was resumed
        course = self.course
        leg = self.keep(course.finish(self.world, self.offset))
        covered = {
            "receipts": leg.receipts,
            "equity": leg.equity,
            "after": course.ports.summary(self.world),
            "flags": [],
        }
        record = seal(self.state.seq, "close", course.to_at, self.state.prev_digest, covered, ZERO_COST_EXTRA)
        self.ledger.take("close", covered, leg.receipts, ZERO)
        await self.add(
            record,
            self.state.after(
                world=self.world,
                seq=self.state.seq + 1,
                prev_digest=record.digest,
                tick_at=course.to_at,
                seen={},
            ),
        )


async def _ask_at_every_tick(course: Course, cursor: _Cursor) -> None:
    """Call the decider and write a record at every tick. A speculator may run ahead; it only affects speed."""
    plan, speculator = course.speculation, None
    if plan is not None and plan.window != 0:
        speculator = Speculator(plan, course)
    try:
        while cursor.index < len(course.tick_at):
            cursor.check()
            leg = cursor.keep(cursor.advance(cursor.offsets[cursor.index]))
            await _run_tick(course, cursor, leg.receipts, leg.equity, speculator)
    finally:
        if speculator is not None:
            await speculator.close()


async def _run_tick(
    course: Course, cursor: _Cursor, receipts: Sequence[Receipt], equity: Curve, speculator: Speculator | None = None
) -> None:
    at = cursor.tick_at[cursor.index]
    before = cursor.state if cursor.state.world is cursor.world else cursor.state.after(world=cursor.world)
    if speculator is not None:
        await speculator.before(cursor.index, before, receipts)
    past = course.past
    if past is not None:
        past.add_receipts(receipts)
    tracer = course.ports.tracer
    saving = asyncio.create_task(cursor.commit_meanwhile()) if cursor.due else None
    try:
        with tracer.span("pitboss.tick") as span:
            result = await tick(before, at, WorldEvents(receipts, equity), course.ports)
            if tracer.on:
                tracer.count("pitboss.ticks")
                span.set(_span_values(at, result))
        if speculator is not None:
            speculator.after(cursor.index, before, result)
    finally:
        if saving is not None:
            await saving
    if past is not None:
        past.add_tick(result.record, result.receipts[len(receipts) :], result.decision.flags)
    cost_usd, errors = result.decision.cost_usd, result.state.model_errors
    cursor.index += 1
    cursor.ledger.take("tick", result.covered, result.receipts, cost_usd, result.decision.saved_usd)
    for step in result.decision.steps:
        cursor.ledger.rejected_settings.update(step.rejected_settings)
    # With speculation the cache stores every reply before it is used, so the ticks of a window share a transaction,
    # which is committed while the next window is awaited.
    at_once = cost_usd != ZERO and (speculator is None or speculator.begins(cursor.index))
    await cursor.add(result.record, result.state, at_once, later=speculator is not None)
    if errors >= course.most_errors:
        raise TransientError(f"the model failed {errors} times in a row; last: {result.decision.text}")


def _span_values(at: Instant, result: TickResult) -> dict[str, Value]:
    """The figures of a tick for observers, without its texts."""
    decision = result.decision
    cost: dict[str, Value] = {} if decision.cost_usd is None else {"pitboss.cost_usd": float(decision.cost_usd)}
    return {
        "pitboss.tick_at": iso(at),
        "pitboss.steps": len(decision.steps),
        "pitboss.flags": decision.flags,
        "pitboss.outcomes": tuple(str(verdict["outcome"]) for verdict in result.covered["verdicts"]),
        "gen_ai.usage.input_tokens": decision.usage.input_tokens,
        "gen_ai.usage.output_tokens": decision.usage.output_tokens,
        "pitboss.saved_usd": float(decision.saved_usd),
        **cost,
    }


async def _leap_through(course: Course, cursor: _Cursor) -> None:
    """Jump from one acting tick to the next, for deciders that can plan their holds."""
    plan, count, span = course.plan(), len(course.tick_at), HoldSpan()
    while cursor.index < count:
        cursor.check()
        if not span.ticks and await _leap_past_fill(course, cursor, plan, span):
            continue
        here = cursor.index
        leg = cursor.advance(cursor.offsets[here])
        over = course.ports.is_over(leg.world)
        acts = count if over else plan.next_tick(here, leg.world)
        if span.ticks and (acts <= here or cursor.tick_at[here] // DAY_MS != span.day):
            await cursor.add_span(span)
        cursor.keep(leg)
        if acts <= here:
            await _run_tick(course, cursor, leg.receipts, leg.equity)
            continue
        span.add(cursor.tick_at, here, here, leg.receipts, leg.equity, over)
        cursor.index = here + 1
        await _leap(course, cursor, span, here, acts, over)
    await cursor.add_span(span)


async def _leap_past_fill(course: Course, cursor: _Cursor, plan: Plan, span: HoldSpan) -> bool:
    """Jump from an acting tick to the next, or to the last tick of the day, in one leg. False if that takes steps."""
    here, offset, offsets = cursor.index, cursor.offset, cursor.offsets
    last = span.begin_day(cursor.tick_at, here) - 1
    if last <= here or offsets[here] <= offset:
        return False
    acts = 0

    def choose_stop(world: Any) -> int:
        nonlocal acts
        acts = here if course.ports.is_over(world) else plan.next_tick(here, world)
        return offsets[min(acts, last)] if acts > here else offset

    leg = course.advance_past_fill(cursor.world, offset, choose_stop)
    if leg is None:
        return False
    if acts > last:
        cursor.keep(leg)
        span.add(cursor.tick_at, here, last, leg.receipts, leg.equity, False)
        cursor.index = last + 1
    else:
        await _act_after_holds(course, cursor, span, leg, here, acts, False)
    return True


async def _leap(course: Course, cursor: _Cursor, span: HoldSpan, here: int, acts: int, over: bool) -> None:
    """Jump from the hold at `here` over the following holds, up to the acting tick itself if it is on the same day."""
    reaches = acts < span.end
    last = min(acts, span.end) - 1
    goal = acts if reaches else last
    if goal == here:
        return
    leap = cursor.advance(cursor.offsets[goal], pause_before_change=True)
    if leap.index < cursor.offsets[goal]:  # the account changes there: stop at the tick before that offset
        last = bisect_right(cursor.offsets, leap.index) - 1
        if leap.index > cursor.offsets[last]:
            leap = cursor.advance(cursor.offsets[last])
        reaches = False
    if not reaches:
        if last > here:
            cursor.keep(leap)
            span.add(cursor.tick_at, here + 1, last, leap.receipts, leap.equity, over)
            cursor.index = last + 1
        return
    await _act_after_holds(course, cursor, span, leap, here + 1, acts, over)


async def _act_after_holds(
    course: Course, cursor: _Cursor, span: HoldSpan, leg: Leg, first: int, acts: int, over: bool
) -> None:
    """Record the holds from `first` up to the acting tick at the end of a leg, and run that tick."""
    receipts, equity = leg.receipts, leg.equity
    if acts > first:
        last = acts - 1
        early = receipts and course.early(receipts, cursor.tick_at[last])
        before, equity = split(equity, cursor.offsets[last] - cursor.offset)
        span.add(cursor.tick_at, first, last, early, before, over)
        receipts = receipts[len(early) :]
    cursor.keep(leg)
    cursor.index = acts
    cursor.prepare(*span.close(cursor.state, cursor.world, cursor.ledger))
    await _run_tick(course, cursor, receipts, equity)
