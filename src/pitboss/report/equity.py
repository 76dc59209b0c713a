"""The equity chart of a run against its baselines, with the drawdown below it."""

from dataclasses import dataclass

import numpy as np

from pitboss.report import figures
from pitboss.report.chart_data import chart_json, line_data
from pitboss.report.frame import READOUT, Frame, grid, line_legend, padded_range, round_ticks, tick_labels, time_axis
from pitboss.report.markup import Html, join, tag
from pitboss.report.series import Floats, as_arrays, downsample, drawdown
from pitboss.report.source import Plain, RunReport, instant

WIDTH, LEFT, RIGHT = 1120.0, 68.0, 16.0
TOP, MAIN, GAP, LOWER, FOOT = 14.0, 292.0, 26.0, 92.0, 30.0
COLUMNS, DATA_COLUMNS, BASELINE_COLUMNS = 280, 2_000, 700
"""Columns of the drawing, and of the data that parts of its time are drawn from: of the run, and of each baseline."""
NAMES = {
    "agent": "This run",
    "buy_and_hold": "Buy and hold, all equity",
    "buy_and_hold_capped": "Buy and hold, within the caps",
    "cash": "Cash",
    "alternate": "Alternate",
    "yes_only": "YES only",
    "no_only": "NO only",
}


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One curve of the chart."""

    key: str
    name: str
    at: Floats
    values: Floats

    def change(self, initial: float) -> float:
        return 100.0 * (float(self.values[-1]) / initial - 1.0) if initial else 0.0


def equity_chart(report: RunReport) -> Html:
    """The figure, or a sentence if there is nothing to draw."""
    lines = _lines(report)
    if not lines or lines[0].key != "agent":
        return tag("p", "The run recorded no equity point, so there is no curve to draw.", class_="note")
    fall = drawdown(lines[0].values, report.initial_usd)
    if report.window is not None:
        first, last = _part(lines[0].at, report.window)
        fall = fall[first:last]
        lines = [_cut(line, report.window) for line in lines]
    agent = lines[0]
    main, lower = _frames(report, lines, fall)
    height = lower.bottom + FOOT
    legend = [(_style(line), line.name, line.name, line.change(report.initial_usd)) for line in lines]
    svg = tag(
        "svg",
        tag("title", "Equity of this run against its baselines, with drawdown"),
        grid(main, tick_labels(round_ticks(main.low, main.high, 5), before="$")),
        grid(lower, tick_labels(round_ticks(lower.low, 0.0, 3), after="%")),
        time_axis(lower, main.top),
        _start_line(main, report.initial_usd),
        *[_curve(main, line) for line in reversed(lines)],
        _fall_area(lower, agent.at, fall),
        _halts(report, main, lower),
        tag("line", class_="cursor", y1=main.top, y2=lower.bottom, x1=0, x2=0),
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        role="img",
        tabindex="0",
        aria_label=_spoken(report, lines, fall),
    )
    return tag(
        "figure",
        tag("figcaption", line_legend(legend), READOUT),
        tag("div", svg, class_="scroll"),
        class_="chart timed",
        data_part="equity",
        data_start=int(main.start),
        data_end=int(main.end),
        data_chart=_data(report, main, lines, fall),
    )


def _lines(report: RunReport) -> list[ChartLine]:
    lines: list[ChartLine] = []
    series = {"agent": report.equity, **dict(sorted(report.baseline_equity.items()))}
    for key, points in series.items():
        if not len(points):
            continue
        at, values = as_arrays(points)
        if lines and not report.finished:
            # A run that stopped early is compared over the part that it completed.
            completed = at <= lines[0].at[-1]
            at, values = at[completed], values[completed]
        if len(at):
            start = report.from_at
            if start is not None and start < at[0]:
                at, values = np.insert(at, 0, start), np.insert(values, 0, report.initial_usd)
            lines.append(ChartLine(key, NAMES.get(key, key.replace("_", " ")), at, values))
    return lines


def _part(at: Floats, window: tuple[int, int]) -> tuple[int, int]:
    """The points inside a window, and the one before it; never none."""
    first, last = np.searchsorted(at, [window[0], window[1] + 1])
    first = max(int(first) - 1, 0)
    return first, max(int(last), first + 1)


def _cut(line: ChartLine, window: tuple[int, int]) -> ChartLine:
    """The part of a curve inside a window, from its edge on."""
    first, last = _part(line.at, window)
    at = np.maximum(line.at[first:last], float(window[0]))
    return ChartLine(line.key, line.name, at, line.values[first:last])


def _frames(report: RunReport, lines: list[ChartLine], fall: Floats) -> tuple[Frame, Frame]:
    start, end = min(float(line.at[0]) for line in lines), max(float(line.at[-1]) for line in lines)
    if report.window is not None:
        start, end = map(float, report.window)
    start_usd = [report.initial_usd] if report.window is None else []  # a part shows its own range alone
    low, high = padded_range(
        min(*start_usd, *(float(line.values.min()) for line in lines), np.inf),
        max(*start_usd, *(float(line.values.max()) for line in lines), -np.inf),
    )
    deepest = max(float(fall.max()), 1.0)
    width = WIDTH - LEFT - RIGHT
    return (
        Frame(LEFT, TOP, width, MAIN, start, end, low, high),
        Frame(LEFT, TOP + MAIN + GAP, width, LOWER, start, end, -deepest * 1.08, 0.0),
    )


def _curve(frame: Frame, line: ChartLine) -> Html:
    columns = COLUMNS if line.key == "agent" else COLUMNS // 2  # dashes need room to be visible
    keep = downsample(line.at, line.values, frame.start, frame.end, columns)
    return tag("path", class_=f"line {_style(line)}", d="M" + frame.points(line.at[keep], line.values[keep]))


def _style(line: ChartLine) -> str:
    return line.key if line.key in NAMES else "other"


def _start_line(frame: Frame, initial: float) -> Html:
    if not frame.low <= initial <= frame.high:
        return Html()
    y = f"{frame.y(initial):.1f}"
    return tag("line", class_="start", x1=frame.left, x2=frame.right, y1=y, y2=y)


def _fall_area(frame: Frame, at: Floats, fall: Floats) -> Html:
    keep = downsample(at, fall, frame.start, frame.end, COLUMNS)
    points = frame.points(at[keep], -fall[keep])
    zero = f"{frame.y(0):.1f}"
    worst = int(fall.argmax())
    x, y = frame.x(float(at[worst])), frame.y(-float(fall[worst]))
    side = "end" if x > frame.right - 120 else "start"
    note = tag(
        "text",
        f"worst {figures.percent(-float(fall[worst]))}",
        x=f"{x + (-9 if side == 'end' else 9):.1f}",
        y=f"{min(y + 4, frame.bottom - 3):.1f}",
        text_anchor=side,
        class_="worst",
    )
    area = f"M{frame.x(float(at[0])):.1f} {zero}L{points}L{frame.x(float(at[-1])):.1f} {zero}Z"
    dot = tag("circle", class_="worst", cx=f"{x:.1f}", cy=f"{y:.1f}", r=3.5) if fall[worst] > 0 else None
    return join(
        [
            tag("text", "Drawdown", x=frame.left, y=frame.top - 8, class_="pane"),
            tag("path", class_="fall", d=area),
            *([dot, note] if dot else []),
        ]
    )


def _halts(report: RunReport, main: Frame, lower: Frame) -> Html:
    marks: list[Html] = []
    for halt in report.halts:
        at = instant(halt.get("at"))
        if at is None or not main.inside(at):
            continue
        x = f"{main.x(at):.1f}"
        marks.append(
            tag(
                "g",
                tag("title", f"Halt at {figures.clock(at)}: {halt_name(halt)}"),
                tag("line", x1=x, x2=x, y1=main.top, y2=lower.bottom),
                tag("text", "halt", x=f"{main.x(at) + 5:.1f}", y=main.top + 9),
            )
        )
    return tag("g", *marks, class_="halt")


def halt_name(halt: Plain) -> str:
    """The name of a halt, such as `daily loss`, from any of the fields of its record."""
    return str(halt.get("kind") or halt.get("halt") or halt.get("reason") or halt.get("code") or "halt").replace(
        "_", " "
    )


def _spoken(report: RunReport, lines: list[ChartLine], fall: Floats) -> str:
    """The chart as a sentence, for screen readers."""
    changes = ", ".join(
        f"{line.name.lower()} {figures.percent(line.change(report.initial_usd), signed=True)}" for line in lines
    )
    first, last = figures.day(int(lines[0].at[0])), figures.day(int(lines[0].at[-1]))
    deepest = figures.percent(float(fall.max()))
    return f"Line chart from {first} to {last}. Change over the period: {changes}. Deepest drawdown {deepest}."


def _data(report: RunReport, frame: Frame, lines: list[ChartLine], fall: Floats) -> str:
    """The data of the chart: the curves, the drawdown and the halts."""
    curves = [
        line_data(
            line.name, _style(line), line.at, line.values, BASELINE_COLUMNS if line.key != "agent" else DATA_COLUMNS
        )
        for line in lines
    ]
    falls = line_data("Drawdown", "fall", lines[0].at, -fall, DATA_COLUMNS // 2, area=True)
    halts = [(at, halt_name(halt)) for halt in report.halts if (at := instant(halt.get("at"))) is not None]
    panes = [
        {"height": int(MAIN), "format": "usd", "lines": curves, "level": report.initial_usd},
        {"height": int(LOWER), "format": "pct", "label": "Drawdown", "lines": [falls], "high": 0},
    ]
    return chart_json(frame.start, frame.end, panes, halts=halts)
