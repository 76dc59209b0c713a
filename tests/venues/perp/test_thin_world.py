"""Fills that take no more than a share of a bar's volume: what fills, what is cancelled, what goes on later."""

from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import strategies as st

from engine.invariant import invariant, long_versions
from pitboss.core import codec
from pitboss.core.money import exact
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.state import PerpWorld, Position, TradingTerms
from pitboss.venues.perp.tape import Tape
from pitboss.venues.perp.testing import make_tape_of
from pitboss.venues.perp.world import OrderRequest, advance, close_all, submit
from venues.perp.markets import ASSETS, BASE, MIDNIGHT, fresh_world, history_inputs, run_history
from venues.perp.test_world_machine import ReceiptLedger

AT = MIDNIGHT + 6 * BASE
TERMS = TradingTerms(ASSETS, max_volume_pct=Decimal(10), slippage_bps_per_million=Decimal(0), taker_bps=Decimal(0))
SEEDS = st.integers(0, 2**32 - 1)


def tape_of(*bars: tuple[float, float, float, float, float]) -> Tape:
    """Bars of AAA: open, high, low, close, volume."""
    return make_tape_of({"AAA": [(AT + number * BASE, *bar) for number, bar in enumerate(bars)]})


def flat_bar(volume: float) -> tuple[float, float, float, float, float]:
    return 10.0, 10.0, 10.0, 10.0, volume


def world_with_position(tape: Tape, size: int, **more: Any) -> PerpWorld:
    """An account that has held AAA since before, bought at 10."""
    position = Position("AAA", Decimal(size), Decimal(size) * 10, AT, **more)
    return replace(fresh_world(tape, Decimal(10**6)), positions={"AAA": position}, leverage={"AAA": 20})


def receipt_rows(receipts: Any) -> list[tuple[Any, ...]]:
    """Bar, kind, size or what was left, and the reason, of each receipt."""
    return [
        (
            (receipt.at - AT) // BASE,
            receipt.kind,
            receipt.facts.get("size", receipt.facts.get("left")),
            receipt.facts.get("reason"),
        )
        for receipt in receipts
    ]


def with_orders(tape: Tape, *requests: OrderRequest, world: PerpWorld | None = None) -> PerpWorld:
    world = world or fresh_world(tape, Decimal(10**6))
    for request in requests:
        world = submit(world, request, AT)[0]
    return world


# Each kind of order ---------------------------------------------------------------------------------------------------


def test_the_rest_of_a_market_order_is_cancelled() -> None:
    tape = tape_of(flat_bar(1_000), flat_bar(1_000))
    world = with_orders(tape, OrderRequest("market", "AAA", 1, Decimal(250), 3))
    stretch = advance(world, TERMS, tape, 0, 2)
    assert receipt_rows(stretch.receipts) == [(0, "filled", 100, "market"), (0, "cancelled", 150, "volume")]
    assert (stretch.world.positions["AAA"].size, stretch.world.orders) == (100, ())


def test_where_nothing_trades_a_market_order_is_cancelled_whole() -> None:
    tape = tape_of(flat_bar(0), flat_bar(1_000))
    stretch = advance(with_orders(tape, OrderRequest("market", "AAA", 1, Decimal(250), 3)), TERMS, tape, 0, 2)
    assert receipt_rows(stretch.receipts) == [(0, "cancelled", 250, "volume")]


def test_the_orders_of_a_bar_share_its_volume_in_the_order_of_submission() -> None:
    tape = tape_of(flat_bar(1_000))
    orders = [OrderRequest("market", "AAA", 1, Decimal(size), 3) for size in (60, 60, 60)]
    stretch = advance(with_orders(tape, *orders), TERMS, tape, 0, 1)
    assert receipt_rows(stretch.receipts) == [
        (0, "filled", 60, "market"),
        (0, "filled", 40, "market"),
        (0, "cancelled", 20, "volume"),
        (0, "cancelled", 60, "volume"),
    ]


