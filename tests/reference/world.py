"""The paper world of the reference: PERP §6 "For the bars opening at t, in this fixed order", one function a step.

Moves the account along one set of bars. It does not know skills, ticks or proposals.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from reference.account import (
    HOUR,
    Account,
    Order,
    Side,
    cancel,
    direction,
    equity,
    evaluate_halts,
    fill,
    free_margin,
    leverage_of,
)
from reference.assets import maintenance, tiers

TEN_BILLION = Decimal(10_000_000_000)  # 1e10: bps (1e4) × 1 M (1e6)


@dataclass(frozen=True)
class Bar:
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: Decimal = Decimal(0)


Bars = dict[str, Bar]  # the bars of one open time; a symbol without a bar is absent
HourlyRows = dict[int, list[tuple[int, str, Decimal]]]  # floored hour → (time, symbol, rate)


def as_decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def opens(account: Account, bars: Bars) -> dict[str, Decimal]:
    """ "marks = opens"; where a symbol lacks a bar its mark stays."""
    prices = dict(account.marks)
    for symbol, bar in bars.items():
        prices[symbol] = bar.open
    return prices


def may_act(order: Order, t: int, bars: Bars) -> bool:
    """ "first base bar opening at ≥ T + latency"; "where one symbol lacks a bar … its orders wait"."""
    return order.symbol in bars and t >= order.active_at


def step_1_funding(
    account: Account, t: int, interval: int, bars: Bars, funding: HourlyRows, marks: dict[str, dict[int, Decimal]]
) -> None:
    """Every row whose time, floored to the hour, lies in [t, t + interval), in time order:
    cash −= size × open × rate (the mark where the bar is missing; an imported mark series, at exactly that hour,
    replaces open).
    """
    first_hour = -(-t // HOUR) * HOUR
    for hour in range(first_hour, t + interval, HOUR):
        for _at, symbol, rate in sorted(funding.get(hour, [])):
            if symbol not in account.positions:
                continue
            if hour in marks.get(symbol, {}):
                price = marks[symbol][hour]
            elif symbol in bars:
                price = bars[symbol].open
            else:
                price = account.marks[symbol]
            paid = account.positions[symbol].size * price * rate
            account.cash -= paid
            account.funding_paid += paid
            account.funding_rows.append({"at": t, "symbol": symbol, "paid_usd": paid})


def open_may_fill(account: Account, order: Order, t: int, notional: Decimal, fee: Decimal, bars: Bars) -> bool:
    """The two reasons for which an open that would fill does not; it is then gone.
    "An open that meets an opposite position when it would fill is cancelled with reason `opposite_position`."
    "An open whose size × price / leverage + its fee exceeds free margin (marks = opens, own reservation excluded) is
    rejected with reason `margin`."
    """
    position = account.positions.get(order.symbol)
    if position is not None and direction(position.size) != order.side:
        cancel(account, order, t, "opposite_position")
        return False
    needed = notional / leverage_of(account, order.symbol) + fee
    if account.margin_applies and needed > free_margin(account, opens(account, bars), without=order):
        cancel(account, order, t, "margin")
        return False
    return True


def set_brackets(account: Account, order: Order) -> None:
    """ "an open that names them sets them when it fills (also on an existing position), one that does not leaves
    them" — each of the two by itself.
    """
    position = account.positions[order.symbol]
    if order.stop is not None:
        position.stop = order.stop
    if order.take_profit is not None:
        position.take_profit = order.take_profit


def fillable(account: Account, t: int, symbol: str, size: Decimal, bars: Bars) -> Decimal:
    """ADR 0015: the fills of a symbol in one bar take together at most a share of its volume, in whole lots."""
    if account.max_volume_pct is None:
        return size
    if symbol not in bars:
        return Decimal(0)
    lot = Fraction(1, 10 ** account.assets[symbol].size_decimals)
    lots = Fraction(bars[symbol].volume) * Fraction(account.max_volume_pct) / 100 // lot
    taken = sum((done["size"] for done in account.fills if done["at"] == t and done["symbol"] == symbol), Decimal(0))
    return min(size, as_decimal(lots * lot) - taken)


def newest_book(account: Account, t: int, symbol: str) -> tuple[int, Side, Side] | None:
    """ADR 0015: the last one at or before the bar's open, unless it is older than the bound."""
    if account.book_max_age_ms is None:
        return None
    known = [book for book in account.books.get(symbol, []) if t - account.book_max_age_ms <= book[0] <= t]
    return known[-1] if known else None


