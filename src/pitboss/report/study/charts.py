"""The charts of a study's course: the windows of a walk-forward with their choices and results, the progress of a search."""

import math
from collections.abc import Sequence

import numpy as np

from pitboss.core.instant import DAY_MS
from pitboss.report import figures
from pitboss.report.frame import (
    Frame,
    chart_figure,
    grid,
    label_room,
    legend_item,
    padded_range,
    round_ticks,
    tick_labels,
    time_axis,
)
from pitboss.report.markup import Html, join, tag
from pitboss.report.source import Plain, instant, number, pair
from pitboss.report.study.fields import metric_ticks
from pitboss.report.study.view import StudyView, period
from pitboss.report.table import LEFT, RIGHT, gain_or_loss, table
from pitboss.sim.study.axis import describe_point

WIDTH, LEFT_SIDE, TOP, FOOT = 1120.0, 66.0, 14.0, 48.0
MOST_NAMES = 14
"""Windows labelled below the chart; of more windows, only some are."""


def window_section(view: StudyView) -> Html:
    """Every window of a walk-forward: as a chart and as a table."""
    windows: Sequence[Plain] = view.forward.get("windows") or ()
    if not windows:
        return tag("p", "No window could be tested: no in-sample trial has the metric.", class_="note")
    return join([_windows(view, windows), _curve(view, windows), _table(view, windows)])


def _windows(view: StudyView, windows: Sequence[Plain]) -> Html:
    with_result = [(index, window) for index, window in enumerate(windows) if number(window["inside"]) is not None]
    values = [
        value for _, window in with_result for value in (window["inside"], *(pair(window["tried_between"]) or ()))
    ]
    values += [value for window in windows if (value := number(window["outside"])) is not None]
    if not values:
        return tag("p", "No window has a value to draw.", class_="note")
    low, high = padded_range(min([0.0, *values]), max([0.0, *values]))
    ticks = metric_ticks(low, high, view.metric.form)
    left = label_room(ticks, 7.0, LEFT_SIDE)
    frame = Frame(left, TOP, WIDTH - left - 20, 290.0, -0.5, len(windows) - 0.5, low, high)
    marks: list[Html] = [grid(frame, ticks), _zero(frame)]
    for index, window in with_result:
        marks += _window(view, frame, index, window)
    marks += [
        _dot(frame, index, window["outside"], "after")
        for index, window in enumerate(windows)
        if _has(window, "outside")
    ]
    marks.append(_names(frame, windows))
    title = f"{view.metric.label} in sample and out of sample, by window"
    legend = tag(
        "ul",
        _key("tried", "range of all in-sample trials"),
        _key("before", "the choice, in sample"),
        _key("after", "the choice, out of sample"),
        class_="legend",
    )
    averages = f"on average {view.format_mean(outside=False)} in sample, {view.format_mean(outside=True)} out of sample"
    return chart_figure(title, marks, (WIDTH, frame.bottom + FOOT), legend, averages)


def _window(view: StudyView, frame: Frame, index: int, window: Plain) -> list[Html]:
    x = f"{frame.x(index):.1f}"
    around, inside, outside = pair(window["tried_between"]), window["inside"], number(window["outside"])
    marks: list[Html] = []
    if around is not None:
        top, bottom = frame.y(around[1]), frame.y(around[0])
        marks.append(tag("line", class_="tried", x1=x, x2=x, y1=f"{top:.1f}", y2=f"{bottom:.1f}"))
    if outside is not None:
        style = "kept" if not view.is_better(inside, outside) else "lost"
        marks.append(
            tag("line", class_=f"fell {style}", x1=x, x2=x, y1=f"{frame.y(inside):.1f}", y2=f"{frame.y(outside):.1f}")
        )
    return [*marks, _dot(frame, index, inside, "before")]


def _curve(view: StudyView, windows: Sequence[Plain]) -> Html:
    """Equity over all test periods, starting at 100."""
    values: Sequence[float] = view.forward.get("curve") or ()
    start = instant(windows[0]["from"])
    if len(values) < 2 or start is None:
        return Html()
    level = np.array([100.0, *(100.0 * value for value in values)])
    low, high = padded_range(float(level.min()), float(level.max()))
    frame = Frame(LEFT_SIDE, TOP, WIDTH - LEFT_SIDE - 20, 200.0, start, start + len(values) * DAY_MS, low, high)
    at = start + np.arange(len(level), dtype=np.float64) * DAY_MS
    marks: list[Html] = [grid(frame, tick_labels(round_ticks(low, high, 4))), time_axis(frame, frame.top)]
    for window in windows[1:]:
        edge = instant(window["from"])
        if edge is not None:
            x = f"{frame.x(edge):.1f}"
            marks.append(tag("line", class_="edge-of", x1=x, x2=x, y1=frame.top, y2=frame.bottom))
    marks.append(tag("path", class_="line agent", d="M" + frame.points(at, level)))
    caption = tag("span", "Equity over all test periods, starting at 100; dashed: a new choice")
    return chart_figure("Equity over all test periods", marks, (WIDTH, frame.bottom + 34), caption)


