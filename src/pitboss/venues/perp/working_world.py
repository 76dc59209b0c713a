"""The mutable working copy of an account, used inside the pure functions of `world.py`.

A `WorkingWorld` is made from a frozen `PerpWorld`, changed by the steps of one bar (or one submission), and frozen
again; it is never passed on. Every method books exactly one kind of event and adds its receipt.
"""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.money import HUNDRED, ZERO, decimal, round_down
from pitboss.core.order_book import Books, Facts, walk
from pitboss.core.receipt import Receipt, ReceiptKind
from pitboss.venues.perp.state import Halt, PerpWorld, Position, TradingTerms, WorkingOrder, in_order

SymbolPrices = Mapping[str, Decimal]
NO_FACTS: Facts = {}
NO_BOOKS: Mapping[str, Books] = {}


class WorkingWorld:
    """A mutable copy of a `PerpWorld`."""

    __slots__ = (
        "books",
        "cash",
        "day",
        "day_reference",
        "deficit",
        "halts",
        "last_equity",
        "leverage",
        "marked_at",
        "marks",
        "next_order",
        "orders",
        "peak",
        "positions",
        "receipts",
        "terms",
        "volume_left",
        "world",
    )

    def __init__(self, world: PerpWorld, terms: TradingTerms) -> None:
        self.world = world
        self.terms = terms
        self.cash = world.cash
        self.positions = dict(world.positions)
        self.orders = list(world.orders)
        self.leverage = world.leverage  # set by submissions only
        self.marks = dict(world.marks)
        self.marked_at = dict(world.marked_at)
        self.halts: tuple[Halt, ...] = world.halts
        self.peak = world.peak
        self.day = world.day
        self.day_reference = world.day_reference
        self.last_equity = world.last_equity
        self.next_order = world.next_order
        self.deficit = world.deficit
        self.receipts: list[Receipt] = []
        self.books = NO_BOOKS
        self.volume_left: dict[str, Decimal] | None = None

    def freeze(self) -> PerpWorld:
        """Return the present state as a `PerpWorld`.

        Cash is stored without trailing zeros, which would grow with every fill and slow every sum.
        """
        cash = self.cash if self.cash is self.world.cash else self.cash.normalize()
        positions = self.positions if len(self.positions) < 2 else dict(sorted(self.positions.items()))
        # By position: keywords would double the cost of the constructor, and every leg makes a world.
        return PerpWorld(
            cash, self.world.initial, self.peak, self.day, self.day_reference, self.last_equity, positions,
            tuple(self.orders), self.leverage, self.marks, self.marked_at, self.halts, self.next_order, self.deficit,
        )  # fmt: skip

    def add_receipt(
        self, kind: ReceiptKind, at: Instant, symbol: str, order_id: str, **facts: Decimal | str | int
    ) -> None:
        """Add a receipt."""
        self.receipts.append(Receipt(kind, at, symbol, order_id, facts))

    # Money ------------------------------------------------------------------------------------------------------

    def base(self) -> Decimal:
        """Return cash minus the cost of all positions: the part of equity that does not depend on prices."""
        total = self.cash
        if self.positions:
            for position in in_order(self.positions):
                total -= position.cost
        return total

    def equity(self, prices: SymbolPrices) -> Decimal:
        """Return equity at the given prices, at the mark where one is missing."""
        if not self.positions:
            return self.cash
        value = ZERO
        for position in in_order(self.positions):
            value += position.size * self.price(position.symbol, prices)
        return self.base() + value

    def price(self, symbol: str, prices: SymbolPrices) -> Decimal:
        """Return a symbol's price in this bar, or its mark if the bar is missing."""
        price = prices.get(symbol)
        return self.marks[symbol] if price is None else price

    def free_margin(self, prices: SymbolPrices, without: WorkingOrder) -> Decimal:
        """Return equity minus the margin of positions and of working opens other than `without`."""
        used = ZERO
        for position in in_order(self.positions):
            used += abs(position.size) * self.price(position.symbol, prices) / self.leverage.get(position.symbol, 1)
        for order in self.orders:
            if order.opens and order is not without:
                used += order.size * self.price(order.symbol, prices) / self.leverage.get(order.symbol, 1)
        return self.equity(prices) - used

    # Orders -----------------------------------------------------------------------------------------------------

    def remove(self, order: WorkingOrder) -> None:
        """Remove an order from the book."""
        self.orders.remove(order)

    def mark_rested(self, order: WorkingOrder) -> None:
        """Mark a limit order as rested after its first bar: from now on it fills as maker."""
        self.orders[self.orders.index(order)] = replace(order, rested=True)

    def cancel(self, order: WorkingOrder, at: Instant, reason: str) -> None:
        """Remove an order from the book and add a receipt with the reason."""
        self.remove(order)
        self.add_receipt("cancelled", at, order.symbol, order.id, reason=reason)

    def may_open(
        self, order: WorkingOrder, at: Instant, price: Decimal, fill: Decimal, taker: bool, opens: SymbolPrices
    ) -> bool:
        """Check an open at the moment of its fill; if it fails it is removed from the book with a reason."""
        position = self.positions.get(order.symbol)
        if position is not None and position.side != order.side:
            self.cancel(order, at, "opposite_position")
            return False
        fee = self.fee_rate(taker) * order.size * fill
        need = order.size * price / self.leverage.get(order.symbol, 1) + fee
        if need > self.free_margin(opens, without=order):
            self.remove(order)
            self.add_receipt("rejected", at, order.symbol, order.id, reason="margin")
            return False
        return True

    def fill_open(
        self,
        order: WorkingOrder,
        at: Instant,
        size: Decimal,
        price: Decimal,
        taker: bool,
        slippage_usd: Decimal,
        facts: Facts = NO_FACTS,
    ) -> None:
        """Add an open to its position and set its stop and take-profit.

        If only a part fills, the rest of a limit order stays on the book as maker; the rest of a market order is
        cancelled.
        """
        if size == order.size or order.limit is None:
            self.remove(order)
        else:
            self.orders[self.orders.index(order)] = replace(order, size=order.size - size, rested=True)
        signed = order.side * size
        position = self.positions.get(order.symbol)
        if position is None:
            self.positions[order.symbol] = Position(
                order.symbol, signed, (signed * price).normalize(), at, order.stop, order.take_profit, order.thesis
            )
        else:
            self.positions[order.symbol] = replace(
                position,
                size=position.size + signed,
                cost=position.cost + signed * price,
                stop=position.stop if order.stop is None else order.stop,
                take_profit=position.take_profit if order.take_profit is None else order.take_profit,
            )
        self.record_fill(
            order.symbol, order.id, at, order.side, size, price, taker, slippage_usd, ZERO, order.kind, facts
        )
        if size < order.size and order.limit is None:
            self.cancel_remaining(order, at, order.size - size)

    def cancel_remaining(self, order: WorkingOrder, at: Instant, size: Decimal) -> None:
        """Add the receipt for the remaining size of a market order, already off the book, that found no volume."""
        self.add_receipt("cancelled", at, order.symbol, order.id, reason="volume", left=size)

    def fill_exit(
        self,
        symbol: str,
        order_id: str,
        at: Instant,
        size: Decimal,
        price: Decimal,
        taker: bool,
        slippage_usd: Decimal,
        penalty_usd: Decimal,
        reason: str,
        facts: Facts = NO_FACTS,
    ) -> None:
        """Reduce a position by `size` and realise its share of the cost into cash."""
        position = self.positions[symbol]
        side = -position.side
        if size == abs(position.size):
            share = position.cost
            del self.positions[symbol]
        else:
            share = position.cost * size / abs(position.size)
            self.positions[symbol] = replace(position, size=position.size + side * size, cost=position.cost - share)
        self.cash += -side * size * price - share - penalty_usd
        self.record_fill(symbol, order_id, at, side, size, price, taker, slippage_usd, penalty_usd, reason, facts)

    def record_fill(
        self,
        symbol: str,
        order_id: str,
        at: Instant,
        side: int,
        size: Decimal,
        price: Decimal,
        taker: bool,
        slippage_usd: Decimal,
        penalty_usd: Decimal,
        reason: str,
        facts: Facts,
    ) -> None:
        """Charge the fee, add the receipt of a fill, and deduct its size from the bar's remaining volume."""
        fee = self.fee_rate(taker) * size * price
        self.cash -= fee
        if self.volume_left is not None:
            self.volume_left[symbol] -= size
        all_facts: Facts = {
            "fee_usd": fee,
            "liquidity": "taker" if taker else "maker",
            "penalty_usd": penalty_usd,
            "price": price,
            "reason": "market" if reason in ("close", "reduce") else reason,
            "side": "buy" if side > 0 else "sell",
            "size": size,
            "slippage_usd": slippage_usd,
            **facts,
        }
        self.receipts.append(Receipt("filled", at, symbol, order_id, all_facts))

    def fee_rate(self, taker: bool) -> Decimal:
        """Return the fee as a fraction of notional."""
        return self.terms.taker if taker else self.terms.maker

    def taker_price(self, symbol: str, at: Instant, price: Decimal, size: Decimal, side: int) -> tuple[Decimal, Facts]:
        """Return the price that a taker of `size` gets: k basis points per million of notional, k × notional / 1e10.

        If the run uses order books, the newest one sets the price where there is one; the facts of the receipt name the
        source.
        """
        slope, age = self.terms.slippage_bps_per_million, self.terms.book_max_age_ms
        facts = NO_FACTS
        if age is not None:
            books = self.books.get(symbol)
            book = None if books is None else books.newest(at, age)
            if book is not None:
                fill = walk(book, price, size, side, slope)
                source = "beyond_book" if fill.beyond else "book"
                return fill.price, {"slippage": source, "book_age_ms": at - book.at}
            facts = {"slippage": "linear"}
        if not slope:
            return price, facts  # the product below would be equal but carry zeros into every later sum
        return price * (1 + (side * slope * (size * price)).scaleb(-10)), facts

    # Volume -----------------------------------------------------------------------------------------------------

    def cap_volume(self, volumes: Mapping[str, float]) -> None:
        """Set the volume available in this bar: the fills of a symbol may take only a share of what was traded."""
        share = (self.terms.max_volume_pct or ZERO) / HUNDRED
        self.volume_left = {
            symbol: round_down(decimal(volume) * share, self.terms.assets[symbol].lot)
            for symbol, volume in volumes.items()
        }

    def fillable(self, symbol: str, size: Decimal) -> Decimal:
        """Return how much of a size can still fill in this bar: all of it unless fills are capped by volume."""
        return size if self.volume_left is None else min(size, self.volume_left.get(symbol, ZERO))

    # Halts ------------------------------------------------------------------------------------------------------

    def mark_equity(self, at: Instant, value: Decimal) -> None:
        """Record an equity point: start a new day, raise the peak, set and end halts."""
        day = at // DAY_MS
        if day != self.day:
            self.day_reference = value if at % DAY_MS == 0 else self.last_equity
            self.day = day
            if "daily_loss" in self.halts:
                self.halts = tuple(halt for halt in self.halts if halt != "daily_loss")
                self.add_receipt("resumed", at, "", "", halt="daily_loss")
        self.last_equity = value
        if value > self.peak:
            self.peak = value
        if value < self.day_reference or value < self.peak:
            self.check_halts(at, value)

    def check_halts(self, at: Instant, value: Decimal) -> None:
        """Set the halts whose loss threshold has been reached."""
        terms = self.terms
        if "daily_loss" not in self.halts and _lost(self.day_reference, value, terms.daily_loss_halt_pct):
            self.halt("daily_loss", at, self.day_reference, value)
        if "drawdown" not in self.halts and _lost(self.peak, value, terms.drawdown_halt_pct):
            self.halt("drawdown", at, self.peak, value)

    def halt(self, halt: Halt, at: Instant, reference: Decimal, value: Decimal) -> None:
        """Stop new exposure: cancel working opens at once, keep stops and take-profits."""
        self.halts = (*self.halts, halt)
        self.add_receipt("halted", at, "", "", halt=halt, reference_usd=reference, equity_usd=value)
        for order in [order for order in self.orders if order.opens]:
            self.cancel(order, at, "halted")


def _lost(reference: Decimal, value: Decimal, threshold_pct: Decimal | None) -> bool:
    return (
        threshold_pct is not None and value < reference and (reference - value) * HUNDRED >= threshold_pct * reference
    )
