"""Policies: their signals by a slow obvious reading, their orders, their plans against asking at every tick."""

import gc
import sys
import weakref
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.agent.decider import Planned
from pitboss.core.asof import Market
from pitboss.core.errors import InvariantError, UserError
from pitboss.venues.perp import policies as package
from pitboss.venues.perp.policies import mean_reversion, momentum, random_walk, sma_cross
from pitboss.venues.perp.policies.random_walk import RandomWalk
from pitboss.venues.perp.policy import policies, policy
from pitboss.venues.perp.signals import FLAT, LONG, SHORT, STAY
from pitboss.venues.perp.state import PerpWorld
from pitboss.venues.predict.heuristics import heuristics
from venues.perp.scene import (
    START,
    STEP,
    fail_if_judged,
    make_bars,
    make_market,
    make_skill,
    make_world,
    observe,
    run_sync,
)

NAMES = sorted(policies())

ticks_of_cents = st.integers(1, 3).flatmap(
    lambda scale: st.lists(st.integers(90 * 10**scale, 110 * 10**scale), max_size=140).map(
        lambda units: [unit / 10**scale for unit in units]
    )
)
awkward = st.lists(
    st.one_of(
        st.sampled_from([0.1, 0.3, 1 / 3, 1e-12, 123456789.0, 1e16, 7.0]),
        st.floats(1e-9, 1e9, allow_nan=False, allow_infinity=False),
    ),
    max_size=80,
)


def decide(name: str, market: Market, at: int, world: PerpWorld, skill: Any, seed: int = 0) -> tuple[Any, ...]:
    return run_sync(policy(name, seed).decide(observe(market, at, world, skill), fail_if_judged)).intents


def printed_value(value: float) -> Fraction:
    """A price as its printed digits say it."""
    return Fraction(repr(value))


# Names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_is_found_by_name_and_bears_it(name: str) -> None:
    named_policy = policy(name, seed=4)
    assert named_policy.name == f"policy/{name}"
    assert isinstance(named_policy, Planned)


def test_the_seed_reaches_the_policy_that_uses_it() -> None:
    seeded = policy("random", seed=4)
    assert isinstance(seeded, RandomWalk)
    assert seeded.seed == 4


@pytest.mark.parametrize("name", heuristics())
def test_a_policy_of_another_venue_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"unknown policy 'policy/{name}'"):
        policy(name)


@pytest.mark.parametrize(("name", "nearest"), [("momentun", "momentum"), ("sma_cros", "sma_cross")])
def test_an_unknown_policy_gets_the_nearest_one(name: str, nearest: str) -> None:
    with pytest.raises(UserError, match=f"unknown policy 'policy/{name}'") as refused:
        policy(name)
    assert refused.value.hint == f"did you mean policy/{nearest}?"


def test_a_new_file_is_all_it_takes_to_add_a_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    afresh = policies.__wrapped__
    (tmp_path / "lazy_policy.py").write_text(
        "from pitboss.venues.perp.policies.hold import HoldPolicy\n"
        "from pitboss.venues.perp.policy import define_policy\n"
        "POLICY = define_policy('lazy', 'never trades', lambda seed: HoldPolicy())\n"
    )
    assert "lazy" in afresh()
    (tmp_path / "twice_policy.py").write_text("from pitboss.venues.perp.policies.hold import POLICY\n")
    with pytest.raises(InvariantError, match="two policies are named hold"):
        afresh()
    for name in ("lazy_policy", "twice_policy"):
        sys.modules.pop(f"{package.__name__}.{name}")


# Signals -----------------------------------------------------------------------------------------------------------


@given(st.one_of(ticks_of_cents, awkward))
def test_sma_cross_is_long_exactly_when_the_short_average_is_above_the_long_one(prices: list[float]) -> None:
    wishes = sma_cross.signal(make_bars("BTC", prices)).tolist()
    for index in range(len(prices)):
        if index < 49:
            assert wishes[index] == STAY
            continue
        fast = sum(map(printed_value, prices[index - 19 : index + 1])) / 20
        slow = sum(map(printed_value, prices[index - 49 : index + 1])) / 50
        assert wishes[index] == (LONG if fast > slow else FLAT)


@given(st.one_of(ticks_of_cents, awkward))
def test_momentum_is_flat_up_to_half_a_percent_and_not_beyond(prices: list[float]) -> None:
    wishes = momentum.signal(make_bars("BTC", prices)).tolist()
    for index in range(len(prices)):
        if index < 48:
            assert wishes[index] == STAY
            continue
        change = printed_value(prices[index]) / printed_value(prices[index - 48]) - 1
        band = Fraction(5, 1000)
        assert wishes[index] == (LONG if change > band else SHORT if change < -band else FLAT)


