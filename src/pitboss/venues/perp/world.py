"""The paper world of perpetual futures: `advance(world, …) -> world, receipts`, pure and exact.

The simulator's matching and the paper broker are these same functions. `advance_one_bar` processes one bar in six
fixed parts (`matching.py`); `_advance_quiet_bars` processes a run of bars in which only marks and funding change.
`quiet_until` finds that run with floats and a safety margin; it may stop too early, never too late, so both paths give
the same digits.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from operator import attrgetter

from pitboss.core.curve import Piece, join
from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.intent import sealed_intent
from pitboss.core.leg import Leg
from pitboss.core.money import ONE, ZERO, decimal, exact, text
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.intents import Proposal
from pitboss.venues.perp.matching import (
    fill_market_orders,
    fill_marketable_limits,
    fill_resting_limits,
    pay_funding,
    take_profits,
    walk_adverse_path,
)
from pitboss.venues.perp.quiet_bars import out_of_reach, quiet_until, surely_quiet
from pitboss.venues.perp.state import Halt, OrderKind, PerpWorld, TradingTerms, WorkingOrder
from pitboss.venues.perp.tape import Tape
from pitboss.venues.perp.valuation import constant_base_parts, position_values, scaled_position_values
from pitboss.venues.perp.working_world import WorkingWorld

_PROPOSAL_FIELDS = tuple(field.name for field in fields(Proposal))
_proposal_values: Callable[[Proposal], tuple[object, ...]] = attrgetter(*_PROPOSAL_FIELDS)


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
    proposal: Proposal | None = None
    """What the agent proposed; None in the orders of baselines."""

    @property
    def opens(self) -> bool:
        """Whether it opens or adds to a position; others only reduce one."""
        return self.kind in ("market", "limit")

    def intent_key(self, tick_at: Instant) -> str:
        """Identifies the decision within its run, however often it is judged: what was proposed and when.

        It leaves out the size and prices that follow from the market. Computed on request: a simulation has no use for it.
        """
        assert self.proposal is not None
        return sealed_intent(tick_at, dict(zip(_PROPOSAL_FIELDS, _proposal_values(self.proposal), strict=True)))[0]


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
        world.cash, world.initial, world.peak, world.day, world.day_reference, world.last_equity, world.positions,
        (*world.orders, order), leverage, world.marks, world.marked_at, world.halts, world.next_order + 1, world.deficit,
    )  # fmt: skip
    facts: dict[str, Decimal | str | int] = {"kind": request.kind}
    if request.leverage is not None:
        facts["leverage"] = request.leverage
    if request.limit is not None:
        facts["limit"] = request.limit
    facts["side"] = "buy" if request.side > 0 else "sell"
    facts["size"] = request.size
    if request.stop is not None:
        facts["stop"] = request.stop
    if request.take_profit is not None:
        facts["take_profit"] = request.take_profit
    return after, order_id, Receipt("accepted", at, request.symbol, order_id, facts)


@exact
def cancel(world: PerpWorld, terms: TradingTerms, order_id: str, at: Instant) -> tuple[PerpWorld, Receipt]:
    """Cancel a working order on request."""
    account = WorkingWorld(world, terms)
    (order,) = [order for order in account.orders if order.id == order_id]
    account.cancel(order, at, "requested")
    return account.freeze(), account.receipts[0]


@exact
def halt(world: PerpWorld, terms: TradingTerms, kind: Halt, at: Instant) -> tuple[PerpWorld, tuple[Receipt, ...]]:
    """Set a halt from outside (a broken invariant, an operator); no effect if it is already set."""
    if kind in world.halts:
        return world, ()
    account = WorkingWorld(world, terms)
    account.halt(kind, at, world.last_equity, world.last_equity)
    return replace(world, orders=tuple(account.orders), halts=account.halts), tuple(account.receipts)


def lift_halts(world: PerpWorld, at: Instant) -> tuple[PerpWorld, tuple[Receipt, ...]]:
    """Lift all halts, as a person has commanded.

    The peak and the reference of the day start again at the present equity, else a loss would halt the account again at the next bar.
    """
    if not world.halts:
        return world, ()
    receipts = tuple(Receipt("resumed", at, facts={"halt": kind, "peak_usd": world.peak}) for kind in world.halts)
    return replace(world, halts=(), peak=world.last_equity, day_reference=world.last_equity), receipts


@exact
def close_all(world: PerpWorld, terms: TradingTerms, at: Instant, interval_ms: int) -> Leg:
    """Close every position at its mark and cancel all orders, at the end of a run with `close_at_end`.

    Closes pay the taker fee and no slippage. Like every fill, each carries the open time of its bar: the symbol's last
    one.
    """
    account = WorkingWorld(world, terms)
    for order in list(account.orders):
        account.cancel(order, at, "end")
    for symbol in sorted(account.positions):
        size, opened_at = abs(account.positions[symbol].size), account.marked_at[symbol] - interval_ms
        account.fill_exit(symbol, "", opened_at, size, account.marks[symbol], True, ZERO, ZERO, "end")
    account.last_equity = account.equity({})
    return Leg(account.freeze(), tuple(account.receipts), (), 0)


@exact
def set_marks(world: PerpWorld, prices: dict[str, tuple[Decimal, Instant]]) -> PerpWorld:
    """Set the marks of a new world to the last closes known at its first tick, with the times at which they closed."""
    account = WorkingWorld(world, TradingTerms({}))
    for symbol, (price, closed_at) in prices.items():
        account.marks[symbol], account.marked_at[symbol] = price, closed_at
    return account.freeze()


@exact
def advance(
    world: PerpWorld, terms: TradingTerms, tape: Tape, start: int, stop: int, pause_before_change: bool = False
) -> Leg:
    """Process the bars `[start, stop)`; with `pause_before_change` stop before the first bar that changes the book.

    A change is anything besides prices that a decision could depend on: a fill, a rejection, a cancellation, a halt.
    """
    receipts: list[Receipt] = []
    equity: list[Piece] = []
    index = start
    while index < stop:
        quiet = quiet_until(world, terms, tape, index, stop)
        if quiet > index:
            world, pieces, new_receipts = _advance_quiet_bars(world, terms, tape, index, quiet)
            join(equity, pieces)
            receipts.extend(new_receipts)
            index = quiet
            continue
        after, new_receipts, piece = advance_one_bar(world, terms, tape, index)
        if pause_before_change and any(receipt.kind != "funded" for receipt in new_receipts):
            break
        join(equity, (piece,))
        world = after
        index += 1
        receipts.extend(new_receipts)
    return Leg(world, tuple(receipts), equity, index)


@exact
def advance_past_fill(
    world: PerpWorld, terms: TradingTerms, tape: Tape, start: int, choose_stop: Callable[[PerpWorld], int]
) -> Leg | None:
    """Process the bar that fills the only working order, and the quiet bars after it, in one pass.

    `choose_stop` returns the first bar that is not processed, from the account after the fill. Returns None where
    anything but that fill could happen; `advance` then gives the same digits in several steps, each with a world of its own.
    """
    if len(world.orders) != 1 or world.halts or terms.max_volume_pct is not None:
        return None
    if start >= len(tape) or start in tape.funding:
        return None
    order, at, midnight = world.orders[0], tape.open_at.item(start), (world.day + 1) * DAY_MS
    closed_at = at + tape.interval_ms
    if order.limit is not None or order.symbol not in tape.regular or closed_at >= midnight:
        return None
    account = WorkingWorld(world, terms)
    if terms.book_max_age_ms is not None:
        account.books = tape.books
    fill_market_orders(account, at, _open_prices(tape, start))
    if not account.positions:
        account.mark_equity(closed_at, account.cash)
    if account.orders or len(account.receipts) != 1 or account.receipts[0].kind != "filled":
        return None
    after = account.freeze()
    stop = choose_stop(after)
    if stop <= start or tape.open_at.item(stop - 1) + tape.interval_ms >= midnight:
        return None
    if account.positions and not surely_quiet(after, terms, tape, start, stop):
        return None
    equity: list[Piece] = []
    join(equity, _pass_quiet_bars(account, tape, start, stop))
    return Leg(account.freeze(), tuple(account.receipts), equity, stop)


def _advance_quiet_bars(
    world: PerpWorld, terms: TradingTerms, tape: Tape, start: int, stop: int
) -> tuple[PerpWorld, Sequence[Piece], Sequence[Receipt]]:
    """Process bars in which only marks and funding change."""
    account = WorkingWorld(world, terms)
    equity = _pass_quiet_bars(account, tape, start, stop)
    closed_at = tape.open_at.item(stop - 1) + tape.interval_ms
    if closed_at // DAY_MS != world.day:  # only the point at exactly 00:00 gets here: it is the new day's reference
        account.day, account.day_reference = closed_at // DAY_MS, account.last_equity
    return account.freeze(), equity, account.receipts


def _pass_quiet_bars(account: WorkingWorld, tape: Tape, start: int, stop: int) -> list[Piece]:
    """Mark positions and pay funding over bars in which nothing else happens; returns one curve piece per base.

    The sums are grouped as in `advance_one_bar`, so both give the same digits.
    """
    step, positions = tape.interval_ms, account.positions
    equity: list[Piece] = []
    scaled_values = scaled_position_values(positions, account.terms, tape, start, stop) if positions else None
    for first, end in constant_base_parts(positions, tape, start, stop):
        for row in tape.funding.get(first, ()):
            if row.symbol in positions:
                price = float(tape.open[row.symbol][first])
                if price != price:  # NaN: no bar here
                    price = float(tape.filled_close[row.symbol][first])
                pay_funding(account, row, decimal(price))
        base, closed_at = account.base(), tape.open_at.item(first) + step
        if not positions:
            equity.append((closed_at, step, text(base), end - first))
            account.last_equity = base
        elif scaled_values is not None:
            decimal_places, units = scaled_values
            part = units if end - first == stop - start else units[first - start : end - start]
            equity.append((closed_at, step, text(base), decimal_places, part))
            unit = ONE.scaleb(-decimal_places)
            account.peak = max(account.peak, base + max(part) * unit)
            account.last_equity = base + part[-1] * unit
        else:
            for index, value in enumerate(position_values(positions, tape, first, end)):
                account.last_equity = base + value
                equity.append((closed_at + index * step, step, text(account.last_equity), 1))
                account.peak = max(account.peak, account.last_equity)
    for symbol in tape.symbols:
        closes = tape.close[symbol]
        index = stop - 1
        close = closes.item(index)
        while index > start and close != close:  # NaN: no bar here
            index -= 1
            close = closes.item(index)
        if close == close:
            account.marks[symbol] = decimal(close)
            account.marked_at[symbol] = tape.open_at.item(index) + step
    return equity


def _open_prices(tape: Tape, index: int) -> dict[str, Decimal]:
    """Return the open price of every symbol that has this bar."""
    opens: dict[str, Decimal] = {}
    for symbol in tape.symbols:
        open_price = tape.open[symbol].item(index)
        if open_price == open_price:  # not NaN
            opens[symbol] = decimal(open_price)
    return opens


def advance_one_bar(
    world: PerpWorld, terms: TradingTerms, tape: Tape, index: int
) -> tuple[PerpWorld, Sequence[Receipt], Piece]:
    """Process one bar of every symbol exactly, in the order that docs/perp.md defines."""
    account = WorkingWorld(world, terms)
    at = tape.open_at.item(index)
    opens = _open_prices(tape, index)
    for row in tape.funding.get(index, ()):
        if row.symbol in account.positions:
            pay_funding(account, row, account.price(row.symbol, opens))
    if terms.book_max_age_ms is not None:
        account.books = tape.books
    if terms.max_volume_pct is not None:
        account.cap_volume({symbol: tape.volume[symbol].item(index) for symbol in opens})
    if account.orders:
        fill_market_orders(account, at, opens)
        fill_marketable_limits(account, at, opens)
    if account.positions:
        if not out_of_reach(account.cash, account.positions, terms, tape, index):
            walk_adverse_path(account, tape, index, at, opens)
        take_profits(account, tape, index, at, opens)
    if account.orders:
        fill_resting_limits(account, tape, index, at, opens)

    closed_at = at + tape.interval_ms
    for symbol in opens:
        account.marks[symbol] = decimal(tape.close[symbol].item(index))
        account.marked_at[symbol] = closed_at
    value = account.equity({})
    account.mark_equity(closed_at, value)
    scaled_value = (
        scaled_position_values(account.positions, terms, tape, index, index + 1) if account.positions else None
    )
    if scaled_value is None:
        piece: Piece = (closed_at, tape.interval_ms, text(value), 1)
    else:
        piece = (closed_at, tape.interval_ms, text(account.base()), *scaled_value)
    return account.freeze(), account.receipts, piece
