"""Scores of probabilities against slow, obvious references, and what must hold of them."""

import math
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.sim.statistics import scores

chance = st.floats(0, 1)
forecast = st.tuples(chance, st.booleans())
compared = st.tuples(chance, chance, st.booleans(), st.sampled_from([f"m{place}" for place in range(40)]))


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]


@given(st.lists(forecast, max_size=40))
def test_the_brier_score_is_the_exact_mean_of_squared_distances(rows: list[tuple[float, bool]]) -> None:
    chances, won = [row[0] for row in rows], [row[1] for row in rows]
    found = scores.brier(chances, won)
    if not rows:
        assert found is None
        return
    exact = sum(((Fraction(p) - int(hit)) ** 2 for p, hit in rows), Fraction()) / len(rows)
    assert found == pytest.approx(float(exact), abs=1e-15)


@given(st.lists(forecast, max_size=40))
def test_log_loss_is_the_mean_log_likelihood_and_never_infinite(rows: list[tuple[float, bool]]) -> None:
    found = scores.log_loss([row[0] for row in rows], [row[1] for row in rows])
    if not rows:
        assert found is None
        return
    total = 0.0
    for p, hit in rows:
        given_to_truth = p if hit else 1 - p
        total -= math.log(0.001 if given_to_truth < 0.001 else 0.999 if given_to_truth > 0.999 else given_to_truth)
    assert found == pytest.approx(total / len(rows), abs=1e-12)
    assert 0 < found <= -math.log(0.001)


def test_a_constant_half_has_the_well_known_scores() -> None:
    assert scores.brier([0.5] * 4, [True, False, True, True]) == 0.25
    assert scores.log_loss([0.5] * 4, [True, False, True, True]) == pytest.approx(math.log(2))


def test_skill_is_positive_for_the_better_and_none_against_a_perfect_reference() -> None:
    assert scores.skill(0.1, 0.2) == 0.5
    assert scores.skill(0.3, 0.2) == pytest.approx(-0.5)
    assert scores.skill(0.2, 0.0) is None
    assert scores.skill(None, 0.2) is None
    assert scores.skill(1.0, 5e-324) is None


@given(st.lists(compared, max_size=60), st.integers(0, 5))
@settings(max_examples=12)
def test_the_interval_of_the_skill_resamples_entire_markets(rows, seed: int) -> None:
    ours, theirs, won, markets = columns(rows)
    found = scores.skill_interval(ours, theirs, won, markets, seed, draws=40)
    names = list(dict.fromkeys(markets))
    if len(names) < scores.MIN_MARKETS:
        assert found is None
        return
    import numpy as np

    random = np.random.Generator(np.random.PCG64(seed))
    picks = [[names[min(int(u * len(names)), len(names) - 1)] for u in random.random(40)] for _ in names]
    samples = []
    for draw in range(40):
        own = other = 0.0
        for pick in picks:
            for p, q, hit, market in rows:
                if market == pick[draw]:
                    own += (p - hit) ** 2
                    other += (q - hit) ** 2
        if other > 0:
            samples.append(1 - own / other)
    low, high = np.quantile(samples, [0.025, 0.975])
    assert found == pytest.approx([low, high], rel=1e-9, abs=1e-9)


@given(st.lists(compared, min_size=1, max_size=60))
@settings(max_examples=12)
def test_the_interval_of_the_skill_is_reproducible_and_independent_of_the_order_of_calls(
    rows,
) -> None:
    rows = [*rows, *((0.4, 0.6, True, f"m{place}") for place in range(40))]
    first = scores.skill_interval(*columns(rows), 3, draws=50)
    assert first == scores.skill_interval(*columns(rows), 3, draws=50)
    firsts = {market: place for place, (*_, market) in reversed(list(enumerate(rows)))}
    shuffled = sorted(rows, key=lambda row: firsts[row[3]])
    assert scores.skill_interval(*columns(shuffled), 3, draws=50) == pytest.approx(first, rel=1e-12)


def test_repeated_calls_on_a_market_do_not_narrow_the_interval() -> None:
    rng = Random(1)
    lone = [(0.6, 0.5, rng.random() < 0.55, f"m{place}") for place in range(60)]
    crowd = [row for row in lone for _ in range(20)]
    assert scores.skill_interval(*columns(crowd), 1) == pytest.approx(
        scores.skill_interval(*columns(lone), 1), rel=1e-9
    )


def test_the_interval_of_the_skill_covers_the_true_value_at_about_its_level() -> None:
    truth, covered = [], 0
    rng = Random(5)
    own, other = 0.55, 0.5  # of events that happen six times in ten
    true_skill = 1 - (0.6 * (1 - own) ** 2 + 0.4 * own**2) / 0.25
    for trial in range(120):
        rows = [(own, other, rng.random() < 0.6, f"m{place}") for place in range(80)]
        interval = scores.skill_interval(*columns(rows), trial, draws=300)
        assert interval is not None
        covered += interval[0] <= true_skill <= interval[1]
        truth.append(interval)
    assert 105 <= covered <= 120
