"""Looks ahead with floats: how many of the next bars need only marking and funding.

It may stop too early, never too late; the exact step of `world.py` decides what happens in the bar where it stops. All
functions are pure, and no number from here is ever stored.
"""

from collections.abc import Mapping
from decimal import Decimal

import numpy as np

from pitboss.core.instant import DAY_MS
from pitboss.venues.perp.state import PerpWorld, Position, TradingTerms, WorkingOrder
from pitboss.venues.perp.tape import Tape

SAFETY = 1e-9
"""Relative slack of float comparisons with exact thresholds; floats are accurate to about 1e-16."""


def quiet_until(world: PerpWorld, terms: TradingTerms, tape: Tape, start: int, stop: int) -> int:
    """Return the first bar in `[start, stop)` in which more than marking and funding could happen, else `stop`.

    The answer is conservative and never goes past the next midnight, where the day's reference changes. It costs about
    15 µs with a position and 3 µs without, for any length.
    """
    stop = min(stop, tape.day_stop.item(start))
    if "daily_loss" in world.halts or tape.open_at.item(start) + tape.interval_ms > (world.day + 1) * DAY_MS:
        return start  # the halt may end, or a new day began within a gap: the exact step handles it
    if terms.max_volume_pct is not None and any(position.stopping for position in world.positions.values()):
        return start  # a partly filled stop continues at the next open, at any price
    for order in world.orders:
        stop = _order_quiet_until(order, tape, start, stop)
    if not world.positions or stop <= start or surely_quiet(world, terms, tape, start, stop):
        return stop
    return positions_quiet_until(world, terms, tape, start, stop)


def _order_quiet_until(order: WorkingOrder, tape: Tape, start: int, stop: int) -> int:
    """Return the first bar that could fill a working order."""
    if order.active_from > tape.open_at.item(start):
        start = tape.index_of(order.active_from)
        if start >= stop:
            return stop
    if order.limit is None:
        if order.symbol in tape.regular:
            return start
        touched = ~np.isnan(tape.open[order.symbol][start:stop])
    elif not order.rested:
        return start  # its first bar determines which fee it pays
    elif order.side > 0:
        touched = tape.lowest[order.symbol][start:stop] <= float(order.limit) * (1 + SAFETY)
    else:
        touched = tape.highest[order.symbol][start:stop] >= float(order.limit) * (1 - SAFETY)
    return start + _first(touched, stop - start)


def surely_quiet(world: PerpWorld, terms: TradingTerms, tape: Tape, start: int, stop: int) -> bool:
    """Return whether the extremes of the whole range rule out every event.

    It takes two searches per symbol instead of a scan of every bound.
    """
    base = float(world.cash)
    worst = best = needed = scale = 0.0
    for symbol, position in world.positions.items():
        if symbol not in tape.regular:
            return False
        lowest, highest = tape.lowest[symbol][start:stop], tape.highest[symbol][start:stop]
        # the extremes by their places: 1 µs each instead of 2.6 for a reduction
        low, high = lowest.item(lowest.argmin()), highest.item(highest.argmax())
        size, cost = float(position.size), float(position.cost)
        adverse, favourable = (low, high) if size > 0 else (high, low)
        side = 1 if size > 0 else -1
        if position.stop is not None and side * (adverse - float(position.stop)) <= SAFETY * adverse:
            return False
        if (
            position.take_profit is not None
            and side * (float(position.take_profit) - favourable) <= SAFETY * favourable
        ):
            return False
        base -= cost
        scale += abs(cost)
        worst += size * adverse
        best += size * favourable
        needed += abs(size) * high * terms.assets[symbol].steepest_rate
        costs = tape.funded_bars(symbol, start, stop)[1] if tape.funding else ()
        if len(costs):
            funding = abs(size) * float(np.abs(costs).sum())
            worst, best = worst - funding, best + funding
    slack = SAFETY * (scale + abs(base))
    if base + worst - needed <= slack:
        return False
    if terms.daily_loss_halt_pct is not None:
        floor = float(world.day_reference) * (1 - float(terms.daily_loss_halt_pct) / 100)
        if base + worst <= floor + slack:
            return False
    if terms.drawdown_halt_pct is not None and "drawdown" not in world.halts:
        peak = max(float(world.peak), base + best)
        if base + worst <= peak * (1 - float(terms.drawdown_halt_pct) / 100) + slack:
            return False
    return True


