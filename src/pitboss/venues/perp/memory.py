"""Updates the agent's memory from tick to tick: closed trades, refusals, the day's result.

`remember` folds what a tick knows (receipts, verdicts, the account, the as-of view) into the next `PerpMemory`. It is
pure and bounded and reads typed facts only; equal inputs give equal values, so speculation on a copy of a state
predicts the memory exactly. Trades come from `venues.perp.trades`, the only definition of a round trip. Values that
change with time alone (the last hour, today) are computed by `risk` when they are shown. No text is written here: the
sections format it, and a model's notes come from `venues.perp.reflection`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Context, Decimal

from pitboss.core.asof import View
from pitboss.core.errors import InvariantError
from pitboss.core.instant import DAY_MS, HOUR_MS, Instant, day_of
from pitboss.core.money import HUNDRED, ZERO, exact
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.verdict import Verdict
from pitboss.venues.perp import regime
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.state import PerpWorld, day_reference_at
from pitboss.venues.perp.trade_memory import ClosedTrade, OrderThesis, PerpMemory, RefusedProposal, RoundTrip
from pitboss.venues.perp.trades import Fold, Trade, WorkingTrip

MOST_REFLECTED = 50
"""Maximum number of closed trades kept for the next notes, however long it takes until they are due."""
MOST_REFUSALS = 64
LATEST_REFUSALS = 5
THESIS_CHARS = 160
"""Maximum stored length of the reason that a model gave for a trade."""

_DISPLAY = Context(prec=16, rounding=ROUND_HALF_EVEN)
"""Precision of remembered prices and results.

