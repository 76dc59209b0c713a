"""Plain properties of the paper world, each on a market of a few bars: P4, P6–P10, P12–P15, P17."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

from hypothesis import strategies as st

from engine.invariant import invariant, long_versions
from pitboss.core import codec
from pitboss.core.curve import amounts
from pitboss.core.instant import HOUR_MS
from pitboss.core.money import exact
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.state import PerpWorld, Position, TradingTerms, equity, free_margin, maintenance
from pitboss.venues.perp.testing import Row, make_tape_of
from pitboss.venues.perp.world import OrderRequest, advance, submit
from venues.perp.markets import ASSETS, BASE, MIDNIGHT, fresh_world, random_rows, random_terms
from venues.perp.test_world_ways import history

NOON = MIDNIGHT + 12 * HOUR_MS + BASE
FREE = TradingTerms(
    ASSETS, maker_bps=Decimal(0), taker_bps=Decimal(0), slippage_bps_per_million=Decimal(0), penalty_bps=Decimal(0)
)
COSTLY = TradingTerms(ASSETS)
PRICES = st.integers(8_000, 12_000).map(lambda cents: cents / 1000)
LOTS = st.integers(1, 5_000).map(lambda lots: lots * ASSETS["AAA"].lot)
SIDES = st.sampled_from([1, -1])


@st.composite
def bars(draw: st.DrawFn, count: int = 6) -> list[Row]:
    """So many sound bars of AAA, each with prices near 10."""
    rows: list[Row] = []
    for number in range(count):
        four = sorted(draw(PRICES) for _ in range(4))
        low, *middle, high = four
        first, last = middle if draw(st.booleans()) else reversed(middle)
        rows.append((NOON + number * BASE, first, high, low, last))
    return rows


def with_order(world: PerpWorld, terms: TradingTerms, request: OrderRequest, at: int = NOON) -> PerpWorld:
    return submit(world, request, at)[0]


def fills(receipts: Any) -> list[Receipt]:
    return [receipt for receipt in receipts if receipt.kind == "filled"]


def exact_price(value: float) -> Decimal:
    return Decimal(repr(value))


@invariant(bars(), st.lists(LOTS, min_size=1, max_size=5), SIDES)
@exact
def test_p4_the_average_price_lies_between_the_prices_paid(rows: list[Row], sizes: list[Decimal], side: int) -> None:
    """P4: entry is inside the lowest and highest fill of its leg; after going flat a new leg starts from nothing."""
    tape = make_tape_of({"AAA": rows})
    world = fresh_world(tape, Decimal(10**9))
    prices: list[Decimal] = []
    for index, size in enumerate(sizes):
        at = int(tape.open_at[index])
        world = with_order(world, COSTLY, OrderRequest("market", "AAA", side, size, 3), at)
        stretch = advance(world, COSTLY, tape, index, index + 1)
        world = stretch.world
        prices += [receipt.facts["price"] for receipt in fills(stretch.receipts)]  # type: ignore[misc]
        assert min(prices) <= world.positions["AAA"].entry <= max(prices)
    last = len(sizes)
    at = int(tape.open_at[last])
    world = with_order(world, COSTLY, OrderRequest("close", "AAA", -side, world.positions["AAA"].size), at)
    world = with_order(world, COSTLY, OrderRequest("market", "AAA", -side, sizes[0], 3), at)
    stretch = advance(world, COSTLY, tape, last, last + 1)
    again = stretch.world.positions["AAA"]
    assert again.size == -side * sizes[0]
    assert abs(again.entry - fills(stretch.receipts)[-1].facts["price"]) < Decimal("1e-50")  # type: ignore[operator]


@invariant(bars(), LOTS, SIDES, st.integers(0, 5), st.sampled_from([0, 1, BASE, BASE + 1]))
@exact
def test_p6_a_market_order_fills_at_the_next_open_and_nowhere_else(
    rows: list[Row], size: Decimal, side: int, index: int, latency: int
) -> None:
    """P6: decided at T it fills on the first bar opening at or after T plus latency, at that open and against us."""
    tape = make_tape_of({"AAA": rows})
    at = int(tape.open_at[index])
    request = OrderRequest("market", "AAA", side, size, 3)
    world, _, _ = submit(fresh_world(tape, Decimal(10**9)), request, at, latency)
    filled = fills(advance(world, COSTLY, tape, index, len(rows)).receipts)
    expected = [row for row in rows if row[0] >= at + latency][:1]
    assert [receipt.at for receipt in filled] == [row[0] for row in expected]
    for receipt, row in zip(filled, expected, strict=True):
        price, opens = receipt.facts["price"], exact_price(row[1])
        assert price == opens * (1 + side * 10 * size * opens / 10**10)


@invariant(bars(2), PRICES, SIDES)
@exact
def test_p7_a_limit_fills_at_the_open_if_it_is_better_else_at_its_price_if_traded_through(
    rows: list[Row], limit: float, side: int
) -> None:
    """P7: buy: at the open if open ≤ limit, else at the limit only if low < limit strictly; sell: mirrored."""
    tape = make_tape_of({"AAA": rows})
    price = exact_price(limit)
    request = OrderRequest("limit", "AAA", side, Decimal(10), 3, limit=price)
    world = with_order(fresh_world(tape), COSTLY, request)
    expected: list[tuple[int, Decimal, str]] = []
    for number, (at, opens, high, low, _) in enumerate(rows):
        if opens <= limit if side > 0 else opens >= limit:
            expected = [(at, exact_price(opens), "maker" if number else "taker")]
        elif low < limit if side > 0 else high > limit:
            expected = [(at, price, "maker")]
        if expected:
            break
    filled = fills(advance(world, COSTLY, tape, 0, 2).receipts)
    assert [(fill.at, fill.facts["price"], fill.facts["liquidity"]) for fill in filled] == expected
    assert all(fill.facts["slippage_usd"] == 0 for fill in filled)


@invariant(bars(1), LOTS, LOTS, SIDES)
@exact
def test_p8_slippage_is_against_the_taker_and_grows_with_size(
    rows: list[Row], first: Decimal, second: Decimal, side: int
) -> None:
    """P8: never in our favour, never less for a larger order; a maker pays less than a taker."""
    tape = make_tape_of({"AAA": rows})
    slippages: list[Decimal] = []
    for size in sorted((first, second)):
        world = with_order(fresh_world(tape, Decimal(10**9)), COSTLY, OrderRequest("market", "AAA", side, size, 3))
        (fill,) = fills(advance(world, COSTLY, tape, 0, 1).receipts)
        away: Any = fill.facts["price"] - exact_price(rows[0][1])  # type: ignore[operator]
        assert side * away >= 0
        slippages.append(side * away)
    assert slippages[0] <= slippages[1]
    assert COSTLY.maker < COSTLY.taker


@invariant(bars(30), LOTS, st.lists(st.floats(-0.01, 0.01), min_size=4, max_size=4))
@exact
def test_p9_opposite_positions_pay_each_other(rows: list[Row], size: Decimal, rates: list[float]) -> None:
    """P9: what one side pays the other receives; once for each row while held; nothing while flat."""
    hour = NOON // HOUR_MS * HOUR_MS
    funding = [(hour + number * HOUR_MS + 7, rate) for number, rate in enumerate(rates)]
    tape = make_tape_of({"AAA": rows}, funding={"AAA": funding})
    due = [row for row in funding if NOON < row[0] // HOUR_MS * HOUR_MS < NOON + 30 * BASE]
    amounts = []
    for side in (1, -1):
        world = with_order(fresh_world(tape, Decimal(10**9)), FREE, OrderRequest("market", "AAA", side, size, 1))
        stretch = advance(world, FREE, tape, 0, len(tape))
        payments = [receipt for receipt in stretch.receipts if receipt.kind == "funded"]
        assert [receipt.at for receipt in payments] == [at for at, _ in due]
        amounts.append([receipt.facts["amount_usd"] for receipt in payments])
    assert [long + short for long, short in zip(*amounts, strict=True)] == [0] * len(due)
    flat = advance(fresh_world(tape), FREE, tape, 0, len(tape))
    assert flat.receipts == ()


@invariant(bars(1), st.integers(1, 200_000), SIDES, st.sampled_from([1, 5, 20]))
@exact
def test_p10_no_open_takes_more_margin_than_is_free(rows: list[Row], lots: int, side: int, leverage: int) -> None:
    """P10: an open fills if and only if size × open / leverage plus its fee is covered by free margin at the opens."""
    tape, size = make_tape_of({"AAA": rows}), lots * ASSETS["AAA"].lot
    world = with_order(fresh_world(tape), COSTLY, OrderRequest("market", "AAA", side, size, leverage))
    stretch = advance(world, COSTLY, tape, 0, 1)
    opens = Fraction(rows[0][1]).limit_denominator(1000)
    fill = opens * (1 + side * 10 * Fraction(size) * opens / 10**10)
    need = Fraction(size) * opens / leverage + Fraction(COSTLY.taker) * Fraction(size) * fill
    kinds = [(receipt.kind, receipt.facts.get("reason")) for receipt in stretch.receipts]
    if need <= 10_000:
        assert ("filled", "market") in kinds
    else:
        assert kinds == [("rejected", "margin")]
        assert stretch.world.positions == {}


@invariant(bars(4), st.integers(5_000, 60_000), SIDES, quick=24)
@exact
def test_p10_an_account_is_liquidated_if_and_only_if_its_path_reaches_maintenance(
    rows: list[Row], units: int, side: int
) -> None:
    """P10: looked for at fifty points of each path; afterwards nothing is held and no debt is left."""
    tape, size = make_tape_of({"AAA": rows}), side * Decimal(units)
    position = Position("AAA", size, size * exact_price(rows[0][1]), NOON)
    world = replace(fresh_world(tape), positions={"AAA": position}, leverage={"AAA": 20})
    for index, (_, opens, high, low, _) in enumerate(rows):
        start, end = exact_price(opens), exact_price(low if side > 0 else high)
        path = [replace(world, marks={"AAA": start + (end - start) * step / 50}) for step in range(51)]
        breached = any(equity(point) <= maintenance(point, FREE) for point in path)
        stretch = advance(world, FREE, tape, index, index + 1)
        world = stretch.world
        assert breached == any(receipt.kind == "liquidated" for receipt in stretch.receipts)
        if breached:
            assert (world.positions, world.orders) == ({}, ())
            assert world.cash >= 0
            return


@invariant(bars(), st.lists(st.tuples(LOTS, st.booleans()), min_size=1, max_size=5), SIDES)
@exact
def test_p12_mirrored_prices_and_sides_give_a_mirrored_result(
    rows: list[Row], moves: list[tuple[Decimal, bool]], side: int
) -> None:
    """P12 symmetry: p → 2c − p with sides swapped and no costs: the same profit and loss."""

    def mirrored(row: Row) -> Row:
        at, opens, high, low, close = row
        return at, *(round(20 - price, 6) for price in (opens, low, high, close))  # type: ignore[return-value]

    points: list[list[Decimal]] = []
    for rows_here, direction in ((rows, side), ([mirrored(row) for row in rows], -side)):
        tape = make_tape_of({"AAA": rows_here})
        world = fresh_world(tape, Decimal(10**9))
        equity: list[Decimal] = []
        for index in range(len(tape)):
            if index < len(moves):
                size, closes = moves[index]
                kind: Any = "close" if closes and world.positions else "market"
                request = OrderRequest(kind, "AAA", -direction if kind == "close" else direction, size, 1)
                world = with_order(world, FREE, request, int(tape.open_at[index]))
            stretch = advance(world, FREE, tape, index, index + 1)
            world = stretch.world
            equity.extend(amounts(stretch.equity))
        points.append(equity)
    assert [value - 10**9 for value in points[0]] == [value - 10**9 for value in points[1]]


@invariant(st.integers(0, 2**32 - 1), st.sampled_from([2, 4, 8, 0.5]), quick=10)
def test_p13_prices_and_cash_k_times_as_high_give_equity_k_times_as_high(seed: int, factor: float) -> None:
    """P13 scale: without slippage, the same sizes at k times the prices and cash move equity k times as far."""
    rng = Random(seed)
    rows = [(NOON + number * BASE, *_sound(rng)) for number in range(20)]
    sizes = [(rng.randrange(20), Decimal(rng.randint(1, 900)) / 10, rng.choice([1, 1, 1, -1])) for _ in range(6)]
    terms = replace(COSTLY, slippage_bps_per_million=Decimal(0))
    flat = replace(terms, assets={"AAA": replace(ASSETS["AAA"], tiers=ASSETS["AAA"].tiers[:1])})
    results: list[list[Fraction]] = []
    for times in (1.0, factor):
        tape = make_tape_of({"AAA": [(at, *(price * times for price in prices)) for at, *prices in rows]})  # type: ignore[misc]
        world = fresh_world(tape, Decimal(1_000) * Decimal(times))
        equity: list[Fraction] = []
        for index in range(len(tape)):
            for bar, size, side in sizes:
                if bar == index:
                    world = with_order(
                        world, flat, OrderRequest("market", "AAA", side, size, 5), int(tape.open_at[index])
                    )
            stretch = advance(world, flat, tape, index, index + 1)
            world = stretch.world
            equity += [Fraction(value) / Fraction(times) for value in amounts(stretch.equity)]
        results.append(equity)
    for first, second in zip(*results, strict=True):
        assert abs(first - second) <= Fraction(1, 10**40)


def _sound(rng: Random) -> tuple[float, float, float, float]:
    low, first, last, high = sorted(
        rng.randint(8_000, 12_000) / 1024 for _ in range(4)
    )  # whole in binary: k × is exact
    return first, high, low, last


@invariant(bars(3), LOTS, SIDES, PRICES)
@exact
def test_p14_splitting_a_bar_moves_no_market_fill_and_merging_creates_no_limit_fill(
    parts: list[Row], size: Decimal, side: int, limit: float
) -> None:
    """P14: three bars or the one that they make: the same market fill; a limit fills merged only if it does in parts."""
    merged: list[Row] = [
        (parts[0][0], parts[0][1], max(row[2] for row in parts), min(row[3] for row in parts), parts[-1][4])
    ]
    fine, coarse = make_tape_of({"AAA": parts}), make_tape_of({"AAA": merged})
    market = OrderRequest("market", "AAA", side, size, 3)
    resting = OrderRequest("limit", "AAA", side, size, 3, limit=exact_price(limit))
    filled: dict[str, list[list[Receipt]]] = {"market": [], "limit": []}
    for tape in (fine, coarse):
        for name, request in (("market", market), ("limit", resting)):
            world = with_order(fresh_world(tape, Decimal(10**9)), COSTLY, request)
            filled[name].append(fills(advance(world, COSTLY, tape, 0, len(tape)).receipts))
    assert codec.dumps(filled["market"][0]) == codec.dumps(filled["market"][1])
    assert len(filled["limit"][1]) <= len(filled["limit"][0])


@invariant(st.integers(0, 2**32 - 1), quick=10, proof=3_000)
def test_p15_a_symbol_that_is_not_traded_changes_nothing(seed: int) -> None:
    """P15: with or without bars, holes and funding of another symbol, what happens is the same to the last digit."""
    rng = Random(seed)
    terms = random_terms(rng)
    rows = random_rows(rng, "AAA", NOON, 60, crooked=False)
    clock = {row[0] for row in rows}
    eth_rows = [row for row in random_rows(rng, "ETH", NOON, 60, crooked=True) if row[0] in clock]
    funding = {symbol: [(NOON // HOUR_MS * HOUR_MS + hour * HOUR_MS, 0.001) for hour in range(6)] for symbol in ASSETS}
    plans = [(rng.randrange(60), rng.choice([1, 1, -1]), rng.randint(1, 4_000)) for _ in range(8)]
    results: list[bytes] = []
    for market in ({"AAA": rows}, {"AAA": rows, "ETH": eth_rows}):
        tape = make_tape_of(market, funding=funding)
        world, results_by_bar = fresh_world(tape), []
        for index in range(len(tape)):
            for bar, side, lots in plans:
                if bar == index:
                    size = lots * ASSETS["AAA"].lot
                    world = with_order(
                        world, terms, OrderRequest("market", "AAA", side, size, 5), int(tape.open_at[index])
                    )
            stretch = advance(world, terms, tape, index, index + 1)
            world = stretch.world
            results_by_bar.append(
                [stretch.receipts, list(amounts(stretch.equity)), world.cash, world.positions, world.halts]
            )
        results.append(codec.dumps(results_by_bar))
    assert results[0] == results[1]


@invariant(PRICES, LOTS, SIDES, st.sampled_from(["0", "10", "900"]))
@exact
def test_p17_a_round_trip_at_one_price_costs_two_fees_and_twice_the_slippage(
    price: float, size: Decimal, side: int, slippage: str
) -> None:
    """P17: with no price move, buying and selling again costs exactly the fees and the slippage of both fills."""
    terms = replace(COSTLY, slippage_bps_per_million=Decimal(slippage))
    tape = make_tape_of({"AAA": [(NOON + number * BASE, price, price, price, price) for number in range(2)]})
    world = with_order(fresh_world(tape, Decimal(10**9)), terms, OrderRequest("market", "AAA", side, size, 1))
    opening = advance(world, terms, tape, 0, 1)
    world = with_order(opening.world, terms, OrderRequest("close", "AAA", -side, size), int(tape.open_at[1]))
    closing = advance(world, terms, tape, 1, 2)
    costs = sum(
        Fraction(fill.facts["fee_usd"]) + Fraction(fill.facts["slippage_usd"])
        for fill in (*fills(opening.receipts), *fills(closing.receipts))
    )
    assert Fraction(closing.world.cash) == 10**9 - costs
    assert free_margin(closing.world) == closing.world.cash
    opens = Fraction(exact_price(price))
    assert costs == sum(
        Fraction(terms.taker)
        * Fraction(size)
        * opens
        * (1 + sign * Fraction(slippage) * Fraction(size) * opens / 10**10)
        + Fraction(size) ** 2 * opens**2 * Fraction(slippage) / 10**10
        for sign in (1, -1)
    )


def test_every_kind_of_event_occurs_in_the_random_histories() -> None:
    """The random histories of these tests are not idle: every receipt and every reason turns up."""
    kinds = {"filled", "rejected", "cancelled", "funded", "liquidated", "halted", "resumed"}
    reasons = {"market", "limit", "stop", "take_profit", "liquidation", "margin", "opposite_position"}
    for seed in range(150):
        for receipt in codec.loads(history(seed, "stretch")[1]):
            kinds.discard(receipt["kind"])
            reasons.discard(str(receipt["facts"].get("reason", "")))
        if not kinds | reasons:
            return
    raise AssertionError(f"in no history: {kinds | reasons}")


test_long = long_versions(globals())
