"""Policies that follow a signal: each closed bar gives a target for the position (long, short, flat or stay).

Signals are causal columns: the value at bar `i` depends only on bars up to `i`. They are computed once per set of bars
and read only below the number of closed bars that the as-of view gives. The plan looks up the same column for all ticks
at once, so that a simulator can jump from one act to the next.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pitboss.agent.decider import Judge
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.intent import Decision
from pitboss.core.market import Bars, Ints
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.policy import close_intent, open_intent, side_of, symbols_with_orders
from pitboss.venues.perp.state import PerpWorld

LONG, FLAT, SHORT, STAY = 1, 0, -1, 2
"""The values of a signal; STAY means no target, because bars are missing or the rule keeps the position."""

Signals = NDArray[np.int8]
Signal = Callable[[Bars], Signals]
"""A function that returns the target of each bar, given that bar and the ones before it."""

Reason = Callable[[Bars, int, int], str]
"""A function that returns the reason text with its numbers, from the bars, the number of closed bars and the target."""


def changes_position(target: int, side: int) -> bool:
    """Return whether a target changes a position: it is not STAY and differs from the current side."""
    return target not in (STAY, side)


class SignalPolicy:
    """Follows one signal in every symbol of the skill, on the skill's own interval."""

    def __init__(self, name: str, signal: Signal, reason: Reason) -> None:
        self.name = f"policy/{name}"
        self._signal = signal
        self._reason = reason
        # By symbol, with the bars of the column: a live market has other bars whenever one has closed.
        self._columns: dict[str, tuple[Bars, Signals]] = {}

    async def decide(self, observation: Observation, judge: Judge) -> Decision:
        """Close positions on the wrong side and open missing ones; a reversal opens at a later tick.

        The view has no bars of a symbol that is not listed, so such a symbol has no target.
        """
        del judge
        world = observation.world
        blocked = symbols_with_orders(world)
        intents: list[dict[str, Any]] = []
        interval = observation.skill.context.bars_interval
        for symbol in observation.limits.symbols:
            if symbol in blocked:
                continue
            bars, closed = observation.view.series(symbol, interval)
            target = int(self._column(bars)[closed - 1]) if closed else STAY
            side = side_of(world, symbol)
            if not changes_position(target, side):
                continue
            reason = self._reason(bars, closed, target)
            intents.append(close_intent(symbol, reason) if side else open_intent(observation, symbol, target, reason))
        return Decision(tuple(intents))

    def plan(self, market: Market, tick_at: Ints, symbols: tuple[str, ...], interval: str) -> "SignalPlan":
        """Return the same decisions for all ticks at once."""
        targets: dict[str, Signals] = {}
        for symbol in sorted(symbols):
            bars = market.bars.get((symbol, interval))
            if bars is None:
                raise UserError(f"no {interval} bars of {symbol}", "see `pitboss data list`")
            closed = np.searchsorted(bars.open_at, tick_at - bars.interval_ms, side="right")
            # One STAY is prepended below: a tick with no closed bar reads index 0.
            listing = market.listings.get(symbol)
            if listing is not None:
                begins, ends = listing.listed_at, listing.delisted_at
                closed = np.where(tick_at < begins, 0, closed) if begins is not None else closed
                closed = np.where(tick_at >= ends, 0, closed) if ends is not None else closed
            targets[symbol] = np.concatenate((np.array([STAY], np.int8), self._column(bars)))[closed]
        return SignalPlan(targets, len(tick_at))

    def _column(self, bars: Bars) -> Signals:
        cached = self._columns.get(bars.symbol)
        if cached is None or cached[0] is not bars:
            cached = self._columns[bars.symbol] = bars, self._signal(bars)
        return cached[1]


def _next_act(targets: Signals, side: int) -> NDArray[np.int32]:
    """Return, for each tick, the first tick at or after it that acts on this side; the tick count if none."""
    count = len(targets)
    is_act = (targets != STAY) & (targets != side)
    tick_or_end = np.where(is_act, np.arange(count, dtype=np.int32), np.int32(count))
    return np.append(np.minimum.accumulate(tick_or_end[::-1])[::-1], np.int32(count))


class SignalPlan:
    """The next act of a signal policy by lookup table; a table is built for a side only when it is needed."""

    __slots__ = ("_count", "_tables", "_targets")

    def __init__(self, targets: dict[str, Signals], count: int) -> None:
        self._targets = targets
        self._tables: dict[tuple[str, int], NDArray[np.int32]] = {}
        self._count = count

    def next_tick(self, index: int, world: PerpWorld) -> int:
        """Return the first tick at or after `index` at which a symbol without a working order acts on its position."""
        soonest = self._count
        blocked = symbols_with_orders(world)
        positions = world.positions
        for symbol in self._targets:
            if symbol in blocked:
                continue
            position = positions.get(symbol)
            tick = self._table(symbol, 0 if position is None else position.side).item(index)
            if tick < soonest:
                soonest = tick
        return soonest

    def _table(self, symbol: str, side: int) -> NDArray[np.int32]:
        """Return, for each tick, the next tick that acts on a position of this side."""
        table = self._tables.get((symbol, side))
        if table is None:
            table = self._tables[symbol, side] = _next_act(self._targets[symbol], side)
        return table


def closes(bars: Bars, closed: int, count: int) -> list[float]:
    """Return the newest `count` closes of the first `closed` bars as plain floats, oldest first."""
    return bars.close[max(0, closed - count) : closed].tolist()
