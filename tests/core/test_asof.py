"""The as-of view against a plain reference: exactly what was available at the instant (P21)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from engine.invariant import invariant, long_versions
from pitboss.core.asof import Market
from pitboss.core.errors import LookaheadError, UserError
from pitboss.core.instant import HOUR_MS, MINUTE_MS
from pitboss.core.market import CalendarEvent, NewsItem, Points
from pitboss.venues.perp.testing import make_bars

START = 1_750_000_000_000 // HOUR_MS * HOUR_MS
MOMENTS = st.integers(START - HOUR_MS, START + 6 * HOUR_MS)
PLACES = st.lists(st.integers(0, 60), unique=True, max_size=30).map(sorted)


@st.composite
def markets(draw: st.DrawFn) -> Market:
    places = draw(PLACES)
    rows = [(START + place * 5 * MINUTE_MS, place + 1.0, place + 2.0, place + 0.5, place + 1.5) for place in places]
    points = draw(PLACES)
    news = sorted(
        (
            NewsItem(at, at + late, "wire", f"news {at}")
            for at, late in draw(st.lists(st.tuples(MOMENTS, st.integers(0, HOUR_MS)), max_size=6))
        ),
        key=lambda item: item.available_at,
    )
    events = sorted(
        (
            CalendarEvent(at, known, "talk", f"event {at} {known}")
            for at, known in draw(st.lists(st.tuples(MOMENTS, MOMENTS), max_size=6))
        ),
        key=lambda event: event.known_at,
    )
    at = np.array([START + place * HOUR_MS // 7 for place in points], dtype=np.int64)
    return Market(
        {("BTC", "5m"): make_bars("BTC", "5m", rows)},
        {("funding", "BTC"): Points("BTC", "funding", at, np.array([float(place) for place in points]))},
        news,
        events,
    )


@invariant(markets(), MOMENTS, st.integers(1, 40))
def test_p21_bars_are_cut_by_their_close(market: Market, at: int, lookback: int) -> None:
    """P21: a bar is there from its close on, not from its open."""
    bars = market.bars["BTC", "5m"]
    closed = [int(opened) for opened in bars.open_at if opened + 5 * MINUTE_MS <= at]
    view = market.view(at)
    seen = view.bars("BTC", "5m", lookback)
    assert seen.open_at.tolist() == closed[-lookback:]
    assert seen.close.tolist() == bars.close.tolist()[: len(closed)][-lookback:]
    assert view.series("BTC", "5m") == (bars, len(closed))


@invariant(markets(), MOMENTS, MOMENTS, st.integers(1, 40))
def test_p21_asking_past_the_tick_raises_and_asking_back_is_the_earlier_view(
    market: Market, at: int, until: int, lookback: int
) -> None:
    """P21: `until` reaches back, never forward."""
    view = market.view(at)
    asks: list[Any] = [
        lambda moment: view.bars("BTC", "5m", lookback, moment).open_at.tolist(),
        lambda moment: view.points("funding", "BTC", lookback, moment).at.tolist(),  # type: ignore[union-attr]
        lambda moment: view.news(3, moment),
    ]
    earlier = market.view(until)
    expected = [
        earlier.bars("BTC", "5m", lookback).open_at.tolist(),
        earlier.points("funding", "BTC", lookback).at.tolist(),  # type: ignore[union-attr]
        earlier.news(3),
    ]
    for ask, answer in zip(asks, expected, strict=True):
        if until > at:
            with pytest.raises(LookaheadError):
                ask(until)
        else:
            assert ask(until) == answer


@invariant(markets(), MOMENTS, st.integers(1, 5))
def test_p21_news_points_and_events_are_cut_by_when_they_could_be_known(market: Market, at: int, hours: int) -> None:
    """P21: news by arrival, points by their own time, events by when they were first known."""
    view = market.view(at)
    points = market.points["funding", "BTC"]
    known = [int(moment) for moment in points.at if moment <= at]
    seen = view.points("funding", "BTC", 1000)
    assert seen is not None
    assert seen.at.tolist() == known
    fresh = [item for item in market.news if at - hours * HOUR_MS < item.available_at <= at]
    assert sorted(view.news(hours), key=repr) == sorted(fresh, key=repr)
    arrivals = [item.available_at for item in view.news(hours)]
    assert arrivals == sorted(arrivals, reverse=True)
    assert view.news_count() == len([item for item in market.news if item.available_at <= at])
    soon = [event for event in market.events if event.known_at <= at <= event.scheduled_at <= at + hours * HOUR_MS]
    assert sorted(view.events(hours), key=repr) == sorted(soon, key=repr)
    times = [event.scheduled_at for event in view.events(hours)]
    assert times == sorted(times)


def test_a_symbol_without_bars_is_the_users_mistake() -> None:
    view = Market({}).view(START)
    with pytest.raises(UserError):
        view.bars("XMR", "5m", 1)
    assert not view.has_bars("XMR", "5m")
    assert view.points("funding", "XMR", 1) is None


def test_a_sliced_bar_set_shares_its_memory() -> None:
    bars = make_bars("BTC", "5m", [(START, 1, 2, 0.5, 1.5), (START + 5 * MINUTE_MS, 2, 3, 1, 2)])
    part = bars.slice(1, 2)
    assert (len(part), part.close.tolist()) == (1, [2.0])
    assert np.shares_memory(part.close, bars.close)


test_long = long_versions(globals())
