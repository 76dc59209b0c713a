"""Uncertainty of results: the vectorised bootstrap against a plain loop, and published figures."""

import math
import statistics as plain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.sim import statistics

returns_lists = st.lists(st.floats(-0.5, 0.5).map(lambda value: round(value, 6)), min_size=3, max_size=40)


@given(returns_lists)
def test_sharpe_and_sortino_equal_their_formulas(returns):
    mean, deviation = plain.fmean(returns), plain.stdev(returns)
    if deviation > 1e-12:
        assert statistics.sharpe(returns) == pytest.approx(mean / deviation * math.sqrt(365), rel=1e-9, abs=1e-9)
    else:
        assert statistics.sharpe(returns) is None
    downside = math.sqrt(sum(min(value, 0) ** 2 for value in returns) / len(returns))
    if downside > 1e-12:
        assert statistics.sortino(returns) == pytest.approx(mean / downside * math.sqrt(365), rel=1e-9, abs=1e-9)
    else:
        assert statistics.sortino(returns) is None


@pytest.mark.parametrize("returns", [[], [0.01], [0.01, -0.02], [0.0] * 9, [0.01] * 9], ids=str)
def test_too_few_returns_or_no_deviation_have_no_sharpe(returns):
    assert statistics.sharpe(returns) is None
    assert statistics.probabilistic_sharpe(returns) is None


def test_only_gains_have_a_sharpe_but_no_sortino():
    assert statistics.sharpe([0.01, 0.02, 0.03]) == pytest.approx(2 * math.sqrt(365))
    assert statistics.sortino([0.01, 0.02, 0.03]) is None


def test_skew_and_kurtosis_of_known_shapes():
    assert statistics.shape([-1.0, 1.0] * 5) == pytest.approx((0.0, 1.0))
    skew, kurtosis = statistics.shape([0.0] * 9 + [1.0])  # pyright: ignore[reportGeneralTypeIssues]
    assert (skew, kurtosis) == pytest.approx((8 / 3, 73 / 9))


def test_the_published_deflated_sharpe_example_comes_out():
    # Bailey and López de Prado 2014: best of 100 trials with an annual Sharpe of 2.5, variance of trials 1/2 a year,
    # 1,250 daily observations of 250 a year, skewness −3, kurtosis 10.
    benchmark = statistics.expected_best_sharpe(variance=0.5 / 250, trials=100)
    assert benchmark == pytest.approx(0.1132, abs=5e-5)
    confidence = statistics.sharpe_confidence(2.5 / math.sqrt(250), benchmark, 1250, skew=-3, kurtosis=10)
    assert confidence == pytest.approx(0.9004, abs=5e-5)


@pytest.mark.parametrize(("trials", "skew", "kurtosis"), [(46, -3, 10), (88, 0, 3)], ids=["fat tails", "normal"])
def test_the_published_example_stands_at_95_percent_up_to_so_many_trials(trials, skew, kurtosis):
    # The same paper: 0.9505 after 46 trials, or after 88 had the returns been normal; one more trial is too many.
    def confidence(count):
        benchmark = statistics.expected_best_sharpe(0.5 / 250, count)
        return statistics.sharpe_confidence(2.5 / math.sqrt(250), benchmark, 1250, skew, kurtosis)

    assert confidence(trials) == pytest.approx(0.9505, abs=5e-5)
    assert confidence(trials + 1) < 0.95


def test_one_trial_is_no_selection():
    returns = [0.01, -0.005, 0.02, 0.003, -0.01]
    assert statistics.expected_best_sharpe(3.0, 1) == 0
    assert statistics.deflated_sharpe(returns, [1.0]) == statistics.probabilistic_sharpe(returns)


def test_trials_are_annual_and_are_brought_to_days_before_they_deflate():
    returns, trials = [0.01, -0.005, 0.02, 0.003, -0.01] * 8, [0.5, 1.5, -0.7, 2.1]
    daily = [ratio / math.sqrt(365) for ratio in trials]
    best = statistics.expected_best_sharpe(plain.variance(daily), 4)
    expected = statistics.probabilistic_sharpe(returns, best)
    assert statistics.deflated_sharpe(returns, trials) == pytest.approx(expected, rel=1e-12)


