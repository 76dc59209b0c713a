"""Listings as of an instant: a view has no data of unlisted symbols, and does not know later delistings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.asof import Market
from pitboss.core.market import Listing, Points
from pitboss.venues.perp.testing import make_bars

STEP = 300_000
ROWS = [(place * STEP, 100.0 + place, 102.0 + place, 99.0 + place, 101.0 + place) for place in range(40)]


def market(listing: Listing | None) -> Market:
    points = Points("SUI", "funding", np.arange(0, 40, dtype=np.int64) * STEP, np.arange(40.0))
    bars = {(symbol, "5m"): make_bars(symbol, "5m", ROWS) for symbol in ("BTC", "SUI")}
    return Market(bars, {("funding", "SUI"): points}, listings={} if listing is None else {"SUI": listing})


def test_before_its_listing_and_after_its_end_a_symbol_has_no_bars_and_no_values() -> None:
    whole = market(Listing("SUI", 10 * STEP, 30 * STEP))
    for at, listed, ended in ((9, False, False), (10, True, False), (29, True, False), (30, False, True)):
        view = whole.view(at * STEP)
        points = view.points("funding", "SUI", 5)
        assert view.listed("SUI") is listed
        assert view.was_delisted("SUI") is ended
        assert bool(view.series("SUI", "5m")[1]) is listed
        assert bool(len(view.bars("SUI", "5m", 5))) is listed
        assert bool(len(view.bars("SUI", "5m", 5, until=at * STEP - STEP))) is listed
        assert points is not None
        assert bool(len(points)) is listed
        assert view.unlisted(("BTC", "SUI")) == (() if listed else ("SUI",))
        assert len(view.bars("BTC", "5m", 5)) == 5


def test_an_end_is_known_from_its_announcement_on_and_else_only_when_it_comes() -> None:
    announced = market(Listing("SUI", None, 30 * STEP, 20 * STEP))
    assert announced.view(20 * STEP - 1).ends_at("SUI") is None
    assert announced.view(20 * STEP).ends_at("SUI") == 30 * STEP
    silent = market(Listing("SUI", None, 30 * STEP))
    assert silent.view(30 * STEP - 1).ends_at("SUI") is None
    assert silent.view(30 * STEP).ends_at("SUI") == 30 * STEP


def test_a_symbol_without_a_listing_is_always_listed() -> None:
    assert market(None).view(0).listed("SUI")
    assert market(None).view(0).unlisted(("BTC", "SUI")) == ()
    assert market(None).view(0).ends_at("SUI") is None


@given(
    st.integers(0, 40),
    st.one_of(st.none(), st.integers(0, 40)),
    st.one_of(st.none(), st.integers(0, 40)),
    st.integers(1, 40),
)
def test_nothing_that_a_view_says_depends_on_what_of_a_listing_is_still_to_come(
    at: int, begins: int | None, ends: int | None, shift: int
) -> None:
    def moved(place: int | None) -> int | None:
        return None if place is None else (place if place <= at else place + shift) * STEP

    one = market(Listing("SUI", None if begins is None else begins * STEP, None if ends is None else ends * STEP))
    other = market(Listing("SUI", moved(begins), moved(ends)))
    for ask in (
        lambda view: view.listed("SUI"),
        lambda view: view.was_delisted("SUI"),
        lambda view: view.ends_at("SUI"),
        lambda view: view.series("SUI", "5m")[1],
    ):
        assert ask(one.view(at * STEP)) == ask(other.view(at * STEP))


@pytest.mark.parametrize("listing", [Listing("SUI", 10 * STEP), Listing("SUI", None, 10 * STEP)])
def test_a_listing_covers_its_first_instant_and_not_its_last(listing: Listing) -> None:
    assert listing.covers(10 * STEP) is (listing.listed_at is not None)
    assert listing.covers(10 * STEP - 1) is (listing.listed_at is None)
