"""Swings and shapes: drawn ones are found, mirrored ones mirrored, scaled ones the same, and chance is counted."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.market import Bars
from pitboss.venues.perp.analysis.candles import candles
from pitboss.venues.perp.analysis.pattern_rarity import CHANCE, FITS, LENGTHS, MAX_CONFIDENCE, chance, confidence
from pitboss.venues.perp.analysis.patterns import FAMILIES, Pattern, patterns
from pitboss.venues.perp.analysis.swings import SwingChart, chart_of, levels, trend
from venues.perp.analysis.random_walks import count_patterns, walk


def bars_through(*corners: tuple[int, float], tail: float = 0.0005) -> Bars:
    """Bars along straight lines between corners (bar, log price)."""
    places = np.arange(corners[-1][0] + 1)
    logs = np.interp(places, [place for place, _ in corners], [price for _, price in corners])
    close = 100 * np.exp(logs)
    first = np.concatenate((close[:1], close[:-1]))
    high, low = np.maximum(first, close) * np.exp(tail), np.minimum(first, close) * np.exp(-tail)
    return Bars("X", "1h", 3_600_000, 3_600_000 * places, first, high, low, close, np.ones(len(close)))


def inverted_bars(bars: Bars) -> Bars:
    """The inverted bars: 1 / price."""
    return Bars(bars.symbol, bars.interval, bars.interval_ms, bars.open_at, 1e4 / bars.open, 1e4 / bars.low,
                1e4 / bars.high, 1e4 / bars.close, bars.volume)  # fmt: skip


def scaled_bars(bars: Bars, factor: float) -> Bars:
    return Bars(bars.symbol, bars.interval, bars.interval_ms, bars.open_at, bars.open * factor, bars.high * factor,
                bars.low * factor, bars.close * factor, bars.volume)  # fmt: skip


def find_pattern(bars: Bars, name: str) -> Pattern | None:
    return next((shape for shape in patterns(chart_of(bars)) if shape.name == name), None)


DRAWINGS: dict[str, Bars] = {
    "double top": bars_through((0, 0.0), (20, 0.10), (30, 0.06), (40, 0.10), (46, 0.075)),
    "head and shoulders": bars_through(
        (0, 0.0), (12, 0.08), (18, 0.05), (28, 0.12), (38, 0.05), (44, 0.08), (50, 0.055)
    ),
    "descending triangle": bars_through(
        (0, 0.04), (10, 0.10), (20, 0.0), (28, 0.075), (36, 0.0), (42, 0.05), (46, 0.02)
    ),
    "symmetrical triangle": bars_through(
        (0, 0.05), (10, 0.10), (20, 0.0), (30, 0.08), (40, 0.02), (48, 0.065), (52, 0.045)
    ),
    "bear flag": bars_through((0, 0.10), (20, 0.11), (30, 0.0), (33, 0.025), (36, 0.01), (40, 0.03)),
}
OPPOSITE = {
    "double top": "double bottom",
    "head and shoulders": "inverse head and shoulders",
    "descending triangle": "ascending triangle",
    "symmetrical triangle": "symmetrical triangle",
    "bear flag": "bull flag",
}


@pytest.mark.parametrize("name", sorted(DRAWINGS))
def test_a_drawn_pattern_is_found_with_a_good_fit_and_its_mirror_image_as_its_opposite(name: str) -> None:
    shape = find_pattern(DRAWINGS[name], name)
    assert shape is not None
    assert shape.fit > 0.6
    assert shape.stage == "forming"
    opposite = find_pattern(inverted_bars(DRAWINGS[name]), OPPOSITE[name])
    assert opposite is not None
    assert opposite.side == -shape.side
    assert opposite.fit == pytest.approx(shape.fit)


def test_a_double_top_is_confirmed_below_its_low_and_void_above_its_highs() -> None:
    corners = ((0, 0.0), (20, 0.10), (30, 0.06), (40, 0.10))
    shape = find_pattern(bars_through(*corners, (50, 0.055)), "double top")
    assert shape is not None
    assert shape.stage == "confirmed"
    last = 0.055  # logs are relative to the last close
    assert shape.trigger == pytest.approx(0.06 - last, abs=0.002)
    assert shape.void == pytest.approx(0.10 - last, abs=0.002)
    assert shape.target == pytest.approx(0.02 - last, abs=0.004)
    assert find_pattern(bars_through(*corners, (45, 0.08), (55, 0.12)), "double top") is None


def test_two_highs_at_different_prices_are_no_double_top() -> None:
    assert find_pattern(bars_through((0, 0.0), (20, 0.10), (30, 0.06), (40, 0.08), (46, 0.065)), "double top") is None


def test_a_better_drawing_has_a_better_fit() -> None:
    fits = []
    for lower in (0.0, 0.004, 0.008, 0.012):
        shape = find_pattern(
            bars_through((0, 0.0), (20, 0.10), (30, 0.06), (40, 0.10 - lower), (46, 0.07)), "double top"
        )
        fits.append(shape.fit if shape else 0.0)
    assert fits == sorted(fits, reverse=True)
    assert len(set(fits)) == 4


def test_a_straight_line_has_no_pattern_and_no_swing_but_its_start() -> None:
    chart = chart_of(bars_through((0, 0.0), (60, 0.3)))
    assert len(chart.turns) <= 1
    assert [shape for shape in patterns(chart) if shape.family != "flag"] == []


def test_trends_are_reported_by_their_swings() -> None:
    up = bars_through((0, 0.0), (10, 0.05), (15, 0.03), (25, 0.09), (30, 0.06), (40, 0.13), (45, 0.10), (50, 0.12))
    assert trend(chart_of(up))[0] == "higher highs and higher lows"
    assert trend(chart_of(inverted_bars(up)))[0] == "lower highs and lower lows"
    assert trend(chart_of(up))[1] == trend(chart_of(inverted_bars(up)))[1] == 1.0


def test_a_level_has_its_swings_counted_and_its_crossings_against_it() -> None:
    bars = bars_through((0, 0.0), (10, 0.10), (20, 0.0), (30, 0.10), (40, 0.0), (50, 0.10), (60, 0.03))
    above = levels(chart_of(bars))[-1]
    assert (above.touches, above.last_index) == (3, 50)
    assert above.price == pytest.approx(0.07, abs=0.002)
    assert above.hold_rate > 0.7


# Properties over charts of chance ----------------------------------------------------------------------------------


def comparable_shapes(chart: SwingChart, side: int = 1) -> list[tuple[object, ...]]:
    """Shapes as comparable rounded values; with side −1 as those of inverted bars."""
    return sorted(
        (
            shape.family,
            side * shape.side,
            shape.stage,
            shape.indices,
            round(shape.fit, 6),
            round(side * abs(shape.side) * shape.target, 6) + 0.0,  # one that points nowhere has no target
        )
        for shape in patterns(chart)
    )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(20, 200))
def test_a_market_upside_down_has_the_same_patterns_upside_down(seed: int, count: int) -> None:
    chart = chart_of(walk(np.random.default_rng(seed), count))
    other = chart_of(inverted_bars(walk(np.random.default_rng(seed), count)))
    assert [(turn.index, turn.side) for turn in chart.turns] == [(turn.index, -turn.side) for turn in other.turns]
    assert comparable_shapes(chart) == comparable_shapes(other, -1)
    assert [(level.touches, level.hold_rate) for level in levels(chart)] == [
        (level.touches, level.hold_rate) for level in reversed(levels(other))
    ]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(20, 200), factor=st.sampled_from([1e-9, 0.001, 7.0, 1e6]))
def test_patterns_do_not_depend_on_the_price_level(seed: int, count: int, factor: float) -> None:
    bars = walk(np.random.default_rng(seed), count)
    chart, other = chart_of(bars), chart_of(scaled_bars(bars, factor))
    assert [(turn.index, turn.side) for turn in chart.turns] == [(turn.index, turn.side) for turn in other.turns]
    assert comparable_shapes(chart) == comparable_shapes(other)
    assert candles(bars, count, 5) == candles(scaled_bars(bars, 2.0**20), count, 5)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(20, 150))
def test_every_fit_and_confidence_is_a_share_and_turns_alternate(seed: int, count: int) -> None:
    chart = chart_of(walk(np.random.default_rng(seed), count))
    sides = [turn.side for turn in chart.turns]
    assert all(one == -other for one, other in pairwise(sides))
    for turn in chart.turns:
        assert turn.price == (chart.high if turn.side > 0 else chart.low)[turn.index]
    for shape in patterns(chart):
        assert 0 < shape.fit <= 1
        assert 0 <= confidence(shape.family, count, shape.fit) <= 1
        assert max(shape.indices) < count


def test_candles_are_dated_on_their_own_bar() -> None:
    bars = bars_through((0, 0.1), (30, 0.05), (35, 0.06))
    first, close = bars.open.copy(), bars.close.copy()
    first[-2], close[-2] = 104.0, 103.0
    first[-1], close[-1] = 102.5, 105.0
    high, low = np.maximum(first, close) * 1.0005, np.minimum(first, close) * 0.9995
    made = Bars("X", "1h", bars.interval_ms, bars.open_at, first, high, low, close, bars.volume)
    assert [(c.index, c.direction) for c in candles(made, 36, 1) if c.name == "engulfing"] == [(35, "bullish")]


# Chance ------------------------------------------------------------------------------------------------------------


def test_the_table_of_chance_is_whole_and_falls_with_the_fit() -> None:
    assert set(CHANCE) == {(length, family) for length in LENGTHS for family in FAMILIES}
    for row in CHANCE.values():
        assert len(row) == len(FITS)
        assert list(row) == sorted(row, reverse=True)
        assert row[0] > 0


def test_confidence_rises_with_the_fit_from_none_to_certain() -> None:
    for family in FAMILIES:
        result = [confidence(family, 120, fit / 50) for fit in range(51)]
        assert result == sorted(result)
        assert result[0] == 0.0
        assert result[-1] == MAX_CONFIDENCE
        assert 0 < chance(family, 120) < 1


def test_the_table_of_chance_is_what_chance_draws() -> None:
    shares = count_patterns(np.random.default_rng(11), 80, 400)
    for family, row in shares.items():
        for share, known in zip(row, CHANCE[80, family], strict=True):
            expected = known / 100_000
            assert abs(share - expected) <= 4.5 * np.sqrt(expected * (1 - expected) / 400) + 0.003


@pytest.mark.proof
@pytest.mark.parametrize("length", LENGTHS)
def test_the_whole_table_of_chance_is_what_chance_draws(length: int) -> None:
    for family, row in count_patterns(np.random.default_rng(1234), length, 10_000).items():
        for share, known in zip(row, CHANCE[length, family], strict=True):
            expected = known / 100_000
            assert abs(share - expected) <= 5 * np.sqrt(expected * (1 - expected) * (1 / 10_000 + 1 / 20_000)) + 0.0005


@pytest.mark.parametrize("length", [50, 300])
def test_on_charts_of_chance_confidence_is_spread_evenly(length: int) -> None:
    random = np.random.default_rng(5)
    best = []
    for _ in range(400):
        fits = [shape.fit for shape in patterns(chart_of(walk(random, length))) if shape.family == "double"]
        if fits:
            best.append(confidence("double", length, max(fits)))
    assert 0.4 < float(np.mean(best)) < 0.6
    assert 0.03 < float(np.mean(np.array(best) > 0.9)) < 0.18
