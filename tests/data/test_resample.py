"""Longer bars out of shorter ones, against a reference that does it one bar at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from import_files import MIN5, START, make_bars

from pitboss.core.instant import INTERVALS
from pitboss.core.market import Bars
from pitboss.data.resample import resample


def resampled_bars(bars: Bars, interval: str) -> list[tuple[int, float, float, float, float, float]]:
    """Put each bar into its bucket; keep buckets that began after the series did and ended before it does."""
    length = INTERVALS[interval]
    buckets: dict[int, list[int]] = {}
    for index, at in enumerate(bars.open_at.tolist()):
        buckets.setdefault(at // length * length, []).append(index)
    made = []
    for bucket, inside in buckets.items():
        if bucket < bars.open_at[0] or bucket + length > bars.open_at[-1] + bars.interval_ms:
            continue
        high, low = max(bars.high[i] for i in inside), min(bars.low[i] for i in inside)
        volume = sum(bars.volume[i] for i in inside)
        made.append((bucket, bars.open[inside[0]], high, low, bars.close[inside[-1]], volume))
    return made


@given(
    start=st.integers(0, 300),
    steps=st.lists(st.sampled_from([1, 1, 1, 1, 2, 5, 13, 40]), max_size=120),
    interval=st.sampled_from(["5m", "15m", "30m", "1h", "4h"]),
    seed=st.integers(0, 9),
)
def test_resampling_agrees_with_the_slow_reference(start: int, steps: list[int], interval: str, seed: int) -> None:
    opens = [START + start * MIN5]
    for step in steps:
        opens.append(opens[-1] + step * MIN5)
    bars = make_bars(opens, "5m", MIN5, seed)
    made, expected = resample(bars, interval), resampled_bars(bars, interval)
    assert made.interval_ms == INTERVALS[interval]
    assert made.open_at.tolist() == [row[0] for row in expected]
    for number, column in enumerate((made.open, made.high, made.low, made.close), 1):
        assert column.tolist() == [row[number] for row in expected]
    np.testing.assert_allclose(made.volume, [row[5] for row in expected])


def test_no_bars_make_no_bars() -> None:
    assert len(resample(make_bars([], "5m", MIN5), "1h")) == 0


def test_an_interval_that_does_not_divide_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="does not divide"):
        resample(make_bars([START], "15m", 3 * MIN5), "5m")
