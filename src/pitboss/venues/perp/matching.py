"""Matches one bar against an account: funding, fills, stops, liquidation, take-profits.

Each function is one part of the bar, as docs/perp.md defines it, and changes the `WorkingWorld` that it gets; `world.py`
calls them in order. `opens` holds the open price of every symbol that has a bar.
"""

from dataclasses import replace
from decimal import Decimal

from pitboss.core.instant import Instant
from pitboss.core.money import ZERO, decimal
from pitboss.core.order_book import Facts
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.bar_path import SymbolPath, next_event
from pitboss.venues.perp.tape import FundingRow, Tape
from pitboss.venues.perp.working_world import NO_FACTS, WorkingWorld


def pay_funding(account: WorkingWorld, row: FundingRow, price: Decimal) -> None:
    """Book one funding payment on a position; an imported mark or oracle price takes precedence over `price`."""
    size = account.positions[row.symbol].size
    price = price if row.price is None else row.price
    amount = size * price * row.rate
    account.cash -= amount
    facts: Facts = {"amount_usd": amount, "price": price, "rate": row.rate, "size": size}
    account.receipts.append(Receipt("funded", row.at, row.symbol, "", facts))


def fill_market_orders(account: WorkingWorld, at: Instant, opens: dict[str, Decimal]) -> None:
    """Fill market orders, closes and reduces at the open; what exceeds the bar's volume cap is cancelled."""
    for order in list(account.orders):
        if order.kind == "limit" or order.active_from > at or order.symbol not in opens:
            continue
        price = opens[order.symbol]
        if order.kind == "market":
            size = account.fillable(order.symbol, order.size)
            if not size:
                account.remove(order)
                account.cancel_remaining(order, at, order.size)
                continue
            fill, facts = account.taker_price(order.symbol, at, price, size, order.side)
            if account.may_open(order, at, price, fill, True, opens):
                account.fill_open(order, at, size, fill, True, size * abs(fill - price), facts)
            continue
        position = account.positions.get(order.symbol)
        if position is None or position.side == order.side:
            account.cancel(order, at, "no_position")
            continue
        requested = abs(position.size) if order.kind == "close" else min(order.size, abs(position.size))
        size = account.fillable(order.symbol, requested)
        account.remove(order)
        if size:
            fill, facts = account.taker_price(order.symbol, at, price, size, order.side)
            slippage = size * abs(fill - price)
            account.fill_exit(order.symbol, order.id, at, size, fill, True, slippage, ZERO, order.kind, facts)
        if size < requested:
            account.cancel_remaining(order, at, requested - size)


def fill_marketable_limits(account: WorkingWorld, at: Instant, opens: dict[str, Decimal]) -> None:
    """Fill the limit orders that the open already reaches, at the open; the others rest from now on."""
    for order in list(account.orders):
        if order.limit is None or order.active_from > at or order.symbol not in opens:
            continue
        price = opens[order.symbol]
        size = account.fillable(order.symbol, order.size)
        if size and order.side * (order.limit - price) >= 0:
            taker, fill, slippage, facts = not order.rested, price, ZERO, NO_FACTS
            if taker and account.terms.book_max_age_ms is not None:
                book_price, book_facts = account.taker_price(order.symbol, at, price, size, order.side)
                if "book_age_ms" in book_facts:  # it pays the book's prices, but never beyond its own limit
                    facts = book_facts
                    fill = min(book_price, order.limit) if order.side > 0 else max(book_price, order.limit)
                    slippage = size * abs(fill - price)
            if account.may_open(order, at, price, fill, taker, opens):
                account.fill_open(order, at, size, fill, taker, slippage, facts)
        elif not order.rested:
            account.mark_rested(order)