@pytest.mark.parametrize(("last", "wish"), [(100.5, FLAT), (99.5, FLAT), (100.51, LONG), (99.49, SHORT)])
def test_a_move_of_exactly_half_a_percent_is_inside_the_band_both_ways(last: float, wish: int) -> None:
    assert momentum.signal(make_bars("BTC", [100.0] * 48 + [last]))[-1] == wish


@given(ticks_of_cents)
def test_mean_reversion_enters_beyond_two_deviations_and_leaves_inside_half_of_one(prices: list[float]) -> None:
    wishes = mean_reversion.signal(make_bars("BTC", prices)).tolist()
    for index in range(len(prices)):
        if index < 47:
            assert wishes[index] == STAY
            continue
        window = [printed_value(price) for price in prices[index - 47 : index + 1]]
        mean = sum(window) / 48
        deviation = sqrt(sum((price - mean) ** 2 for price in window) / 48)
        z = float(window[-1] - mean) / deviation if deviation else 0.0
        if min(abs(abs(z) - 2), abs(abs(z) - 0.5)) > 1e-9:
            expected = LONG if z < -2 else SHORT if z > 2 else FLAT if abs(z) < 0.5 else STAY
            assert wishes[index] == expected


def test_scores_do_not_depend_on_where_a_block_of_the_computation_ends() -> None:
    close = np.random.default_rng(2).normal(100, 1, 3 * 8192).round(3)
    whole = mean_reversion.scores(close)
    for end in (48, 8191, 8192, 8192 + 47, 8192 + 48, 20_000):
        assert mean_reversion.scores(close[end - 48 : end]).tolist() == whole[end - 48 : end - 47].tolist()


@given(st.floats(1e-6, 1e9, allow_nan=False))
def test_prices_that_do_not_move_give_no_signal_to_hold_anything(price: float) -> None:
    bars = make_bars("BTC", [price] * 60)
    for module in (sma_cross, momentum, mean_reversion):
        assert set(module.signal(bars)[50:].tolist()) == {FLAT}


@given(st.one_of(ticks_of_cents, awkward), st.integers(0, 140), st.sampled_from([0.5, 1 / 3, 1e15, 3.0]))
def test_bars_after_an_instant_never_change_a_signal_before_it(prices: list[float], cut: int, factor: float) -> None:
    corrupted = prices[:cut] + [price * factor for price in prices[cut:]]
    for module in (sma_cross, momentum, mean_reversion):
        before = module.signal(make_bars("BTC", prices))[:cut]
        assert np.array_equal(before, module.signal(make_bars("BTC", corrupted))[:cut])


# Orders ------------------------------------------------------------------------------------------------------------

RISING = [100 + index * 0.5 for index in range(60)]
FALLING = RISING[::-1]
END = START + 60 * STEP


def test_an_open_is_the_equal_share_of_the_position_cap_to_the_last_digit() -> None:
    skill = make_skill(("SOL", "BTC", "ETH"), risk={"max_position_pct": 10})
    market = make_market(dict.fromkeys(("BTC", "ETH", "SOL"), RISING))
    intents = decide("sma_cross", market, END, make_world(equity="10000.01"), skill)
    assert [intent["symbol"] for intent in intents] == ["BTC", "ETH", "SOL"]
    third = Decimal("333.333666666666666666666666666666666666666666666666666666667")
    assert intents[0] == {
        "action": "open_long",
        "symbol": "BTC",
        "size_usd": third,
        "leverage": 1,
        "order_type": "market",
        "reason": "SMA(20) 124.75 above SMA(50) 117.25",
    }


def test_a_long_is_closed_when_the_averages_cross_and_never_turned_short() -> None:
    market = make_market({"BTC": FALLING})
    (close,) = decide("sma_cross", market, END, make_world({"BTC": 1}), make_skill())
    assert (close["action"], close["symbol"]) == ("close", "BTC")
    assert "size_usd" not in close
    assert decide("sma_cross", market, END, make_world(), make_skill()) == ()


def test_a_reversal_closes_first_and_opens_only_once_it_is_flat() -> None:
    market = make_market({"BTC": FALLING})
    assert decide("momentum", market, END, make_world({"BTC": 1}), make_skill())[0]["action"] == "close"
    assert decide("momentum", market, END, make_world(), make_skill())[0]["action"] == "open_short"
    assert decide("momentum", market, END, make_world({"BTC": -1}), make_skill()) == ()


