"""The paper world as a state machine: random orders over random bars, with its books kept a second time in fractions.

P20 (metrics) is in `sim/test_metrics.py`, P21 (no look-ahead) in `core/test_asof.py`, P22 (a reference) in `parity/`.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pitboss.core import codec
from pitboss.core.curve import amounts
from pitboss.core.instant import DAY_MS, HOUR_MS
from pitboss.core.leg import Leg
from pitboss.core.money import exact
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.state import PerpWorld, TradingTerms, equity, open_world
from pitboss.venues.perp.testing import Row, make_tape_of
from pitboss.venues.perp.world import OrderRequest, advance, cancel, set_marks, submit
from venues.perp.markets import ASSETS, BASE, MIDNIGHT, random_action, random_rows

CLOSE_ENOUGH = Fraction(1, 10**40)
"""Sixty digits are kept; only the proportional cost of a reduction, a tier and a path price are ever rounded."""
SYMBOLS = ("AAA", "ETH")
ENDINGS = ("filled", "rejected", "cancelled")


@dataclass
class ReceiptLedger:
    """A reference ledger in fractions, computed from the receipts alone."""

    size: dict[str, Fraction] = field(default_factory=dict)
    cost: dict[str, Fraction] = field(default_factory=dict)
    realised: Fraction = Fraction(0)
    fees: Fraction = Fraction(0)
    funding: Fraction = Fraction(0)
    penalties: Fraction = Fraction(0)
    deficit: Fraction = Fraction(0)
    fills: int = 0

    def take(self, receipt: Receipt) -> None:
        facts: Any = receipt.facts
        if receipt.kind == "funded":
            self.funding += Fraction(facts["amount_usd"])
        elif receipt.kind == "liquidated":
            self.deficit += Fraction(facts["deficit_usd"])
        elif receipt.kind == "filled":
            self.fill(receipt.symbol, facts)

    def fill(self, symbol: str, facts: Any) -> None:
        self.fills += 1
        self.fees += Fraction(facts["fee_usd"])
        self.penalties += Fraction(facts["penalty_usd"])
        signed = Fraction(facts["size"]) * (1 if facts["side"] == "buy" else -1)
        size, cost = self.size.get(symbol, Fraction(0)), self.cost.get(symbol, Fraction(0))
        if size * signed < 0:
            assert abs(signed) <= abs(size), "P11: an exit may not flip a position"
            share = cost * abs(signed) / abs(size)
            self.realised += -signed * Fraction(facts["price"]) - share
            self.cost[symbol] = cost - share
        else:
            self.cost[symbol] = cost + signed * Fraction(facts["price"])
        self.size[symbol] = size + signed


class WorldMachine(RuleBasedStateMachine):
    """One account, two symbols, a market that grows bar by bar."""

    @initialize(seed=st.integers(0, 2**32 - 1), slippage=st.sampled_from(["0", "10", "700"]))
    def begin(self, seed: int, slippage: str) -> None:
        self.rng = Random(seed)
        self.terms = TradingTerms(
            ASSETS,
            slippage_bps_per_million=Decimal(slippage),
            daily_loss_halt_pct=Decimal(self.rng.choice([5, 100])),
            drawdown_halt_pct=Decimal(self.rng.choice([15, 100])),
        )
        self.start = MIDNIGHT - self.rng.randint(0, 30) * BASE
        self.count = 400
        self.market: dict[str, list[Row]] = {
            symbol: random_rows(self.rng, symbol, self.start, self.count, False) for symbol in SYMBOLS
        }
        hours = range(self.start // HOUR_MS * HOUR_MS, self.start + self.count * BASE, HOUR_MS)
        self.rates = {symbol: [(hour, round(self.rng.gauss(0, 1e-3), 8)) for hour in hours] for symbol in SYMBOLS}
        self.tape = make_tape_of(self.market, "5m", self.rates)
        marks = {symbol: (Decimal(repr(self.market[symbol][0][1])), self.start) for symbol in SYMBOLS}
        self.world = set_marks(open_world(Decimal(10_000), self.start // DAY_MS), marks)
        self.books = ReceiptLedger()
        self.bar = 0
        self.accepted: dict[str, Receipt] = {}
        self.ended: set[str] = set()
        self.funded: set[tuple[int, str]] = set()
        self.points: list[Decimal] = []

    @property
    def now(self) -> int:
        return int(self.tape.open_at[self.bar])

    # What can happen --------------------------------------------------------------------------------------------------

    @rule(seed=st.integers(0, 2**32 - 1))
    def order(self, seed: int) -> None:
        """The engine sends something: a market or limit open, a close, a reduce or a cancellation."""
        before = self.world
        self.world = random_action(Random(seed), before, self.terms, self.now)
        for order in self.world.orders:
            if order.id not in self.accepted:
                self.accepted[order.id] = Receipt("accepted", self.now, order.symbol, order.id, {"size": order.size})
        self.ended |= {order.id for order in before.orders} - {order.id for order in self.world.orders}
        assert (self.world.cash, self.world.positions) == (before.cash, before.positions), (
            "an order alone moves nothing"
        )

    @rule(symbol=st.sampled_from(SYMBOLS), side=st.sampled_from([1, -1]), lots=st.integers(1, 3000))
    def twice(self, symbol: str, side: int, lots: int) -> None:
        """Two closes at once: the second finds nothing left and is cancelled, it does not open the other way."""
        held = self.world.positions.get(symbol)
        if held is None:
            return
        size = min(lots * ASSETS[symbol].lot, abs(held.size))
        for kind in ("reduce", "close", "close"):
            request = OrderRequest(kind, symbol, -held.side, size if kind == "reduce" else abs(held.size))  # type: ignore[arg-type]
            self.world, order_id, receipt = submit(self.world, request, self.now)
            self.accepted[order_id] = receipt
        del side

    @precondition(lambda self: bool(self.world.orders))
    @rule(place=st.integers(0, 10))
    def withdraw(self, place: int) -> None:
        """An order is cancelled on request."""
        order = self.world.orders[place % len(self.world.orders)]
        self.world, receipt = cancel(self.world, self.terms, order.id, self.now)
        assert (receipt.kind, receipt.order_id) == ("cancelled", order.id)
        self.ended.add(order.id)

    @precondition(lambda self: self.bar < len(self.tape) - 20)
    @rule(bars=st.integers(1, 12))
    def advance(self, bars: int) -> None:
        """Time passes."""
        for _ in range(bars):
            self.step()

    @exact
    def step(self) -> None:
        before, at = self.world, self.now
        stretch = advance(before, self.terms, self.tape, self.bar, self.bar + 1)
        read = codec.parse(PerpWorld, codec.loads(codec.dumps(before)))
        again = advance(read, self.terms, self.tape, self.bar, self.bar + 1)
        assert codec.dumps([again.world, again.receipts]) == codec.dumps([stretch.world, stretch.receipts]), "P18"
        self.world = stretch.world
        self.check_step(before, stretch, at)
        self.points.extend(amounts(stretch.equity))
        self.bar += 1

    # What must hold ---------------------------------------------------------------------------------------------------

    def check_step(self, before: PerpWorld, stretch: Leg, at: int) -> None:
        opens = {
            symbol: Decimal(repr(float(self.tape.open[symbol][self.bar])))
            for symbol in SYMBOLS
            if self.tape.open[symbol][self.bar] == self.tape.open[symbol][self.bar]
        }
        moved = Fraction(0)
        for symbol, held in before.positions.items():
            moved += Fraction(held.size) * (Fraction(stretch.world.marks[symbol]) - Fraction(before.marks[symbol]))
        costs = self.books.fees + self.books.funding + self.books.penalties - self.books.deficit
        for receipt in stretch.receipts:
            size = self.books.size.get(receipt.symbol, Fraction(0))
            self.books.take(receipt)
            if receipt.kind == "filled":
                moved += self.check_fill(receipt, size, opens, stretch.world, at)
            if receipt.kind == "funded":
                self.check_funding(receipt, size, opens, before)
            if receipt.kind in ENDINGS and receipt.order_id:
                self.check_ending(receipt)
        due = {(row.at, row.symbol) for row in self.tape.funding.get(self.bar, ()) if row.symbol in before.positions}
        paid = {(receipt.at, receipt.symbol) for receipt in stretch.receipts if receipt.kind == "funded"}
        assert paid == due, "P9: funding falls due once for what is held, and for nothing else"
        costs -= self.books.fees + self.books.funding + self.books.penalties - self.books.deficit
        change = Fraction(next(iter(amounts(stretch.equity)))) - Fraction(equity(before))
        assert abs(change - moved - costs) <= CLOSE_ENOUGH, "P2: equity moved by more than prices, fees and funding"
        if any(receipt.kind == "liquidated" for receipt in stretch.receipts):
            last = max(place for place, receipt in enumerate(stretch.receipts) if receipt.kind == "liquidated")
            later = [receipt for receipt in stretch.receipts[last + 1 :] if receipt.kind == "filled"]
            assert not stretch.world.positions, "P10: a liquidation leaves a position"
            assert not later, "P10: a cancelled order filled"
            assert stretch.world.cash >= 0, "P10: debt is forgiven and recorded, not kept"
        for symbol in SYMBOLS:
            if symbol not in opens:
                same = (before.marks[symbol], before.marked_at[symbol])
                assert (stretch.world.marks[symbol], stretch.world.marked_at[symbol]) == same, "P19: a bar was invented"

    def check_fill(
        self, receipt: Receipt, size: Fraction, opens: dict[str, Decimal], after: PerpWorld, at: int
    ) -> Fraction:
        facts: Any = receipt.facts
        signed = Fraction(facts["size"]) * (1 if facts["side"] == "buy" else -1)
        assert receipt.at == at
        if facts["reason"] != "liquidation":
            assert receipt.symbol in opens, "P19: a fill without a bar"
        assert facts["size"] > 0
        assert facts["fee_usd"] >= 0, "P8"
        assert facts["slippage_usd"] >= 0, "P8"
        rate = self.terms.taker if facts["liquidity"] == "taker" else self.terms.maker
        assert facts["fee_usd"] == rate * facts["size"] * facts["price"]
        if facts["reason"] == "market":
            away = (facts["price"] - opens[receipt.symbol]) * (1 if signed > 0 else -1)
            assert away >= 0, "P8: slippage in the taker's favour"
            assert facts["slippage_usd"] == facts["size"] * abs(facts["price"] - opens[receipt.symbol])
        if facts["reason"] in ("stop", "take_profit", "liquidation"):
            assert size * signed < 0, "P11: an exit that adds"
            assert receipt.order_id == ""
        else:
            assert receipt.order_id in self.accepted, "P5: a fill without an order"
            assert facts["size"] <= self.accepted[receipt.order_id].facts["size"] or size * signed < 0, "P5"
        return signed * (Fraction(after.marks[receipt.symbol]) - Fraction(facts["price"]))

    def check_funding(self, receipt: Receipt, size: Fraction, opens: dict[str, Decimal], before: PerpWorld) -> None:
        facts: Any = receipt.facts
        assert size != 0, "P9: funding while flat"
        assert (receipt.at, receipt.symbol) not in self.funded, "P9: funding twice"
        self.funded.add((receipt.at, receipt.symbol))
        price = opens.get(receipt.symbol, before.marks[receipt.symbol])
        assert facts["amount_usd"] == facts["size"] * price * facts["rate"]
        assert Fraction(facts["size"]) == size

    def check_ending(self, receipt: Receipt) -> None:
        assert receipt.order_id in self.accepted
        assert receipt.order_id not in self.ended, "P5: an order that was over did something"
        self.ended.add(receipt.order_id)

    @invariant()
    def p1_cash_is_what_came_in_less_what_went_out(self) -> None:
        books = self.books
        expected = 10_000 + books.realised - books.fees - books.funding - books.penalties + books.deficit
        assert abs(Fraction(self.world.cash) - expected) <= CLOSE_ENOUGH
        assert Fraction(self.world.deficit) == books.deficit

    @invariant()
    def p3_a_position_is_the_sum_of_its_fills(self) -> None:
        for symbol in SYMBOLS:
            held = self.world.positions.get(symbol)
            assert Fraction(held.size if held else 0) == self.books.size.get(symbol, 0)
            if held is not None:
                assert abs(Fraction(held.cost) - self.books.cost[symbol]) <= CLOSE_ENOUGH
                assert held.size != 0

    @invariant()
    def p5_working_orders_are_those_that_are_not_over(self) -> None:
        assert {order.id for order in self.world.orders} == set(self.accepted) - self.ended

    @invariant()
    def p16_without_a_fill_equity_stays(self) -> None:
        if not self.books.fills:
            assert set(self.points) <= {Decimal(10_000)}

    @invariant()
    def p18_written_and_read_back_it_is_the_same(self) -> None:
        assert codec.parse(PerpWorld, codec.loads(codec.dumps(self.world))) == self.world


CALM = settings(deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
WorldMachine.TestCase.settings = settings(CALM, max_examples=30, stateful_step_count=30)
TestWorldMachine = WorldMachine.TestCase


class LongMachine(WorldMachine):
    """The same at length."""


LongMachine.TestCase.settings = settings(CALM, max_examples=3_000, stateful_step_count=60)
TestLongWorldMachine = pytest.mark.proof(pytest.mark.timeout(7200)(LongMachine.TestCase))
