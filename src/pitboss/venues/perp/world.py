"""The paper world of perpetual futures: `advance(world, …) -> world, receipts`, pure and exact.

The simulator's matching and the paper broker are these same functions. `_step` processes one bar in six fixed parts;
`_coast` processes a run of bars in which only marks and funding change. `quiet_until` finds that run with floats and a
safety margin; it may stop too early, never too late, so both paths give the same digits.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from pitboss.core.curve import Curve, Piece, join
from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.money import ZERO, decimal, exact, text
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.bar_path import SymbolPath, next_event
from pitboss.venues.perp.quiet_bars import out_of_reach, quiet_until
from pitboss.venues.perp.state import Halt, OrderKind, PerpWorld, TradingTerms, WorkingOrder
from pitboss.venues.perp.tape import FundingRow, Tape
from pitboss.venues.perp.valuation import even_parts, held_units, held_values
from pitboss.venues.perp.working_world import NO_FACTS, WorkingWorld


@noun
class WorldAdvance:
    """The result of processing bars: the new world, the receipts, one equity point per bar, the next bar's index."""

    world: PerpWorld
    receipts: tuple[Receipt, ...]
    equity: Curve
    index: int


@noun
class OrderRequest:
    """An order that the engine has allowed; sizes and prices are already rounded."""

    kind: OrderKind
    symbol: str
    side: int
    size: Decimal
    leverage: int | None = None
    limit: Decimal | None = None
    stop: Decimal | None = None
    take_profit: Decimal | None = None
    thesis: str = ""


def submit(world: PerpWorld, request: OrderRequest, at: Instant, latency_ms: int = 0) -> tuple[PerpWorld, str, Receipt]:
    """Accept an order; it can first act on a bar that opens at or after `at + latency_ms`.

    The symbol's leverage changes at once.
    """
    order_id = f"o{world.next_order}"
    order = WorkingOrder(
        order_id,
        request.kind,
        request.symbol,
        request.side,
        request.size,
        at,
        at + latency_ms,
        request.limit,
        request.stop,
        request.take_profit,
        request.thesis,
    )
    leverage = world.leverage
    if request.leverage is not None:
        leverage = {**leverage, request.symbol: request.leverage}
    after = PerpWorld(
        cash=world.cash,
        initial=world.initial,
        peak=world.peak,
        day=world.day,
        day_reference=world.day_reference,
        last_equity=world.last_equity,
        positions=world.positions,
        orders=(*world.orders, order),
        leverage=leverage,
        marks=world.marks,
        marked_at=world.marked_at,
        halts=world.halts,
        next_order=world.next_order + 1,
        deficit=world.deficit,
    )
    facts: dict[str, Decimal | str | int] = {
        "kind": request.kind,
        "side": "buy" if request.side > 0 else "sell",
        "size": request.size,
    }
    if request.limit is not None:
        facts["limit"] = request.limit
    if request.stop is not None:
        facts["stop"] = request.stop
    if request.take_profit is not None:
        facts["take_profit"] = request.take_profit
    if request.leverage is not None:
        facts["leverage"] = request.leverage
    return after, order_id, Receipt("accepted", at, request.symbol, order_id, facts)


@exact
def cancel(world: PerpWorld, terms: TradingTerms, order_id: str, at: Instant) -> tuple[PerpWorld, Receipt]:
    """Cancel a working order on request."""
    desk = WorkingWorld(world, terms)
    (order,) = [order for order in desk.orders if order.id == order_id]
    desk.cancel(order, at, "requested")
    return desk.freeze(), desk.receipts[0]


@exact
def halt(world: PerpWorld, terms: TradingTerms, kind: Halt, at: Instant) -> tuple[PerpWorld, tuple[Receipt, ...]]:
    """Set a halt from outside (a broken invariant, an operator); no effect if it is already set."""
    if kind in world.halts:
        return world, ()
    desk = WorkingWorld(world, terms)
    desk.halt(kind, at, world.last_equity, world.last_equity)
    return desk.freeze(), tuple(desk.receipts)