def test_more_trials_deflate_more():
    returns = [0.01, -0.005, 0.02, 0.003, -0.01] * 8
    few, many = ([0.5, 1.5] * count for count in (2, 50))
    plain_probability = statistics.probabilistic_sharpe(returns)
    assert statistics.deflated_sharpe(returns, many) < statistics.deflated_sharpe(returns, few) < plain_probability


def test_probabilistic_sharpe_is_half_without_drift_and_symmetric():
    assert statistics.probabilistic_sharpe([0.01, -0.01] * 10) == pytest.approx(0.5)
    up, down = [0.02, -0.01] * 10, [-0.02, 0.01] * 10
    assert statistics.probabilistic_sharpe(up) + statistics.probabilistic_sharpe(down) == pytest.approx(1)


def test_probabilistic_sharpe_of_normal_returns_is_the_textbook_z_test():
    assert statistics.sharpe_confidence(0.1, 0.0, 401, 0.0, 3.0) == pytest.approx(
        plain.NormalDist().cdf(0.1 * 20 / math.sqrt(1 + 0.005))
    )


def test_a_two_point_distribution_at_its_pole_has_no_probability():
    assert statistics.sharpe_confidence(sharpe=1.0, benchmark=0.0, count=100, skew=2.0, kurtosis=5.0) is None


def indices(count, draws, seed, block=None):
    return np.array([day % count for day in statistics.stationary_days(count, draws, seed, block)])


def slow_days(count, draws, seed, block=None):
    """One day at a time, every draw asked whether it starts a new block."""
    restart = 1 / max(1.0, count ** (1 / 3) if block is None else block)
    random = np.random.Generator(np.random.PCG64(seed))
    days = [[min(int(uniform * count), count - 1) for uniform in random.random(draws)]]
    for _ in range(count - 1):
        days.append(
            [
                min(int(uniform / restart * count), count - 1) if uniform < restart else (day + 1) % count
                for uniform, day in zip(random.random(draws), days[-1], strict=True)
            ]
        )
    return np.array(days)


def slow_bootstrap(returns, draws, seed):
    """The same sums in the same order, one draw after the other."""
    count, mean = len(returns), math.fsum(returns) / len(returns)
    totals, sharpes = [], []
    for draw in slow_days(count, draws, seed).T.tolist():
        growth, total, squares = 1.0, 0.0, 0.0
        aparts = [returns[day] - mean for day in draw]
        for day, apart in zip(draw, aparts, strict=True):
            growth *= 1 + returns[day]
            total += apart
            squares += apart * apart
        totals.append(growth - 1)
        drift = mean + total / count
        deviation = math.sqrt(max(squares - total * total / count, 0) / (count - 1))
        if max(aparts) - min(aparts) > statistics.NO_DEVIATION:
            if deviation:
                sharpes.append(drift / deviation * math.sqrt(365))
        elif abs(drift) <= statistics.NO_DEVIATION:
            sharpes.append(0.0)
    return totals, sharpes


@given(st.integers(1, 70), st.integers(1, 12), st.integers(0, 2**40), st.none() | st.floats(1, 40))
def test_days_drawn_many_at_once_are_those_drawn_one_by_one(count, draws, seed, block):
    assert indices(count, draws, seed, block).tolist() == slow_days(count, draws, seed, block).tolist()


daily = st.floats(-0.9, 2.0) | st.sampled_from([0.0, 0.0, 0.0, 0.01, -0.02])


@given(
    st.integers(20, 60).flatmap(
        lambda count: st.lists(st.lists(daily, min_size=count, max_size=count), min_size=1, max_size=4)
    ),
    st.integers(0, 2**40),
)
def test_histories_bootstrapped_together_give_each_digit_of_one_draw_after_the_other(histories, seed):
    found = statistics.bootstrap_together(histories, draws=8, seed=seed)
    assert [(totals.tolist(), sharpes.tolist()) for totals, sharpes in found] == [
        slow_bootstrap(returns, 8, seed) for returns in histories
    ]


