"""Excursions of trades: whole bars while it is open, of the bar of the exit the exit price alone."""

from decimal import Decimal

import numpy as np
import pytest

from pitboss.venues.perp.excursion import excursion

BARS = np.array([(0, 100, 101, 99, 100), (5, 100, 110, 98, 105), (10, 105, 106, 90, 95), (15, 95, 200, 1, 95)], float)


@pytest.mark.parametrize(
    ("side", "exit_price", "closed_at", "expected"),
    [
        ("long", Decimal(95), 15, (10.0, -10.0)),
        ("short", Decimal(95), 15, (10.0, -10.0)),
        ("long", Decimal(104), 10, (10.0, -2.0)),
        ("short", Decimal(104), 10, (2.0, -10.0)),
        ("short", Decimal(97), 10, (3.0, -10.0)),  # a stop or target inside the bar of the exit
        ("long", Decimal(104), 5, (4.0, 0.0)),  # opened and closed within one bar
        ("long", None, None, (100.0, -99.0)),
    ],
)
def test_best_and_worst(side: str, exit_price: Decimal | None, closed_at: int | None, expected: tuple[float, float]) -> None:  # fmt: skip
    found = excursion(BARS, "long" if side == "long" else "short", (Decimal(100), exit_price), 5, closed_at, 5)
    assert found == pytest.approx(expected)


def test_bars_longer_than_those_of_the_fills_count_by_the_same_rule() -> None:
    """The fills lie inside bars: that of the entry counts whole, that of the exit by the exit price alone."""
    assert excursion(BARS, "long", (Decimal(100), Decimal(104)), 7, 12, 5) == pytest.approx((10.0, -2.0))
    assert excursion(BARS, "long", (Decimal(100), Decimal(104)), 6, 8, 5) == pytest.approx((4.0, 0.0))