def test_the_room_is_rounded_down_to_the_lot() -> None:
    tape = tape_of(flat_bar(12.9))
    stretch = advance(with_orders(tape, OrderRequest("market", "AAA", 1, Decimal(5), 3)), TERMS, tape, 0, 1)
    assert receipt_rows(stretch.receipts)[0] == (0, "filled", Decimal("1.2"), "market")


def test_a_close_takes_what_it_can_and_its_rest_is_cancelled() -> None:
    tape = tape_of(flat_bar(1_000), flat_bar(5_000))
    world = with_orders(tape, OrderRequest("close", "AAA", -1, Decimal(250)), world=world_with_position(tape, 250))
    stretch = advance(world, TERMS, tape, 0, 2)
    assert receipt_rows(stretch.receipts) == [(0, "filled", 100, "market"), (0, "cancelled", 150, "volume")]
    assert stretch.world.positions["AAA"].size == 150


def test_a_limit_works_on_with_what_is_left_and_makes_from_then_on() -> None:
    tape = tape_of(flat_bar(1_000), flat_bar(0), (9.9, 9.9, 9.9, 9.9, 1_000.0), flat_bar(9_000))
    world = with_orders(tape, OrderRequest("limit", "AAA", 1, Decimal(250), 3, limit=Decimal(10), stop=Decimal(9)))
    stretch = advance(world, TERMS, tape, 0, 4)
    assert receipt_rows(stretch.receipts) == [
        (0, "filled", 100, "limit"),
        (2, "filled", 100, "limit"),
        (3, "filled", 50, "limit"),
    ]
    assert [receipt.facts["liquidity"] for receipt in stretch.receipts] == ["taker", "maker", "maker"]
    assert (stretch.world.positions["AAA"].stop, stretch.world.orders) == (Decimal(9), ())


def test_the_rest_of_a_limit_makes_in_the_very_next_bar() -> None:
    tape = tape_of(flat_bar(1_000), flat_bar(1_000))
    world = with_orders(tape, OrderRequest("limit", "AAA", 1, Decimal(150), 3, limit=Decimal(10)))
    stretch = advance(world, TERMS, tape, 0, 2)
    assert [receipt.facts["liquidity"] for receipt in stretch.receipts] == ["taker", "maker"]


def test_a_limit_whose_first_bar_had_no_volume_makes_later() -> None:
    tape = tape_of(flat_bar(0), flat_bar(9_000))
    world = with_orders(tape, OrderRequest("limit", "AAA", 1, Decimal(250), 3, limit=Decimal(10)))
    stretch = advance(world, TERMS, tape, 0, 2)
    assert [(receipt.at, receipt.facts["liquidity"]) for receipt in stretch.receipts] == [(AT + BASE, "maker")]


def test_a_touched_stop_goes_on_at_the_next_opens_also_if_the_price_comes_back() -> None:
    dip = (10.0, 10.0, 8.0, 9.5, 1_000.0)
    tape = tape_of(
        dip, (11.0, 11.0, 10.5, 11.0, 500.0), (11.5, 12.0, 11.0, 11.0, 0.0), (12.0, 12.0, 12.0, 12.0, 9_000.0)
    )
    stretch = advance(world_with_position(tape, 250, stop=Decimal(9)), TERMS, tape, 0, 4)
    assert receipt_rows(stretch.receipts) == [
        (0, "filled", 100, "stop"),
        (1, "filled", 50, "stop"),
        (3, "filled", 100, "stop"),
    ]
    assert [receipt.facts["price"] for receipt in stretch.receipts] == [9, 11, 12]
    assert stretch.world.positions == {}


def test_a_stop_touched_without_any_volume_still_closes_at_the_next_open() -> None:
    tape = tape_of((10.0, 10.0, 8.0, 9.5, 0.0), (11.0, 11.0, 10.5, 11.0, 9_000.0))
    stretch = advance(world_with_position(tape, 250, stop=Decimal(9)), TERMS, tape, 0, 2)
    assert receipt_rows(stretch.receipts) == [(1, "filled", 250, "stop")]


