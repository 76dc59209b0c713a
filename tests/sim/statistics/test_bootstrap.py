"""The vectorised stationary bootstrap against a plain loop."""

import math
import statistics as plain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.sim.statistics.bootstrap import bootstrap, bootstrap_together, interval, stationary_days
from pitboss.sim.statistics.returns import NO_DEVIATION

returns_lists = st.lists(st.floats(-0.5, 0.5).map(lambda value: round(value, 6)), min_size=3, max_size=40)


def indices(count, draws, seed, block=None):
    return np.array([day % count for day in stationary_days(count, draws, seed, block)])


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
        if max(aparts) - min(aparts) > NO_DEVIATION:
            if deviation:
                sharpes.append(drift / deviation * math.sqrt(365))
        elif abs(drift) <= NO_DEVIATION:
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
def test_a_joint_bootstrap_gives_the_digits_of_separate_ones(histories, seed):
    found = bootstrap_together(histories, draws=8, seed=seed)
    assert [(totals.tolist(), sharpes.tolist()) for totals, sharpes in found] == [
        slow_bootstrap(returns, 8, seed) for returns in histories
    ]


@given(st.integers(20, 60), st.integers(0, 59), st.integers(0, 2**40))
def test_a_draw_with_a_late_first_move_counts_as_moved(count, place, seed):
    returns = [0.0] * count
    returns[place % count] = 0.05
    totals, sharpes = bootstrap(returns, draws=30, seed=seed)
    assert (totals.tolist(), sharpes.tolist()) == slow_bootstrap(returns, 30, seed)


def test_the_bootstrap_takes_consecutive_days_and_wraps_around_the_end():
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
    totals, sharpes = bootstrap(returns, draws=20, seed=seed)
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


def test_equal_seeds_give_equal_draws_and_different_seeds_different_ones():
    returns = [0.01, -0.02, 0.005, 0.0, 0.013] * 6
    first, again, other = (bootstrap(returns, seed=seed) for seed in (7, 7, 8))
    assert first[0].tobytes() == again[0].tobytes()
    assert first[1].tobytes() == again[1].tobytes()
    assert first[0].tobytes() != other[0].tobytes()


def test_one_lucky_day_does_not_look_certain():
    totals, sharpes = bootstrap([0.0] * 29 + [0.2])
    lo, hi = interval(sharpes)  # pyright: ignore[reportGeneralTypeIssues]
    assert lo == 0 < hi
    assert interval(totals)[0] == 0  # pyright: ignore[reportOptionalSubscript]


def test_the_interval_covers_the_true_mean_at_about_its_level():
    rng = np.random.default_rng(0)
    covered = 0
    for trial in range(100):
        returns = rng.normal(0.001, 0.01, 120)
        sharpes = bootstrap(returns.tolist(), draws=300, seed=trial)[1]
        lo, hi = interval(sharpes)  # pyright: ignore[reportGeneralTypeIssues]
        covered += lo <= 0.1 * math.sqrt(365) <= hi
    assert 85 <= covered <= 99


def test_the_interval_is_central_and_none_without_samples():
    assert interval(np.arange(1001.0)) == pytest.approx([25, 975])
    assert interval(np.zeros(0)) is None
    assert interval(np.array([1.0, np.inf])) is None
