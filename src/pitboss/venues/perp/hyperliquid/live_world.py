"""From what the exchange reports to the world that rules, prompts and records read. Pure.

`world_after` takes the world before, the account as read, and the stored orders; it gives the world now and the receipts of what
happened in between. Each fill is counted once, by the exchange's trade id, and the ids are part of the world: a world and its
receipts are committed together, so that a restart neither loses nor repeats one. Sizes must be those before plus the fills
between; where they are not, the read was torn or something is missing, and there is no world.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import get_args

from pitboss.core.instant import Instant, day_of
from pitboss.core.money import ONE, ZERO, exact
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.hyperliquid.account_reader import (
    FILL_OVERLAP_MS,
    PRICE_DIGITS,
    Mark,
    ReportedFill,
    ReportedFunding,
    ReportedPosition,
    VenueAccount,
)
from pitboss.venues.perp.hyperliquid.order_store import LiveOrder
from pitboss.venues.perp.state import (
    MarginReading,
    OrderKind,
    Position,
    ReportedWorld,
    TradingTerms,
    WorkingOrder,
)
from pitboss.venues.perp.trades import ADOPTED
from pitboss.venues.perp.working_world import WorkingWorld

FOREIGN = "foreign"
"""Reason of a fill of an order that is not ours."""
_KINDS = frozenset(get_args(OrderKind))


@noun
class AccountStep:
    """The world after a read, with its receipts; or, with `mismatch`, why the read gives none."""

    world: ReportedWorld | None
    receipts: tuple[Receipt, ...] = ()
    mismatch: str = ""
    new_fills: tuple[ReportedFill, ...] = ()


@noun
class OrderIndex:
    """Stored orders by client order id and by the exchange's id."""

    by_cloid: Mapping[str, LiveOrder]
    by_oid: Mapping[int, LiveOrder]

    def of_fill(self, fill: ReportedFill) -> LiveOrder | None:
        """Return the order of a fill; None if it is not ours."""
        return self.by_cloid.get(fill.cloid) or self.by_oid.get(fill.oid)


def index_orders(orders: Sequence[LiveOrder]) -> OrderIndex:
    """Index stored orders."""
    by_oid = {order.fence.oid: order for order in orders if order.fence.oid is not None}
    return OrderIndex({order.cloid: order for order in orders}, by_oid)


@exact
def first_world(account: VenueAccount, terms: TradingTerms, marks: Mapping[str, Mark]) -> AccountStep:
    """Return the world of an account that is read for the first time. Its positions are adopted at their marks."""
    empty = ReportedWorld(
        cash=account.value,
        initial=account.value,
        peak=account.value,
        day=day_of(account.at),
        day_reference=account.value,
        last_equity=account.value,
        fills_from=account.at,
        counted_fills={str(fill.id): fill.at for fill in account.fills},
        funded_until=account.at,
    )
    return world_after(empty, account, index_orders(()), terms, marks, adopt=True)


@exact
def world_after(
    world: ReportedWorld,
    account: VenueAccount,
    orders: OrderIndex,
    terms: TradingTerms,
    marks: Mapping[str, Mark],
    adopt: bool = False,
) -> AccountStep:
    """Return the world after a read. With `adopt`, sizes that fills do not explain are taken over with a receipt."""
    fills = tuple(fill for fill in account.fills if str(fill.id) not in world.counted_fills)
    book = _Receipts(world, orders)
    book.fold(fills, [payment for payment in account.funding if payment.at > world.funded_until])
    prices = _prices(world, account, marks)
    for symbol in sorted({*book.sizes, *account.positions}):
        reported = account.positions[symbol].size if symbol in account.positions else ZERO
        size = book.sizes.get(symbol, ZERO)
        if reported == size:
            continue
        if not adopt:
            return AccountStep(None, mismatch=f"{symbol}: the account has {reported}, its fills make {size}")
        book.adopt(
            symbol, reported - size, prices[symbol][0] if symbol in prices else book.last_price(symbol), account.at
        )
    if any(fill.is_liquidation for fill in fills):
        facts: dict[str, Decimal | str | int] = {"path": ONE, "deficit_usd": ZERO, "left": len(account.positions)}
        book.receipts.append(Receipt("liquidated", account.at, "", "", facts))
    working = tuple(_working(order) for order in orders.by_cloid.values() if order.is_open and not order.is_trigger)
    book.ended(world.orders, {order.id for order in working}, account.at)
    positions = {
        symbol: _position(reported, world.positions.get(symbol), orders, book, account.at)
        for symbol, reported in sorted(account.positions.items())
    }
    newest = max([world.fills_from, *(fill.at for fill in account.fills)])
    unrealised = sum((_unrealised(reported) for reported in account.positions.values()), ZERO)
    after = replace(
        world,
        cash=(account.value - unrealised).normalize(),
        positions=positions,
        orders=working,
        leverage={**world.leverage, **{symbol: one.leverage for symbol, one in account.positions.items()}},
        marks={**world.marks, **{symbol: price for symbol, (price, _) in prices.items()}},
        marked_at={**world.marked_at, **{symbol: at for symbol, (_, at) in prices.items()}},
        reading=MarginReading(
            account.at,
            account.margin_used,
            account.maintenance,
            account.withdrawable,
            {symbol: one.margin for symbol, one in account.positions.items()},
            {symbol: one.liquidation for symbol, one in account.positions.items() if one.liquidation is not None},
        ),
        fills_from=newest,
        counted_fills=_counted(world, account, newest),
        funded_until=max([world.funded_until, *(payment.at for payment in account.funding)]),
    )
    after, halted = _mark_equity(after, terms, account)
    return AccountStep(after, (*book.receipts, *halted), new_fills=fills)