@exact
def close_all(world: PerpWorld, terms: TradingTerms, at: Instant, interval_ms: int) -> WorldAdvance:
    """Close every position at its mark and cancel all orders, at the end of a run with `close_at_end`.

    Closes pay the taker fee and no slippage. Like every fill, each carries the open time of its bar: the symbol's last
    one.
    """
    desk = WorkingWorld(world, terms)
    for order in list(desk.orders):
        desk.cancel(order, at, "end")
    for symbol in sorted(desk.positions):
        size, opened_at = abs(desk.positions[symbol].size), desk.marked_at[symbol] - interval_ms
        desk.fill_exit(symbol, "", opened_at, size, desk.marks[symbol], True, ZERO, ZERO, "end")
    desk.last_equity = desk.equity({})
    return WorldAdvance(desk.freeze(), tuple(desk.receipts), (), 0)


@exact
def set_marks(world: PerpWorld, prices: dict[str, tuple[Decimal, Instant]]) -> PerpWorld:
    """Set the marks of a new world to the last closes known at its first tick, with the times at which they closed."""
    desk = WorkingWorld(world, TradingTerms({}))
    for symbol, (price, closed_at) in prices.items():
        desk.marks[symbol], desk.marked_at[symbol] = price, closed_at
    return desk.freeze()


@exact
def advance(
    world: PerpWorld, terms: TradingTerms, tape: Tape, start: int, stop: int, pause_before_change: bool = False
) -> WorldAdvance:
    """Process the bars `[start, stop)`; with `pause_before_change` stop before the first bar that changes the book.

    A change is anything besides prices that a decision could depend on: a fill, a rejection, a cancellation, a halt.
    """
    receipts: list[Receipt] = []
    equity: list[Piece] = []
    index = start
    while index < stop:
        quiet = quiet_until(world, terms, tape, index, stop)
        if quiet > index:
            world, pieces, happened = _coast(world, terms, tape, index, quiet)
            join(equity, pieces)
            receipts.extend(happened)
            index = quiet
            continue
        after, happened, piece = _step(world, terms, tape, index)
        if pause_before_change and any(receipt.kind != "funded" for receipt in happened):
            break
        join(equity, (piece,))
        world = after
        index += 1
        receipts.extend(happened)
    return WorldAdvance(world, tuple(receipts), equity, index)


def _coast(
    world: PerpWorld, terms: TradingTerms, tape: Tape, start: int, stop: int
) -> tuple[PerpWorld, Sequence[Piece], Sequence[Receipt]]:
    """Mark positions and pay funding over bars in which nothing else happens; one curve piece per base.

    The sums are grouped as in `_step`, so both give the same digits.
    """
    desk = WorkingWorld(world, terms)
    step = tape.interval_ms
    equity: list[Piece] = []
    found = held_units(desk.positions, terms, tape, start, stop) if desk.positions else None
    for first, end in even_parts(desk.positions, tape, start, stop):
        for row in tape.funding.get(first, ()):
            if row.symbol in desk.positions:
                opened = float(tape.open[row.symbol][first])
                known = opened if opened == opened else float(tape.filled[row.symbol][first])  # NaN: no bar here
                _pay_funding(desk, row, decimal(known))
        base, closed_at = desk.base(), tape.open_at.item(first) + step
        if not desk.positions:
            equity.append((closed_at, step, text(base), end - first))
            desk.last_equity = base
        elif found is not None:
            places, units = found
            part = units if end - first == stop - start else units[first - start : end - start]
            equity.append((closed_at, step, text(base), places, part))
            desk.peak = max(desk.peak, base + Decimal(max(part)).scaleb(-places))
            desk.last_equity = base + Decimal(part[-1]).scaleb(-places)
        else:
            for place, value in enumerate(held_values(desk.positions, tape, first, end)):
                desk.last_equity = base + value
                equity.append((closed_at + place * step, step, text(desk.last_equity), 1))
                desk.peak = max(desk.peak, desk.last_equity)
    for symbol in tape.symbols:
        closes = tape.close[symbol]
        place = stop - 1
        close = closes.item(place)
        while place > start and close != close:  # NaN: no bar here
            place -= 1
            close = closes.item(place)
        if close == close:
            desk.marks[symbol] = decimal(close)
            desk.marked_at[symbol] = tape.open_at.item(place) + step
    closed_at = tape.open_at.item(stop - 1) + step
    if closed_at // DAY_MS != world.day:  # only the point at exactly 00:00 gets here: it is the new day's reference
        desk.day, desk.day_reference = closed_at // DAY_MS, desk.last_equity
    return desk.freeze(), equity, desk.receipts