def out_of_reach(cash: Decimal, positions: Mapping[str, Position], terms: TradingTerms, tape: Tape, index: int) -> bool:
    """Return whether one bar touches no stop and stays far from liquidation at every symbol's worst price."""
    slack = float(cash)
    scale = abs(slack)
    for symbol, position in positions.items():
        if position.stop is not None:
            return False
        size, cost, high = float(position.size), float(position.cost), tape.highest[symbol].item(index)
        worst = size * (tape.lowest[symbol].item(index) if size > 0 else high)
        needed = abs(size) * high * terms.assets[symbol].steepest_rate
        slack += worst - cost - needed
        scale += abs(worst) + abs(cost)
    return slack > SAFETY * scale  # False where a bar is missing, because comparisons with NaN are false


def positions_quiet_until(world: PerpWorld, terms: TradingTerms, tape: Tape, start: int, stop: int) -> int:
    """Return the first bar with a touched exit, a possible liquidation or a possible halt."""
    length = count = stop - start
    base = float(world.cash)
    scale = abs(base)
    worst = np.zeros(length)
    closes = np.zeros(length)
    needed = np.zeros(length)
    for symbol, position in world.positions.items():
        low, high = tape.lowest[symbol][start:stop], tape.highest[symbol][start:stop]
        last_close = tape.filled_close[symbol][start:stop]
        if last_close[0] != last_close[0]:  # NaN: no bar on this tape yet, and only the exact step knows the mark
            return start
        adverse, favourable = (low, high) if position.side > 0 else (high, low)
        size = float(position.size)
        base -= float(position.cost)
        scale += abs(float(position.cost))
        missing = np.isnan(adverse)
        if missing.any():
            adverse = np.where(missing, last_close, adverse)
        worst += size * adverse
        closes += size * last_close
        due, costs = tape.funded_bars(symbol, start, stop)
        if len(due):
            funding = np.zeros(length)
            funding[due - start] = size * costs
            scale += float(np.abs(funding).sum())
            funding = np.cumsum(funding)
            worst -= funding
            closes -= funding
        # The steepest tier without its deduction bounds maintenance from above on the whole path.
        needed += abs(size) * np.fmax(high, last_close) * terms.assets[symbol].steepest_rate
        if position.stop is not None:
            stop_price = float(position.stop) * (1 + position.side * SAFETY)
            touched = adverse <= stop_price if position.side > 0 else adverse >= stop_price
            count = min(count, _first(touched & ~missing, count))
        if position.take_profit is not None:
            take_profit = float(position.take_profit) * (1 - position.side * SAFETY)
            touched = favourable >= take_profit if position.side > 0 else favourable <= take_profit
            count = min(count, _first(touched & ~missing, count))
    slack = SAFETY * (scale + float(np.max(np.abs(closes))))
    count = min(count, _first(base + worst - needed <= slack, count))
    equity = closes + base
    if terms.daily_loss_halt_pct is not None:
        floor = float(world.day_reference) * (1 - float(terms.daily_loss_halt_pct) / 100)
        count = min(count, _first(equity <= floor + slack, count))
    if terms.drawdown_halt_pct is not None and "drawdown" not in world.halts:
        peaks = np.maximum(np.maximum.accumulate(equity), float(world.peak))
        count = min(count, _first(equity <= peaks * (1 - float(terms.drawdown_halt_pct) / 100) + slack, count))
    return start + count


def _first(mask: "np.typing.NDArray[np.bool_]", otherwise: int) -> int:
    """Return the index of the first True, else `otherwise`."""
    index = int(mask.argmax()) if len(mask) else 0
    return index if len(mask) and mask[index] else otherwise
