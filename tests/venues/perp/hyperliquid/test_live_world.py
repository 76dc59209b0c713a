"""The world of a reported account: what the exchange says is what rules and prompts read, and every fill is counted once."""

from dataclasses import replace
from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core import codec
from pitboss.core.asset import make_asset
from pitboss.core.money import CONTEXT, ZERO
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.hyperliquid.account_reader import (
    Mark,
    ReportedFill,
    ReportedFunding,
    ReportedPosition,
    VenueAccount,
)
from pitboss.venues.perp.hyperliquid.live_world import first_world, index_orders, world_after
from pitboss.venues.perp.hyperliquid.order_building import default_stop
from pitboss.venues.perp.portfolio import portfolio, summary
from pitboss.venues.perp.state import PerpWorld, ReportedWorld, TradingTerms, equity, free_margin, open_world
from pitboss.venues.perp.trades import book
from pitboss.venues.perp.world import halt

TERMS = TradingTerms(
    {"ETH": make_asset("ETH", 4, [(ZERO, 25)])}, daily_loss_halt_pct=Decimal(5), drawdown_halt_pct=Decimal(15)
)
MARKS = {"ETH": Mark(Decimal(2_000), Decimal(2_000), 1_000)}
NO_ORDERS = index_orders(())


def position(size: str, entry: str = "2000") -> ReportedPosition:
    amount = Decimal(size)
    return ReportedPosition(
        "ETH", amount, Decimal(entry), abs(amount) * 2_000, abs(amount) * 700, Decimal(1_500), 3, True
    )


def account(at: int, value: str = "10000", size: str = "0", fills: tuple[ReportedFill, ...] = (), **more: object):
    positions = {} if Decimal(size) == 0 else {"ETH": position(size)}
    return replace(
        VenueAccount(at, Decimal(value), Decimal(123), Decimal(45), Decimal(9_000), positions, (), fills), **more
    )


def fill(number: int, size: str, before: str, at: int = 2_000, price: str = "2000") -> ReportedFill:
    amount = Decimal(size)
    side = 1 if amount > 0 else -1
    return ReportedFill(
        number, "ETH", side, abs(amount), Decimal(price), at, Decimal(before), Decimal(1), True, number, "", False
    )


def start(size: str = "0") -> ReportedWorld:
    step = first_world(account(1_000, size=size), TERMS, MARKS)
    assert step.world is not None
    return step.world


def test_margin_and_liquidation_are_those_that_were_read():
    world = start("2")
    view = portfolio(world, TERMS)
    assert view.equity_usd == equity(world) == 10_000
    assert view.margin_used_usd == 123
    assert free_margin(world) == 10_000 - 123
    assert (view.positions[0].liquidation, view.positions[0].margin_usd) == (1_500, 1_400)


def test_a_world_is_stored_and_read_without_loss_and_keeps_its_type_through_a_halt():
    world = start("2")
    assert codec.parse(ReportedWorld, codec.plain(world)) == world
    halted, receipts = halt(world, TERMS, "operator", 5)
    assert isinstance(halted, ReportedWorld)
    assert (halted.halts, halted.reading, len(receipts)) == (("operator",), world.reading, 1)


def test_worlds_of_the_paper_broker_are_stored_as_before():
    assert set(codec.plain(open_world(Decimal(1), 0))) == {
        "cash", "initial", "peak", "day", "day_reference", "last_equity", "positions", "orders", "leverage", "marks",
        "marked_at", "halts", "next_order", "deficit",
    }  # fmt: skip
    assert PerpWorld.reading.fget(open_world(Decimal(1), 0)) is None  # type: ignore[attr-defined]


def test_a_size_that_fills_do_not_explain_gives_no_world():
    assert world_after(start(), account(2_000, size="1"), NO_ORDERS, TERMS, MARKS).mismatch
    assert world_after(start("1"), account(2_000), NO_ORDERS, TERMS, MARKS).world is None


def test_a_fill_is_counted_once_however_often_it_is_reported():
    one = fill(7, "1", "0")
    step = world_after(start(), account(2_000, size="1", fills=(one,)), NO_ORDERS, TERMS, MARKS)
    assert [receipt.kind for receipt in step.receipts] == ["filled"]
    assert step.world is not None
    again = world_after(step.world, account(3_000, size="1", fills=(one,)), NO_ORDERS, TERMS, MARKS)
    assert again.receipts == ()