def _step(world: PerpWorld, terms: TradingTerms, tape: Tape, index: int) -> tuple[PerpWorld, Sequence[Receipt], Piece]:
    """Process one bar of every symbol exactly, in the order that docs/perp.md defines."""
    desk = WorkingWorld(world, terms)
    at = tape.open_at.item(index)
    opens: dict[str, Decimal] = {}
    for symbol in tape.symbols:
        opened = tape.open[symbol].item(index)
        if opened == opened:  # not NaN: the symbol has a bar
            opens[symbol] = decimal(opened)

    for row in tape.funding.get(index, ()):
        if row.symbol in desk.positions:
            _pay_funding(desk, row, desk.price(row.symbol, opens))
    if terms.book_max_age_ms is not None:
        desk.books = tape.books
    if terms.max_volume_pct is not None:
        desk.make_room({symbol: tape.volume[symbol].item(index) for symbol in opens})
    if desk.orders:
        _fill_market(desk, at, opens)
        _fill_marketable_limits(desk, at, opens)
    if desk.positions:
        if not out_of_reach(desk.cash, desk.positions, terms, tape, index):
            _walk_adverse(desk, tape, index, at, opens)
        _take_profits(desk, tape, index, at, opens)
    if desk.orders:
        _fill_resting_limits(desk, tape, index, at, opens)

    closed_at = at + tape.interval_ms
    for symbol in opens:
        desk.marks[symbol] = decimal(tape.close[symbol].item(index))
        desk.marked_at[symbol] = closed_at
    value = desk.equity({})
    desk.mark_equity(closed_at, value)
    held = held_units(desk.positions, terms, tape, index, index + 1) if desk.positions else None
    if held is None:
        piece: Piece = (closed_at, tape.interval_ms, text(value), 1)
    else:
        piece = (closed_at, tape.interval_ms, text(desk.base()), *held)
    return desk.freeze(), desk.receipts, piece


def _pay_funding(desk: WorkingWorld, row: FundingRow, price: Decimal) -> None:
    """Book one funding payment on a position; an imported mark or oracle price takes precedence over `price`."""
    size = desk.positions[row.symbol].size
    price = price if row.price is None else row.price
    amount = size * price * row.rate
    desk.cash -= amount
    desk.note("funded", row.at, row.symbol, "", size=size, price=price, rate=row.rate, amount_usd=amount)


def _fill_market(desk: WorkingWorld, at: Instant, opens: dict[str, Decimal]) -> None:
    for order in list(desk.orders):
        if order.kind == "limit" or order.active_from > at or order.symbol not in opens:
            continue
        price = opens[order.symbol]
        if order.kind == "market":
            size = desk.fillable(order.symbol, order.size)
            if not size:
                desk.drop(order)
                desk.leave(order, at, order.size)
                continue
            fill, facts = desk.slipped(order.symbol, at, price, size, order.side)
            if desk.may_open(order, at, price, fill, True, opens):
                desk.fill_open(order, at, size, fill, True, size * abs(fill - price), facts)
            continue
        held = desk.positions.get(order.symbol)
        if held is None or held.side == order.side:
            desk.cancel(order, at, "no_position")
            continue
        wanted = abs(held.size) if order.kind == "close" else min(order.size, abs(held.size))
        size = desk.fillable(order.symbol, wanted)
        desk.drop(order)
        if size:
            fill, facts = desk.slipped(order.symbol, at, price, size, order.side)
            slippage = size * abs(fill - price)
            desk.fill_exit(order.symbol, order.id, at, size, fill, True, slippage, ZERO, order.kind, facts)
        if size < wanted:
            desk.leave(order, at, wanted - size)


def _fill_marketable_limits(desk: WorkingWorld, at: Instant, opens: dict[str, Decimal]) -> None:
    for order in list(desk.orders):
        if order.limit is None or order.active_from > at or order.symbol not in opens:
            continue
        price = opens[order.symbol]
        size = desk.fillable(order.symbol, order.size)
        if size and order.side * (order.limit - price) >= 0:
            taker, fill, slippage, facts = not order.rested, price, ZERO, NO_FACTS
            if taker and desk.terms.book_max_age_ms is not None:
                walked, told = desk.slipped(order.symbol, at, price, size, order.side)
                if "book_age_ms" in told:  # it pays the book's prices, but never beyond its own limit
                    fill, facts = min(walked, order.limit) if order.side > 0 else max(walked, order.limit), told
                    slippage = size * abs(fill - price)
            if desk.may_open(order, at, price, fill, taker, opens):
                desk.fill_open(order, at, size, fill, taker, slippage, facts)
        elif not order.rested:
            desk.rest(order)


