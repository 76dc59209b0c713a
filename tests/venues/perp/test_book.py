"""Recorded order books: what a walk costs, which book a fill may know, and that no later one has any effect."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from engine.invariant import invariant, long_versions
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS
from pitboss.core.money import exact
from pitboss.core.order_book import Books, BookSnapshot, Level, read_levels, walk, write_levels
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.state import PerpWorld, TradingTerms
from pitboss.venues.perp.tape import Tape
from pitboss.venues.perp.testing import Row, make_books, make_tape_of
from pitboss.venues.perp.world import OrderRequest, advance, submit
from venues.perp.markets import ASSETS, BASE, MIDNIGHT, fresh_world, history_inputs, random_book, run_history

AT = MIDNIGHT + 6 * BASE
TERMS = TradingTerms(ASSETS, book_max_age_ms=MINUTE_MS)
SEEDS = st.integers(0, 2**32 - 1)
SIDES = st.sampled_from([1, -1])
BIDS = [(Decimal("9.99"), Decimal(100)), (Decimal("9.90"), Decimal(50))]
ASKS = [(Decimal("10.01"), Decimal(100)), (Decimal("10.10"), Decimal(50))]


def levels(*pairs: tuple[str, str]) -> list[Level]:
    return [(Decimal(price), Decimal(size)) for price, size in pairs]


def tape_with(rows: list[tuple[int, list[Level], list[Level]]], bars: int = 3) -> Tape:
    """Bars of AAA that stay at 10, and books."""
    flat: list[Row] = [(AT + number * BASE, 10.0, 10.0, 10.0, 10.0) for number in range(bars)]
    return make_tape_of({"AAA": flat}, books={"AAA": make_books("AAA", rows)} if rows else {})


def market_fill(tape: Tape, size: str, terms: TradingTerms = TERMS, **more: Any) -> Receipt:
    """The fill of one order of AAA, submitted before the first bar."""
    request = OrderRequest("market", "AAA", 1, Decimal(size), 3)
    world = submit(fresh_world(tape, Decimal(10**6)), replace(request, **more), AT)[0]
    (fill,) = [receipt for receipt in advance(world, terms, tape, 0, 1).receipts if receipt.kind == "filled"]
    return fill


# The walk -------------------------------------------------------------------------------------------------------------


def one_at_a_time(book: BookSnapshot, lots: int, lot: Fraction, side: int, k: Fraction, price: Fraction) -> Fraction:
    """The same as `walk`, lot by lot, the way a person would do it with a pencil."""
    ladder: list[Fraction] = []
    for level, size in book.asks if side > 0 else book.bids:
        ladder += [Fraction(level)] * int(Fraction(size) / lot)
    last = Fraction((book.asks if side > 0 else book.bids)[-1][0])
    beyond = last * (1 + side * k * lots * lot * last / 10**10)
    paid = sum(((ladder[number] if number < len(ladder) else beyond) for number in range(lots)), Fraction(0))
    middle = (Fraction(book.bids[0][0]) + Fraction(book.asks[0][0])) / 2
    return price * (paid / lots) / middle


@invariant(SEEDS, SIDES, st.integers(1, 3_000), st.sampled_from(["0", "10", "700"]))
@exact
def test_a_walk_costs_what_counting_lot_by_lot_costs(seed: int, side: int, lots: int, k: str) -> None:
    rng = Random(seed)
    lot, sides = Decimal("0.1"), []
    for way in (-1, 1):
        price, made = 10_000 + way, []
        for _ in range(rng.randint(1, 5)):
            made.append((Decimal(price) / 1000, lot * rng.randint(1, 600)))
            price += way * rng.randint(1, 40)
        sides.append(tuple(made))
    book, price = BookSnapshot(AT, sides[0], sides[1]), Decimal(repr(rng.uniform(8, 12)))
    taken = walk(book, price, lots * lot, side, Decimal(k))
    expected = one_at_a_time(book, lots, Fraction(lot), side, Fraction(k), Fraction(price))
    assert abs(Fraction(taken.price) - expected) < Fraction(1, 10**50)
    there = sum(size for _, size in (book.asks if side > 0 else book.bids))
    assert taken.beyond == max(Decimal(0), lots * lot - there)


@invariant(SEEDS, SIDES, st.integers(1, 50_000), st.integers(1, 50_000))
@exact
def test_a_walk_is_never_in_the_takers_favour_and_never_cheaper_for_more(
    seed: int, side: int, one: int, other: int
) -> None:
    at, bids, asks = random_book(Random(seed), "AAA", AT)
    book = BookSnapshot(at, tuple(bids), tuple(asks))
    small, large = sorted((Decimal(one) / 10, Decimal(other) / 10))
    less, more = (side * (walk(book, Decimal(10), size, side, Decimal(10)).price - 10) for size in (small, large))
    assert less > 0
    assert less <= more + Decimal("1e-50")  # the same average may come out one digit apart


def test_half_the_spread_is_paid_by_the_smallest_order_and_the_linear_model_by_none() -> None:
    fill = market_fill(tape_with([(AT, BIDS, ASKS)]), "1")
    assert fill.facts["price"] == Decimal("10.01")
    assert fill.facts["slippage_usd"] == Decimal("0.01")
    assert (fill.facts["slippage"], fill.facts["book_age_ms"]) == ("book", 0)


def test_a_book_at_another_price_moves_the_fill_by_the_same_share() -> None:
    twice = [(price * 2, size) for price, size in BIDS], [(price * 2, size) for price, size in ASKS]
    fill = market_fill(tape_with([(AT, *twice)]), "150")
    assert fill.facts["price"] == (100 * Decimal("10.01") + 50 * Decimal("10.10")) / 150


def test_what_the_book_cannot_fill_pays_the_last_level_and_the_linear_model_of_the_whole_size() -> None:
    fill = market_fill(tape_with([(AT, BIDS, ASKS)]), "250")
    beyond = Decimal("10.10") * (1 + 10 * 250 * Decimal("10.10") / 10**10)
    expected = (100 * Decimal("10.01") + 50 * Decimal("10.10") + 100 * beyond) / 250
    assert abs(Decimal(fill.facts["price"]) - expected) < Decimal("1e-25")
    assert fill.facts["slippage"] == "beyond_book"


def test_a_marketable_limit_walks_too_but_never_beyond_its_own_price() -> None:
    tape = tape_with([(AT, BIDS, ASKS)])
    wide = market_fill(tape, "150", kind="limit", limit=Decimal(11))
    assert wide.facts["price"] == (100 * Decimal("10.01") + 50 * Decimal("10.10")) / 150
    narrow = market_fill(tape, "150", kind="limit", limit=Decimal("10.02"))
    assert (narrow.facts["price"], narrow.facts["slippage_usd"]) == (Decimal("10.02"), Decimal(3))
    without = market_fill(tape_with([]), "150", kind="limit", limit=Decimal(11))
    assert (without.facts["price"], without.facts["slippage_usd"]) == (10, 0)


# Which book -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "used"),
    [
        ([0], 0),
        ([-1], -1),
        ([-MINUTE_MS], -MINUTE_MS),
        ([-MINUTE_MS - 1], None),
        ([1], None),
        ([-5, -1, 1], -1),
        ([-5, 0, 1], 0),
        ([], None),
    ],
)
def test_a_fill_takes_the_newest_book_at_or_before_its_bar_if_it_is_young_enough(
    times: list[int], used: int | None
) -> None:
    fill = market_fill(tape_with([(AT + shift, BIDS, ASKS) for shift in times]), "1")
    assert fill.facts.get("book_age_ms") == (None if used is None else -used)
    assert fill.facts["slippage"] == ("linear" if used is None else "book")
    if used is None:
        assert fill.facts["price"] == 10 * (1 + 10 * Decimal(10) / 10**10)


def test_without_books_asked_for_a_receipt_says_nothing_about_them() -> None:
    fill = market_fill(tape_with([(AT, BIDS, ASKS)]), "1", TradingTerms(ASSETS))
    assert not {"slippage", "book_age_ms"} & set(fill.facts)


@invariant(SEEDS, st.integers(0, 59), st.sampled_from(["gone", "absurd", "broken"]), quick=10, proof=5_000)
def test_books_after_the_open_of_a_bar_have_no_effect_on_it(seed: int, cut: int, way: str) -> None:
    """Look-ahead: with every later book deleted, replaced or torn the history up to that bar is the same, byte for byte."""
    tape, terms = history_inputs(seed, thin=True)
    terms = replace(terms, book_max_age_ms=BASE)
    cut = min(cut, len(tape) - 1)
    until = int(tape.open_at[cut])
    spoiled = replace(tape, books={symbol: _corrupted_books(books, until, way) for symbol, books in tape.books.items()})

    def history(over: Tape) -> bytes:
        result: list[Any] = []

        def play(world: PerpWorld, start: int, stop: int) -> PerpWorld:
            if start <= cut:
                stretch = advance(world, terms, over, start, min(stop, cut + 1))
                result.append([stretch.world, stretch.receipts])
                return stretch.world
            return world

        run_history(seed, play, thin=True)
        return codec.dumps(result)

    assert history(tape) == history(spoiled)


def _corrupted_books(books: Books, until: int, way: str) -> Books:
    kept = int(books.at.searchsorted(until, side="right"))
    if way == "gone":
        return Books(books.symbol, books.at[:kept], list(books.bids)[:kept], list(books.asks)[:kept])
    bad = "0.001:1" if way == "absurd" else "not a book"
    texts = [[*list(side)[:kept], *[bad] * (len(books) - kept)] for side in (books.bids, books.asks)]
    return Books(books.symbol, books.at, *texts)


# Storage --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bids", "asks"),
    [
        ("", "10:1"),
        ("9:1", ""),
        ("9:0", "10:1"),
        ("x", "10:1"),
        ("9:1 9.5:1", "10:1"),
        ("10:1", "10:1"),
        ("NaN:1", "10:1"),
        ("9:1", "10:sNaN"),
        ("9:Infinity", "10:1"),
    ],
)
def test_an_unsound_book_prices_nothing(bids: str, asks: str) -> None:
    books = Books("AAA", np.array([AT]), [bids], [asks])
    with pytest.raises(UserError, match="order book of AAA at 2025-06-04T00:30:00Z is not valid"):
        books.newest(AT, 0)


def test_levels_are_written_and_read_back_exactly() -> None:
    result = levels(("10.10", "5"), ("10.2", "0.00000001"), ("1E+1", "12345678901234567890.5"))
    assert read_levels(write_levels(result)) == tuple(result)
    assert write_levels(result) == "10.1:5 10.2:0.00000001 10:12345678901234567890.5"


test_long = long_versions(globals())