def _counted(world: ReportedWorld, account: VenueAccount, newest: Instant) -> dict[str, Instant]:
    """Return the counted fills that the next read can contain again."""
    counted = {**world.counted_fills, **{str(fill.id): fill.at for fill in account.fills}}
    return {fill_id: at for fill_id, at in counted.items() if at >= newest - FILL_OVERLAP_MS}


def _unrealised(position: ReportedPosition) -> Decimal:
    side = 1 if position.size > 0 else -1
    return side * position.value - position.size * position.entry


def _prices(
    world: ReportedWorld, account: VenueAccount, marks: Mapping[str, Mark]
) -> dict[str, tuple[Decimal, Instant]]:
    """Return prices with their times: the marks that were read, and for other positions what their value implies."""
    prices = {symbol: (mark.price, mark.at) for symbol, mark in marks.items()}
    for symbol, position in account.positions.items():
        if symbol not in prices and symbol not in world.marks:
            prices[symbol] = (PRICE_DIGITS.divide(position.value, abs(position.size)), account.at)
    return prices


def _mark_equity(
    world: ReportedWorld, terms: TradingTerms, account: VenueAccount
) -> tuple[ReportedWorld, tuple[Receipt, ...]]:
    """Record the account's value: peak, day and halts. Orders are left alone: the exchange cancels them, not this."""
    marker = WorkingWorld(replace(world, orders=()), terms)
    marker.mark_equity(account.at, account.value)
    after = replace(
        world,
        peak=marker.peak,
        day=marker.day,
        day_reference=marker.day_reference,
        last_equity=marker.last_equity,
        halts=marker.halts,
    )
    return after, tuple(marker.receipts)


def _working(order: LiveOrder) -> WorkingOrder:
    terms = order.terms
    kind: OrderKind = terms.kind if terms.kind in _KINDS else "close"  # pyright: ignore[reportAssignmentType]
    return WorkingOrder(
        order.order_id,
        kind,
        order.symbol,
        terms.side,
        max(ZERO, terms.size - order.fence.filled_size),
        order.tick_at,
        order.tick_at,
        terms.price if kind == "limit" else None,
        terms.stop,
        terms.take_profit,
        terms.thesis,
        rested=order.state == "resting",
    )


def _position(
    reported: ReportedPosition, before: Position | None, orders: OrderIndex, book: "_Receipts", at: Instant
) -> Position:
    symbol, size = reported.symbol, reported.size
    triggers = {
        order.leg: order.terms.trigger
        for order in orders.by_cloid.values()
        if order.symbol == symbol and order.is_trigger and order.state == "resting"
    }
    is_same = before is not None and (before.size > 0) == (size > 0) and symbol not in book.reopened
    return Position(
        symbol,
        size,
        size * reported.entry,
        before.opened_at if is_same and before is not None else book.opened_at.get(symbol, at),
        triggers.get("stop"),
        triggers.get("take_profit"),
        before.thesis if is_same and before is not None else book.theses.get(symbol, ""),
    )