def test_a_stop_that_goes_on_gives_way_to_a_liquidation_that_is_due() -> None:
    tape = tape_of((10.0, 10.0, 8.0, 8.0, 1_000.0), (7.0, 7.0, 7.0, 7.0, 9_000.0))
    world = replace(world_with_position(tape, 250, stop=Decimal(9)), cash=Decimal(560))
    stretch = advance(world, TERMS, tape, 0, 2)
    assert receipt_rows(stretch.receipts) == [
        (0, "filled", 100, "stop"),
        (1, "filled", 150, "liquidation"),
        (1, "liquidated", None, None),
    ]


def test_a_take_profit_waits_for_its_price_again() -> None:
    up = (10.0, 12.0, 10.0, 10.0, 1_000.0)
    tape = tape_of(up, flat_bar(9_000), up, up)
    stretch = advance(world_with_position(tape, 250, take_profit=Decimal(11)), TERMS, tape, 0, 4)
    assert receipt_rows(stretch.receipts) == [
        (0, "filled", 100, "take_profit"),
        (2, "filled", 100, "take_profit"),
        (3, "filled", 50, "take_profit"),
    ]


def test_a_liquidation_goes_on_bar_by_bar_until_nothing_is_left_and_forgives_the_debt_then() -> None:
    fall = (8.0, 8.0, 8.0, 8.0, 4_000.0)
    tape = tape_of(fall, fall, fall, fall)
    world = replace(world_with_position(tape, 1_000), cash=Decimal(10))
    stretch = advance(world, TERMS, tape, 0, 4)
    assert receipt_rows(stretch.receipts) == [
        (0, "filled", 400, "liquidation"),
        (0, "liquidated", 1, None),
        (1, "filled", 400, "liquidation"),
        (1, "liquidated", 1, None),
        (2, "filled", 200, "liquidation"),
        (2, "liquidated", None, None),
    ]
    assert [receipt.facts["deficit_usd"] > 0 for receipt in stretch.receipts if receipt.kind == "liquidated"] == [
        False,
        False,
        True,
    ]
    assert (stretch.world.positions, stretch.world.cash) == ({}, 0)


def test_a_liquidation_that_has_closed_enough_stops() -> None:
    tape = tape_of((9.0, 9.0, 9.0, 9.0, 9_500.0), (9.0, 9.0, 9.0, 9.0, 9_500.0))
    world = replace(world_with_position(tape, 1_000), cash=Decimal(1_100))  # equity 100 against a maintenance of 225
    stretch = advance(world, replace(TERMS, penalty_bps=Decimal(0)), tape, 0, 2)
    assert receipt_rows(stretch.receipts) == [(0, "filled", 950, "liquidation"), (0, "liquidated", 1, None)]
    assert stretch.world.positions["AAA"].size == 50


def test_an_order_that_cannot_be_paid_for_is_refused_however_little_of_it_would_fill() -> None:
    tape = tape_of(flat_bar(10))
    world = with_orders(
        tape, OrderRequest("market", "AAA", 1, Decimal(2_000), 1), world=fresh_world(tape, Decimal(10_000))
    )
    assert receipt_rows(advance(world, TERMS, tape, 0, 1).receipts) == [(0, "rejected", None, "margin")]


def test_closing_at_the_end_is_a_valuation_and_needs_no_volume() -> None:
    tape = tape_of(flat_bar(0))
    stretch = close_all(advance(world_with_position(tape, 250), TERMS, tape, 0, 1).world, TERMS, AT + BASE, BASE)
    assert stretch.world.positions == {}


# Always ---------------------------------------------------------------------------------------------------------------