def taken_at(account: Account, t: int, symbol: str, price: Decimal, size: Decimal, side: int) -> Decimal:
    """The price of a taker: k bps a million, or (ADR 0015) the way through the book measured against its middle."""
    book = newest_book(account, t, symbol)
    if book is None:
        return price * (1 + side * account.slippage_k * (size * price) / TEN_BILLION)
    _at, bids, asks = book
    middle = (Fraction(bids[0][0]) + Fraction(asks[0][0])) / 2
    wanted, total, last = Fraction(size), Fraction(0), Fraction(0)
    for level_price, level_size in asks if side > 0 else bids:
        last = Fraction(level_price)
        part = min(wanted, Fraction(level_size))
        total += part * last
        wanted -= part
    beyond = last * (1 + side * Fraction(account.slippage_k) * Fraction(size) * last / Fraction(TEN_BILLION))
    total += wanted * beyond
    return as_decimal(Fraction(price) * total / Fraction(size) / middle)


def cancel_rest(account: Account, order: Order, t: int) -> None:
    """ADR 0015: market orders are immediate-or-cancel."""
    account.cancels.append((t, order.number, "volume"))


def step_2_market_orders(account: Account, t: int, bars: Bars) -> None:
    """ "in submission order … Fill price open × (1 + side × k × (size × open) / 1e10) …; taker fee"."""
    for order in list(account.orders):
        if order.limit is not None or not may_act(order, t, bars):
            continue
        price = bars[order.symbol].open
        if order.action == "open":
            assert order.size is not None
            side, size = order.side, order.size
        else:
            position = account.positions.get(order.symbol)
            if position is None:
                cancel(account, order, t, "no_position")
                continue
            side = -direction(position.size)
            # "a close takes the whole position"; a reduce "at most the position"
            size = abs(position.size) if order.size is None else min(order.size, abs(position.size))
        wanted, size = size, fillable(account, t, order.symbol, size, bars)
        if size == 0:
            account.orders.remove(order)
            cancel_rest(account, order, t)
            continue
        filled_at = taken_at(account, t, order.symbol, price, size, side)
        if order.action == "open":
            # what cannot be paid for is not taken because the market happens to be thin: the check is for all of it
            fee = account.taker_rate * wanted * filled_at
            if not open_may_fill(account, order, t, wanted * price, fee, bars):
                continue
        account.orders.remove(order)
        fill(account, t, order.symbol, side, size, filled_at, "taker", "market", size * abs(filled_at - price))
        if order.action == "open":
            set_brackets(account, order)
        if size < wanted:
            cancel_rest(account, order, t)


def step_3_limits_at_open(account: Account, t: int, bars: Bars) -> None:
    """ "(buy: open ≤ limit; sell: open ≥ limit), in submission order: fill at open, no slippage; taker fee if this is
    the order's first bar, maker fee otherwise".
    """
    for order in list(account.orders):
        if order.limit is None or not may_act(order, t, bars):
            continue
        price = bars[order.symbol].open
        marketable = price <= order.limit if order.side > 0 else price >= order.limit
        if not marketable:
            continue
        size = fillable(account, t, order.symbol, order.size or Decimal(0), bars)
        filled_at = price
        if order.first_bar and size and newest_book(account, t, order.symbol) is not None:
            walked = taken_at(account, t, order.symbol, price, size, order.side)
            filled_at = min(walked, order.limit) if order.side > 0 else max(walked, order.limit)
        fill_limit(account, order, t, price, "taker" if order.first_bar else "maker", bars, filled_at)


def fill_limit(
    account: Account, order: Order, t: int, price: Decimal, liquidity: str, bars: Bars, filled_at: Decimal | None = None
) -> None:
    """ "A limit that fails its margin check is removed, not retried." """
    assert order.size is not None
    if filled_at is None:
        filled_at = price
    size = fillable(account, t, order.symbol, order.size, bars)
    if size == 0:
        return
    rate = account.taker_rate if liquidity == "taker" else account.maker_rate
    fee = rate * order.size * filled_at
    if not open_may_fill(account, order, t, order.size * price, fee, bars):
        return
    if size == order.size:
        account.orders.remove(order)
    order.size -= size
    order.first_bar = False  # what is left works on as a maker
    slippage = size * abs(filled_at - price)
    fill(account, t, order.symbol, order.side, size, filled_at, liquidity, "limit", slippage)
    set_brackets(account, order)