def _return(window: Plain) -> Html:
    return gain_or_loss(
        figures.percent(window["total_return_pct"], signed=True), figures.tone(window["total_return_pct"])
    )


def _table(view: StudyView, windows: Sequence[Plain]) -> Html:
    has_return = view.by != "total_return_pct"
    rows = [
        (
            figures.count(window["window"] + 1),
            period(window["chosen_from"], window["chosen_to"]),
            describe_point(window["point"]),
            view.format_window(window, outside=False),
            period(window["from"], window["to"]),
            tag("b", view.format_window(window, outside=True)),
            *([_return(window)] if has_return else []),
        )
        for window in windows
    ]
    head = [
        ("Window", LEFT),
        ("In-sample period", LEFT),
        ("Choice", LEFT),
        (f"{view.metric.label} in sample", RIGHT),
        ("Out-of-sample period", LEFT),
        (f"{view.metric.label} out of sample", RIGHT),
        *([("Return", RIGHT)] if has_return else []),
    ]
    return table("Windows of the walk-forward", head, rows, style="windows", stacks=True)


def search_chart(view: StudyView) -> Html:
    """Every trial in the order of the search, and the best so far."""
    trials = sorted(view.compared, key=lambda trial: trial["trial"])
    results = [(trial["trial"], value) for trial in trials if (value := view.value(trial)) is not None]
    if len(results) < 2:
        return Html()
    low, high = padded_range(min(value for _, value in results), max(value for _, value in results))
    last = results[-1][0]
    ticks = metric_ticks(low, high, view.metric.form)
    left = label_room(ticks, 7.0, LEFT_SIDE)
    frame = Frame(left, TOP, WIDTH - left - 20, 220.0, -0.5, last + 0.5, low, high)
    marks: list[Html] = [grid(frame, ticks)]
    best, steps = results[0][1], [f"M{frame.x(results[0][0]):.1f} {frame.y(results[0][1]):.1f}"]
    for trial, value in results[1:]:
        if view.is_better(value, best):
            best = value
        steps.append(f"H{frame.x(trial):.1f}V{frame.y(best):.1f}")
    marks.append(tag("path", class_="line mean", d="".join(steps)))
    marks += [
        tag("circle", class_="dot", cx=f"{frame.x(at):.1f}", cy=f"{frame.y(value):.1f}", r=4) for at, value in results
    ]
    step = max(1, math.ceil((last + 1) / MOST_NAMES))
    marks += [
        tag("text", str(index + 1), x=f"{frame.x(index):.1f}", y=frame.bottom + 20, text_anchor="middle")
        for index in range(0, last + 1, step)
    ]
    caption = tag("span", "Trials in the order of the search; the line is the best so far")
    return chart_figure("Progress of the search", marks, (WIDTH, frame.bottom + 34), caption)


def _names(frame: Frame, windows: Sequence[Plain]) -> Html:
    step = math.ceil(len(windows) / MOST_NAMES)
    marks: list[Html] = []
    for index, window in list(enumerate(windows))[::step]:
        x = f"{frame.x(index):.1f}"
        marks.append(tag("text", f"Window {window['window'] + 1}", x=x, y=frame.bottom + 19, text_anchor="middle"))
        marks.append(
            tag(
                "text",
                period(window["from"], window["to"])[:16].partition(" to ")[0],
                x=x,
                y=frame.bottom + 36,
                text_anchor="middle",
                class_="small",
            )
        )
    return tag("g", *marks)


def _zero(frame: Frame) -> Html:
    y = f"{frame.y(0.0):.1f}"
    return tag("line", class_="zero", x1=frame.left, x2=frame.right, y1=y, y2=y)


def _dot(frame: Frame, index: int, value: float, style: str) -> Html:
    return tag("circle", class_=f"dot {style}", cx=f"{frame.x(index):.1f}", cy=f"{frame.y(value):.1f}", r=6)


def _has(window: Plain, name: str) -> bool:
    return number(window[name]) is not None


def _key(style: str, label: str) -> Html:
    shape = (
        tag("line", class_="tried", x1=14, x2=14, y1=1, y2=11)
        if style == "tried"
        else tag("circle", class_=f"dot {style}", cx=14, cy=6, r=5)
    )
    return legend_item(shape, label)