def test_mean_reversion_fades_a_spike_and_says_how_far_it_went() -> None:
    market = make_market({"BTC": [100.0, 100.2] * 30 + [103.0]})
    (short,) = decide("mean_reversion", market, START + 61 * STEP, make_world(), make_skill())
    assert short["action"] == "open_short"
    assert short["reason"].startswith("close is 6.")


@pytest.mark.parametrize("kind", ["market", "limit", "close", "reduce"])
def test_a_symbol_with_any_working_order_is_left_alone(kind: str) -> None:
    skill = make_skill(("BTC", "ETH"))
    market = make_market(dict.fromkeys(("BTC", "ETH"), RISING))
    intents = decide("sma_cross", market, END, make_world(working={"BTC": kind}), skill)
    assert [intent["symbol"] for intent in intents] == ["ETH"]


def test_no_policy_trades_before_its_bars_are_there() -> None:
    market = make_market({"BTC": RISING})
    for name in ("sma_cross", "momentum", "mean_reversion"):
        for at in (START, START + 47 * STEP):
            assert decide(name, market, at, make_world(), make_skill()) == ()


def test_a_signal_is_kept_for_the_newest_bars_of_a_symbol_only() -> None:
    """A live market has new columns whenever a bar has closed, and a deployment runs for months."""
    chosen = policy("momentum")
    columns: list[weakref.ref[Any]] = []
    for count in range(60, 70):
        bars = make_bars("BTC", [100.0 + index for index in range(count)])
        columns.append(weakref.ref(bars.close))
        market = Market({("BTC", "5m"): bars})
        assert run_sync(
            chosen.decide(observe(market, START + count * STEP, skill=make_skill(("BTC",))), fail_if_judged)
        ).intents
        del bars, market
    gc.collect()
    assert [column() is not None for column in columns] == [False] * 9 + [True]


def test_the_bar_that_is_still_forming_is_not_seen() -> None:
    closed, forming = [100.0] * 60, [100.0] * 60 + [200.0]
    for name in ("sma_cross", "momentum"):
        at = START + 60 * STEP
        assert decide(name, make_market({"BTC": forming}), at, make_world(), make_skill()) == ()
        assert decide(name, make_market({"BTC": closed}), at, make_world(), make_skill()) == ()
        assert decide(name, make_market({"BTC": forming}), at + STEP, make_world(), make_skill()) != ()


def test_buy_and_hold_buys_everything_at_the_first_tick_and_never_again() -> None:
    skill = make_skill(("ETH", "BTC"))
    market = make_market(dict.fromkeys(("BTC", "ETH"), RISING))
    first = decide("buy_and_hold", market, START, make_world(), skill)
    assert [(intent["action"], intent["symbol"]) for intent in first] == [("open_long", "BTC"), ("open_long", "ETH")]
    assert decide("buy_and_hold", market, START + STEP, make_world(), skill) == ()


def test_hold_never_trades() -> None:
    assert decide("hold", make_market({"BTC": RISING}), END, make_world({"BTC": 1}), make_skill()) == ()


# Chance ------------------------------------------------------------------------------------------------------------


def test_random_acts_at_one_tick_in_twenty() -> None:
    acted = sum(random_walk.draw(0, START + index * STEP) is not None for index in range(100_000))
    assert 4_700 < acted < 5_300


def test_random_draws_the_same_numbers_in_every_process_and_others_for_another_seed() -> None:
    drawn = [[random_walk.draw(seed, START + i * STEP) for i in range(400)] for seed in (0, 1)]
    assert [i for i, thrown in enumerate(drawn[0][:60]) if thrown] == [7, 15, 17]
    assert drawn[0] != drawn[1]


def test_random_opens_both_sides_when_flat_and_closes_what_it_holds() -> None:
    market, skill = make_market({"BTC": RISING}), make_skill()
    acting = [START + i * STEP for i in range(2_000) if random_walk.draw(3, START + i * STEP)]
    opened = {decide("random", market, at, make_world(), skill, 3)[0]["action"] for at in acting}
    assert opened == {"open_long", "open_short"}
    assert {decide("random", market, at, make_world({"BTC": -1}), skill, 3)[0]["action"] for at in acting} == {"close"}
    idle = next(START + i * STEP for i in range(40) if START + i * STEP not in acting)
    assert decide("random", market, idle, make_world(), skill, 3) == ()


# Plans -------------------------------------------------------------------------------------------------------------


@st.composite
def worlds(draw: Any) -> PerpWorld:
    sides = {symbol: draw(st.sampled_from([-1, 0, 1])) for symbol in ("BTC", "ETH")}
    waits = [symbol for symbol in ("BTC", "ETH") if draw(st.integers(0, 5)) == 0]
    return make_world(sides, {symbol: draw(st.sampled_from(["market", "limit", "close"])) for symbol in waits})


