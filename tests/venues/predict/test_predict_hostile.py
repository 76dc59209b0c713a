"""A hijacked model never spends above the caps, mints what has no quote, or mints too late."""

from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from pitboss.core.instant import DAY_MS, HOUR_MS, day_of
from pitboss.venues.predict.caps import PredictCaps, Spent, exposure
from pitboss.venues.predict.orders import perform
from pitboss.venues.predict.quote import ask_bounds
from pitboss.venues.predict.state import ACCOUNT, QUOTE, PredictWorld, open_world, oracle_of, status
from pitboss.venues.predict.svi import FLOAT
from pitboss.venues.predict.trade import ContractTrade, fair_value, weigh_mint
from pitboss.venues.predict.world import feed, push
from venues.predict.guard_result import judge
from venues.predict.scene import MINT, NOW, SPOT, money, with_open_market

NUMBERS: list[Any] = [
    0, -1, 1, 2, 3, 1e9, 1e308, -1e308, 5e-324, Decimal("1e400"), Decimal("1e-400"), Decimal("2.0000001"), 10**30,
    float("nan"), float("inf"), True, "2", "two", None, [], {}, [2], Decimal("0.0000009"), Decimal("NaN"), 63_000, 63_600.5,
]  # fmt: skip
TEXTS: list[Any] = [
    "YES",
    "NO",
    "yes",
    "UP",
    "",
    "mint",
    "redeem",
    "hold",
    "MINT",
    "\ud800",
    "‮",
    "x" * 500,
    7,
    None,
    {},
]
NAMES = ["action", "market_id", "side", "strike", "spend", "confidence", "reasoning", "spend_dusdc", "spendDusdc",
         "confidence_0_1", "cap", "account", "quantity", "max_spend_per_tick", "now"]  # fmt: skip
CAPS = PredictCaps(
    max_spend_per_tick=2 * QUOTE,
    max_spend_per_day=20 * QUOTE,
    max_total_spend=45 * QUOTE,
    max_exposure_per_expiry=9 * QUOTE,
)


