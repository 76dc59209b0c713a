"""The effect of each varied field on the metric: one chart per field, and a heat map if there are two fields.

Every dot is a trial; the line connects the means at each value. Only the map shows interactions between fields.
"""

import math
from collections.abc import Sequence

from pitboss.report.frame import Frame, grid, label_room, padded_range, round_ticks, tick_labels
from pitboss.report.markup import Html, join, tag
from pitboss.report.meaning import Form
from pitboss.report.source import Plain, number
from pitboss.report.study.view import StudyView, sorted_values
from pitboss.report.table import LEFT, RIGHT, table

WIDTH, HEIGHT, LEFT_SIDE, TOP, FOOT = 540.0, 210.0, 62.0, 12.0, 42.0
MOST_NAMES = 9
"""Values of a field labelled below a chart; of more values, only some are."""
MOST_DOTS = 2_000
MAP_SIDE = 14
SHADES = 6
MAX_LABEL_LENGTH = 18
"""Characters of a value below a chart."""


def field_section(view: StudyView) -> Html:
    """A chart of every field, then a map if there are two."""
    trials, fields = view.compared, view.fields
    if not trials:
        return tag("p", f"No trial has a {view.label} yet.", class_="note")
    varied = [name for name in fields if len({trial["point"].get(name) for trial in trials}) > 1]
    if not varied:
        return tag("p", "Only one point was run: there is nothing to compare.", class_="note")
    ring = "" if view.is_walk_forward else ", the ring the best trial"
    note = f"Each dot is a trial, the line the mean at a value{ring}. {view.metric.label}: {view.direction}."
    charts = tag("div", *[_chart(view, trials, name) for name in varied], class_="halves fields")
    heat_map = _map(view, trials, varied) if len(varied) == 2 else None
    return join([tag("p", note, class_="note"), charts, heat_map or Html()])


def _chart(view: StudyView, trials: Sequence[Plain], name: str) -> Html:
    groups: dict[str, list[float]] = {}
    for trial in trials:
        value = view.value(trial)
        if value is not None and name in trial["point"]:
            groups.setdefault(trial["point"][name], []).append(value)
    values = sorted_values(list(groups))
    metrics = [value for group in groups.values() for value in group]
    low, high = padded_range(min(metrics), max(metrics), 0.1)
    ticks = metric_ticks(low, high, view.metric.form)
    left = label_room(ticks, 9.0, LEFT_SIDE)  # the characters of narrow windows
    frame = Frame(left, TOP, WIDTH - left - 16, HEIGHT, *_reach(values), low, high)
    positions = {value: frame.x(position) for value, position in zip(values, _positions(values), strict=True)}
    marks: list[Html] = [grid(frame, ticks), _names(frame, values, positions)]
    means = [(positions[value], math.fsum(groups[value]) / len(groups[value])) for value in values]
    line = "L".join(f"{x:.1f} {frame.y(mean):.1f}" for x, mean in means)
    if len(means) > 1 and _is_scale(values):
        marks.append(tag("path", class_="line mean", d=f"M{line}"))
    else:  # a line between categories has no meaning
        marks += [_level(x, frame.y(mean)) for x, mean in means]
    dots = [(positions[value], frame.y(metric)) for value in values for metric in groups[value]][:MOST_DOTS]
    marks += [tag("circle", class_="dot", cx=f"{x:.1f}", cy=f"{y:.1f}", r=3.5) for x, y in dots]
    best = None if view.is_walk_forward else view.best  # in a walk-forward each window has its own best
    if best is not None and best["point"].get(name) in positions:
        x, y = positions[best["point"][name]], frame.y(view.value(best) or 0.0)
        marks.append(tag("circle", class_="ring", cx=f"{x:.1f}", cy=f"{y:.1f}", r=8))
    title = f"{view.metric.label} by {name}"
    svg = tag(
        "svg",
        tag("title", title),
        *marks,
        viewBox=f"0 0 {WIDTH:.0f} {frame.bottom + FOOT:.0f}",
        role="img",
        aria_label=title,
    )
    return tag(
        "figure",
        tag("figcaption", tag("strong", name), tag("span", _extremes(view, groups, values), class_="muted")),
        svg,
        class_="chart small",
    )