def path_ends(account: Account, symbol: str, bars: Bars) -> tuple[Fraction, Fraction]:
    """(price at λ = 0, price at λ = 1): from the open to "low if long, high if short"; a symbol without a bar stays
    at its mark.
    """
    if symbol not in bars:
        mark = Fraction(account.marks[symbol])
        return mark, mark
    bar = bars[symbol]
    extreme = bar.low if account.positions[symbol].size > 0 else bar.high
    return Fraction(bar.open), Fraction(extreme)


def path_price(account: Account, symbol: str, bars: Bars, lam: Fraction) -> Fraction:
    start, end = path_ends(account, symbol, bars)
    return start + lam * (end - start)


def stop_lambda(account: Account, symbol: str, bars: Bars) -> Fraction | None:
    """Where the path reaches the stop: "long: low ≤ stop; at λ = 0 if the open is already at or beyond it"."""
    stop = account.positions[symbol].stop
    if stop is None or symbol not in bars:
        return None
    if account.positions[symbol].stopping:
        return Fraction(0)
    start, end = path_ends(account, symbol, bars)
    level = Fraction(stop)
    long = account.positions[symbol].size > 0
    if (start <= level) if long else (start >= level):
        return Fraction(0)
    if (end <= level) if long else (end >= level):
        return (start - level) / (start - end)
    return None


def cushion(account: Account, bars: Bars, lam: Fraction) -> Fraction:
    """equity(λ) − maintenance(λ)."""
    total = Fraction(account.cash)
    for symbol, position in account.positions.items():
        size = Fraction(position.size)
        price = path_price(account, symbol, bars, lam)
        total += size * price - Fraction(position.cost)
        total -= maintenance(account.assets[symbol], abs(size) * price)
    return total


def tier_lambdas(account: Account, bars: Bars) -> list[Fraction]:
    """Every λ in (0, 1) at which some position's notional crosses into another tier: between two of them the cushion
    is a straight line.
    """
    found = set()
    for symbol, position in account.positions.items():
        start, end = path_ends(account, symbol, bars)
        if start == end:
            continue
        for lower_bound, _rate, _deduction in tiers(account.assets[symbol]):
            price = lower_bound / abs(Fraction(position.size))
            lam = (price - start) / (end - start)
            if 0 < lam < 1:
                found.add(lam)
    return sorted(found)


def liquidation_lambda(account: Account, bars: Bars, since: Fraction) -> Fraction | None:
    """The first λ ≥ since where "equity(λ) falls to maintenance(λ), i.e. ≤"."""
    if not account.positions:
        return None
    left, at_left = since, cushion(account, bars, since)
    if at_left <= 0:
        return since
    for right in [lam for lam in tier_lambdas(account, bars) if lam > since] + [Fraction(1)]:
        at_right = cushion(account, bars, right)
        if at_right <= 0:
            return left + (right - left) * at_left / (at_left - at_right)
        left, at_left = right, at_right
    return None


def do_stop(account: Account, t: int, symbol: str, bars: Bars) -> None:
    """ "Closes the whole position at p × (1 − dir × k × (size × p) / 1e10), p = stop price, or the open on a gap"."""
    position = account.positions[symbol]
    assert position.stop is not None
    way = direction(position.size)
    size = fillable(account, t, symbol, abs(position.size), bars)
    # on a gap the open is beyond the stop: lower for a long, higher for a short
    p = min(position.stop, bars[symbol].open) if way > 0 else max(position.stop, bars[symbol].open)
    if position.stopping:  # ADR 0015: what a touched stop could not close goes at the next open
        p = bars[symbol].open
    if size < abs(position.size):
        position.stopping = True
    if size == 0:
        return
    price = taken_at(account, t, symbol, p, size, -way)
    fill(account, t, symbol, -way, size, price, "taker", "stop", size * abs(price - p))


