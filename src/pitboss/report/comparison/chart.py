"""The equity of several runs in one chart, each from 100."""

from collections.abc import Sequence

from pitboss.report import figures
from pitboss.report.frame import Frame, chart_figure, grid, padded_range, round_ticks, tick_labels, time_axis
from pitboss.report.markup import Html, tag
from pitboss.report.series import Floats
from pitboss.report.source import Plain

WIDTH, HEIGHT, LEFT_SIDE, RIGHT_SIDE, TOP, FOOT = 1120.0, 320.0, 60.0, 32.0, 14.0, 34.0

Curve = tuple[Floats, Floats]
"""Times, and equity relative to its start at 100."""


def equity_chart(runs: Sequence[Plain], curves: Sequence[Curve | None]) -> Html:
    """The curves of the runs that have one; at least one has."""
    drawn = [(index, curve) for index, curve in enumerate(curves) if curve is not None]
    low, high = padded_range(
        min(float(values.min()) for _, (_, values) in drawn), max(float(values.max()) for _, (_, values) in drawn)
    )
    start, end = min(float(at[0]) for _, (at, _) in drawn), max(float(at[-1]) for _, (at, _) in drawn)
    frame = Frame(LEFT_SIDE, TOP, WIDTH - LEFT_SIDE - RIGHT_SIDE, HEIGHT, start, end, low, high)
    marks: list[Html] = [grid(frame, tick_labels(round_ticks(low, high, 5))), time_axis(frame, frame.top)]
    keys: list[Html] = []
    for index, (at, values) in drawn:
        marks.append(tag("path", class_=f"line h{index}", d="M" + frame.points(at, values)))
        keys.append(_key(index, runs[index], float(values[-1]) - 100))
    legend = tag("ul", *keys, class_="legend")
    return chart_figure("Equity of the runs from 100", marks, (WIDTH, frame.bottom + FOOT), legend)


def _key(index: int, run: Plain, change_pct: float) -> Html:
    swatch = tag("line", class_=f"line h{index}", x1=1, x2=27, y1=6, y2=6)
    drawing = tag("svg", swatch, viewBox="0 0 28 12", class_="swatch", aria_hidden="true")
    name = f"{run['label']} · {run['run_id']} · {run['model']}"
    return tag("li", drawing, name, " ", tag("b", figures.percent(change_pct, signed=True)))