def _extremes(view: StudyView, groups: dict[str, list[float]], values: Sequence[str]) -> str:
    """The values with the best and the worst mean, as text."""
    means = {value: math.fsum(groups[value]) / len(groups[value]) for value in values}
    order = sorted(values, key=lambda value: means[value], reverse=view.plain["better"] != "less")
    first, last = order[0], order[-1]
    if means[first] == means[last]:
        return "no difference"
    return f"mean {view.format_value(means[first])} at {_shorten(first)}, {view.format_value(means[last])} at {_shorten(last)}"


def _is_scale(values: Sequence[str]) -> bool:
    return all(number(value) is not None for value in values)


def _positions(values: Sequence[str]) -> list[float]:
    """The positions of the values: many numbers by size, other values in equal steps."""
    return [number(value) or 0.0 for value in values] if _by_size(values) else [float(n) for n in range(len(values))]


def _by_size(values: Sequence[str]) -> bool:
    return len(values) > MOST_NAMES and _is_scale(values)


def _reach(values: Sequence[str]) -> tuple[float, float]:
    if _by_size(values):
        positions = _positions(values)
        return padded_range(min(positions), max(positions), 0.04)
    return -0.5, len(values) - 0.5


def _names(frame: Frame, values: Sequence[str], positions: dict[str, float]) -> Html:
    if _by_size(values):
        at = [(frame.x(tick), label) for tick, label in tick_labels(round_ticks(frame.start, frame.end, 6))]
    else:
        step = math.ceil(len(values) / MOST_NAMES)
        at = [(positions[value], _shorten(value, len(values))) for value in values[::step]]
    labels = [tag("text", label, x=f"{x:.1f}", y=frame.bottom + 20, text_anchor="middle") for x, label in at]
    return tag("g", *labels)


def _level(x: float, y: float) -> Html:
    return tag("line", class_="line mean", x1=f"{x - 16:.1f}", x2=f"{x + 16:.1f}", y1=f"{y:.1f}", y2=f"{y:.1f}")


def _shorten(value: str, among: int = 3) -> str:
    """A value shortened to fit beside `among` others; of a model name only the last part."""
    most = max(6, min(MAX_LABEL_LENGTH, 60 // max(among, 1)))
    short = value.rpartition("/")[2] if "/" in value and not value[:1].isdigit() else value
    return short if len(short) <= most else f"{short[: most - 1]}…"


def _map(view: StudyView, trials: Sequence[Plain], fields: Sequence[str]) -> Html | None:
    """The mean of the metric at every pair of values, as a heat map; None if it is too large or too sparse."""
    down, across = fields
    cells: dict[tuple[str, str], list[float]] = {}
    for trial in trials:
        value = view.value(trial)
        if value is not None:
            cells.setdefault((trial["point"][down], trial["point"][across]), []).append(value)
    rows, columns = sorted_values([row for row, _ in cells]), sorted_values([column for _, column in cells])
    if not (2 <= len(rows) <= MAP_SIDE and 2 <= len(columns) <= MAP_SIDE) or 2 * len(cells) < len(rows) * len(columns):
        return None
    means = {at: math.fsum(values) / len(values) for at, values in cells.items()}
    low, high = min(means.values()), max(means.values())
    top = min(means, key=lambda at: means[at] if view.plain["better"] == "less" else -means[at])

    def cell(at: tuple[str, str]) -> Html:
        if at not in means:
            return tag("span", "·", class_="muted")
        share = (means[at] - low) / ((high - low) or 1.0)
        if view.plain["better"] == "less":
            share = 1 - share
        style = f"q{min(SHADES, int(share * (SHADES + 1)))}" + (" peak" if at == top else "")
        return tag("span", view.format_value(means[at]), class_=f"shade {style}")

    body = [(row, *[cell((row, column)) for column in columns]) for row in rows]
    name = down.rpartition(".")[2]
    head = [(f"{name} ↓  {across.rpartition('.')[2]} →", LEFT), *[(column, RIGHT) for column in columns]]
    note = f"{view.metric.label} at every pair of {down} and {across}; the darker the better, the best is framed."
    return join(
        [
            tag("h3", "Both fields"),
            tag("p", note, class_="note"),
            table("Both fields", head, body, style="map"),
        ]
    )


def metric_ticks(low: float, high: float, form: Form, count: int = 5) -> list[tuple[float, str]]:
    """Round values of a metric with labels in its form."""
    if form in ("share", "signed_share"):
        return [
            (tick / 100, label) for tick, label in tick_labels(round_ticks(low * 100, high * 100, count), after="%")
        ]
    before = "$" if form == "usd" else ""
    after = "%" if form in ("percent", "signed_percent") else ""
    return tick_labels(round_ticks(low, high, count), before, after)
