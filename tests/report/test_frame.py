"""The frame of a chart: its labels have room."""

import re

import pytest

from pitboss.report.frame import Frame, grid, label_room, round_ticks, tick_labels


@pytest.mark.parametrize(("low", "high"), [(-0.0021, 0.0), (-1_250_000.0, 10.0), (0.0, 1.0)])
def test_every_label_of_a_grid_begins_inside_the_drawing(low: float, high: float) -> None:
    ticks = tick_labels(round_ticks(low, high, 5), "$")
    left = label_room(ticks, 9.0, 62.0)
    drawn = str(grid(Frame(left, 0.0, 400.0, 200.0, 0.0, 1.0, low, high), ticks))
    labels = re.findall(r'<text x="([\d.]+)"[^>]*>([^<]+)</text>', drawn)
    assert len(labels) == len(ticks)
    for right, label in labels:
        assert float(right) - 9.0 * len(label) >= 0


def test_short_labels_leave_all_charts_the_same_frame() -> None:
    assert label_room([(0.0, "0"), (1.0, "1")], 9.0, 62.0) == 62.0
    assert label_room([], 9.0, 62.0) == 62.0