def do_liquidation(account: Account, t: int, bars: Bars, lam: Fraction) -> None:
    """ "All positions close at the path prices at that λ, code-point order, no slippage; taker fee, and the penalty
    …; working orders are cancelled; if cash ends below zero it becomes zero and the shortfall is recorded".
    """
    prices = {symbol: as_decimal(path_price(account, symbol, bars, lam)) for symbol in account.positions}
    sizes = {
        symbol: fillable(account, t, symbol, abs(position.size), bars) for symbol, position in account.positions.items()
    }
    if not any(sizes.values()):
        return
    for symbol in sorted(prices):
        position = account.positions[symbol]
        size = sizes[symbol]
        if size == 0:
            continue
        penalty = account.penalty_rate * size * prices[symbol]
        fill(
            account,
            t,
            symbol,
            -direction(position.size),
            size,
            prices[symbol],
            "taker",
            "liquidation",
            penalty_usd=penalty,
        )
    for order in list(account.orders):
        cancel(account, order, t, "liquidation")
    account.liquidations += 1
    if account.cash < 0 and not account.positions:
        account.deficit += -account.cash
        account.cash = Decimal(0)


def step_4_adverse_path(account: Account, t: int, bars: Bars) -> None:
    """ "Events happen in order of λ (ties: stops before liquidation, then code-point order); after each event the rest
    is evaluated again from the same λ, with that event's costs".
    """
    lam = Fraction(0)
    had_their_part: set[str] = set()  # ADR 0015: stops that closed what the bar's volume allowed
    while account.positions:
        events = []
        for symbol in account.positions:
            if symbol in had_their_part:
                continue
            touched = stop_lambda(account, symbol, bars)
            if touched is not None:
                # ADR 0015: a stop that only goes on from an earlier bar comes after a liquidation that is due
                events.append((touched, 2 if account.positions[symbol].stopping else 0, symbol))
        liquidated = liquidation_lambda(account, bars, lam)
        if liquidated is not None:
            events.append((liquidated, 1, ""))
        if not events:
            return
        lam, kind, symbol = min(events)
        if kind != 1:
            do_stop(account, t, symbol, bars)
            had_their_part.add(symbol)
        else:
            do_liquidation(account, t, bars, lam)
            return


def step_5_take_profits(account: Account, t: int, bars: Bars) -> None:
    """ "long: at the open if open ≥ take_profit, else at the take-profit price if high > take_profit strictly; short
    symmetric; maker fee; whole position".
    """
    for symbol in sorted(account.positions):
        position = account.positions[symbol]
        target = position.take_profit
        if target is None or symbol not in bars:
            continue
        bar = bars[symbol]
        if position.size > 0:
            at_open, reached = bar.open >= target, bar.high > target
        else:
            at_open, reached = bar.open <= target, bar.low < target
        if at_open or reached:
            price = bar.open if at_open else target
            size = fillable(account, t, symbol, abs(position.size), bars)
            if size > 0:
                fill(account, t, symbol, -direction(position.size), size, price, "maker", "take_profit")


def step_5_resting_limits(account: Account, t: int, bars: Bars) -> None:
    """ "in submission order (buy: low < limit strictly; sell: high > limit): fill at the limit, maker fee, margin check
    size × limit / leverage + fee with marks = opens".
    """
    for order in list(account.orders):
        if order.limit is None or not may_act(order, t, bars):
            continue
        bar = bars[order.symbol]
        through = bar.low < order.limit if order.side > 0 else bar.high > order.limit
        if through:
            fill_limit(account, order, t, order.limit, "maker", bars)


def step_6_mark(account: Account, t: int, interval: int, bars: Bars) -> None:
    """ "Mark = close; one equity point for the whole set at t + interval"; halts at every equity point."""
    for symbol, bar in bars.items():
        account.marks[symbol] = bar.close
        account.newest_bar_opened_at[symbol] = t
        account.newest_bar_closed_at[symbol] = t + interval
    for order in account.orders:
        if may_act(order, t, bars):
            order.first_bar = False
    value = equity(account, account.marks)
    account.points.append((t + interval, value))
    account.held.append(bool(account.positions))
    account.peak = max(account.peak, value)
    evaluate_halts(account, t + interval)


def advance(
    account: Account, t: int, interval: int, bars: Bars, funding: HourlyRows, marks: dict[str, dict[int, Decimal]]
) -> None:
    """The six steps for the bars opening at t, "each step for all symbols before the next"."""
    step_1_funding(account, t, interval, bars, funding, marks)
    step_2_market_orders(account, t, bars)
    step_3_limits_at_open(account, t, bars)
    step_4_adverse_path(account, t, bars)
    step_5_take_profits(account, t, bars)
    step_5_resting_limits(account, t, bars)
    step_6_mark(account, t, interval, bars)
