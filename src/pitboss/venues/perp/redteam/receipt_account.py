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
class AccountPosition:
    """Signed size and signed cost."""

    size: Decimal
    cost: Decimal


@dataclass(slots=True)
class ReceiptAccount:
    """Cash, positions, orders, leverages and halts, computed from receipts and equity points."""

    facts: AuditFacts
    cash: Decimal
    positions: dict[str, AccountPosition]
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
        account = cls(
            facts,
            facts.cash,
            {symbol: AccountPosition(*size_and_cost) for symbol, size_and_cost in facts.positions.items()},
        )
        account.peak = account.day_start = account.last = facts.cash
        account.day = facts.started_at // DAY_MS
        return account

    # Worth ------------------------------------------------------------------------------------------------------------

    def mark(self, symbol: str, at: Instant) -> Decimal | None:
        """The newest close known at an instant."""
        series = self.facts.closes.get(symbol)
        newest = None if series is None else series.newest(at)
        return None if newest is None else newest[0]

    def equity(self, at: Instant) -> Decimal:
        """Cash and positions at the newest closes."""
        return self.cash + sum(
            (
                position.size * (self.mark(symbol, at) or ZERO) - position.cost
                for symbol, position in self.positions.items()
            ),
            ZERO,
        )

    def exposure(self, symbol: str, at: Instant) -> Decimal:
        """Notional of a symbol, working opens at the worse of mark and limit."""
        mark = self.mark(symbol, at) or ZERO
        position = self.positions.get(symbol)
        total = abs(position.size) * mark if position else ZERO
        return total + sum((o.size * max(mark, o.limit or ZERO) for o in self.opens() if o.symbol == symbol), ZERO)

    def total_exposure(self, at: Instant) -> Decimal:
        """Exposure of all symbols."""
        return sum((self.exposure(symbol, at) for symbol in {*self.positions, *(o.symbol for o in self.opens())}), ZERO)

    def free_margin(self, at: Instant) -> Decimal:
        """Equity less the margin of all positions and working opens, at the accepted leverages."""
        used = ZERO
        for symbol, position in self.positions.items():
            used += abs(position.size) * (self.mark(symbol, at) or ZERO) / self.leverage.get(symbol, 1)
        for order in self.opens():
            used += order.size * (self.mark(order.symbol, at) or ZERO) / self.leverage.get(order.symbol, 1)
        return self.equity(at) - used

    def opens(self) -> Iterator[AcceptedOrder]:
        """Working orders that can add exposure."""
        return (order for order in self.book.values() if order.opens)

    # Events ----------------------------------------------------------------------------------------------------------

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

    def apply(self, receipt: Mapping[str, Any], report: ReportBreach) -> None:
        """Apply one receipt."""
        kind, facts = receipt["kind"], receipt["facts"]
        if kind == "filled":
            self._fill(receipt, facts, report)
        elif kind == "funded":
            self._fund(receipt["symbol"], facts, report)
        elif kind in ("cancelled", "rejected"):
            if self.book.pop(receipt["order_id"], None) is None:
                report("STATE", f"{kind} {receipt['order_id']}, which was not working")
        elif kind == "liquidated":
            self.cash += Decimal(facts["deficit_usd"])
        elif kind == "halted" and facts["halt"] in ("operator", "invariant"):
            self.halts.add(facts["halt"])
        elif kind not in ("halted", "resumed"):
            report("STATE", f"a receipt of kind {kind} that no decision explains")

    def _fund(self, symbol: str, facts: Mapping[str, Any], report: ReportBreach) -> None:
        position, amount = self.positions.get(symbol), Decimal(facts["amount_usd"])
        due_usd = None if position is None else position.size * Decimal(facts["price"]) * Decimal(facts["rate"])
        if due_usd is None or abs(due_usd - amount) > TOLERANCE:
            report("STATE", f"funding of {amount} USD in {symbol}, where {due_usd} was due")
        self.cash -= amount

    def _fill(self, receipt: Mapping[str, Any], facts: Mapping[str, Any], report: ReportBreach) -> None:
        symbol, order_id = receipt["symbol"], receipt["order_id"]
        size, price, fee = (Decimal(facts[name]) for name in ("size", "price", "fee_usd"))
        side = 1 if facts["side"] == "buy" else -1
        rate = self.facts.taker if facts["liquidity"] == "taker" else self.facts.maker
        if abs(rate * size * price - fee) > TOLERANCE:
            report("STATE", f"a fee of {fee} USD for {size} {symbol} at {price}")
        self.cash -= fee
        order = self.book.pop(order_id, None) if order_id else None
        if order is None and (order_id or facts["reason"] not in VENUE_REASONS):
            report("STATE", f"{size} {symbol} were filled for order {order_id or 'none'}, which was never accepted")
        if order is not None and (order.symbol, order.side) != (symbol, side):
            report("STATE", f"order {order_id} of {order.symbol} was filled as {facts['side']} {symbol}")
        if order is not None and order.opens:
            self._increase(order, symbol, side, size, price, report)
        else:
            self._reduce(order, symbol, side, size, price, Decimal(facts["penalty_usd"]), report)

    def _increase(
        self, order: AcceptedOrder, symbol: str, side: int, size: Decimal, price: Decimal, report: ReportBreach
    ) -> None:
        if size != order.size:
            report("STATE", f"order {order.id} was accepted for {order.size} and filled with {size} {symbol}")
        if order.limit is not None and side * (price - order.limit) > 0:
            report("BAND", f"order {order.id} with limit {order.limit} was filled at {price}")
        position = self.positions.setdefault(symbol, AccountPosition(ZERO, ZERO))
        if position.size * side < 0:
            report("SCOPE", f"order {order.id} reversed a position in {symbol}")
        position.size += side * size
        position.cost += side * size * price

    def _reduce(
        self,
        order: AcceptedOrder | None,
        symbol: str,
        side: int,
        size: Decimal,
        price: Decimal,
        penalty: Decimal,
        report: ReportBreach,
    ) -> None:
        position = self.positions.get(symbol)
        if position is None or position.size * side >= 0 or size > abs(position.size):
            report("STATE", f"{size} {symbol} were closed, {position.size if position else 0} were held")
            position = self.positions.setdefault(symbol, AccountPosition(-side * size, -side * size * price))
        if order is not None and order.kind == "reduce" and size > order.size:
            report("STATE", f"order {order.id} was accepted for {order.size} and filled with {size} {symbol}")
        is_closed = size == abs(position.size)
        share = position.cost if is_closed else position.cost * size / abs(position.size)
        self.cash += -side * size * price - share - penalty
        position.size += side * size
        position.cost -= share
        if is_closed:
            del self.positions[symbol]