They are for display and daily sums; exact values can have sixty digits and would only fill the stored state.
"""


@noun
class MemorySettings:
    """How many closed trades a run remembers, and which bars give their regimes and excursions."""

    max_trades: int
    interval: str
    lookback: int
    bars: str


def memory_settings(skill: PerpSkill, base_interval: str) -> MemorySettings | None:
    """Return the memory settings of a skill; None if its memory is disabled."""
    context = skill.context
    if not context.memory.enabled:
        return None
    max_trades = max(context.memory.trades, min(context.memory.reflection_every, MOST_REFLECTED))
    return MemorySettings(max_trades, context.bars_interval, context.bars_lookback, base_interval)


@exact
def remember(
    memory: PerpMemory,
    settings: MemorySettings,
    at: Instant,
    receipts: Sequence[Receipt],
    verdicts: Sequence[Verdict],
    world: PerpWorld,
    view: View,
) -> PerpMemory:
    """Return the memory after these receipts and verdicts; the same object if nothing happened."""
    if not receipts and not verdicts:
        return memory
    refusals = _with_refusals(memory.refusals, at, verdicts)
    if not receipts:
        return memory if refusals is memory.refusals else replace(memory, refusals=refusals)
    fold = _fold_receipts(memory, settings, receipts, world, view)
    # Keep thesis and part-fills of working opens: an order that fills between two ticks is no longer on the book then.
    working = {order.id: order for order in world.orders if order.opens}
    filled = [receipt for receipt in receipts if receipt.kind == "filled"]
    part_filled = {*memory.part_filled, *(receipt.order_id for receipt in filled)}.intersection(working)
    changed = replace(
        memory,
        refusals=refusals,
        going=_open_round_trips(fold, world),
        reasons=tuple(OrderThesis(order.id, order.thesis[:THESIS_CHARS]) for order in working.values() if order.thesis),
        part_filled=tuple(sorted(part_filled)),
    )
    if filled:
        changed = _with_executed_orders(changed, filled, frozenset(memory.part_filled))
    for trip, trade in fold.closed:
        changed = _with_closed_trade(changed, settings, trip, trade, view)
    return changed


def _with_refusals(
    refusals: tuple[RefusedProposal, ...], at: Instant, verdicts: Sequence[Verdict]
) -> tuple[RefusedProposal, ...]:
    new = [
        RefusedProposal(at, "R12_DUPLICATE" if verdict.duplicate else verdict.code or "")
        for verdict in verdicts
        if verdict.outcome == "refused" or (verdict.duplicate and verdict.outcome != "noop")
    ]
    if not new:
        return refusals
    # The section counts refusals of the last hour and names the last few of a day, so both are kept.
    hour_ago, latest = at - HOUR_MS, len(refusals) - LATEST_REFUSALS
    old = [refusal for index, refusal in enumerate(refusals) if refusal.at > hour_ago or index >= latest]
    return (*old, *new)[-MOST_REFUSALS:]


# Trades ---------------------------------------------------------------------------------------------------------------


def _fold_receipts(
    memory: PerpMemory, settings: MemorySettings, receipts: Sequence[Receipt], world: PerpWorld, view: View
) -> Fold:
    theses = {reason.order_id: reason.thesis for reason in memory.reasons}
    fold = Fold(memory.going)
    for receipt in receipts:
        symbol = receipt.symbol
        if receipt.kind == "filled":
            begins = not fold.is_open(symbol)
            try:
                fold.take(receipt)
            except InvariantError:  # the position is older than the memory, so its round trip is unknown
                fold.discard(symbol)
                continue
            if begins and fold.is_open(symbol):
                fold.set_context(symbol, _regime(view, settings, symbol, receipt.at), _thesis(receipt, theses, world))
        elif receipt.kind == "funded" and fold.is_open(symbol):
            fold.take(receipt)
    return fold


def _open_round_trips(fold: Fold, world: PerpWorld) -> tuple[RoundTrip, ...]:
    """Return the open round trips that match a position; others began before the memory and would never close."""
    return tuple(trip for trip in fold.open_trips() if _matches_position(trip, world))


def _matches_position(trip: RoundTrip, world: PerpWorld) -> bool:
    position = world.positions.get(trip.symbol)
    return position is not None and position.size == (trip.left if trip.way == "buy" else -trip.left)


def _thesis(receipt: Receipt, theses: dict[str, str], world: PerpWorld) -> str:
    thesis = theses.get(receipt.order_id)
    if thesis is None:  # filled in the tick in which it was submitted
        position = world.positions.get(receipt.symbol)
        thesis = "" if position is None or position.opened_at != receipt.at else position.thesis[:THESIS_CHARS]
    return thesis


def _regime(view: View, settings: MemorySettings, symbol: str, at: Instant) -> str:
    """Return the regime of the bars that had closed when a position was opened."""
    if not view.has_bars(symbol, settings.interval):
        return regime.UNKNOWN
    bars, closed = view.series(symbol, settings.interval)
    by_then = int(bars.open_at.searchsorted(at - bars.interval_ms, side="right"))
    return regime.tag(bars, min(by_then, closed), settings.lookback)


def _with_closed_trade(
    memory: PerpMemory, settings: MemorySettings, trip: WorkingTrip, trade: Trade, view: View
) -> PerpMemory:
    """Return the memory with one more closed trade."""
    best, worst = excursions(view, settings.bars, trade)
    closed_trade = ClosedTrade(
        symbol=trade.symbol,
        side=trade.side,
        opened_at=trade.opened_at,
        closed_at=trade.closed_at,
        pnl_usd=_DISPLAY.plus(trade.pnl_usd),
        reason=trade.exit_reason,
        entry_price=_DISPLAY.plus(trade.entry_price),
        exit_price=_DISPLAY.plus(trade.exit_price),
        notional_usd=_DISPLAY.plus(trade.max_size * trade.entry_price),
        mfe_pct=best,
        mae_pct=worst,
        regime=trip.regime or regime.UNKNOWN,
        thesis=trip.thesis,
    )
    # `_with_executed_orders` has already set the day to that of the latest fill, so a trade of an earlier day is not counted.
    today = day_of(trade.closed_at) == memory.day
    return replace(
        memory,
        trades=(*memory.trades, closed_trade)[-settings.max_trades :],
        closed=memory.closed + 1,
        losses=memory.losses + 1 if trade.pnl_usd < 0 else 0,
        realised_usd=_DISPLAY.add(memory.realised_usd, trade.pnl_usd) if today else memory.realised_usd,
    )


def excursions(view: View, interval: str, trade: Trade) -> tuple[float, float]:
    """Return the best and worst move of a trade in % of its entry price; neither is negative.

    They come from the closed bars that lie wholly between opening and closing, and from the exit price. The bar of the
    exit is left out because most of it may have come after the exit.
    """
    entry = float(trade.entry_price)
    high = low = float(trade.exit_price)
    if view.has_bars(trade.symbol, interval):
        bars, closed = view.series(trade.symbol, interval)
        first = int(bars.open_at.searchsorted(trade.opened_at))
        stop = min(closed, int(bars.open_at.searchsorted(trade.closed_at - bars.interval_ms, side="right")))
        if first < stop:
            high = max(high, float(bars.high[first:stop].max()))
            low = min(low, float(bars.low[first:stop].min()))
    if entry <= 0:
        return 0.0, 0.0
    up, down = max(0.0, 100 * (high / entry - 1)), max(0.0, 100 * (1 - low / entry))
    up, down = round(up, 4), round(down, 4)
    return (up, down) if trade.side == "long" else (down, up)


def _with_executed_orders(memory: PerpMemory, filled: Sequence[Receipt], before: frozenset[str]) -> PerpMemory:
    """Count the executed orders, each once, for the day of the latest fill."""
    day, executed, counted_orders = memory.day, memory.executed, set(before)
    realised = memory.realised_usd
    for receipt in filled:
        if day_of(receipt.at) != day:
            day, executed, realised = day_of(receipt.at), 0, ZERO
        if not receipt.order_id or receipt.order_id not in counted_orders:
            executed += 1
        counted_orders.add(receipt.order_id)
    return replace(memory, day=day, executed=executed, realised_usd=realised)


# The risk slot --------------------------------------------------------------------------------------------------------


@noun
class RecentRisk:
    """The account's recent risk at an instant; `realised_pct` is in % of the equity at the day's start."""

    refused: tuple[tuple[str, int], ...]
    latest: tuple[str, ...]
    executed: int
    realised_pct: Decimal
    losses: int

    @property
    def silent(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.refused or self.latest or self.executed or self.realised_pct or self.losses)


@exact
def risk(memory: PerpMemory, world: PerpWorld, at: Instant) -> RecentRisk:
    """Return the recent risk from the memory and the time; it changes with time even if nothing happens."""
    counts: list[tuple[str, int]] = []
    latest: tuple[str, ...] = ()
    if memory.refusals:
        hour = Counter(refusal.code for refusal in memory.refusals if refusal.at > at - HOUR_MS)
        counts = sorted(hour.items(), key=lambda pair: (-pair[1], pair[0]))
        recent = memory.refusals[-LATEST_REFUSALS:]
        latest = tuple(refusal.code for refusal in reversed(recent) if refusal.at > at - DAY_MS)
    today = memory.day == day_of(at)
    realised = ZERO
    if today and memory.realised_usd:
        start = day_reference_at(world, at)
        realised = memory.realised_usd * HUNDRED / start if start > 0 else ZERO
    return RecentRisk(tuple(counts), latest, memory.executed if today else 0, realised, memory.losses)
