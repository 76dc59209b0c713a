"""How a study went on: the windows of a walk-forward with what was chosen and what came of it, and how a search learned."""

import math
from collections.abc import Sequence

import numpy as np

from pitboss.core.instant import DAY_MS
from pitboss.report import figures
from pitboss.report.frame import Frame, grid, padded_range, round_ticks, tick_labels, time_axis
from pitboss.report.markup import Html, join, tag
from pitboss.report.source import instant, number, pair
from pitboss.report.study.fields import metric_ticks
from pitboss.report.study.view import Plain, StudyView, period
from pitboss.report.table import LEFT, RIGHT, gain_or_loss, table
from pitboss.sim.study.axis import words_of

WIDTH, LEFT_SIDE, TOP, FOOT = 1120.0, 66.0, 14.0, 48.0
MOST_NAMES = 14
"""Windows that are named beneath the picture; of more, some are."""


def window_section(view: StudyView) -> Html:
    """Every window of a walk-forward: drawn, then in a table."""
    windows: Sequence[Plain] = view.forward.get("windows") or ()
    if not windows:
        words = "No window could be judged: nothing that was tried before one has the metric it is chosen by."
        return tag("p", words, class_="note")
    return join([_windows(view, windows), _curve(view, windows), _table(view, windows)])


def _windows(view: StudyView, windows: Sequence[Plain]) -> Html:
    drawn = [(place, one) for place, one in enumerate(windows) if number(one["inside"]) is not None]
    every = [value for _, one in drawn for value in (one["inside"], *(pair(one["tried_between"]) or ()))]
    every += [value for one in windows if (value := number(one["outside"])) is not None]
    if not every:
        return tag("p", "No window has a figure to draw.", class_="note")
    low, high = padded_range(min([0.0, *every]), max([0.0, *every]))
    frame = Frame(LEFT_SIDE, TOP, WIDTH - LEFT_SIDE - 20, 290.0, -0.5, len(windows) - 0.5, low, high)
    marks: list[Html] = [grid(frame, metric_ticks(low, high, view.metric.form)), _zero(frame)]
    for place, one in drawn:
        marks += _window(view, frame, place, one)
    marks += [_dot(frame, place, one["outside"], "after") for place, one in enumerate(windows) if _has(one, "outside")]
    marks.append(_names(frame, windows))
    title = f"{view.metric.label} where it was chosen and on the stretch after, window by window"
    legend = tag(
        "ul",
        _key("tried", "all that was tried before the window"),
        _key("before", "the choice, where it was chosen"),
        _key("after", "the same, on the stretch that followed"),
        class_="legend",
    )
    inside, outside = view.forward["inside_mean"], view.forward["outside_mean"]
    told = f"on average {view.shown(inside)} where chosen, {view.shown(outside)} after"
    return _figure(title, marks, frame.bottom + FOOT, legend, told)


def _window(view: StudyView, frame: Frame, place: int, one: Plain) -> list[Html]:
    x = f"{frame.x(place):.1f}"
    around, inside, outside = pair(one["tried_between"]), one["inside"], number(one["outside"])
    marks: list[Html] = []
    if around is not None:
        top, bottom = frame.y(around[1]), frame.y(around[0])
        marks.append(tag("line", class_="tried", x1=x, x2=x, y1=f"{top:.1f}", y2=f"{bottom:.1f}"))
    if outside is not None:
        style = "kept" if not view.is_better(inside, outside) else "lost"
        marks.append(
            tag("line", class_=f"fell {style}", x1=x, x2=x, y1=f"{frame.y(inside):.1f}", y2=f"{frame.y(outside):.1f}")
        )
    return [*marks, _dot(frame, place, inside, "before")]


def _curve(view: StudyView, windows: Sequence[Plain]) -> Html:
    """What became of 100 over all that was judged."""
    values: Sequence[float] = view.forward.get("curve") or ()
    start = instant(windows[0]["from"])
    if len(values) < 2 or start is None:
        return Html()
    level = np.array([100.0, *(100.0 * value for value in values)])
    low, high = padded_range(float(level.min()), float(level.max()))
    frame = Frame(LEFT_SIDE, TOP, WIDTH - LEFT_SIDE - 20, 200.0, start, start + len(values) * DAY_MS, low, high)
    at = start + np.arange(len(level), dtype=np.float64) * DAY_MS
    marks: list[Html] = [grid(frame, tick_labels(round_ticks(low, high, 4))), time_axis(frame, frame.top)]
    for one in windows[1:]:
        edge = instant(one["from"])
        if edge is not None:
            x = f"{frame.x(edge):.1f}"
            marks.append(tag("line", class_="edge-of", x1=x, x2=x, y1=frame.top, y2=frame.bottom))
    marks.append(tag("path", class_="line agent", d="M" + frame.points(at, level)))
    words = tag("span", "What became of 100 over all judged stretches; dashed: a new choice")
    return _figure("Equity over all judged stretches", marks, frame.bottom + 34, words, "")


