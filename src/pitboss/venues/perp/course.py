"""The course of a perp backtest: ticks, bars, market and ports, as the replay in `sim.replay` drives them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from pitboss.agent.decider import Plan, Planned
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.curve import with_last
from pitboss.core.errors import InvariantError
from pitboss.core.instant import DAY_MS, HOUR_MS, Instant
from pitboss.core.market import Ints
from pitboss.core.money import decimal
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.sim.course import COMMIT_RECORDS, MAX_MODEL_ERRORS
from pitboss.sim.past import RunPast
from pitboss.sim.speculation import Speculation
from pitboss.venues.perp.ports import PerpPorts, ruined
from pitboss.venues.perp.state import PerpWorld, open_world
from pitboss.venues.perp.tape import Tape
from pitboss.venues.perp.trade_memory import NO_MEMORY, PerpMemory
from pitboss.venues.perp.world import WorldAdvance, advance, close_all, set_marks


@dataclass(frozen=True, slots=True, eq=False)
class PerpCourse:
    """The perp implementation of `sim.course.Course`: a range to replay with its ticks, bars, market and ports."""

    ports: PerpPorts
    market: Market
    base_interval: str
    tape: Tape
    tick_at: Ints
    to_at: Instant
    initial_usd: Decimal
    close_at_end: bool = False
    planned: bool = False
    commit_records: int = COMMIT_RECORDS
    speculation: Speculation | None = None
    most_errors: int = MAX_MODEL_ERRORS
    past: RunPast | None = None

    @property
    def asks_always(self) -> bool:
        """Whether the model is asked at every tick; False if the skill has `wake_when` conditions."""
        return not (self.ports.wakes and self.ports.skill.schedule.wake_when)

    def tick_offsets(self) -> list[int]:
        """Return, for each tick, the index of the first bar that opens at or after it."""
        return np.searchsorted(self.tape.open_at, self.tick_at, side="left").tolist()

    def advance(self, world: PerpWorld, start: int, stop: int, pause_before_change: bool = False) -> WorldAdvance:
        """Process the bars `[start, stop)`, one equity point per bar."""
        return advance(world, self.ports.terms, self.tape, start, stop, pause_before_change)

    def finish(self, world: PerpWorld, start: int) -> WorldAdvance:
        """Process the bars after the last tick; open positions are marked, or closed if `close_at_end` is set."""
        remaining = self.advance(world, start, len(self.tape))
        if not self.close_at_end or not len(self.tape):
            return remaining
        closed = close_all(remaining.world, self.ports.terms, self.to_at, self.tape.interval_ms)
        # positions close at the last bar's close, so the fees belong to that equity point
        equity = with_last(remaining.equity, closed.world.last_equity) if remaining.equity else remaining.equity
        return WorldAdvance(closed.world, remaining.receipts + closed.receipts, equity, remaining.index)

    def until(self, to_at: Instant) -> "PerpCourse":
        """Return the same course up to a tick, without speculation and without closing positions at its end."""
        ticks = self.tick_at[self.tick_at < to_at]
        return replace(self, tick_at=ticks, to_at=to_at, close_at_end=False, commit_records=1, speculation=None)

    def plan(self) -> Plan:
        """Return the plan of the policy or decisions file: the ticks at which it acts."""
        decider, skill = self.ports.decider, self.ports.skill
        if not isinstance(decider, Planned):
            raise InvariantError(f"{decider.name} has no plan")
        return decider.plan(
            self.market, self.tick_at, tuple(sorted(skill.context.symbols)), skill.context.bars_interval
        )

    def over(self, world: PerpWorld) -> bool:
        """Return whether the account has no cash, no positions and no orders."""
        return ruined(world)

    def early(self, receipts: Sequence[Receipt], until: Instant) -> tuple[Receipt, ...]:
        """Return the receipts from before `until`; a fill carries its bar's open time, funding its hour."""
        return tuple(receipt for receipt in receipts if receipt.at // HOUR_MS * HOUR_MS < until)

    def unchanged(self, before: State, after: State) -> bool:
        """Return whether a tick left the account as it was and added no remembered refusal.

        A remembered refusal appears in every prompt of the following hour.
        """
        if self.ports.memory_settings is not None and after.last is not None and after.last.outcome == "refused":
            return False
        return after.world is before.world or after.world == before.world


def first_state(course: PerpCourse) -> State:
    """Return the state of a new account at the first tick, marked at the last closes known then."""
    at = int(course.tick_at[0])
    world = open_world(course.initial_usd, at // DAY_MS)
    view = course.market.view(at)
    marks: dict[str, tuple[Decimal, Instant]] = {}
    for symbol in course.tape.symbols:
        bars = view.bars(symbol, course.base_interval, 1)
        if len(bars):
            marks[symbol] = decimal(float(bars.close[-1])), int(bars.open_at[-1]) + bars.interval_ms
    return State(set_marks(world, marks), memory=NO_MEMORY)


def read_state(plain: object) -> State:
    """Decode a stored state, with world and memory as this venue's types."""
    state = codec.parse(State, plain)
    memory = codec.parse(PerpMemory, state.memory or {})
    return state.after(world=codec.parse(PerpWorld, state.world), memory=memory)
