"""Sharpe ratios against their formulas and against published figures."""

import math
import statistics as plain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.sim.statistics.returns import (
    deflated_sharpe,
    expected_best_sharpe,
    probabilistic_sharpe,
    sharpe,
    sharpe_confidence,
    skew_and_kurtosis,
    sortino,
)

returns_lists = st.lists(st.floats(-0.5, 0.5).map(lambda value: round(value, 6)), min_size=3, max_size=40)


@given(returns_lists)
def test_sharpe_and_sortino_equal_their_formulas(returns):
    mean, deviation = plain.fmean(returns), plain.stdev(returns)
    if deviation > 1e-12:
        assert sharpe(returns) == pytest.approx(mean / deviation * math.sqrt(365), rel=1e-9, abs=1e-9)
    else:
        assert sharpe(returns) is None
    downside = math.sqrt(sum(min(value, 0) ** 2 for value in returns) / len(returns))
    if downside > 1e-12:
        assert sortino(returns) == pytest.approx(mean / downside * math.sqrt(365), rel=1e-9, abs=1e-9)
    else:
        assert sortino(returns) is None


@pytest.mark.parametrize("returns", [[], [0.01], [0.01, -0.02], [0.0] * 9, [0.01] * 9], ids=str)
def test_too_few_returns_or_no_deviation_have_no_sharpe(returns):
    assert sharpe(returns) is None
    assert probabilistic_sharpe(returns) is None


def test_only_gains_have_a_sharpe_but_no_sortino():
    assert sharpe([0.01, 0.02, 0.03]) == pytest.approx(2 * math.sqrt(365))
    assert sortino([0.01, 0.02, 0.03]) is None


def test_skew_and_kurtosis_of_known_shapes():
    assert skew_and_kurtosis([-1.0, 1.0] * 5) == pytest.approx((0.0, 1.0))
    skew, kurtosis = skew_and_kurtosis([0.0] * 9 + [1.0])  # pyright: ignore[reportGeneralTypeIssues]
    assert (skew, kurtosis) == pytest.approx((8 / 3, 73 / 9))


def test_the_published_example_of_the_deflated_sharpe_is_reproduced():
    # Bailey and López de Prado 2014: best of 100 trials with an annual Sharpe of 2.5, variance of trials 1/2 a year,
    # 1,250 daily observations of 250 a year, skewness −3, kurtosis 10.
    benchmark = expected_best_sharpe(variance=0.5 / 250, trials=100)
    assert benchmark == pytest.approx(0.1132, abs=5e-5)
    confidence = sharpe_confidence(2.5 / math.sqrt(250), benchmark, 1250, skew=-3, kurtosis=10)
    assert confidence == pytest.approx(0.9004, abs=5e-5)


@pytest.mark.parametrize(("trials", "skew", "kurtosis"), [(46, -3, 10), (88, 0, 3)], ids=["fat tails", "normal"])
def test_the_published_example_is_significant_up_to_this_many_trials(trials, skew, kurtosis):
    # The same paper: 0.9505 after 46 trials, or after 88 had the returns been normal; one more trial is too many.
    def confidence(count):
        benchmark = expected_best_sharpe(0.5 / 250, count)
        return sharpe_confidence(2.5 / math.sqrt(250), benchmark, 1250, skew, kurtosis)

    assert confidence(trials) == pytest.approx(0.9505, abs=5e-5)
    assert confidence(trials + 1) < 0.95


def test_one_trial_is_not_deflated():
    returns = [0.01, -0.005, 0.02, 0.003, -0.01]
    assert expected_best_sharpe(3.0, 1) == 0
    assert deflated_sharpe(returns, [1.0]) == probabilistic_sharpe(returns)


def test_annualised_trials_are_converted_to_daily_before_they_deflate():
    returns, trials = [0.01, -0.005, 0.02, 0.003, -0.01] * 8, [0.5, 1.5, -0.7, 2.1]
    daily = [ratio / math.sqrt(365) for ratio in trials]
    best = expected_best_sharpe(plain.variance(daily), 4)
    expected = probabilistic_sharpe(returns, best)
    assert deflated_sharpe(returns, trials) == pytest.approx(expected, rel=1e-12)


def test_more_trials_deflate_more():
    returns = [0.01, -0.005, 0.02, 0.003, -0.01] * 8
    few, many = ([0.5, 1.5] * count for count in (2, 50))
    plain_probability = probabilistic_sharpe(returns)
    assert deflated_sharpe(returns, many) < deflated_sharpe(returns, few) < plain_probability


def test_probabilistic_sharpe_is_half_without_drift_and_symmetric():
    assert probabilistic_sharpe([0.01, -0.01] * 10) == pytest.approx(0.5)
    up, down = [0.02, -0.01] * 10, [-0.02, 0.01] * 10
    assert probabilistic_sharpe(up) + probabilistic_sharpe(down) == pytest.approx(1)


def test_probabilistic_sharpe_of_normal_returns_is_the_textbook_z_test():
    assert sharpe_confidence(0.1, 0.0, 401, 0.0, 3.0) == pytest.approx(
        plain.NormalDist().cdf(0.1 * 20 / math.sqrt(1 + 0.005))
    )


def test_a_two_point_distribution_at_its_pole_has_no_probability():
    assert sharpe_confidence(sharpe=1.0, benchmark=0.0, count=100, skew=2.0, kurtosis=5.0) is None
