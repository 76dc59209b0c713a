"""Shares and tests against brute force and published figures."""

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.sim.statistics.binomial import Z, binomial_tail, hit_rate, holm, wilson


def exact_tail(hits: int, of: int, chance: Fraction) -> Fraction:
    return sum(
        (math.comb(of, count) * chance**count * (1 - chance) ** (of - count) for count in range(max(hits, 0), of + 1)),
        Fraction(0),
    )


@given(st.integers(0, 60), st.integers(-1, 61), st.integers(1, 30))
def test_the_tail_is_the_exact_binomial_one(of: int, hits: int, options: int) -> None:
    expected = 0 if hits > of else float(exact_tail(hits, of, Fraction(1, options)))
    assert binomial_tail(hits, of, 1 / options) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("of", "options"), [(1, 2), (3, 3), (6, 3), (4, 5)])
def test_the_tail_is_the_share_of_all_outcomes_counted_one_by_one(of: int, options: int) -> None:
    """Every way in which guesses of one of `options` can fall, the first option being right."""
    hits = [sum(one == 0 for one in outcome) for outcome in product(range(options), repeat=of)]
    for least in range(of + 1):
        share = sum(one >= least for one in hits) / len(hits)
        assert binomial_tail(least, of, 1 / options) == pytest.approx(share, rel=1e-12)


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (1, 20, 0.0089, 0.2361),
        (8, 20, 0.2188, 0.6134),
    ],
)
def test_wilsons_interval_is_the_published_one(hits: int, of: int, low: float, high: float) -> None:
    assert wilson(hits, of) == pytest.approx((low, high), abs=1e-4)


@given(st.integers(0, 400), st.integers(0, 400))
def test_wilsons_interval_contains_the_share_and_solves_its_equation(hits: int, misses: int) -> None:
    count = hits + misses
    interval = wilson(hits, count)
    if interval is None:
        assert not count
        return
    low, high = interval
    share = hits / count
    assert 0 <= low <= share <= high <= 1
    for edge in (low, high):  # at both ends the share is just Z deviations of that end away
        if 0 < edge < 1:
            assert abs(share - edge) == pytest.approx(Z * math.sqrt(edge * (1 - edge) / count), rel=1e-6, abs=1e-9)


def test_without_tries_there_is_no_share() -> None:
    assert hit_rate(0, 0).share is None
    assert hit_rate(0, 0).interval is None
    assert binomial_tail(0, 0, 0.5) == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_never_lowers_a_p_value_and_keeps_the_order(values: list[float]) -> None:
    raised = holm(values)
    assert all(before <= after <= 1 for before, after in zip(values, raised, strict=True))
    assert min(raised) == min(1.0, len(values) * min(values))
    for one, other in zip(sorted(zip(values, raised, strict=True)), sorted(raised), strict=True):
        assert one[1] == other or one[0] in [value for value in values if values.count(value) > 1]


def test_holm_is_the_textbook_one() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
