"""Student's distribution against published tables."""

import math

import pytest

from pitboss.sim.statistics.student import mean_of_repeats, student_quantile


@pytest.mark.parametrize(("degrees", "t"), [(1, 12.7062), (2, 4.30265), (3, 3.18245), (9, 2.26216), (30, 2.04227)])
def test_quantiles_are_those_of_the_tables(degrees: int, t: float) -> None:
    assert student_quantile(degrees) == pytest.approx(t, abs=1e-4)


def test_several_repeats_have_an_interval_and_a_single_one_has_none() -> None:
    estimate = mean_of_repeats([1.0, 2.0, 3.0])
    assert estimate.mean == 2.0
    assert estimate.interval == pytest.approx((2 - 4.30265 / math.sqrt(3), 2 + 4.30265 / math.sqrt(3)), abs=1e-4)
    assert mean_of_repeats([5.0]).interval is None
    assert mean_of_repeats([]).mean is None
    assert (mean_of_repeats([1.0, 1.0]).side, mean_of_repeats([-1.0, -1.0]).side, estimate.side) == (1, -1, 0)