def _walk_adverse(desk: WorkingWorld, tape: Tape, index: int, at: Instant, opens: dict[str, Decimal]) -> None:
    legs: dict[str, SymbolPath] = {}
    for symbol, held in desk.positions.items():
        if symbol in opens:
            extreme = tape.low if held.side > 0 else tape.high
            legs[symbol] = SymbolPath(opens[symbol], decimal(float(extreme[symbol][index])), True)
        else:
            legs[symbol] = SymbolPath(desk.marks[symbol], desk.marks[symbol], False)
    lam = ZERO
    spent: tuple[str, ...] = ()
    while desk.positions:
        event = next_event(desk.positions, legs, desk.base(), desk.terms, lam, spent)
        if event is None:
            return
        lam = event.lam
        if event.kind == "liquidation":
            _liquidate(desk, legs, lam, at)
            return
        held = desk.positions[event.symbol]
        size = desk.fillable(event.symbol, abs(held.size))
        if size < abs(held.size):
            spent = (*spent, event.symbol)
            desk.positions[event.symbol] = replace(held, stopping=True)
        if size:
            fill, facts = desk.slipped(event.symbol, at, event.price, size, -held.side)
            slippage = size * abs(fill - event.price)
            desk.fill_exit(event.symbol, "", at, size, fill, True, slippage, ZERO, "stop", facts)


def _liquidate(desk: WorkingWorld, legs: dict[str, SymbolPath], lam: Decimal, at: Instant) -> None:
    """Close all positions at the path prices, charge the penalty, cancel all orders, and write off negative cash.

    The part that exceeds the bar's volume cap stays open, and with it the debt; the next bar checks for liquidation
    again.
    """
    penalty_rate = desk.terms.penalty_bps / 10_000
    sizes = {symbol: desk.fillable(symbol, abs(desk.positions[symbol].size)) for symbol in sorted(desk.positions)}
    if not any(sizes.values()):
        return
    for symbol, size in sizes.items():
        if size:
            price = legs[symbol].at(lam)
            desk.fill_exit(symbol, "", at, size, price, True, ZERO, penalty_rate * size * price, "liquidation")
    for order in list(desk.orders):
        desk.cancel(order, at, "liquidation")
    deficit = ZERO if desk.positions else max(ZERO, -desk.cash)
    desk.cash += deficit
    desk.deficit += deficit
    left: dict[str, int] = {"left": len(desk.positions)} if desk.positions else {}
    desk.note("liquidated", at, "", "", path=lam, deficit_usd=deficit, **left)


def _take_profits(desk: WorkingWorld, tape: Tape, index: int, at: Instant, opens: dict[str, Decimal]) -> None:
    for symbol in sorted(desk.positions):
        held = desk.positions[symbol]
        goal = held.take_profit
        if goal is None or symbol not in opens:
            continue
        best = decimal(float((tape.high if held.side > 0 else tape.low)[symbol][index]))
        if held.side * (opens[symbol] - goal) >= 0:
            price = opens[symbol]
        elif held.side * (best - goal) > 0:
            price = goal
        else:
            continue
        size = desk.fillable(symbol, abs(held.size))
        if size:
            desk.fill_exit(symbol, "", at, size, price, False, ZERO, ZERO, "take_profit")


def _fill_resting_limits(desk: WorkingWorld, tape: Tape, index: int, at: Instant, opens: dict[str, Decimal]) -> None:
    for order in list(desk.orders):
        if order.limit is None or order.active_from > at or order.symbol not in opens:
            continue
        extreme = decimal(float((tape.low if order.side > 0 else tape.high)[order.symbol][index]))
        size = desk.fillable(order.symbol, order.size)
        if not size or order.side * (order.limit - extreme) <= 0:
            continue
        if desk.may_open(order, at, order.limit, order.limit, False, opens):
            desk.fill_open(order, at, size, order.limit, False, ZERO)
