"""Spread, ask, bid, bounds and sizing, by the specification's vectors and by what must always hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.venues.predict.aborts import BAD_BOUND, LOOSER_BOUNDS
from pitboss.venues.predict.quote import amount, ask_bounds, make_quote, quantity_for, spread, utilisation
from pitboss.venues.predict.state import QUOTE, MarketTerms
from pitboss.venues.predict.svi import FLOAT
from venues.predict.single_markets import check_bounds

TERMS = MarketTerms()
VECTORS = [
    (0.551271801, 0.009947285, 0.561219086, 0.541324516, 0.458675484, 0.438780914, 0.013547285),
    (0.411873707, 0.009843450, 0.421717157, 0.402030258, 0.597969742, 0.578282843, 0.013443450),
    (0.056128320, 0.005, 0.061128320, 0.051128320, 0.948871680, 0.938871680, 0.0086),
    (0.999981660, 0.005, 1.0, 0.994981660, 0.005018340, 0.0, 0.0086),
    (0.498928668, 0.009999977, 0.508928645, 0.488928691, 0.511071309, 0.491071355, 0.013599977),
]
FAIRS = st.integers(1, FLOAT - 1)


@pytest.mark.parametrize(("up", "half", "up_ask", "up_bid", "down_ask", "down_bid", "busy"), VECTORS)
def test_the_vectors_of_the_specification_come_out_to_eight_digits(
    up: float, half: float, up_ask: float, up_bid: float, down_ask: float, down_bid: float, busy: float
) -> None:
    fair = round(up * FLOAT)
    quote = make_quote(TERMS, fair, 0)
    found = (
        quote.spread,
        quote.ask,
        quote.bid,
        quote.opposite.ask,
        quote.opposite.bid,
        spread(TERMS, fair, 3 * FLOAT // 10),
    )
    for units, expected in zip(found, (half, up_ask, up_bid, down_ask, down_bid, busy), strict=True):
        assert units / FLOAT == pytest.approx(expected, abs=1e-8)


@given(FAIRS, st.integers(0, FLOAT))
def test_the_ask_is_never_below_the_fair_value_nor_the_bid_above_it(fair: int, used: int) -> None:
    quote = make_quote(TERMS, fair, used)
    assert 0 <= quote.bid <= fair <= quote.ask <= FLOAT
    assert quote.opposite.bid <= FLOAT - fair <= quote.opposite.ask


@given(FAIRS, st.integers(0, FLOAT))
def test_no_is_quoted_as_a_contract_of_its_own_would_be(fair: int, used: int) -> None:
    assert make_quote(TERMS, fair, used).opposite == make_quote(TERMS, FLOAT - fair, used)


@given(FAIRS, st.integers(0, FLOAT), st.integers(0, FLOAT))
def test_a_busier_vault_never_quotes_a_narrower_spread(fair: int, one: int, two: int) -> None:
    assert spread(TERMS, fair, min(one, two)) <= spread(TERMS, fair, max(one, two))


@given(st.integers(0, 10**15), st.integers(1, FLOAT))
def test_what_a_spend_buys_never_costs_more_than_the_spend(spend: int, ask: int) -> None:
    quantity = quantity_for(spend, ask)
    assert amount(ask, quantity) <= spend
    assert amount(ask, quantity + 2 * FLOAT // ask + 1) > spend


def test_utilisation_is_nothing_without_a_vault_or_a_liability_and_at_most_one() -> None:
    assert utilisation(0, 5) == utilisation(5, 0) == utilisation(-3, 5) == 0
    assert utilisation(3 * QUOTE, 10 * QUOTE) == 3 * FLOAT // 10
    assert utilisation(30, 10) == FLOAT


def test_bounds_of_one_market_only_tighten_the_general_ones() -> None:
    assert ask_bounds(TERMS, None) == (TERMS.min_ask, TERMS.max_ask)
    assert ask_bounds(TERMS, (50_000_000, 900_000_000)) == (50_000_000, 900_000_000)
    assert ask_bounds(TERMS, (1, FLOAT - 1)) == (TERMS.min_ask, TERMS.max_ask)
    assert check_bounds(TERMS, 50_000_000, 900_000_000) is None
    assert check_bounds(TERMS, 5_000_000, 900_000_000) == LOOSER_BOUNDS
    assert check_bounds(TERMS, 50_000_000, 995_000_000) == LOOSER_BOUNDS
    assert check_bounds(TERMS, 900_000_000, 50_000_000) == BAD_BOUND
