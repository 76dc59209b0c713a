"""Chance against references worked out by brute force or known by heart."""

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.audit.chance import at_least, holm, rate, repeated, student, wilson


def exact_tail(hits: int, of: int, chance: Fraction) -> Fraction:
    return sum(
        (math.comb(of, count) * chance**count * (1 - chance) ** (of - count) for count in range(max(hits, 0), of + 1)),
        Fraction(0),
    )


@given(st.integers(0, 60), st.integers(-1, 61), st.integers(1, 30))
def test_the_tail_is_the_exact_binomial_one(of: int, hits: int, options: int) -> None:
    expected = 0 if hits > of else float(exact_tail(hits, of, Fraction(1, options)))
    assert at_least(hits, of, 1 / options) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("of", "options"), [(1, 2), (3, 3), (6, 3), (4, 5)])
def test_the_tail_is_the_share_of_all_outcomes_counted_one_by_one(of: int, options: int) -> None:
    """Every way in which guesses of one of `options` can fall, the first option being right."""
    hits = [sum(one == 0 for one in outcome) for outcome in product(range(options), repeat=of)]
    for least in range(of + 1):
        share = sum(one >= least for one in hits) / len(hits)
        assert at_least(least, of, 1 / options) == pytest.approx(share, rel=1e-12)


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


@given(st.integers(1, 400), st.data())
def test_wilsons_interval_holds_the_share_and_stays_inside(of: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, of))
    low, high = wilson(hits, of)
    assert 0 <= low <= hits / of <= high <= 1


def test_no_try_has_no_share() -> None:
    assert rate(0, 0).share is None
    assert rate(0, 0).interval is None
    assert at_least(0, 0, 0.5) == 1.0


@pytest.mark.parametrize(("freedom", "t"), [(1, 12.7062), (2, 4.30265), (3, 3.18245), (9, 2.26216), (30, 2.04227)])
def test_students_t_is_the_tables(freedom: int, t: float) -> None:
    assert student(freedom) == pytest.approx(t, abs=1e-4)


def test_a_few_repeats_have_students_interval_and_one_has_none() -> None:
    found = repeated([1.0, 2.0, 3.0])
    assert found.mean == 2.0
    assert found.interval == pytest.approx((2 - 4.30265 / math.sqrt(3), 2 + 4.30265 / math.sqrt(3)), abs=1e-4)
    assert repeated([5.0]).interval is None
    assert repeated([]).mean is None
    assert (repeated([1.0, 1.0]).side, repeated([-1.0, -1.0]).side, found.side) == (1, -1, 0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_raises_never_lowers_and_keeps_the_order(values: list[float]) -> None:
    raised = holm(values)
    assert all(before <= after <= 1 for before, after in zip(values, raised, strict=True))
    assert min(raised) == min(1.0, len(values) * min(values))
    for one, other in zip(sorted(zip(values, raised, strict=True)), sorted(raised), strict=True):
        assert one[1] == other or one[0] in [value for value in values if values.count(value) > 1]


def test_holm_is_the_textbook_one() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