class _Receipts:
    """Folds fills and funding, oldest first, into receipts, and follows the size of every position on the way."""

    def __init__(self, world: ReportedWorld, orders: OrderIndex) -> None:
        self.sizes = {symbol: position.size for symbol, position in world.positions.items()}
        self.receipts: list[Receipt] = []
        self.opened_at: dict[str, Instant] = {}
        self.theses: dict[str, str] = {}
        self.reopened: set[str] = set()
        self._orders = orders
        self._last_price = dict(world.marks)

    def fold(self, fills: Sequence[ReportedFill], funding: Sequence[ReportedFunding]) -> None:
        """Add the receipts of fills and payments in the order of their times; of equal ones, in that of their sizes."""
        waiting, payments = list(fills), list(funding)
        while waiting or payments:
            if payments and (not waiting or payments[0].at <= waiting[0].at):
                self._pay(payments.pop(0))
                continue
            at = waiting[0].at
            fitting = (
                index
                for index, fill in enumerate(waiting)
                if fill.at == at and fill.position_before == self.sizes.get(fill.symbol, ZERO)
            )
            self._fill(waiting.pop(next(fitting, 0)))

    def last_price(self, symbol: str) -> Decimal:
        """Return the last known price of a symbol."""
        return self._last_price[symbol]

    def adopt(self, symbol: str, change: Decimal, price: Decimal, at: Instant) -> None:
        """Take over a change of size that no fill explains."""
        self._trade(symbol, "", at, change, price, ZERO, ZERO, False, ADOPTED, 0)

    def ended(self, before: Sequence[WorkingOrder], open_ids: set[str], at: Instant) -> None:
        """Add a receipt for every order that has ended without being filled whole."""
        by_id = {order.order_id: order for order in self._orders.by_cloid.values()}
        for working in before:
            order = by_id.get(working.id)
            if working.id in open_ids or order is None or order.fence.executed >= order.terms.size:
                continue
            left = order.terms.size - order.fence.executed
            if order.fence.executed or order.state == "cancelled":
                facts: dict[str, Decimal | str | int] = {"reason": order.fence.note or "volume", "left": left}
                self.receipts.append(Receipt("cancelled", at, working.symbol, working.id, facts))
            else:
                self.receipts.append(Receipt("rejected", at, working.symbol, working.id, {"reason": order.fence.note}))

    def _pay(self, payment: ReportedFunding) -> None:
        facts: dict[str, Decimal | str | int] = {
            "size": payment.size,
            "rate": payment.rate,
            "amount_usd": -payment.usd,
        }
        # A payment that is reported after its position was closed belongs to no open trade.
        kind = "funded" if self.sizes.get(payment.symbol) else "settled"
        self.receipts.append(Receipt(kind, payment.at, payment.symbol, "", facts))

    def _fill(self, fill: ReportedFill) -> None:
        order = self._orders.of_fill(fill)
        if fill.is_liquidation:
            reason = "liquidation"
        elif order is None:
            reason = FOREIGN
        else:
            reason = "market" if order.terms.kind in ("close", "reduce") else order.terms.kind
        if order is not None and order.opens and order.terms.thesis:
            self.theses[fill.symbol] = order.terms.thesis
        slippage = ZERO
        if order is not None and order.terms.reference is not None:
            slippage = max(ZERO, fill.side * (fill.price - order.terms.reference)) * fill.size
        order_id = "" if order is None else order.order_id
        self._trade(
            fill.symbol, order_id, fill.at, fill.side * fill.size, fill.price, fill.fee, slippage,
            fill.is_taker, reason, fill.id,
        )  # fmt: skip

    def _trade(
        self,
        symbol: str,
        order_id: str,
        at: Instant,
        change: Decimal,
        price: Decimal,
        fee: Decimal,
        slippage: Decimal,
        is_taker: bool,
        reason: str,
        fill_id: int,
    ) -> None:
        size = self.sizes.get(symbol, ZERO)
        if size and (size > 0) != (change > 0) and abs(change) > abs(size):
            # It reverses the position: a close and an open, as trades are counted.
            share = abs(size) / abs(change)
            self._trade(symbol, order_id, at, -size, price, fee * share, slippage * share, is_taker, reason, fill_id)
            change, size, fee, slippage = change + size, ZERO, fee * (ONE - share), slippage * (ONE - share)
        if not size:
            self.opened_at[symbol] = at
            self.reopened.add(symbol)
        self.sizes[symbol] = size + change
        self._last_price[symbol] = price
        facts: dict[str, Decimal | str | int] = {
            "side": "buy" if change > 0 else "sell",
            "size": abs(change),
            "price": price,
            "fee_usd": fee,
            "slippage_usd": slippage,
            "penalty_usd": ZERO,
            "liquidity": "taker" if is_taker else "maker",
            "reason": reason,
        }
        if fill_id:
            facts["trade_id"] = fill_id
        self.receipts.append(Receipt("filled", at, symbol, order_id, facts))