def walk_adverse_path(account: WorkingWorld, tape: Tape, index: int, at: Instant, opens: dict[str, Decimal]) -> None:
    """Move all prices from their open to their adverse extreme and book stops and liquidation in that order."""
    paths: dict[str, SymbolPath] = {}
    for symbol, position in account.positions.items():
        if symbol in opens:
            extreme = tape.low if position.side > 0 else tape.high
            paths[symbol] = SymbolPath(opens[symbol], decimal(float(extreme[symbol][index])), True)
        else:
            paths[symbol] = SymbolPath(account.marks[symbol], account.marks[symbol], False)
    lam = ZERO
    no_volume: tuple[str, ...] = ()
    while account.positions:
        event = next_event(account.positions, paths, account.base(), account.terms, lam, no_volume)
        if event is None:
            return
        lam = event.lam
        if event.kind == "liquidation":
            _liquidate(account, paths, lam, at)
            return
        position = account.positions[event.symbol]
        size = account.fillable(event.symbol, abs(position.size))
        if size < abs(position.size):
            no_volume = (*no_volume, event.symbol)
            account.positions[event.symbol] = replace(position, stopping=True)
        if size:
            fill, facts = account.taker_price(event.symbol, at, event.price, size, -position.side)
            slippage = size * abs(fill - event.price)
            account.fill_exit(event.symbol, "", at, size, fill, True, slippage, ZERO, "stop", facts)


def _liquidate(account: WorkingWorld, paths: dict[str, SymbolPath], lam: Decimal, at: Instant) -> None:
    """Close all positions at the path prices, charge the penalty, cancel all orders, and write off negative cash.

    The part that exceeds the bar's volume cap stays open, and with it the debt; the next bar checks for liquidation
    again.
    """
    penalty_rate = account.terms.penalty_bps / 10_000
    sizes = {
        symbol: account.fillable(symbol, abs(account.positions[symbol].size)) for symbol in sorted(account.positions)
    }
    if not any(sizes.values()):
        return
    for symbol, size in sizes.items():
        if size:
            price = paths[symbol].at(lam)
            account.fill_exit(symbol, "", at, size, price, True, ZERO, penalty_rate * size * price, "liquidation")
    for order in list(account.orders):
        account.cancel(order, at, "liquidation")
    deficit = ZERO if account.positions else max(ZERO, -account.cash)
    account.cash += deficit
    account.deficit += deficit
    remaining: dict[str, int] = {"left": len(account.positions)} if account.positions else {}
    account.add_receipt("liquidated", at, "", "", path=lam, deficit_usd=deficit, **remaining)


def take_profits(account: WorkingWorld, tape: Tape, index: int, at: Instant, opens: dict[str, Decimal]) -> None:
    """Close the positions whose take-profit lies inside the favourable extreme, at its price or at a better open."""
    for symbol in sorted(account.positions):
        position = account.positions[symbol]
        take_profit = position.take_profit
        if take_profit is None or symbol not in opens:
            continue
        best = decimal(float((tape.high if position.side > 0 else tape.low)[symbol][index]))
        if position.side * (opens[symbol] - take_profit) >= 0:
            price = opens[symbol]
        elif position.side * (best - take_profit) > 0:
            price = take_profit
        else:
            continue
        size = account.fillable(symbol, abs(position.size))
        if size:
            account.fill_exit(symbol, "", at, size, price, False, ZERO, ZERO, "take_profit")


def fill_resting_limits(account: WorkingWorld, tape: Tape, index: int, at: Instant, opens: dict[str, Decimal]) -> None:
    """Fill the limit orders that the price goes through, at their limit and as maker."""
    for order in list(account.orders):
        if order.limit is None or order.active_from > at or order.symbol not in opens:
            continue
        extreme = decimal(float((tape.low if order.side > 0 else tape.high)[order.symbol][index]))
        size = account.fillable(order.symbol, order.size)
        if not size or order.side * (order.limit - extreme) <= 0:
            continue
        if account.may_open(order, at, order.limit, order.limit, False, opens):
            account.fill_open(order, at, size, order.limit, False, ZERO)