@settings(max_examples=30, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    prices=st.lists(st.tuples(st.integers(960, 1040), st.integers(9_900, 10_100)), min_size=1, max_size=110),
    every=st.sampled_from([1, 1, 3]),
    offset=st.integers(-2, 40),
    accounts=st.lists(worlds(), min_size=1, max_size=3),
    seed=st.integers(0, 5),
)
def test_a_plan_names_the_very_tick_at_which_asking_would_give_an_order(
    name: str, prices: list[tuple[int, int]], every: int, offset: int, accounts: list[PerpWorld], seed: int
) -> None:
    market = make_market({"ETH": [a / 10 for a, _ in prices], "BTC": [b / 100 for _, b in prices]})
    skill = make_skill(("ETH", "BTC"))
    first = START + offset * STEP
    tick_at = np.arange(first, START + (len(prices) + 3) * STEP, every * STEP, dtype=np.int64)
    one = policy(name, seed)
    plan = one.plan(market, tick_at, ("ETH", "BTC"), "5m")
    for world in accounts:
        acts = [
            bool(run_sync(one.decide(observe(market, at, world, skill, started_at=first), fail_if_judged)).intents)
            for at in tick_at.tolist()
        ]
        for index in range(len(tick_at) + 1):
            expected = next((tick for tick in range(index, len(tick_at)) if acts[tick]), len(tick_at))
            assert plan.next_tick(index, world) == expected


@settings(max_examples=20, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    prices=st.lists(st.tuples(st.integers(960, 1040), st.integers(9_900, 10_100)), min_size=60, max_size=120),
    luck=st.lists(st.sampled_from(["filled", "filled", "refused", "stuck", "stopped"]), min_size=7, max_size=7),
)
def test_jumping_by_plan_gives_the_same_orders_as_asking_at_every_tick(
    name: str, prices: list[tuple[int, int]], luck: list[str]
) -> None:
    market = make_market({"BTC": [a / 10 for a, _ in prices], "ETH": [b / 100 for _, b in prices]})
    skill = make_skill(("BTC", "ETH"))
    tick_at = START + STEP * np.arange(len(prices) + 1, dtype=np.int64)

    def walk(jump: bool) -> list[tuple[int, Any]]:
        one = policy(name, 1)
        plan = one.plan(market, tick_at, ("BTC", "ETH"), "5m")
        sides: dict[str, int] = {}
        late: dict[str, str] = {}
        orders: list[tuple[int, Any]] = []
        index = 0
        while index < len(tick_at):
            if late and index % 5 == 0:
                late = {}
            if luck[index % 7] == "stopped" and index % 6 == 0:
                sides = {}
            world = make_world(sides, late)
            if jump and not late and not any(sides.values()):
                # Nothing can change the account of this toy between here and the next order.
                index = plan.next_tick(index, world)
                if index == len(tick_at):
                    break
            for intent in run_sync(
                one.decide(observe(market, int(tick_at[index]), world, skill), fail_if_judged)
            ).intents:
                orders.append((index, intent))
                outcome = luck[(index + len(orders)) % 7]
                if outcome == "stuck":
                    late[intent["symbol"]] = "limit"
                elif outcome != "refused":
                    sides[intent["symbol"]] = {"open_long": 1, "open_short": -1, "close": 0}[intent["action"]]
            index += 1
        return orders

    assert walk(jump=True) == walk(jump=False)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_in_which_symbols_are_listed_changes_nothing(name: str) -> None:
    walk = np.random.default_rng(5).integers(-20, 21, (2, 300)).cumsum(axis=1) / 10 + 100
    market = make_market({"BTC": walk[0].tolist(), "ETH": walk[1].tolist()})
    for at in range(START, START + 300 * STEP, 7 * STEP):
        answers = [
            decide(name, market, at, make_world({"ETH": 1}), make_skill(order))
            for order in (("BTC", "ETH"), ("ETH", "BTC"))
        ]
        assert answers[0] == answers[1]


def test_plans_of_a_long_run_move_forward_only() -> None:
    prices = (np.random.default_rng(1).normal(0, 0.3, 5_000).cumsum() + 500).round(2)
    market = make_market({"BTC": prices.tolist()})
    tick_at = START + STEP * np.arange(5_000, dtype=np.int64)
    plan = policy("sma_cross").plan(market, tick_at, ("BTC",), "5m")
    for world in (make_world(), make_world({"BTC": 1})):
        ahead = [plan.next_tick(index, world) for index in range(5_001)]
        assert all(first <= second for first, second in pairwise(ahead))
        assert all(index <= tick for index, tick in enumerate(ahead))
