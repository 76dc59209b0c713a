"""Random streams of trades and pushes beside a slow, obvious account of the same: sums, money, worst cases, prices."""

import itertools
from dataclasses import replace
from fractions import Fraction
from random import Random

from hypothesis import strategies as st

from engine.invariant import invariant, long_versions
from pitboss.core.instant import HOUR_MS
from pitboss.venues.predict.liability import make_curve
from pitboss.venues.predict.portfolio import equity, portfolio
from pitboss.venues.predict.quote import make_quote, utilisation
from pitboss.venues.predict.state import (
    ACCOUNT,
    QUOTE,
    Contract,
    MarketTerms,
    PredictWorld,
    StrikeLevel,
    contracts,
    open_markets,
    open_world,
    payout_at,
    worst_payout,
)
from pitboss.venues.predict.surface import synthetic
from pitboss.venues.predict.svi import FLOAT, Svi, flat, up_units
from pitboss.venues.predict.trade import ContractTrade, WorldStep, fair_value, mint, quote_mint, redeem
from pitboss.venues.predict.world import advance, feed, push, sweep
from venues.predict.scene import HOURLY, LATER, NOW, SMILE, SPOT, money, venue, with_account

SURFACES = (SMILE, flat(0.0004), flat(0.00001), Svi(0.00002, 0.002, -0.3, 0.001, 0.004))
SEEDS = st.integers(0, 2**32)
NAMES = (ACCOUNT, "bob", "eve")


