"""The equity of several runs in one chart, each from 100."""

from collections.abc import Sequence

from pitboss.report.chart_data import chart_json, line_data
from pitboss.report.frame import (
    Frame,
    chart_figure,
    grid,
    line_legend,
    padded_range,
    round_ticks,
    tick_labels,
    time_axis,
)
from pitboss.report.markup import Html, tag
from pitboss.report.series import Floats, downsample
from pitboss.report.source import Plain

WIDTH, HEIGHT, LEFT_SIDE, RIGHT_SIDE, TOP, FOOT = 1120.0, 320.0, 60.0, 32.0, 14.0, 34.0
COLUMNS, DATA_COLUMNS = 280, 1_000
"""Columns of the drawing, and of the data that parts of its time are drawn from."""

Curve = tuple[Floats, Floats]
"""Times, and equity relative to its start at 100."""


def equity_chart(runs: Sequence[Plain], curves: Sequence[Curve | None]) -> Html:
    """The curves of the runs that have one; at least one has."""
    drawn = [(f"h{index}", runs[index], curve) for index, curve in enumerate(curves) if curve is not None]
    low, high = padded_range(
        min(float(values.min()) for _, _, (_, values) in drawn), max(float(values.max()) for _, _, (_, values) in drawn)
    )
    start, end = min(float(at[0]) for _, _, (at, _) in drawn), max(float(at[-1]) for _, _, (at, _) in drawn)
    frame = Frame(LEFT_SIDE, TOP, WIDTH - LEFT_SIDE - RIGHT_SIDE, HEIGHT, start, end, low, high)
    marks: list[Html] = [grid(frame, tick_labels(round_ticks(low, high, 5))), time_axis(frame, frame.top)]
    marks += [_path(frame, style, curve) for style, _, curve in drawn]
    legend = line_legend(
        (style, run["label"], f"{run['label']} · {run['run_id']} · {run['model']}", float(values[-1]) - 100)
        for style, run, (_, values) in drawn
    )
    lines = [line_data(run["label"], style, at, values, DATA_COLUMNS) for style, run, (at, values) in drawn]
    data = chart_json(start, end, [{"height": int(HEIGHT), "format": "ratio", "lines": lines, "level": 100}])
    return chart_figure("Equity of the runs from 100", marks, (WIDTH, frame.bottom + FOOT), legend, data=data)


def _path(frame: Frame, style: str, curve: Curve) -> Html:
    at, values = curve
    keep = downsample(at, values, frame.start, frame.end, COLUMNS)
    return tag("path", class_=f"line {style}", d="M" + frame.points(at[keep], values[keep]))
