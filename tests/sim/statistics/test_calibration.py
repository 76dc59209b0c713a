"""Calibration curves against a direct count."""

import math
from decimal import Decimal as D
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.sim.statistics import calibration
from pitboss.sim.statistics.binomial import wilson

forecast = st.tuples(st.floats(0, 1), st.booleans())


@given(st.lists(forecast, max_size=60), st.integers(1, 20))
def test_a_calibration_curve_equals_a_direct_count(rows: list[tuple[float, bool]], bins: int) -> None:
    found = calibration.curve([p for p, _ in rows], [hit for _, hit in rows], bins)
    expected = []
    for place in range(bins):
        low, high = place / bins, (place + 1) / bins
        inside = [(p, hit) for p, hit in rows if low <= p < high or (p == 1 and place == bins - 1)]
        if inside:
            hits = sum(hit for _, hit in inside)
            expected.append((low, high, len(inside), float(sum(Fraction(p) for p, _ in inside) / len(inside)), hits))
    assert [(row["from"], row["to"], row["calls"]) for row in found] == [row[:3] for row in expected]
    for row, (_, _, count, mean, hits) in zip(found, expected, strict=True):
        assert row["mean"] == pytest.approx(mean, abs=1e-12)
        assert row["observed"] == hits / count
        assert row["interval"] == wilson(hits, count)
    distance = sum(row["calls"] * abs(row["mean"] - row["observed"]) for row in found)
    error = calibration.calibration_error(found)
    assert error is None if not rows else error == pytest.approx(distance / len(rows))


@pytest.mark.parametrize("tenths", range(11))
def test_a_probability_on_an_edge_belongs_to_the_bin_above_it(tenths: int) -> None:
    assert calibration.bin_of(float(D(tenths) / 10)) == min(tenths, 9)


def test_a_probability_just_below_an_edge_belongs_to_the_bin_below_it() -> None:
    crossed = 0
    for bins in range(1, 101):
        for place in range(1, bins):
            below = math.nextafter(place / bins, 0)
            crossed += int(below * bins) == place
            assert calibration.bin_of(below, bins) == place - 1
            assert calibration.bin_of(place / bins, bins) == place
    assert crossed  # else this would show nothing
