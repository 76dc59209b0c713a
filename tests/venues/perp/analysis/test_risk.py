"""Value at risk against slow arithmetic, and what must hold of any such figure."""

from decimal import Decimal
from math import erf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.market import Bars
from pitboss.venues.perp.analysis.risk import enough, historical, joint, parametric


def bars_of(closes: list[float], places: list[int] | None = None) -> Bars:
    at = 300_000 * np.array(places if places is not None else range(len(closes)), np.int64)
    close = np.array(closes)
    return Bars("X", "5m", 300_000, at, close, close, close, close, np.ones(len(close)))


def slow_historical(losses: list[float], confidence: Decimal) -> tuple[float, float]:
    """By definition: the smallest x with P(loss > x) ≤ tail; the mean of the worst tail of the mass."""
    ordered, count, tail = sorted(losses), len(losses), (100 - confidence) / 100
    at_risk = min(x for x in ordered if Decimal(sum(loss > x for loss in losses)) / count <= tail)
    mass, total = tail * count, 0.0
    for loss in reversed(ordered):
        weight = min(Decimal(1), mass)
        total += float(weight) * loss
        mass -= weight
    return max(0.0, at_risk), max(0.0, total / float(tail * count))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(20, 300),
    confidence=st.sampled_from(["90", "95", "97.5", "99", "99.9"]),
)
def test_the_historical_figures_are_those_of_the_definition(seed: int, count: int, confidence: str) -> None:
    random = np.random.default_rng(seed)
    returns, exposure = random.normal(0, 0.01, (count, 2)).round(4), random.normal(0, 1_000, 2).round(1)
    result = historical(returns, exposure, Decimal(confidence))
    if count * (100 - Decimal(confidence)) / 100 < 1:
        assert result is None
        return
    assert result is not None
    at_risk, shortfall = slow_historical((-(returns @ exposure)).tolist(), Decimal(confidence))
    assert result.at_risk == pytest.approx(at_risk)
    assert result.shortfall == pytest.approx(shortfall)
    assert result.shortfall >= result.at_risk - 1e-9


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), horizon=st.integers(1, 50), confidence=st.sampled_from(["90", "95", "99.9"]))
def test_the_parametric_figures_are_those_of_the_normal_distribution(seed: int, horizon: int, confidence: str) -> None:
    random = np.random.default_rng(seed)
    returns, exposure = random.normal(0, 0.01, (200, 3)), random.normal(0, 1_000, 3)
    result = parametric(returns, exposure, Decimal(confidence), horizon)
    covariance = returns.T @ returns / len(returns)
    deviation = sqrt(float(exposure @ covariance @ exposure) * horizon)
    share = 0.5 * (1 + erf(result.at_risk / deviation / sqrt(2)))
    assert share == pytest.approx(float(confidence) / 100, abs=1e-9)
    grid = np.linspace(result.at_risk / deviation, 12, 200_001)
    density = np.exp(-(grid**2) / 2) / sqrt(2 * np.pi)
    tail = float(np.trapezoid(grid * density, grid)) / (1 - float(confidence) / 100)
    assert result.shortfall == pytest.approx(tail * deviation, rel=1e-5)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), factor=st.floats(0.1, 10))
def test_risk_grows_with_size_and_together_is_never_more_shortfall_than_apart(seed: int, factor: float) -> None:
    random = np.random.default_rng(seed)
    returns, exposure = random.standard_t(3, (300, 2)) * 0.01, random.normal(0, 1_000, 2)
    whole = historical(returns, exposure, Decimal(95))
    larger = historical(returns, factor * exposure, Decimal(95))
    parts = [historical(returns, exposure * mask, Decimal(95)) for mask in (np.array([1, 0]), np.array([0, 1]))]
    assert whole is not None
    assert larger is not None
    assert larger.at_risk == pytest.approx(factor * whole.at_risk)
    assert whole.shortfall <= sum(part.shortfall for part in parts if part) + 1e-6


def test_returns_over_a_horizon_never_span_a_hole() -> None:
    table = joint({"A": bars_of([1.0, 2.0, 4.0, 8.0, 16.0], [0, 1, 2, 7, 8])})
    assert table.returns(1)[:, 0].tolist() == [1.0, 1.0, 1.0]
    assert table.returns(2)[:, 0].tolist() == [3.0]
    assert len(table.returns(3)) == 0
    assert len(table.returns(9)) == 0


def test_only_bars_that_all_symbols_have_count() -> None:
    table = joint({"B": bars_of([1.0, 2.0, 4.0], [0, 1, 2]), "A": bars_of([10.0, 20.0, 10.0, 5.0], [1, 2, 3, 4])})
    assert table.symbols == ("A", "B")
    assert table.closes.tolist() == [[10.0, 2.0], [20.0, 4.0]]
    assert table.returns(1).tolist() == [[1.0, 1.0]]
    assert not enough(table, 1)


@given(st.integers(1, 400), st.integers(1, 30))
def test_enough_is_sixty_returns_and_twenty_horizons(count: int, horizon: int) -> None:
    table = joint({"A": bars_of([1.0] * (count + 1))})
    assert enough(table, horizon) == (count >= max(60, 20 * horizon))
