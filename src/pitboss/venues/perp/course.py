"""The course of a perp backtest: ticks, bars, market and ports, as the replay in `sim.replay` drives them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Self

import numpy as np

from pitboss.agent.decider import Plan, Planned
from pitboss.core.asof import Market
from pitboss.core.curve import with_last
from pitboss.core.errors import InvariantError
from pitboss.core.instant import DAY_MS, HOUR_MS, Instant
from pitboss.core.leg import Leg
from pitboss.core.market import plain_ints
from pitboss.core.money import decimal, text
from pitboss.core.receipt import Receipt
from pitboss.core.state import State, parse_state
from pitboss.sim.course import Course
from pitboss.venues.perp.ports import PerpPorts
from pitboss.venues.perp.state import PerpWorld, open_world
from pitboss.venues.perp.tape import Tape
from pitboss.venues.perp.trade_memory import NO_MEMORY, PerpMemory
from pitboss.venues.perp.world import advance, advance_past_fill, close_all, set_marks


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PerpCourse(Course):
    """A range to replay with its ticks, bars, market and ports."""

    ports: PerpPorts
    market: Market
    base_interval: str
    tape: Tape
    initial_usd: Decimal
    close_at_end: bool = False

    @property
    def asks_always(self) -> bool:
        """Whether the model is asked at every tick; False if the skill has `wake_when` conditions."""
        return not (self.ports.wakes and self.ports.skill.schedule.wake_when)

    def tick_offsets(self) -> Sequence[int]:
        """Return, for each tick, the index of the first bar that opens at or after it."""
        return plain_ints(np.searchsorted(self.tape.open_at, self.tick_at, side="left"))

    def advance(self, world: PerpWorld, start: int, stop: int, pause_before_change: bool = False) -> Leg:
        """Process the bars `[start, stop)`, one equity point per bar."""
        return advance(world, self.ports.terms, self.tape, start, stop, pause_before_change)

    def advance_past_fill(self, world: PerpWorld, start: int, choose_stop: Callable[[PerpWorld], int]) -> Leg | None:
        """Process the bar of an order's fill and the quiet bars after it; None if that must be done in steps."""
        return advance_past_fill(world, self.ports.terms, self.tape, start, choose_stop)

    def finish(self, world: PerpWorld, start: int) -> Leg:
        """Process the bars after the last tick; open positions are marked, or closed if `close_at_end` is set."""
        remaining = self.advance(world, start, len(self.tape))
        if not self.close_at_end or not len(self.tape):
            return remaining
        interval_ms = self.tape.interval_ms
        closed = close_all(remaining.world, self.ports.terms, self.to_at, interval_ms)
        # positions close at the last bar's close, so the fees belong to that equity point
        equity, after = remaining.equity, closed.world.last_equity
        if equity:
            equity = with_last(equity, after)
        elif remaining.world.positions:  # an earlier record holds that point, so the range ends with one of its own
            equity = ((self.to_at, interval_ms, text(after), 1),)
        return Leg(closed.world, remaining.receipts + closed.receipts, equity, remaining.index)

    def until(self, to_at: Instant) -> Self:
        """Return the same course up to a tick, without speculation and without closing positions at its end."""
        ticks = self.tick_at[self.tick_at < to_at]
        return replace(self, tick_at=ticks, to_at=to_at, close_at_end=False, commit_records=1, speculation=None)

    def plan(self) -> Plan:
        """Return the plan of the policy or decisions file: the ticks at which it acts."""
        decider, skill = self.ports.decider, self.ports.skill
        if not isinstance(decider, Planned):
            raise InvariantError(f"{decider.name} has no plan")
        return decider.plan(self.market, self.tick_at, skill.context.sorted_symbols, skill.context.bars_interval)

    def early(self, receipts: Sequence[Receipt], until: Instant) -> tuple[Receipt, ...]:
        """Return the receipts from before `until`; a fill carries its bar's open time, funding its hour."""
        return tuple(receipt for receipt in receipts if receipt.at // HOUR_MS * HOUR_MS < until)

    def unchanged(self, before: State, after: State) -> bool:
        """Return whether a tick left the account as it was and added no remembered refusal.

        A remembered refusal appears in every prompt of the following hour.
        """
        if self.ports.memory_settings is not None and after.last is not None and after.last.outcome == "refused":
            return False
        return Course.unchanged(self, before, after)


def first_state(course: PerpCourse) -> State:
    """Return the state of a new account at the first tick, marked at the last closes known then."""
    at = int(course.tick_at[0])
    world = open_world(course.initial_usd, at // DAY_MS)
    return State(marked_world(world, course.market, course.tape.symbols, course.base_interval, at), memory=NO_MEMORY)


def marked_world(
    world: PerpWorld, market: Market, symbols: Sequence[str], base_interval: str, at: Instant
) -> PerpWorld:
    """Return the account marked at the last closes known at an instant."""
    view = market.view(at)
    marks: dict[str, tuple[Decimal, Instant]] = {}
    for symbol in symbols:
        bars = view.bars(symbol, base_interval, 1)
        if len(bars):
            marks[symbol] = decimal(float(bars.close[-1])), int(bars.open_at[-1]) + bars.interval_ms
    return set_marks(world, marks)


def read_state(plain: object) -> State:
    """Decode a stored state, with world and memory as this venue's types."""
    return parse_state(plain, PerpWorld, PerpMemory)