def _return(one: Plain) -> Html:
    return gain_or_loss(figures.percent(one["total_return_pct"], signed=True), figures.tone(one["total_return_pct"]))


def _table(view: StudyView, windows: Sequence[Plain]) -> Html:
    beside = view.by != "total_return_pct"
    rows = [
        (
            figures.count(one["window"] + 1),
            period(one["chosen_from"], one["chosen_to"]),
            words_of(one["point"]),
            view.shown(one["inside"]),
            period(one["from"], one["to"]),
            tag("b", view.shown(one["outside"])),
            *([_return(one)] if beside else []),
        )
        for one in windows
    ]
    head = [
        ("Window", LEFT),
        ("Chosen on", LEFT),
        ("Choice", LEFT),
        (f"{view.metric.label} there", RIGHT),
        ("Judged on", LEFT),
        (f"{view.metric.label} there", RIGHT),
        *([("Return there", RIGHT)] if beside else []),
    ]
    return table("Windows of the walk-forward", head, rows, style="windows")


def search_chart(view: StudyView) -> Html:
    """Every trial in the order in which it was made, and the best so far."""
    trials = sorted(view.compared, key=lambda one: one["trial"])
    found = [(one["trial"], value) for one in trials if (value := view.value(one)) is not None]
    if len(found) < 2:
        return Html()
    low, high = padded_range(min(value for _, value in found), max(value for _, value in found))
    last = found[-1][0]
    frame = Frame(LEFT_SIDE, TOP, WIDTH - LEFT_SIDE - 20, 220.0, -0.5, last + 0.5, low, high)
    marks: list[Html] = [grid(frame, metric_ticks(low, high, view.metric.form))]
    best, steps = found[0][1], [f"M{frame.x(found[0][0]):.1f} {frame.y(found[0][1]):.1f}"]
    for trial, value in found[1:]:
        if view.is_better(value, best):
            best = value
        steps.append(f"H{frame.x(trial):.1f}V{frame.y(best):.1f}")
    marks.append(tag("path", class_="line mean", d="".join(steps)))
    marks += [
        tag("circle", class_="dot", cx=f"{frame.x(at):.1f}", cy=f"{frame.y(value):.1f}", r=4) for at, value in found
    ]
    step = max(1, math.ceil((last + 1) / MOST_NAMES))
    marks += [
        tag("text", str(place + 1), x=f"{frame.x(place):.1f}", y=frame.bottom + 20, text_anchor="middle")
        for place in range(0, last + 1, step)
    ]
    words = tag("span", "Trials in the order in which they were chosen; the line is the best so far")
    return _figure("How the search went on", marks, frame.bottom + 34, words, "")


def _names(frame: Frame, windows: Sequence[Plain]) -> Html:
    step = math.ceil(len(windows) / MOST_NAMES)
    marks: list[Html] = []
    for place, one in list(enumerate(windows))[::step]:
        x = f"{frame.x(place):.1f}"
        marks.append(tag("text", f"Window {one['window'] + 1}", x=x, y=frame.bottom + 19, text_anchor="middle"))
        marks.append(
            tag(
                "text",
                period(one["from"], one["to"])[:16].partition(" to ")[0],
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


def _dot(frame: Frame, place: int, value: float, style: str) -> Html:
    return tag("circle", class_=f"dot {style}", cx=f"{frame.x(place):.1f}", cy=f"{frame.y(value):.1f}", r=6)


def _has(one: Plain, name: str) -> bool:
    return number(one[name]) is not None


def _key(style: str, words: str) -> Html:
    shape = (
        tag("line", class_="tried", x1=14, x2=14, y1=1, y2=11)
        if style == "tried"
        else tag("circle", class_=f"dot {style}", cx=14, cy=6, r=5)
    )
    return tag("li", tag("svg", shape, viewBox="0 0 28 12", class_="swatch", aria_hidden="true"), words)


def _figure(title: str, marks: Sequence[Html], height: float, caption: Html, told: str) -> Html:
    svg = tag(
        "svg",
        tag("title", title),
        *marks,
        viewBox=f"0 0 {WIDTH:.0f} {height:.0f}",
        role="img",
        aria_label=title,
        tabindex="0",
    )
    words = tag("span", told, class_="muted") if told else None
    return tag("figure", tag("figcaption", caption, words), tag("div", svg, class_="scroll"), class_="chart")
