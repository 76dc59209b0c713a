"""The account's facts, and the synthetic surface."""

from dataclasses import replace
from decimal import Decimal
from random import Random

import numpy as np
import pytest

from pitboss.core.instant import DAY_MS, HOUR_MS
from pitboss.venues.predict.portfolio import equity, portfolio
from pitboss.venues.predict.quote import Quote, amount
from pitboss.venues.predict.state import ACCOUNT, QUOTE
from pitboss.venues.predict.surface import LEAST_VARIANCE, realised, realised_at, synthetic
from pitboss.venues.predict.svi import flat
from pitboss.venues.predict.trade import mint, preview
from venues.predict.scene import HOURLY, NOW, SPOT, between, no, venue, world_after, yes
from venues.predict.single_markets import push_price


def test_equity_is_cash_and_every_position_at_its_bid() -> None:
    world = world_after(mint(venue(), ACCOUNT, yes(), 3 * QUOTE, NOW))
    world = world_after(mint(world, ACCOUNT, between(63_000, 64_000), QUOTE, NOW))
    bids = {}
    for contract in (yes(), between(63_000, 64_000)):
        quote = preview(world, contract, NOW)
        assert isinstance(quote, Quote)
        bids[contract.key] = quote.bid
    facts = portfolio(world, NOW)
    expected = world.accounts[ACCOUNT].cash + amount(bids[yes().key], 3 * QUOTE)
    expected += amount(bids[between(63_000, 64_000).key], QUOTE)
    assert facts.equity == Decimal(expected).scaleb(-6) == Decimal(equity(world)).scaleb(-6)
    assert facts.equity < Decimal(1_000)
    assert [(one.side, one.quantity, one.quoted) for one in facts.positions] == [
        ("RANGE", Decimal(1), True),
        ("YES", Decimal(3), True),
    ]


def test_between_expiry_and_settlement_a_position_keeps_its_last_known_value_and_says_so() -> None:
    world = world_after(mint(venue(), ACCOUNT, yes(), 3 * QUOTE, NOW))
    fresh, late = portfolio(world, NOW), portfolio(world, NOW + HOUR_MS + 1)
    assert late.equity == fresh.equity
    assert (late.positions[0].quoted, late.positions[0].status) == (False, "pending")


def test_a_settled_position_is_worth_all_or_nothing() -> None:
    world = world_after(mint(venue(), ACCOUNT, yes(), 3 * QUOTE, NOW))
    world = world_after(mint(world, ACCOUNT, no(), 2 * QUOTE, NOW))
    world = world_after(push_price(world, HOURLY, SPOT, SPOT, NOW + HOUR_MS))
    facts = portfolio(world, NOW + DAY_MS)
    assert {one.side: one.value for one in facts.positions} == {"YES": Decimal(3), "NO": Decimal(0)}


def test_a_position_whose_outcome_is_nearly_certain_has_that_value() -> None:
    world = world_after(mint(venue(), ACCOUNT, yes(), 3 * QUOTE, NOW))
    oracle = replace(world.oracles[HOURLY], svi=flat(1e-9))
    sure = replace(world, oracles={HOURLY: oracle})
    assert portfolio(sure, NOW).positions[0].bid == 1
    assert portfolio(replace(world, oracles={}), NOW).positions[0].bid == 0


def test_realised_volatility_is_the_root_of_the_mean_squared_return_of_a_year() -> None:
    step = 0.001
    closes = [100 * (1 + step) ** (number % 2) for number in range(101)]
    assert realised(closes) == pytest.approx(np.log(1 + step) * 525_600**0.5)
    assert realised([5.0]) == realised([]) == 0


def test_the_column_of_volatilities_looks_back_over_its_window_and_never_ahead() -> None:
    rng = Random(3)
    closes = np.cumprod([1 + rng.gauss(0, 0.001) for _ in range(300)]) * 60_000
    column = realised_at(closes, window=50)
    for place in (0, 1, 30, 50, 51, 200, 299):
        assert column[place] == pytest.approx(realised(closes[max(0, place - 50) : place + 1].tolist()), rel=1e-9)
    changed = closes.copy()
    changed[200:] *= 3
    assert (realised_at(changed, window=50)[:200] == column[:200]).all()


def test_the_synthetic_surface_has_the_variance_of_the_time_left() -> None:
    day = synthetic(0.5, NOW + DAY_MS, NOW)
    assert day.a == pytest.approx(0.25 / 365)
    assert (day.b, day.rho, day.m, day.sigma) == (0, 0, 0, 0)
    assert synthetic(0.5, NOW, NOW).a == synthetic(0.0, NOW + DAY_MS, NOW).a == LEAST_VARIANCE
