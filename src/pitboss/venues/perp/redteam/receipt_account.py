"""An account computed from receipts alone: cash, positions, orders and halts as they follow from the records.

The audit's own bookkeeping. It uses no recorded summary; a receipt that does not follow from the earlier ones is reported
and then applied.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pitboss.core.instant import DAY_MS, Instant
from pitboss.venues.perp.redteam.audit_facts import AuditFacts

ZERO = Decimal(0)
HUNDRED = Decimal(100)
TOLERANCE = Decimal("1e-12")
"""Two exact computations of an amount may differ by a rounding at the sixtieth digit, never by this much."""

OPENING = ("market", "limit")
VENUE_REASONS = ("stop", "take_profit", "liquidation", "end")
"""Reasons of fills that close a position without an order."""

ReportBreach = Callable[[str, str], None]
"""Called with the violated rule and the facts."""


@dataclass(slots=True)
class AcceptedOrder:
    """An accepted order."""

    id: str
    kind: str
    symbol: str
    side: int
    size: Decimal
    limit: Decimal | None

    @property
    def opens(self) -> bool:
        """Whether it can add exposure."""
        return self.kind in OPENING


@dataclass(slots=True)
class HeldPosition:
    """Signed size and signed cost."""

    size: Decimal
    cost: Decimal


@dataclass(slots=True)
class ReceiptAccount:
    """Cash, positions, orders, leverages and halts, computed from receipts and equity points."""

    facts: AuditFacts
    cash: Decimal
    held: dict[str, HeldPosition]
    book: dict[str, AcceptedOrder] = field(default_factory=dict[str, AcceptedOrder])
    leverage: dict[str, int] = field(default_factory=dict[str, int])
    opened_at: list[Instant] = field(default_factory=list[Instant])
    halts: set[str] = field(default_factory=set[str])
    peak: Decimal = ZERO
    day: int = 0
    day_start: Decimal = ZERO
    last: Decimal = ZERO

    @classmethod
    def begin(cls, facts: AuditFacts) -> "ReceiptAccount":
        """The account at the start of the run."""
        account = cls(facts, facts.cash, {symbol: HeldPosition(*both) for symbol, both in facts.positions.items()})
        account.peak = account.day_start = account.last = facts.cash
        account.day = facts.started_at // DAY_MS
        return account

    # Worth ------------------------------------------------------------------------------------------------------------

    def mark(self, symbol: str, at: Instant) -> Decimal | None:
        """The newest close known at an instant."""
        series = self.facts.closes.get(symbol)
        known = None if series is None else series.known(at)
        return None if known is None else known[0]

    def equity(self, at: Instant) -> Decimal:
        """Cash and positions at the newest closes."""
        return self.cash + sum(
            (held.size * (self.mark(symbol, at) or ZERO) - held.cost for symbol, held in self.held.items()), ZERO
        )

    def exposure(self, symbol: str, at: Instant) -> Decimal:
        """Notional of a symbol, working opens at the worse of mark and limit."""
        mark = self.mark(symbol, at) or ZERO
        held = self.held.get(symbol)
        total = abs(held.size) * mark if held else ZERO
        return total + sum((o.size * max(mark, o.limit or ZERO) for o in self.opens() if o.symbol == symbol), ZERO)

    def total_exposure(self, at: Instant) -> Decimal:
        """Exposure of all symbols."""
        return sum((self.exposure(symbol, at) for symbol in {*self.held, *(o.symbol for o in self.opens())}), ZERO)

    def free_margin(self, at: Instant) -> Decimal:
        """Equity less the margin of all positions and working opens, at the accepted leverages."""
        used = ZERO
        for symbol, held in self.held.items():
            used += abs(held.size) * (self.mark(symbol, at) or ZERO) / self.leverage.get(symbol, 1)
        for order in self.opens():
            used += order.size * (self.mark(order.symbol, at) or ZERO) / self.leverage.get(order.symbol, 1)
        return self.equity(at) - used

    def opens(self) -> Iterator[AcceptedOrder]:
        """Working orders that can add exposure."""
        return (order for order in self.book.values() if order.opens)

    # What happened ----------------------------------------------------------------------------------------------------

    def value(self, points: Iterable[tuple[Instant, Decimal]]) -> None:
        """Apply equity points: the day changes, the peak rises, halts begin and end."""
        limits = self.facts.limits
        for at, value in points:
            if at // DAY_MS != self.day:
                self.day_start = value if at % DAY_MS == 0 else self.last
                self.day = at // DAY_MS
                self.halts.discard("daily_loss")
            self.last = value
            self.peak = max(self.peak, value)
            if self.day_start > value and (self.day_start - value) * HUNDRED >= limits.daily_loss_pct * self.day_start:
                self.halts.add("daily_loss")
            if self.peak > value and (self.peak - value) * HUNDRED >= limits.drawdown_pct * self.peak:
                self.halts.add("drawdown")

    def happened(self, receipt: Mapping[str, Any], say: ReportBreach) -> None:
        """Apply one receipt."""
        kind, facts = receipt["kind"], receipt["facts"]
        if kind == "filled":
            self._filled(receipt, facts, say)
        elif kind == "funded":
            self._funded(receipt["symbol"], facts, say)
        elif kind in ("cancelled", "rejected"):
            if self.book.pop(receipt["order_id"], None) is None:
                say("STATE", f"{kind} {receipt['order_id']}, which was not working")
        elif kind == "liquidated":
            self.cash += Decimal(facts["deficit_usd"])
        elif kind == "halted" and facts["halt"] in ("operator", "invariant"):
            self.halts.add(facts["halt"])
        elif kind not in ("halted", "resumed"):
            say("STATE", f"a receipt of kind {kind} that no decision explains")

    def _funded(self, symbol: str, facts: Mapping[str, Any], say: ReportBreach) -> None:
        held, amount = self.held.get(symbol), Decimal(facts["amount_usd"])
        owed = None if held is None else held.size * Decimal(facts["price"]) * Decimal(facts["rate"])
        if owed is None or abs(owed - amount) > TOLERANCE:
            say("STATE", f"funding of {amount} USD in {symbol}, where {owed} was due")
        self.cash -= amount

    def _filled(self, receipt: Mapping[str, Any], facts: Mapping[str, Any], say: ReportBreach) -> None:
        symbol, order_id = receipt["symbol"], receipt["order_id"]
        size, price, fee = (Decimal(facts[name]) for name in ("size", "price", "fee_usd"))
        side = 1 if facts["side"] == "buy" else -1
        rate = self.facts.taker if facts["liquidity"] == "taker" else self.facts.maker
        if abs(rate * size * price - fee) > TOLERANCE:
            say("STATE", f"a fee of {fee} USD for {size} {symbol} at {price}")
        self.cash -= fee
        order = self.book.pop(order_id, None) if order_id else None
        if order is None and (order_id or facts["reason"] not in VENUE_REASONS):
            say("STATE", f"{size} {symbol} were filled for order {order_id or 'none'}, which was never accepted")
        if order is not None and (order.symbol, order.side) != (symbol, side):
            say("STATE", f"order {order_id} of {order.symbol} was filled as {facts['side']} {symbol}")
        if order is not None and order.opens:
            self._opened(order, symbol, side, size, price, say)
        else:
            self._left(order, symbol, side, size, price, Decimal(facts["penalty_usd"]), say)

    def _opened(
        self, order: AcceptedOrder, symbol: str, side: int, size: Decimal, price: Decimal, say: ReportBreach
    ) -> None:
        if size != order.size:
            say("STATE", f"order {order.id} was accepted for {order.size} and filled with {size} {symbol}")
        if order.limit is not None and side * (price - order.limit) > 0:
            say("BAND", f"order {order.id} with limit {order.limit} was filled at {price}")
        held = self.held.setdefault(symbol, HeldPosition(ZERO, ZERO))
        if held.size * side < 0:
            say("SCOPE", f"order {order.id} turned a position in {symbol} around")
        held.size += side * size
        held.cost += side * size * price

    def _left(
        self,
        order: AcceptedOrder | None,
        symbol: str,
        side: int,
        size: Decimal,
        price: Decimal,
        penalty: Decimal,
        say: ReportBreach,
    ) -> None:
        held = self.held.get(symbol)
        if held is None or held.size * side >= 0 or size > abs(held.size):
            say("STATE", f"{size} {symbol} were taken off, {held.size if held else 0} were held")
            held = self.held.setdefault(symbol, HeldPosition(-side * size, -side * size * price))
        if order is not None and order.kind == "reduce" and size > order.size:
            say("STATE", f"order {order.id} was accepted for {order.size} and filled with {size} {symbol}")
        is_closed = size == abs(held.size)
        share = held.cost if is_closed else held.cost * size / abs(held.size)
        self.cash += -side * size * price - share - penalty
        held.size += side * size
        held.cost -= share
        if is_closed:
            del self.held[symbol]
