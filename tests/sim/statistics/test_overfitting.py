"""Overfitting against an obvious reference, and against worlds in which the answer is known."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.sim.statistics.overfitting import blocks_for, overfitting


def obvious(returns: Sequence[Sequence[float]], blocks: int) -> tuple[float, float]:
    """The definition, one split at a time: probability of overfitting and probability of a loss."""
    length = len(returns[0]) // blocks
    skipped = len(returns[0]) - length * blocks
    logits, losses = [], 0
    for half in combinations(range(blocks), blocks // 2):
        ratios: list[tuple[float, float, float]] = []
        for trial in returns:
            inside: list[float] = []
            outside: list[float] = []
            for block in range(blocks):
                days = list(trial[skipped + block * length : skipped + (block + 1) * length])
                (inside if block in half else outside).extend(days)
            ratios.append((_ratio(inside), _ratio(outside), sum(outside) / len(outside)))
        chosen = max(range(len(ratios)), key=lambda place: (ratios[place][0], -place))
        own = ratios[chosen][1]
        below = sum(one[1] < own for one in ratios)
        equal = sum(one[1] == own for one in ratios)
        share = (below + (equal + 1) / 2) / (len(ratios) + 1)
        logits.append(math.log(share / (1 - share)))
        losses += ratios[chosen][2] < 0
    return sum(value <= 0 for value in logits) / len(logits), losses / len(logits)


def _ratio(values: list[float]) -> float:
    deviation = float(np.std(values, ddof=1))
    return float(np.mean(values)) / deviation if deviation > 1e-14 else 0.0


def noise(trials: int, days: int, seed: int) -> list[list[float]]:
    return np.random.default_rng(seed).normal(0, 0.02, (trials, days)).tolist()


@settings(max_examples=15)
@given(st.integers(2, 8), st.integers(24, 60), st.sampled_from((4, 6, 8)), st.integers(0, 10**6))
def test_it_agrees_with_the_definition(trials: int, days: int, blocks: int, seed: int):
    returns = noise(trials, days, seed)
    found = overfitting(returns, blocks)
    assert found is not None
    expected, loss = obvious(returns, blocks)
    assert (found.probability, found.loss) == pytest.approx((expected, loss), abs=1e-12)
    assert found.splits == math.comb(blocks, blocks // 2)


def test_choosing_among_noise_is_overfitting_about_half_the_time():
    shares = [found.probability for seed in range(12) if (found := overfitting(noise(40, 200, seed), 10))]
    assert sum(shares) / len(shares) == pytest.approx(0.5, abs=0.15)


def test_a_trial_with_skill_is_not_overfitting():
    returns = noise(20, 240, 3)
    returns[7] = [value + 0.02 for value in returns[7]]
    found = overfitting(returns)
    assert found is not None
    assert found.probability == 0.0
    assert found.loss == 0.0
    assert found.outside > 5


def test_trials_that_are_good_in_one_period_only_are_overfitting():
    days, trials = 160, 16
    quiet = np.random.default_rng(1).normal(0, 0.001, (trials, days))
    returns = [
        [float(quiet[trial, day]) + (0.01 if day * trials // days == trial else -0.002) for day in range(days)]
        for trial in range(trials)
    ]
    found = overfitting(returns, 16)
    assert found is not None
    assert found.probability > 0.9
    assert found.loss == 1.0
    assert found.inside > found.outside


def test_equal_trials_count_as_overfitting():
    found = overfitting([noise(1, 64, 1)[0]] * 5)
    assert found is not None
    assert found.probability == 1.0


def test_the_order_of_the_trials_does_not_matter_when_they_differ():
    returns = noise(9, 80, 5)
    first, second = overfitting(returns), overfitting(returns[::-1])
    assert first is not None
    assert second is not None
    assert first.probability == second.probability


def test_batches_of_any_size_give_the_same_digits(monkeypatch: pytest.MonkeyPatch):
    returns = noise(12, 40, 11)
    whole = overfitting(returns)
    assert whole is not None
    monkeypatch.setattr("pitboss.sim.statistics.overfitting.MAX_CELLS", 100)
    assert overfitting(returns) == whole


@pytest.mark.parametrize(("days", "blocks"), [(11, None), (12, 4), (20, 6), (47, 14), (48, 16), (1_000, 16)])
def test_blocks_have_at_least_three_days(days: int, blocks: int | None):
    assert blocks_for(days) == blocks


def test_one_trial_or_too_few_days_have_no_result():
    assert overfitting(noise(1, 100, 0)) is None
    assert overfitting(noise(5, 11, 0)) is None
    assert overfitting([]) is None