@given(st.integers(20, 60), st.integers(0, 59), st.integers(0, 2**40))
def test_a_draw_that_first_moves_late_still_counts_as_moved(count, place, seed):
    returns = [0.0] * count
    returns[place % count] = 0.05
    totals, sharpes = statistics.bootstrap(returns, draws=30, seed=seed)
    assert (totals.tolist(), sharpes.tolist()) == slow_bootstrap(returns, 30, seed)


def test_the_bootstrap_takes_runs_of_following_days_round_the_end():
    days = indices(count=50, draws=400, seed=3, block=5)
    assert days.shape == (50, 400)
    assert days.min() == 0
    assert days.max() == 49
    followed = (days[1:] == (days[:-1] + 1) % 50).mean()
    # 4 of 5 go on, and a new block lands on the next day once in 50.
    assert followed == pytest.approx(0.8 + 0.2 / 50, abs=0.02)


def test_every_day_is_drawn_equally_often():
    counts = np.bincount(indices(count=30, draws=4000, seed=1).ravel(), minlength=30)
    assert counts / counts.mean() == pytest.approx(1, abs=0.05)


def test_new_blocks_start_anywhere():
    days = indices(count=20, draws=5000, seed=2, block=2)
    fresh = days[1:][days[1:] != (days[:-1] + 1) % 20]
    assert np.bincount(fresh, minlength=20) / len(fresh) == pytest.approx(1 / 20, abs=0.004)


def test_blocks_of_one_day_are_the_plain_bootstrap():
    days = indices(count=40, draws=2000, seed=4, block=1)
    assert (days[1:] == (days[:-1] + 1) % 40).mean() == pytest.approx(1 / 40, abs=0.005)


@given(st.lists(st.sampled_from([-0.04, -0.01, 0.0, 0.0, 0.002, 0.03]), min_size=20, max_size=30), st.integers(0, 99))
def test_the_vectorised_bootstrap_equals_a_plain_loop(returns, seed):
    totals, sharpes = statistics.bootstrap(returns, draws=20, seed=seed)
    expected_totals, expected_sharpes = [], []
    for draw in indices(len(returns), 20, seed).T:
        sample = [returns[day] for day in draw]
        expected_totals.append(math.prod(1 + value for value in sample) - 1)
        if len(set(sample)) > 1:
            expected_sharpes.append(plain.fmean(sample) / plain.stdev(sample) * math.sqrt(365))
        elif sample[0] == 0:
            expected_sharpes.append(0.0)
    assert totals.tolist() == pytest.approx(expected_totals, rel=1e-9, abs=1e-12)
    assert sharpes.tolist() == pytest.approx(expected_sharpes, rel=1e-6, abs=1e-6)


def test_one_seed_gives_one_answer_and_another_gives_another():
    returns = [0.01, -0.02, 0.005, 0.0, 0.013] * 6
    first, again, other = (statistics.bootstrap(returns, seed=seed) for seed in (7, 7, 8))
    assert first[0].tobytes() == again[0].tobytes()
    assert first[1].tobytes() == again[1].tobytes()
    assert first[0].tobytes() != other[0].tobytes()


def test_one_lucky_day_does_not_look_certain():
    totals, sharpes = statistics.bootstrap([0.0] * 29 + [0.2])
    lo, hi = statistics.interval(sharpes)  # pyright: ignore[reportGeneralTypeIssues]
    assert lo == 0 < hi
    assert statistics.interval(totals)[0] == 0  # pyright: ignore[reportOptionalSubscript]


def test_the_interval_covers_a_known_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(100):
        returns = rng.normal(0.001, 0.01, 120)
        sharpes = statistics.bootstrap(returns.tolist(), draws=300, seed=trial)[1]
        lo, hi = statistics.interval(sharpes)  # pyright: ignore[reportGeneralTypeIssues]
        covered += lo <= 0.1 * math.sqrt(365) <= hi
    assert 85 <= covered <= 99


def test_interval_is_the_middle_of_the_samples_and_none_without_any():
    assert statistics.interval(np.arange(1001.0)) == pytest.approx([25, 975])
    assert statistics.interval(np.zeros(0)) is None
    assert statistics.interval(np.array([1.0, np.inf])) is None