def hostile(rng: Random, world: PredictWorld, spot: int) -> Any:
    """A random decision: plausible, or with wrong types, prices, sizes and references."""
    roll = rng.random()
    if roll < 0.05:
        return rng.choice([None, [], "mint", 5, {}, [[MINT]], {"decision": MINT}, {1: 2}])
    decision: dict[Any, Any] = dict(MINT)
    decision["market_id"] = rng.choice([*world.oracles, "nowhere", None])
    decision["side"] = rng.choice(["YES", "NO"])
    decision["strike"] = rng.choice(
        [spot // FLOAT + rng.randint(-900, 900), spot // FLOAT, rng.randint(49_000, 151_000)]
    )
    decision["spend"] = rng.choice([0.5, 2, 3, 1e6, 1e300, Decimal("1.999999"), rng.random() * 5])
    if roll < 0.12:
        decision["action"] = "redeem"
        held = list(world.accounts[ACCOUNT].positions.values())
        if held:
            position = rng.choice(held).contract
            decision |= {"market_id": position.market_id, "side": position.side, "strike": position.strikes[0] // FLOAT}
    if roll > 0.7:
        for _ in range(rng.randint(1, 3)):
            decision[rng.choice(NAMES)] = rng.choice(NUMBERS) if rng.random() < 0.5 else rng.choice(TEXTS)
    if roll > 0.97:
        del decision[rng.choice(list(decision))]
    return decision


def campaign(seed: int, decisions: int) -> dict[str, int]:
    """Send random decisions while time passes, and check every result."""
    rng = Random(seed)
    world = open_world(100_000 * QUOTE, 60 * QUOTE)
    at, spot, spent = NOW, SPOT, Spent()
    spent_on: dict[int, int] = {}
    spent_at: dict[int, int] = {}
    counts = {"minted": 0, "redeemed": 0, "refused": 0, "reduced": 0}
    start = money(world)
    tick_at = at
    for number in range(decisions):
        if number % 4 == 0:
            at += rng.choice([1_000, 15_000, 60_000, 300_000, 800_000, 3_000_000])
            tick_at = at
            if rng.random() < 0.8:
                spot = max(50_500 * FLOAT, min(80_000 * FLOAT, spot + int(rng.gauss(0, 40)) * FLOAT))
                world = feed(world, "BTC", spot, at, 0.5, tiers=("15m", "1h")).world
                if rng.random() < 0.7:  # twins hear of it less often
                    world = push(world, "BTC", spot, at).world
            if rng.random() < 0.02:
                world = with_open_market(world, f"twin{number}", at + HOUR_MS, at, spot=spot)
            if rng.random() < 0.01:  # a new life: else the total budget ends the campaign early
                world = replace(world, accounts={ACCOUNT: replace(world.accounts[ACCOUNT], cash=60 * QUOTE)})
                start, spent, spent_on = money(world), Spent(), {}
        now = at + rng.choice([0, 0, 0, 10_000, 31_000])
        intent = hostile(rng, world, spot)
        found = judge(CAPS, world, spent, intent, now, tick_at)
        order = found.order
        if order is None:
            counts["refused"] += found.verdict.outcome == "refused"
            assert found.verdict.outcome in ("refused", "noop") or found.verdict.duplicate
            continue
        oracle = oracle_of(world, order.contract.market_id)
        assert oracle is not None
        step = perform(world, order, now)
        assert step.abort is None
        assert perform(world, order, now, quoted_trade=found.trade) == step
        assert money(step.world) == start
        if order.action == "mint":
            before = world.accounts[ACCOUNT].cash
            cost = before - step.world.accounts[ACCOUNT].cash
            fair = fair_value(world.terms.generation, oracle, order.contract)
            (strike,) = order.contract.strikes
            lowest, highest = ask_bounds(world.terms, oracle.ask_bounds)
            assert 0 < cost <= order.spend <= CAPS.max_spend_per_tick
            assert status(oracle, now) == "active"
            assert oracle.expiry_at - now >= CAPS.min_ms_to_expiry
            assert oracle.priced_at is not None
            assert now - oracle.priced_at <= CAPS.max_price_age_ms
            assert oracle.grid.holds(strike)
            assert isinstance(fair, int)
            assert 0 < fair < FLOAT
            assert lowest <= order.price <= highest
            assert isinstance(weigh_mint(world, ACCOUNT, order.contract, order.quantity, now), ContractTrade)
            spent_at[tick_at] = spent_at.get(tick_at, 0) + cost
            spent_on[day_of(now)] = spent_on.get(day_of(now), 0) + cost
            spent = spent.after(cost, tick_at, now)
            assert spent_at[tick_at] <= CAPS.max_spend_per_tick
            assert spent_on[day_of(now)] <= CAPS.max_spend_per_day
            assert sum(spent_on.values()) <= CAPS.max_total_spend
            assert exposure(step.world, ACCOUNT, oracle.expiry_at) <= CAPS.max_exposure_per_expiry
            counts["minted"] += 1
            counts["reduced"] += found.verdict.outcome == "reduced"
        else:
            counts["redeemed"] += 1
        world = step.world
        seen = {found.key: found.verdict}
        assert judge(CAPS, world, spent, intent, now, tick_at, seen=seen).order is None  # sent again, it does nothing
    return counts


def test_ten_thousand_hostile_decisions_never_pass_a_limit() -> None:
    counts = campaign(1, 10_000)
    assert counts["minted"] > 300
    assert counts["redeemed"] > 50
    assert counts["reduced"] > 50
    assert counts["refused"] > 5_000


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10))
def test_a_million_hostile_decisions_never_pass_a_limit(seed: int) -> None:
    assert campaign(100 + seed, 100_000)["minted"] > 3_000


def test_a_clock_that_goes_back_over_midnight_opens_no_new_day() -> None:
    midnight = (day_of(NOW) + 1) * DAY_MS
    before = midnight - 1_000
    spent = Spent().after(15 * QUOTE, before, before).after(QUOTE, midnight, midnight)
    assert spent.today_at(midnight) == QUOTE
    assert spent.today_at(before) >= 15 * QUOTE
    assert spent.after(QUOTE, midnight, before).today_at(midnight) == 2 * QUOTE