def test_a_reversal_is_a_close_and_an_open():
    step = world_after(start("1"), account(2_000, size="-2", fills=(fill(7, "-3", "1"),)), NO_ORDERS, TERMS, MARKS)
    sizes = [(receipt.facts["side"], receipt.facts["size"], receipt.facts["fee_usd"]) for receipt in step.receipts]
    assert [size for _, size, _ in sizes] == [1, 2]
    assert sum(Decimal(fee) for _, _, fee in sizes) == pytest.approx(Decimal(1))
    assert step.world is not None
    assert step.world.positions["ETH"].opened_at == 2_000


def test_an_account_that_is_adopted_with_a_position_has_a_trade_from_its_mark():
    step = first_world(account(1_000, size="2"), TERMS, MARKS)
    trades = book(step.receipts)
    assert [(trade.symbol, trade.size, trade.entry_price) for trade in trades.open] == [("ETH", 2, 2_000)]


def test_funding_is_a_receipt_with_the_sign_of_the_paper_world():
    payment = ReportedFunding("ETH", 5_000, Decimal("-1.5"), Decimal(1), Decimal("0.0001"))
    step = world_after(start("1"), account(6_000, size="1", funding=(payment,)), NO_ORDERS, TERMS, MARKS)
    assert [(receipt.kind, receipt.facts["amount_usd"]) for receipt in step.receipts] == [("funded", Decimal("1.5"))]
    assert step.world is not None
    assert world_after(step.world, account(7_000, size="1", funding=(payment,)), NO_ORDERS, TERMS, MARKS).receipts == ()


@given(
    changes=st.lists(st.integers(-5, 5).filter(bool), min_size=1, max_size=12), seed=st.randoms(use_true_random=False)
)
def test_reports_may_be_doubled_and_shuffled_and_split_into_reads(changes: list[int], seed):
    with localcontext(CONTEXT):
        fills: list[ReportedFill] = []
        size = 0
        for number, change in enumerate(changes):
            fills.append(fill(number + 1, str(change), str(size), at=2_000 + number * (number % 2)))
            size += change
        world, receipts = start(), list[Receipt]()
        shuffled = [*fills, *fills]
        seed.shuffle(shuffled)
        reported = tuple(sorted({one.id: one for one in shuffled}.values(), key=lambda one: (one.at, -one.id)))
        step = world_after(world, account(9_000, size=str(size), fills=reported), NO_ORDERS, TERMS, MARKS)
        assert step.world is not None
        receipts += step.receipts
        again = world_after(step.world, account(9_500, size=str(size), fills=reported), NO_ORDERS, TERMS, MARKS)
        assert again.receipts == ()
        signed = sum(
            (1 if one.facts["side"] == "buy" else -1) * Decimal(one.facts["size"])
            for one in receipts
            if one.kind == "filled"
        )
        assert signed == size
        total = sum(trade.size for trade in book(receipts).open)
        assert total == size


@given(
    size=st.decimals(Decimal("0.001"), Decimal(100), places=3),
    side=st.sampled_from([1, -1]),
    liquidation=st.one_of(st.none(), st.decimals(Decimal(100), Decimal(4_000), places=1)),
    lost=st.integers(0, 900),
)
def test_a_default_stop_is_on_the_losing_side_and_before_liquidation(
    size: Decimal, side: int, liquidation: Decimal | None, lost: int
):
    world = replace(start(), cash=Decimal(10_000 - lost))
    mark = Decimal(2_000)
    stop = default_stop(world, TERMS, side, size, mark, liquidation)
    assert side * (mark - stop) > 0
    assert stop > 0
    if liquidation is not None and side * (mark - liquidation) > 0:
        assert side * (stop - liquidation) > 0


def test_a_default_stop_loses_what_is_left_of_the_days_cap():
    world = replace(start(), cash=Decimal(9_900))
    stop = default_stop(world, TERMS, 1, Decimal(10), Decimal(2_000), None)
    assert (Decimal(2_000) - stop) * 10 == 500 - 100


def test_the_summary_of_a_reported_world_has_the_fields_of_every_world():
    assert set(summary(start("1"))) == set(summary(open_world(Decimal(1), 0)))
