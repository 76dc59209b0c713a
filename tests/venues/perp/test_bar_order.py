"""The inside of one bar, by hand: what touches, at which price, in which order (PERP §6, steps 1 to 6)."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from pitboss.core.instant import HOUR_MS, MINUTE_MS
from pitboss.core.money import exact
from pitboss.venues.perp.state import PerpWorld, Position, TradingTerms
from pitboss.venues.perp.testing import Row, make_tape_of
from pitboss.venues.perp.world import OrderRequest, advance, advance_one_bar, submit
from venues.perp.markets import ASSETS, BASE, MIDNIGHT, fresh_world

NOON = MIDNIGHT + 12 * HOUR_MS
PLAIN = TradingTerms(ASSETS, slippage_bps_per_million=Decimal(0))


def bar(opens: float, high: float, low: float, close: float, number: int = 0) -> Row:
    return NOON + number * BASE, opens, high, low, close


def world_with_position(
    tape: Any,
    size: str = "100",
    stop: str | None = None,
    goal: str | None = None,
    symbol: str = "AAA",
    cash: int = 10_000,
) -> PerpWorld:
    price = Decimal(repr(float(tape.open[symbol][0])))
    position = Position(
        symbol,
        Decimal(size),
        Decimal(size) * price,
        NOON,
        stop and Decimal(stop),
        goal and Decimal(goal),  # type: ignore[arg-type]
    )
    return replace(fresh_world(tape, Decimal(cash)), positions={symbol: position}, leverage={symbol: 5})


def fills(world: PerpWorld, tape: Any, terms: TradingTerms = PLAIN) -> list[tuple[str, str, str]]:
    """(symbol, reason, price) of each fill over the whole tape."""
    return [
        (receipt.symbol, str(receipt.facts["reason"]), f"{receipt.facts['price']:f}".rstrip("0").rstrip("."))
        for receipt in advance(world, terms, tape, 0, len(tape)).receipts
        if receipt.kind == "filled"
    ]


@pytest.mark.parametrize(
    ("size", "row", "expected"),
    [
        ("100", bar(10, 11, 9.5, 10.5), [("AAA", "stop", "9.5")]),
        ("100", bar(10, 11, 9.501, 10.5), []),
        ("100", bar(9.4, 11, 9.2, 10.5), [("AAA", "stop", "9.4")]),
        ("-100", bar(10, 10.5, 9, 9.5), [("AAA", "stop", "10.5")]),
        ("-100", bar(10, 10.499, 9, 9.5), []),
        ("-100", bar(10.6, 11, 9, 9.5), [("AAA", "stop", "10.6")]),
    ],
)
def test_a_stop_fires_when_touched_and_at_the_open_on_a_gap(size: str, row: Row, expected: list[Any]) -> None:
    tape = make_tape_of({"AAA": [row]})
    assert fills(world_with_position(tape, size, stop="9.5" if size == "100" else "10.5"), tape) == expected


@pytest.mark.parametrize(
    ("size", "row", "expected"),
    [
        ("100", bar(10, 10.5, 9.9, 10), []),
        ("100", bar(10, 10.501, 9.9, 10), [("AAA", "take_profit", "10.5")]),
        ("100", bar(10.5, 10.5, 9.9, 10), [("AAA", "take_profit", "10.5")]),
        ("100", bar(10.7, 10.8, 9.9, 10), [("AAA", "take_profit", "10.7")]),
        ("-100", bar(10, 10.1, 9.5, 10), []),
        ("-100", bar(10, 10.1, 9.499, 10), [("AAA", "take_profit", "9.5")]),
        ("-100", bar(9.2, 10.1, 9.1, 10), [("AAA", "take_profit", "9.2")]),
    ],
)
def test_a_take_profit_needs_a_price_strictly_beyond_it_or_an_open_at_it(
    size: str, row: Row, expected: list[Any]
) -> None:
    tape = make_tape_of({"AAA": [row]})
    assert fills(world_with_position(tape, size, goal="10.5" if size == "100" else "9.5"), tape) == expected


def test_in_a_bar_that_touches_both_the_stop_comes_first() -> None:
    tape = make_tape_of({"AAA": [bar(10, 12, 9, 11)]})
    assert fills(world_with_position(tape, stop="9.5", goal="10.5"), tape) == [("AAA", "stop", "9.5")]


def test_a_resting_limit_that_a_later_bar_opens_through_makes_and_a_fresh_one_takes() -> None:
    tape = make_tape_of({"AAA": [bar(10, 11, 9.9, 10), bar(9.5, 10, 9.4, 9.6, 1)]})
    resting = OrderRequest("limit", "AAA", 1, Decimal(10), 1, limit=Decimal("9.7"))
    world = submit(fresh_world(tape), resting, NOON)[0]
    (fill,) = [receipt for receipt in advance(world, PLAIN, tape, 0, 2).receipts if receipt.kind == "filled"]
    assert (fill.at, fill.facts["price"], fill.facts["liquidity"]) == (NOON + BASE, Decimal("9.5"), "maker")
    late = submit(fresh_world(tape), resting, NOON + BASE)[0]
    (fill,) = [receipt for receipt in advance(late, PLAIN, tape, 1, 2).receipts if receipt.kind == "filled"]
    assert (fill.facts["price"], fill.facts["liquidity"]) == (Decimal("9.5"), "taker")


def test_a_stop_acts_in_the_bar_of_a_market_fill_and_after_the_bar_of_a_resting_fill() -> None:
    rows = [bar(10, 10.1, 9, 9.5), bar(9.5, 9.6, 9.3, 9.4, 1)]
    tape = make_tape_of({"AAA": rows})
    market = OrderRequest("market", "AAA", 1, Decimal(10), 1, stop=Decimal("9.45"))
    world = submit(fresh_world(tape), market, NOON)[0]
    assert fills(world, tape) == [("AAA", "market", "10"), ("AAA", "stop", "9.45")]
    resting = replace(market, kind="limit", limit=Decimal("9.5"))
    world = submit(fresh_world(tape), resting, NOON)[0]
    stretch = advance(world, PLAIN, tape, 0, 2)
    fill_reasons = [(receipt.at, receipt.facts["reason"]) for receipt in stretch.receipts if receipt.kind == "filled"]
    assert fill_reasons == [(NOON, "limit"), (NOON + BASE, "stop")]


def test_market_orders_fill_before_limits_and_both_in_the_order_they_were_sent() -> None:
    tape = make_tape_of({"AAA": [bar(10, 10.5, 9.9, 10)]})
    world = fresh_world(tape)
    for kind, size in (("limit", 1), ("market", 2), ("limit", 3), ("market", 4)):
        limit = Decimal("10.2") if kind == "limit" else None
        world = submit(world, OrderRequest(kind, "AAA", 1, Decimal(size), 1, limit=limit), NOON)[0]  # type: ignore[arg-type]
    sizes = [
        receipt.facts["size"] for receipt in advance(world, PLAIN, tape, 0, 1).receipts if receipt.kind == "filled"
    ]
    assert sizes == [2, 4, 1, 3]


def test_an_open_that_meets_an_opposite_position_is_cancelled_with_its_reason() -> None:
    tape = make_tape_of({"AAA": [bar(10, 10.5, 9.9, 10)]})
    world = submit(world_with_position(tape), OrderRequest("market", "AAA", -1, Decimal(5), 1), NOON)[0]
    (receipt,) = advance(world, PLAIN, tape, 0, 1).receipts
    assert (receipt.kind, receipt.facts["reason"]) == ("cancelled", "opposite_position")


def test_a_liquidation_cancels_orders_and_records_what_cash_could_not_pay() -> None:
    tape = make_tape_of({"AAA": [bar(10, 10.5, 9, 10), bar(5, 5, 5, 5, 1)]})
    world = replace(world_with_position(tape, "10000"), cash=Decimal(30_000))
    world = submit(world, OrderRequest("limit", "AAA", 1, Decimal(1), 5, limit=Decimal(1)), NOON)[0]
    stretch = advance(world, PLAIN, tape, 0, 2)
    kinds = [(receipt.kind, receipt.at) for receipt in stretch.receipts if receipt.kind != "funded"]
    assert kinds == [("filled", NOON + BASE), ("cancelled", NOON + BASE), ("liquidated", NOON + BASE)]
    assert (stretch.world.cash, stretch.world.positions, stretch.world.orders) == (0, {}, ())
    fill, _, end = stretch.receipts
    lost = Decimal(10_000) * 5 + fill.facts["fee_usd"] + fill.facts["penalty_usd"]  # type: ignore[operator]
    assert end.facts["deficit_usd"] == stretch.world.deficit == lost - 30_000
    assert fill.facts["penalty_usd"] == Decimal(10_000) * 5 * Decimal("0.005")


@exact
def test_a_stop_before_the_breach_saves_the_account_and_one_after_it_does_not() -> None:
    tape = make_tape_of({"AAA": [bar(10, 10, 8, 9)]})
    free = replace(PLAIN, taker_bps=Decimal(0), penalty_bps=Decimal(0))
    # 5,000 units at 10 with 5,500 of cash: maintenance is reached a little above 9.2
    for stop, reason in (("9.5", "stop"), ("8.5", "liquidation")):
        (fill,) = fills(world_with_position(tape, "5000", stop=stop, cash=5_500), tape, free)
        assert fill[1] == reason


def test_funding_is_due_at_the_hour_of_its_row_however_late_in_the_hour_the_row_is() -> None:
    rows = [bar(10, 10, 10, 10, number) for number in range(4)]
    tape = make_tape_of({"AAA": rows}, funding={"AAA": [(NOON + 13 * MINUTE_MS, 0.001)]})
    (payment,) = advance(world_with_position(tape), PLAIN, tape, 0, 1).receipts
    assert (payment.kind, payment.facts["amount_usd"]) == ("funded", Decimal("1.000"))
    assert advance(world_with_position(tape), PLAIN, tape, 1, 4).receipts == ()


def test_funding_comes_before_the_orders_of_its_bar() -> None:
    tape = make_tape_of({"AAA": [bar(10, 10, 10, 10)]}, funding={"AAA": [(NOON, 0.001)]})
    opening = submit(fresh_world(tape), OrderRequest("market", "AAA", 1, Decimal(100), 1), NOON)[0]
    assert [receipt.kind for receipt in advance(opening, PLAIN, tape, 0, 1).receipts] == ["filled"]
    closing = submit(world_with_position(tape), OrderRequest("close", "AAA", -1, Decimal(100)), NOON)[0]
    assert [receipt.kind for receipt in advance(closing, PLAIN, tape, 0, 1).receipts] == ["funded", "filled"]


@pytest.mark.parametrize("rate", [0.04, -0.04])
@exact
def test_funding_alone_can_liquidate_in_the_middle_of_a_calm_day(rate: float) -> None:
    """Prices stand still and every hour costs a twenty-fifth of the notional: the look-ahead must see it coming."""
    rows = [bar(10, 10, 10, 10, number) for number in range(60)]
    tape = make_tape_of({"AAA": rows}, funding={"AAA": [(NOON + hour * HOUR_MS, rate) for hour in range(1, 5)]})
    world = world_with_position(tape, "1500" if rate > 0 else "-1500", cash=2_000)
    stretch = advance(world, PLAIN, tape, 0, 60)
    slow, receipts = world, []
    for index in range(60):
        slow, happened, _ = advance_one_bar(slow, PLAIN, tape, index)
        receipts.extend(happened)
    assert stretch.receipts == tuple(receipts)
    assert [receipt.at for receipt in receipts if receipt.kind == "liquidated"] == [NOON + 3 * HOUR_MS]


@exact
def test_a_halt_can_come_from_funding_alone_and_the_peak_may_lie_in_funding_received() -> None:
    """Received first and paid back later: the fall is measured from the peak in between."""
    rows = [bar(10, 10, 10, 10, number) for number in range(40)]
    rates = {"AAA": [(NOON + HOUR_MS, -0.2), (NOON + 2 * HOUR_MS, 0.2), (NOON + 3 * HOUR_MS, 0.1)]}
    terms = replace(PLAIN, drawdown_halt_pct=Decimal(15))
    tape = make_tape_of({"AAA": rows}, funding=rates)
    stretch = advance(world_with_position(tape, "1000"), terms, tape, 0, 40)
    halted = [receipt for receipt in stretch.receipts if receipt.kind == "halted"]
    assert [(receipt.at, receipt.facts["reference_usd"]) for receipt in halted] == [
        (NOON + 2 * HOUR_MS + BASE, Decimal(12_000))
    ]


def test_a_missing_bar_keeps_the_mark_and_makes_orders_wait() -> None:
    """P19: nothing is filled forward as if it had traded."""
    tape = make_tape_of(
        {
            "AAA": [bar(10, 10, 10, 10), bar(12, 12, 12, 12, 2)],
            "ETH": [bar(2500, 2500, 2500, 2500, n) for n in range(3)],
        }
    )
    world = submit(
        world_with_position(tape, symbol="ETH", size="0.1"),
        OrderRequest("market", "AAA", 1, Decimal(10), 1),
        NOON + BASE,
    )[0]
    middle = advance(world, PLAIN, tape, 0, 2)
    assert [receipt.kind for receipt in middle.receipts] == []
    assert (middle.world.marks["AAA"], middle.world.marked_at["AAA"]) == (Decimal(10), NOON + BASE)
    (fill,) = advance(middle.world, PLAIN, tape, 2, 3).receipts
    assert (fill.symbol, fill.at, fill.facts["price"]) == ("AAA", NOON + 2 * BASE, Decimal(12))