class Ledger:
    """The venue again, without shortcuts: a list of open contracts, everything worked out from it each time."""

    def __init__(self, world: PredictWorld) -> None:
        self.open: dict[tuple[str, Contract], int] = {}
        self.range_of: dict[str, tuple[int, int]] = {}
        self.mtm: dict[str, int] = {}
        self.start = money(world)

    def touch(self, world: PredictWorld, name: str, contract: Contract, quantity: int) -> None:
        key = (name, contract)
        self.open[key] = self.open.get(key, 0) + quantity
        low, high = self.range_of.get(contract.market_id, (min(contract.strikes), max(contract.strikes)))
        self.range_of[contract.market_id] = min(low, *contract.strikes), max(high, *contract.strikes)
        self.mtm[contract.market_id] = self.value(world, contract.market_id)

    def held(self, market_id: str) -> list[tuple[Contract, int]]:
        return [(contract, units) for (_, contract), units in self.open.items() if contract.market_id == market_id]

    def value(self, world: PredictWorld, market_id: str) -> int:
        oracle = world.oracles[market_id]
        if oracle.settlement is not None:
            return sum(units for contract, units in self.held(market_id) if contract.wins(oracle.settlement))
        if not any(units for _, units in self.held(market_id)):
            return 0
        points = self.curve(world, market_id)
        total = Fraction(0)
        for contract, units in self.held(market_id):
            above = FLOAT if contract.lower is None else self.at(points, contract.lower)
            beyond = 0 if contract.higher is None else self.at(points, contract.higher)
            total += Fraction(units * (above - beyond), FLOAT)
        return max(0, int(total // 1))

    def curve(self, world: PredictWorld, market_id: str) -> list[tuple[int, int]]:
        oracle = world.oracles[market_id]
        low, high = self.range_of[market_id]
        assert oracle.svi is not None

        def up(strike: int) -> int:
            found = up_units(world.terms.generation, oracle.forward, strike, oracle.svi)
            assert isinstance(found, int)
            return found

        points = sorted({low: up(low), high: up(high)}.items())
        while len(points) < world.terms.curve_points:
            gaps = [
                (left[1] - right[1], -left[0], left, right)
                for left, right in itertools.pairwise(points)
                if right[0] - left[0] > oracle.grid.tick
            ]
            if not gaps or max(gaps)[0] == 0:
                break
            _, _, left, right = max(gaps)
            middle = left[0] + (right[0] - left[0]) // oracle.grid.tick // 2 * oracle.grid.tick
            points = sorted([*points, (middle, min(left[1], max(right[1], up(middle))))])
        return points

    @staticmethod
    def at(points: list[tuple[int, int]], strike: int) -> int:
        for (left, left_up), (right, right_up) in itertools.pairwise(points):
            if left <= strike <= right:
                return left_up - int(Fraction(left_up - right_up) * (strike - left) / (right - left) // 1)
        assert points[0][0] == strike
        return points[0][1]

    def worst(self, market_id: str) -> int:
        places = {0} | {
            strike + more for contract, _ in self.held(market_id) for strike in contract.strikes for more in (0, 1)
        }
        return max(self.pays(market_id, settlement) for settlement in places)

    def pays(self, market_id: str, settlement: int) -> int:
        return sum(units for contract, units in self.held(market_id) if contract.wins(settlement))

    def forget(self, world: PredictWorld) -> None:
        for market_id in [name for name in self.mtm if name not in world.oracles]:
            del self.mtm[market_id]
            self.open = {key: units for key, units in self.open.items() if key[1].market_id != market_id}

    def check(self, world: PredictWorld) -> None:
        assert money(world) == self.start
        assert all(account.cash >= 0 for account in world.accounts.values())
        vault = world.vault
        assert {name: book.mtm for name, book in vault.books.items()} == self.mtm
        assert vault.total_mtm == sum(self.mtm.values())
        assert {name: book.max_payout for name, book in vault.books.items()} == {
            name: self.worst(name) for name in self.mtm
        }
        assert vault.total_max_payout == sum(self.worst(name) for name in self.mtm)


def a_contract(rng: Random, market_id: str) -> Contract:
    strike = rng.randint(62_000, 64_500) * FLOAT
    return rng.choice(
        [
            Contract(market_id, strike, None),
            Contract(market_id, None, strike),
            Contract(market_id, strike, strike + rng.randint(1, 1_500) * FLOAT),
        ]
    )


@invariant(SEEDS, quick=8, proof=3_000)
def test_sums_kept_along_the_way_are_those_worked_out_from_scratch(seed: int) -> None:
    rng = Random(seed)
    terms = MarketTerms(generation=rng.choice(["v1", "v2"]), curve_points=rng.choice([3, 8, 50]))
    world = venue(rng.choice([2_000, 1_000_000]) * QUOTE, 2_000 * QUOTE, terms, markets=2)
    world = with_account(with_account(world, "bob", 500 * QUOTE), "eve", 3 * QUOTE)
    ledger, at, spot = Ledger(world), NOW, SPOT
    for _ in range(30):
        kind = rng.random()
        if kind < 0.2:
            at += rng.choice([1_000, 20_000, 400_000])
            spot += int(rng.gauss(0, 150)) * FLOAT
            surfaces = {name: rng.choice(SURFACES) for name in world.oracles if at < world.oracles[name].expiry_at}
            world = sweep(push(world, "BTC", spot, at, surfaces).world, at).world
            ledger.forget(world)
            ledger.check(world)
            continue
        name = rng.choice(NAMES)
        positions = list(world.accounts[name].positions.values())
        if kind < 0.7 or not positions:
            contract, sign = a_contract(rng, rng.choice([HOURLY, LATER])), 1
            quantity = rng.choice([1, 7, QUOTE, rng.randint(1, 400 * QUOTE)])
            step: WorldStep = mint(world, name, contract, quantity, at)
        else:
            held = rng.choice(positions)
            contract, sign = held.contract, -1
            quantity = rng.choice([held.quantity, rng.randint(1, held.quantity)])
            step = redeem(world, name, contract, quantity, at)
        if step.abort is not None:
            assert step.world is world
        else:
            world = step.world
            ledger.touch(world, name, contract, sign * quantity)
        ledger.check(world)


@invariant(SEEDS, quick=15, proof=10_000)
def test_no_settlement_ever_pays_more_than_the_worst_case(seed: int) -> None:
    rng = Random(seed)
    levels: dict[int, list[int]] = {}
    ranges = 0
    for _ in range(rng.randint(1, 12)):
        contract, units = a_contract(rng, HOURLY), rng.randint(1, 1_000)
        if contract.lower is not None:
            levels.setdefault(contract.lower, [0, 0])[0] += units
        if contract.higher is not None:
            levels.setdefault(contract.higher, [0, 0])[1] += units
        ranges += units if contract.side == "RANGE" else 0
    book = tuple(StrikeLevel(strike, *levels[strike]) for strike in sorted(levels))
    worst = worst_payout(book, ranges)
    places = [0, 2**62, *(strike + more for strike in levels for more in (-1, 0, 1))]
    payouts = [payout_at(book, ranges, place) for place in places]
    assert max(payouts) == worst
    assert min(payouts) >= 0


@invariant(SEEDS, quick=10, proof=5_000)
def test_the_executed_ask_is_never_below_the_fair_value_and_never_falls_with_size(seed: int) -> None:
    rng = Random(seed)
    terms = MarketTerms(generation=rng.choice(["v1", "v2"]))
    world = venue(rng.choice([500, 10_000]) * QUOTE, 10**12, terms, markets=2)
    for _ in range(6):
        quantity = rng.randint(1, 200 * QUOTE)
        world = mint(world, ACCOUNT, a_contract(rng, rng.choice([HOURLY, LATER])), quantity, NOW).world
    contract = a_contract(rng, HOURLY)
    asks: list[int] = []
    for quantity in sorted(rng.randint(1, 3_000 * QUOTE) for _ in range(8)):
        found = quote_mint(world, contract, quantity, NOW)
        if isinstance(found, ContractTrade):
            fair = fair_value(terms.generation, world.oracles[HOURLY], contract)
            assert isinstance(fair, int)
            assert found.price >= fair >= found.quote.bid
            assert found.quote == make_quote(terms, fair, utilisation(found.vault.total_mtm, world.vault.balance))
            asks.append(found.price)
    assert asks == sorted(asks)


@invariant(SEEDS, quick=8, proof=3_000)
def test_whatever_the_settlement_the_vault_pays_at_most_what_it_said(seed: int) -> None:
    rng = Random(seed)
    world = venue(2_000 * QUOTE, 2_000 * QUOTE)
    for _ in range(10):
        world = mint(world, ACCOUNT, a_contract(rng, HOURLY), rng.randint(1, 300 * QUOTE), NOW).world
    said, before = world.vault.total_max_payout, world.vault.balance
    settlement = rng.choice([rng.randint(61_000, 66_500) * FLOAT, 1, rng.randint(62_000, 64_500) * FLOAT + 1])
    at = NOW + HOUR_MS + rng.randint(0, 60_000)
    after = sweep(push(world, "BTC", settlement, at).world, at).world
    if said <= before:
        assert 0 <= before - after.vault.balance <= said
        assert HOURLY not in after.oracles
    assert money(after) == money(world)


@invariant(SEEDS, quick=8, proof=500)
def test_markets_that_share_a_feed_trade_exactly_as_markets_pushed_one_by_one(seed: int) -> None:
    rng = Random(seed)
    shared = apart = open_world(50_000 * QUOTE, 10_000 * QUOTE)
    at, spot = NOW - rng.randint(0, 3) * 300_000 - rng.choice([0, 0, 1, 1234]), SPOT
    for _ in range(60):
        at += rng.choice([1_000, 60_000, 60_000, 899_999, 900_000, 5_000_000])
        if rng.random() < 0.4:  # boundaries of the schedule are where listings and settlements happen
            at += -at % 900_000
        spot += int(rng.gauss(0, 60)) * FLOAT
        basis, volatility = rng.randint(-50_000, 50_000), rng.uniform(0.2, 1.0)
        one = feed(shared, "BTC", spot, at, volatility, basis)
        other = advance(
            apart, "BTC", spot, at, lambda oracle, at=at, v=volatility: synthetic(v, oracle.expiry_at, at), basis
        )
        assert one.receipts == other.receipts
        shared, apart = one.world, other.world
        markets = open_markets(shared, at)
        assert [replace(oracle, fed=False) for oracle in markets] == list(open_markets(apart, at))
        contract = a_contract(rng, rng.choice(markets).id)
        quantity = 1 + at % (50 * QUOTE)
        steps = [mint(world, ACCOUNT, contract, quantity, at) for world in (shared, apart)]
        assert steps[0].receipts == steps[1].receipts
        shared, apart = steps[0].world, steps[1].world
        assert (shared.vault, shared.accounts) == (apart.vault, apart.accounts)
        assert portfolio(shared, at + 700_000) == portfolio(apart, at + 700_000)
        assert portfolio(shared, at).equity == contracts(equity(shared))


def test_the_curve_halves_its_largest_drop_until_it_has_all_its_points() -> None:
    wide = make_curve("v1", SPOT, SMILE, FLOAT, 60_000 * FLOAT, 66_000 * FLOAT, 50)
    assert len(wide) == 50
    ups = [up for _, up in wide if isinstance(up, int)]
    assert ups == sorted(ups, reverse=True)
    drops = [earlier - later for earlier, later in itertools.pairwise(ups)]
    assert max(drops) < 4 * FLOAT // 50
    tail = make_curve("v1", SPOT, SMILE, FLOAT, 79_000 * FLOAT, 84_000 * FLOAT, 50)
    assert ups[0] - ups[-1] > 0
    assert isinstance(tail, tuple)
    assert tail[0][1] - tail[-1][1] < 1_000
    assert len(tail) == 50  # a small drop is halved too
    assert len(make_curve("v1", SPOT, SMILE, FLOAT, 63_000 * FLOAT, 63_003 * FLOAT, 50)) == 4
    assert len(make_curve("v1", SPOT, SMILE, FLOAT, 63_000 * FLOAT, 63_000 * FLOAT, 50)) == 1
    assert make_curve("v1", 0, SMILE, FLOAT, 63_000 * FLOAT, 63_000 * FLOAT, 50) == "zero_forward"


test_long = long_versions(globals())
