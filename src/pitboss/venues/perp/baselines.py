"""The baselines of a run: cash, and buying all symbols at the first tick and holding them, with all equity and within the caps.

Buy and hold has the same costs and funding as the run and no rules. Its orders use each asset's highest leverage, so
that a first open above the last close cannot fail a margin check, which is not part of the comparison; the money at
stake is still one times equity.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np

from pitboss.core.curve import amounts
from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.market import Floats
from pitboss.core.money import HUNDRED, ONE, ZERO, decimal, exact, round_down
from pitboss.core.receipt import Receipt
from pitboss.sim.metrics import Outcome
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.course import PerpCourse, first_state
from pitboss.venues.perp.meaning import CAPPED
from pitboss.venues.perp.quiet_bars import positions_quiet_until
from pitboss.venues.perp.state import PerpWorld, TradingTerms, open_world
from pitboss.venues.perp.tape import Tape
from pitboss.venues.perp.world import OrderRequest, advance, set_marks, submit


def cash(initial_usd: Decimal, tape: Tape, from_at: Instant, to_at: Instant) -> Outcome:
    """Return the outcome of an account that never trades."""
    closes = tape.open_at + tape.interval_ms
    points = np.full(len(closes), float(initial_usd))
    return Outcome(from_at, to_at, tape.interval_ms, initial_usd, closes, points, exposed_bars=0)


@exact
def buy_and_hold(
    initial_usd: Decimal,
    tape: Tape,
    terms: TradingTerms,
    marks: dict[str, tuple[Decimal, Instant]],
    from_at: Instant,
    to_at: Instant,
    unlisted: Collection[str] = (),
    caps: PerpCaps | None = None,
) -> Outcome:
    """Return the outcome of all symbols bought in equal parts at the first tick and held to the end.

    With `caps` no part is larger than the position cap and all of them together not larger than the exposure cap, both in percent of
    the starting equity, and only symbols that the skill may open are bought.

    The part of a symbol that is not listed at the first tick stays cash: its listing date and price are unknown then.
    """
    free = replace(terms, daily_loss_halt_pct=None, drawdown_halt_pct=None, max_volume_pct=None)
    world = set_marks(open_world(initial_usd, from_at // DAY_MS), marks)
    receipts: list[Receipt] = []
    share = initial_usd / (ONE + terms.taker) / len(tape.symbols)
    if caps is not None:
        exposure_usd = initial_usd * caps.max_total_exposure_pct / HUNDRED / len(tape.symbols)
        share = min(share, initial_usd * caps.max_position_pct / HUNDRED, exposure_usd)
    for symbol in tape.symbols:
        if symbol in unlisted or (caps is not None and not caps.opens_allowed(symbol)):
            continue
        world = _buy(world, free, tape, symbol, share, from_at, receipts)
    first = 0
    equity: list[Decimal] = []
    while world.orders and first < len(tape):
        step = advance(world, free, tape, first, first + 1)
        world, first = step.world, step.index
        receipts.extend(step.receipts)
        equity.extend(amounts(step.equity))
    points, new_receipts = _hold(world, free, tape, first, equity)
    receipts.extend(new_receipts)
    closes = tape.open_at + tape.interval_ms
    return Outcome(from_at, to_at, tape.interval_ms, initial_usd, closes, points, receipts)


def _hold(
    world: PerpWorld, terms: TradingTerms, tape: Tape, first: int, equity: list[Decimal]
) -> tuple[Sequence[Decimal] | Floats, Sequence[Receipt]]:
    """Return the equity of positions held to the end, as float columns at once where no event can happen."""
    count = len(tape)
    if first == count or not world.positions or positions_quiet_until(world, terms, tape, first, count) < count:
        step = advance(world, terms, tape, first, count)
        return [*equity, *amounts(step.equity)], step.receipts
    points = np.full(count - first, float(world.cash))
    receipts: list[Receipt] = []
    for symbol, position in sorted(world.positions.items()):
        size = float(position.size)
        points += size * tape.filled_close[symbol][first:] - float(position.cost)
        bars, costs = tape.funded_bars(symbol, first, count)
        if len(bars):
            funding = np.zeros(count - first)
            funding[bars - first] = size * costs
            points -= np.cumsum(funding)
            total = Decimal(repr(float(funding.sum())))
            receipts.append(Receipt("funded", int(tape.open_at[-1]), symbol, "", {"amount_usd": total}))
    return np.concatenate((np.array(equity, dtype=np.float64), points)), receipts


def _buy(
    world: PerpWorld, terms: TradingTerms, tape: Tape, symbol: str, share: Decimal, at: Instant, receipts: list[Receipt]
) -> PerpWorld:
    asset = terms.assets[symbol]
    price = world.marks.get(symbol)
    if price is None:  # no bar before the first tick: the first open replaces the mark
        has_bar = ~np.isnan(tape.open[symbol])
        if not has_bar.any():
            return world
        price = decimal(float(tape.open[symbol][has_bar.argmax()]))
        world = set_marks(world, {symbol: (price, at)})
    size = round_down(share / price, asset.lot)
    if size <= ZERO:
        return world
    request = OrderRequest("market", symbol, 1, size, leverage=asset.max_leverage)
    world, _, receipt = submit(world, request, at)
    receipts.append(receipt)
    return world


def outcomes(course: PerpCourse) -> dict[str, Outcome]:
    """Return the outcomes of cash and of buy and hold, with all equity and within the caps, over the same bars."""
    start, world = int(course.tick_at[0]), first_state(course).world
    marks: dict[str, tuple[Decimal, Instant]] = {
        symbol: (price, world.marked_at[symbol]) for symbol, price in world.marks.items()
    }
    unlisted = course.market.view(start).unlisted(course.tape.symbols)
    holding = (course.initial_usd, course.tape, course.ports.terms, marks, start, course.to_at, unlisted)
    return {
        "buy_and_hold": buy_and_hold(*holding),
        CAPPED: buy_and_hold(*holding, course.ports.limits),
        "cash": cash(course.initial_usd, course.tape, start, course.to_at),
    }
