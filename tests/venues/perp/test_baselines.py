"""The baselines: cash stays, and buying everything at the first tick costs and earns what the world says it does."""

from decimal import Decimal
from random import Random
from typing import Any

import pytest

from example_counts import seeds
from pitboss.core.curve import amounts
from pitboss.core.instant import HOUR_MS
from pitboss.core.money import CONTEXT, exact, round_down
from pitboss.venues.perp.baselines import buy_and_hold, cash
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.state import TradingTerms
from pitboss.venues.perp.tape import Tape
from pitboss.venues.perp.testing import make_tape_of
from pitboss.venues.perp.world import OrderRequest, advance, submit
from venues.perp.markets import ASSETS, BASE, MIDNIGHT, fresh_world, random_rows, random_tape

TERMS = TradingTerms(ASSETS, daily_loss_halt_pct=Decimal(1), drawdown_halt_pct=Decimal(1))
NO_HALTS = TradingTerms(ASSETS)


@exact
def reference_curve(tape: Tape, initial: Decimal) -> tuple[list[Decimal], list[Any]]:
    """Bought by hand and walked bar by bar with the exact step."""
    world = fresh_world(tape, initial)
    share = CONTEXT.divide(initial, 1 + NO_HALTS.taker) / len(tape.symbols)
    for symbol in tape.symbols:
        size = round_down(share / world.marks[symbol], ASSETS[symbol].lot)
        request = OrderRequest("market", symbol, 1, size, ASSETS[symbol].max_leverage)
        world = submit(world, request, int(tape.open_at[0]))[0]
    points, receipts = [], []
    for index in range(len(tape)):
        stretch = advance(world, NO_HALTS, tape, index, index + 1)
        world = stretch.world
        points.extend(amounts(stretch.equity))
        receipts.extend(stretch.receipts)
    return points, receipts


def bought_baseline(tape: Tape, initial: Decimal = Decimal(10_000), caps: PerpCaps | None = None) -> Any:
    world = fresh_world(tape, initial)
    marks = {symbol: (price, world.marked_at[symbol]) for symbol, price in world.marks.items()}
    start = int(tape.open_at[0])
    return buy_and_hold(initial, tape, TERMS, marks, start, int(tape.open_at[-1]) + BASE, caps=caps)


@pytest.mark.parametrize("seed", seeds(*range(25), quick=8))
def test_buy_and_hold_is_what_buying_by_hand_and_waiting_gives(seed: int) -> None:
    tape = random_tape(Random(seed))
    outcome = bought_baseline(tape)
    points, receipts = reference_curve(tape, Decimal(10_000))
    assert len(outcome.equity_usd) == len(tape)
    for actual, want in zip(outcome.equity_usd, points, strict=True):
        assert abs(float(actual) - float(want)) < 1e-6
    for kind, fact in (("filled", "fee_usd"), ("funded", "amount_usd"), ("filled", "slippage_usd")):
        actual = sum(float(receipt.facts[fact]) for receipt in outcome.receipts if receipt.kind == kind)
        want = sum(float(receipt.facts[fact]) for receipt in receipts if receipt.kind == kind)
        assert actual == pytest.approx(want, abs=1e-6)


def test_buy_and_hold_stakes_one_times_equity_split_equally_and_knows_no_halt() -> None:
    rows = {
        symbol: [(MIDNIGHT + number * BASE, price, price, price * 0.9, price * 0.9) for number in range(3)]
        for symbol, price in (("AAA", 10.0), ("ETH", 2_500.0))
    }
    outcome = bought_baseline(make_tape_of(rows))
    fills = [receipt for receipt in outcome.receipts if receipt.kind == "filled"]
    assert [receipt.symbol for receipt in fills] == ["AAA", "ETH"]
    share = 10_000 / 1.00045 / 2
    for receipt in fills:
        notional = float(receipt.facts["size"]) * float(rows[receipt.symbol][0][1])
        assert share - 1 <= notional <= share
    assert not [receipt for receipt in outcome.receipts if receipt.kind == "halted"]


@pytest.mark.parametrize(
    ("caps", "shares"),
    [
        (PerpCaps(max_position_pct=Decimal(20), symbols=("AAA", "ETH")), {"AAA": 2_000, "ETH": 2_000}),
        (PerpCaps(Decimal(20), max_total_exposure_pct=Decimal(30), symbols=("AAA", "ETH")), {"AAA": 1_500, "ETH": 1_500}),
        (PerpCaps(Decimal(20), symbols=("AAA", "ETH"), allowed_symbols=("ETH",)), {"ETH": 2_000}),
        (PerpCaps(Decimal(300), symbols=("AAA", "ETH")), {"AAA": 10_000 / 1.00045 / 2, "ETH": 10_000 / 1.00045 / 2}),
    ],
)  # fmt: skip
def test_capped_buy_and_hold_holds_what_the_agent_may(caps: PerpCaps, shares: dict[str, float]) -> None:
    rows = {
        symbol: [(MIDNIGHT + number * BASE, price, price, price, price) for number in range(3)]
        for symbol, price in (("AAA", 10.0), ("ETH", 2_500.0))
    }
    fills = [receipt for receipt in bought_baseline(make_tape_of(rows), caps=caps).receipts if receipt.kind == "filled"]
    held = {receipt.symbol: float(receipt.facts["size"]) * rows[receipt.symbol][0][1] for receipt in fills}
    assert held.keys() == shares.keys()
    assert all(shares[symbol] - 1 <= usd <= shares[symbol] for symbol, usd in held.items())


def test_a_symbol_without_a_bar_yet_is_bought_when_it_has_one() -> None:
    late = random_rows(Random(1), "ETH", MIDNIGHT + 5 * BASE, 20, crooked=False)
    early = [(MIDNIGHT + number * BASE, 10.0, 10.0, 10.0, 10.0) for number in range(30)]
    tape = make_tape_of({"AAA": early, "ETH": late})
    start = int(tape.open_at[0])
    outcome = buy_and_hold(Decimal(10_000), tape, TERMS, {"AAA": (Decimal(10), start)}, start, start + HOUR_MS)
    fills = {receipt.symbol: receipt.at for receipt in outcome.receipts if receipt.kind == "filled"}
    assert fills == {"AAA": start, "ETH": late[0][0]}


def test_a_symbol_without_a_single_bar_is_not_bought() -> None:
    early = [(MIDNIGHT + number * BASE, 10.0, 10.0, 10.0, 10.0) for number in range(30)]
    tape = make_tape_of({"AAA": early, "ETH": []})
    start = int(tape.open_at[0])
    outcome = buy_and_hold(Decimal(10_000), tape, TERMS, {}, start, start + HOUR_MS)
    assert [receipt.symbol for receipt in outcome.receipts if receipt.kind == "filled"] == ["AAA"]


def test_cash_stays_what_it_was() -> None:
    tape = random_tape(Random(3))
    outcome = cash(Decimal("1234.5"), tape, 0, 1)
    assert set(map(float, outcome.equity_usd)) == {1234.5}
    assert len(outcome.equity_usd) == len(tape)
    assert list(outcome.receipts) == []
