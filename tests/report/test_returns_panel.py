"""Months, drawdowns and the rolling Sharpe of an equity curve, against numbers worked out by hand."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.instant import DAY_MS, HOUR_MS
from pitboss.report.returns import monthly_returns, rolling_sharpe, worst_drawdowns
from pitboss.sim.metrics import drawdown
from pitboss.sim.statistics.returns import sharpe

START = 1_740_787_200_000  # 2025-03-01T00:00:00Z


def at(*days: float) -> Any:
    return START + np.array(days) * float(DAY_MS)


def test_months_begin_where_the_month_before_ended_and_midnight_belongs_to_the_day_before() -> None:
    ends = [datetime(2025, 3, 10, tzinfo=UTC), datetime(2025, 4, 1, tzinfo=UTC), datetime(2025, 12, 31, 23, tzinfo=UTC), datetime(2026, 1, 5, tzinfo=UTC)]  # fmt: skip
    times = np.array([end.timestamp() * 1000 for end in ends])
    years = monthly_returns(10_000.0, times, np.array([9_000.0, 11_000.0, 12_100.0, 6_050.0]))
    assert list(years) == [2025, 2026]
    assert years[2025] == pytest.approx({3: 10.0, 12: 10.0, 0: 21.0})
    assert years[2026] == pytest.approx({1: -50.0, 0: -50.0})


def test_the_worst_drawdowns_have_their_depth_begin_lowest_point_recovery_and_length() -> None:
    equity = np.array([100.0, 90.0, 95.0, 110.0, 55.0, 88.0])
    first, second = worst_drawdowns(START, 100.0, at(1, 2, 3, 4, 5, 6), equity)
    assert first.depth_pct == pytest.approx(50.0)
    assert (first.peak_at, first.trough_at, first.recovered_at, first.end_at) == (*at(4, 5), None, at(6)[0])
    assert second.depth_pct == pytest.approx(10.0)
    assert (second.peak_at, second.trough_at, second.recovered_at) == tuple(at(1, 2, 4))
    assert worst_drawdowns(START, 100.0, at(1, 2), np.array([100.0, 101.0])) == []


@given(st.lists(st.integers(1, 400), min_size=1, max_size=60))
def test_the_deepest_and_the_longest_drawdown_are_those_of_the_metrics(values: list[int]) -> None:
    times, equity = START + HOUR_MS * np.arange(1, len(values) + 1).astype(np.float64), np.array(values, np.float64)
    found = worst_drawdowns(START, 200.0, times, equity, most=1_000)
    depth, longest_ms = drawdown(START, 200.0, times.astype(np.int64), equity)
    assert max((each.depth_pct for each in found), default=0.0) == pytest.approx(100 * depth)
    assert max((each.end_at - each.peak_at for each in found), default=0) == longest_ms


def test_the_rolling_sharpe_is_that_of_the_last_days() -> None:
    draw = np.random.default_rng(1)
    daily = draw.normal(0.001, 0.01, 40)
    equity = (1_000.0 * np.cumprod(1 + daily)).astype(np.float64)
    moments, values = rolling_sharpe(1_000.0, at(*range(1, 41)), equity, days=30)
    assert moments.tolist() == at(*range(30, 41)).tolist()
    assert values[-1] == pytest.approx(sharpe(daily[-30:].tolist()))
    assert values[0] == pytest.approx(sharpe(daily[:30].tolist()))
    assert len(rolling_sharpe(1_000.0, at(*range(1, 30)), equity[:29], days=30)[0]) == 0