@invariant(SEEDS, quick=15, proof=10_000)
@exact
def test_no_bar_gives_more_than_its_share_and_no_size_comes_from_nothing(seed: int) -> None:
    """Per bar and symbol a share of the volume in whole lots; per order what was sent; per position no flip; every cent."""
    tape, terms = history_inputs(seed, thin=True)
    terms = replace(terms, max_volume_pct=terms.max_volume_pct or Decimal(10))
    books, accepted, done = ReceiptLedger(), {}, defaultdict(Decimal)
    filled: dict[tuple[str, int], Decimal] = defaultdict(Decimal)
    last: list[PerpWorld] = []

    def play(world: PerpWorld, start: int, stop: int) -> PerpWorld:
        for order in world.orders:
            accepted.setdefault(order.id, order)
        stretch = advance(world, terms, tape, start, stop)
        for receipt in stretch.receipts:
            books.take(receipt)  # refuses a fill that turns a position round
            _count(receipt, accepted, done, filled)
        for order in stretch.world.orders:
            assert order.size == accepted[order.id].size - done[order.id] > 0
        last[:] = [stretch.world]
        return stretch.world

    run_history(seed, play, thin=True)
    share = terms.max_volume_pct or Decimal(0)
    for (symbol, at), size in filled.items():
        volume = tape.volume[symbol][tape.index_of(at)]
        assert size <= Decimal(repr(float(volume))) * share / 100
        assert size % ASSETS[symbol].lot == 0
    for symbol, held in last[0].positions.items():
        assert held.size == books.size[symbol]
    spent = books.fees + books.funding + books.penalties - books.deficit
    assert abs(last[0].cash - 10_000 - Decimal(float(books.realised - spent))) < Decimal("1e-3")


def _count(receipt: Receipt, accepted: dict[str, Any], done: dict[str, Decimal], filled: Any) -> None:
    facts: Any = receipt.facts
    if receipt.kind == "filled":
        filled[receipt.symbol, receipt.at] += facts["size"]
        done[receipt.order_id] += facts["size"]
    if receipt.kind == "cancelled" and facts["reason"] == "volume":
        order = accepted[receipt.order_id]
        assert facts["left"] > 0
        if order.kind == "market":
            assert done[order.id] + facts["left"] == order.size


@invariant(SEEDS, quick=10, proof=5_000)
def test_with_volume_for_everything_nothing_changes(seed: int) -> None:
    """All of a volume larger than any order is the same as no bound: same world, same receipts, byte for byte.

    But for one thing: a symbol without a bar has no volume either, so that a liquidation leaves it, and there this ends.
    """
    tape, terms = history_inputs(seed)
    deep = replace(tape, volume={symbol: np.full(len(tape), 1e12) for symbol in tape.symbols})
    gaps = any(np.isnan(tape.open[symbol]).any() for symbol in tape.symbols)

    def history(terms: TradingTerms, over: Tape) -> tuple[list[bytes], list[bool]]:
        kept: list[bytes] = []
        liquidated: list[bool] = []

        def play(world: PerpWorld, start: int, stop: int) -> PerpWorld:
            stretch = advance(world, terms, over, start, stop)
            kept.append(codec.dumps([stretch.world, stretch.receipts, list(stretch.equity)]))
            liquidated.append(any(receipt.kind == "liquidated" for receipt in stretch.receipts))
            return stretch.world

        run_history(seed, play)
        return kept, liquidated

    free, liquidated = history(terms, tape)
    bound, _ = history(replace(terms, max_volume_pct=Decimal(100)), deep)
    same = liquidated.index(True) if gaps and True in liquidated else len(free)
    assert bound[:same] == free[:same]
    assert same < len(free) or len(bound) == len(free)


def test_a_liquidation_leaves_what_has_no_bar_where_volume_is_the_bound() -> None:
    """Found by the property above: nothing of a symbol trades in a bar that it does not have."""
    seed = 42220309
    tape, terms = history_inputs(seed)
    deep = replace(tape, volume={symbol: np.full(len(tape), 1e12) for symbol in tape.symbols})
    left: list[tuple[set[str], set[str]]] = []

    def play(world: PerpWorld, start: int, stop: int) -> PerpWorld:
        stretch = advance(world, replace(terms, max_volume_pct=Decimal(100)), deep, start, stop)
        if any(receipt.kind == "liquidated" for receipt in stretch.receipts):
            absent = {symbol for symbol in tape.symbols if np.isnan(tape.open[symbol][stop - 1])}
            left.append((set(stretch.world.positions), absent))
        return stretch.world

    run_history(seed, play)
    assert left
    assert left[0] == ({"ETH"}, {"ETH"})


test_long = long_versions(globals())
