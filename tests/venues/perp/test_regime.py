"""The regime tag and the ATR against a slow reference, and that neither sees a later bar."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.market import Bars
from pitboss.venues.perp import regime
from venues.perp.prompt_scene import bars_of


def walk(seed: int, count: int, drift: float = 0.0) -> Bars:
    """A seeded walk with uneven ranges."""
    draw = np.random.default_rng(seed)
    close = 100.0 * np.exp(np.cumsum(draw.normal(drift, 0.01, count) * draw.choice([0.3, 1.0, 3.0], count)))
    bars = bars_of("BTC", "15m", close.tolist())
    return replace(bars, high=bars.high + draw.uniform(0, 1, count), low=bars.low - draw.uniform(0, 1, count))


# The reference: Wilder's formulas written out, one bar after another -------------------------------------------------


def slow_atr(bars: Bars, n: int = 14) -> list[float]:
    ranges = [
        max(top - bottom, abs(top - before), abs(bottom - before))
        for top, bottom, before in zip(bars.high[1:], bars.low[1:], bars.close[:-1], strict=True)
    ]
    values = [math.nan] * len(bars)
    if len(bars) > n:
        values[n] = sum(ranges[:n]) / n
        for i in range(n + 1, len(bars)):
            values[i] = (values[i - 1] * (n - 1) + ranges[i - 1]) / n
    return values


def slow_adx(bars: Bars, n: int = 14) -> list[float]:
    high, low, close = bars.high, bars.low, bars.close
    values, dx = [math.nan] * len(bars), []
    up = down = true = 0.0
    for i in range(1, len(bars)):
        rise, fall = high[i] - high[i - 1], low[i - 1] - low[i]
        plus = rise if rise > fall and rise > 0 else 0.0
        minus = fall if fall > rise and fall > 0 else 0.0
        spread = max(high[i] - low[i], abs(high[i] - close[i - 1]), abs(low[i] - close[i - 1]))
        if i < n:  # the first n − 1 moves are added up; from then on each sum gives up an n-th of itself
            up, down, true = up + plus, down + minus, true + spread
            continue
        up, down, true = up - up / n + plus, down - down / n + minus, true - true / n + spread
        dx.append(100 * abs(up - down) / (up + down) if up + down else 0.0)
        if len(dx) == n:
            values[i] = sum(dx) / n
        elif len(dx) > n:
            values[i] = (values[i - 1] * (n - 1) + dx[-1]) / n
    return values


def slow_ema(bars: Bars, n: int = 20) -> list[float]:
    values = [math.nan] * len(bars)
    if len(bars) >= n:
        values[n - 1] = sum(bars.close[:n]) / n
        for i in range(n, len(bars)):
            values[i] = values[i - 1] + (bars.close[i] - values[i - 1]) * 2 / (n + 1)
    return values


def slow_tag(bars: Bars, closed: int, lookback: int) -> str:
    if closed < 50:
        return "unknown"
    past = bars.slice(0, closed)
    ratios = [atr / close for atr, close in zip(slow_atr(past), past.close, strict=True)][-lookback:]
    defined = [ratio for ratio in ratios if not math.isnan(ratio)]
    if sum(ratio <= defined[-1] for ratio in defined) / len(defined) >= 0.8:
        return "high_vol"
    ema = slow_ema(past)
    if slow_adx(past)[-1] >= 25 and ema[-1] != ema[-2]:
        return "trend_up" if ema[-1] > ema[-2] else "trend_down"
    return "chop"


@pytest.mark.parametrize("seed", range(4))
def test_indicators_are_wilders(seed):
    bars = walk(seed, 300, drift=0.001 * seed)
    columns = regime.indicators(bars)
    for fast, slow in ((columns.atr, slow_atr(bars)), (columns.adx, slow_adx(bars)), (columns.ema, slow_ema(bars))):
        np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    closed=st.integers(0, 180),
    lookback=st.integers(1, 200),
    drift=st.sampled_from([-0.01, 0.0, 0.01]),
)
def test_the_tag_is_the_one_of_the_reference(seed, closed, lookback, drift):
    bars = walk(seed, 180, drift)
    assert regime.tag(bars, closed, lookback) == slow_tag(bars, closed, lookback)


def test_every_tag_occurs():
    tags = {regime.tag(walk(seed, 120, drift), 120, 100) for seed in range(40) for drift in (-0.01, 0.0, 0.01)}
    assert tags == {"high_vol", "trend_up", "trend_down", "chop"}


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), closed=st.integers(0, 150), wild=st.sampled_from([1e-6, 1e9, math.inf, math.nan]))
def test_no_later_bar_changes_a_tag_or_an_atr(seed, closed, wild):
    bars = walk(seed, 150)
    columns = {name: getattr(bars, name).copy() for name in ("open", "high", "low", "close", "volume")}
    for column in columns.values():
        column[closed:] = wild
    changed = replace(bars, **columns)
    assert regime.tag(changed, closed, 100) == regime.tag(bars, closed, 100)
    assert regime.atr(changed, closed) == regime.atr(bars, closed)


@pytest.mark.parametrize(("closed", "tag"), [(0, "unknown"), (49, "unknown"), (50, "trend_up")])
def test_fifty_closed_bars_are_needed_for_a_tag(closed, tag):
    rising = bars_of("BTC", "15m", [100.0 + i for i in range(60)])  # ever smaller against the price: never high_vol
    assert regime.tag(rising, closed, 100) == tag


def test_the_atr_needs_one_bar_more_than_its_period():
    bars = walk(3, 40)
    assert regime.atr(bars, 14) is None
    assert regime.atr(bars, 15) == pytest.approx(slow_atr(bars)[14])
    assert regime.atr(bars_of("BTC", "15m", []), 0) is None


def test_two_markets_are_never_mixed_up():
    calm, wild = walk(1, 100), walk(2, 100)
    assert regime.atr(calm, 100) != regime.atr(wild, 100)
    assert regime.atr(calm, 100) == pytest.approx(slow_atr(calm)[-1])
