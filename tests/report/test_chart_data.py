"""The data of the charts: what a script decodes is the series, with every extreme, however long the run."""

import json
from itertools import accumulate
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.instant import HOUR_MS, MINUTE_MS
from pitboss.report.chart_data import line_data, pack_bars, pack_points
from pitboss.report.series import Floats
from pitboss.report.source import RunReport
from pitboss.venues.perp.panels.price import MOST_BARS_EACH, price_chart
from report.test_report import RenderedPage

START = 1_742_428_800_000  # 2025-03-20T00:00:00Z
STEP = 5 * MINUTE_MS
CRASH = 60_000
"""The number of the bar with the crash."""


def unpack_bars(packed: dict[str, Any]) -> Floats:
    """Bars from their packed form, as `chart_drawing.js` reads them."""
    steps = [step for count, step in zip(packed["at"][::2], packed["at"][1::2], strict=True) for _ in range(count)]
    rows: list[tuple[float, ...]] = []
    close = 0
    columns = (packed[name] for name in ("open", "high", "low", "close"))
    for at, opened, high, low, change in zip(accumulate(steps), *columns, strict=True):
        opened += close
        close = opened + change
        body = (opened, close)
        prices = (opened, max(body) + high, min(body) - low, close)
        rows.append((packed["first"] + at * packed["unit"], *(price / packed["scale"] for price in prices)))
    return np.array(rows)


def year_of_bars() -> Floats:
    """Eleven months of 5m bars near 110,000 with one bar that falls to 80,000 and a hole of a day."""
    draw = np.random.default_rng(3)
    count = 97_000
    close = 110_000 + np.cumsum(draw.normal(0, 40, count))
    opened = np.concatenate(([110_000], close[:-1]))
    high, low = np.maximum(opened, close) + 15, np.minimum(opened, close) - 15
    low[CRASH] = 80_000
    bars = np.column_stack((START + STEP * np.arange(count, dtype=float), opened, high, low, close))
    return np.delete(bars, np.s_[30_000:30_288], axis=0)


def chart_of(bars: Floats) -> dict[str, Any]:
    report = RunReport(document={}, skill_name="", skill_text="", initial_usd=1.0, equity=[], prices={"BTC": bars})
    outline = RenderedPage(price_chart(report, "BTC", {}))
    (data,) = [value for _, name, value in outline.attributes if name == "data-chart"]
    return json.loads(data)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-(10**9), 10**9)), min_size=1, max_size=40))
def test_packed_points_are_the_points(points: list[tuple[int, int]]) -> None:
    at = START + np.cumsum([step * MINUTE_MS for step, _ in points]).astype(float)
    values = np.array([cents / 100 for _, cents in points])
    packed = pack_points(at, values)
    assert [packed["first"] + step * packed["unit"] for step in accumulate(packed["at"])] == at.tolist()
    assert [value / packed["scale"] for value in accumulate(packed["values"])] == values.tolist()


def test_packed_bars_are_the_bars_to_six_digits() -> None:
    bars = year_of_bars()[29_900:30_400]
    found = unpack_bars(pack_bars(bars, STEP))
    assert (found[:, 0] == bars[:, 0]).all()
    assert np.abs(found[:, 1:] / bars[:, 1:] - 1).max() < 1e-5


def test_values_beyond_64_bits_are_packed_exactly() -> None:
    bars = np.array([(START, 1e300, 4e300, 5e299, 2e300), (START + STEP, 2e300, 2e300, 3.0, 1e300)])
    assert (unpack_bars(pack_bars(bars, STEP)) == bars).all()
    packed = pack_points(bars[:, 0], np.array([1e20, 5.0]))
    assert [value / packed["scale"] for value in accumulate(packed["values"])] == [1e20, 5.0]


def test_eleven_months_keep_the_crash_in_a_bounded_number_of_bars() -> None:
    bars = year_of_bars()
    packed = chart_of(bars)["panes"][0]["bars"]
    found = unpack_bars(packed)
    assert len(found) <= MOST_BARS_EACH
    assert packed["step"] == HOUR_MS
    hour = int(bars[CRASH - 288, 0]) // HOUR_MS * HOUR_MS
    assert found[found[:, 0] == hour][0, 3] == 80_000
    assert (np.diff(found[:, 0]) % HOUR_MS == 0).all(), "every bar begins with its hour, also after the hole"
    assert found[:, 3].min() == bars[:, 3].min()
    assert abs(found[:, 2].max() / bars[:, 2].max() - 1) < 1e-5


def test_a_short_run_keeps_its_own_bars() -> None:
    packed = chart_of(year_of_bars()[:2_000])["panes"][0]["bars"]
    assert (packed["step"], len(packed["open"])) == (STEP, 2_000)


def test_a_long_curve_keeps_its_extremes_and_its_last_point() -> None:
    bars = year_of_bars()
    series = line_data("This run", "agent", bars[:, 0], bars[:, 3], 500)["series"]
    values = [value / series["scale"] for value in accumulate(series["values"])]
    assert len(values) <= 1_500
    assert min(values) == 80_000
    assert values[-1] == round(float(bars[-1, 3]), 2)
