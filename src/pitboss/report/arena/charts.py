"""The charts of an arena: differences from the highest entrant, equity of all entrants, and variation between repeats."""

from collections.abc import Mapping, Sequence

import numpy as np

from pitboss.core.instant import DAY_MS, parse_instant
from pitboss.report import figures
from pitboss.report.arena.pairs import reversed_percent
from pitboss.report.frame import Frame, chart_figure, grid, padded_range, round_ticks, tick_labels, time_axis
from pitboss.report.markup import Html, tag
from pitboss.report.metric import meanings_of, metric_meaning
from pitboss.report.source import Plain, pair

WIDTH, NAMES, ROW, TOP, FOOT = 1120.0, 230.0, 34.0, 14.0, 34.0
HUES = 8
"""The number of colours; more entrants share them."""


def difference_chart(arena: Plain) -> Html:
    """The difference of each entrant from the highest, with simultaneous intervals over all pairs."""
    entries = [entry for entry in arena["entries"] if entry["tier"] is not None]
    if len(entries) < 2:
        return tag("p", "There is no other entrant with a result.", class_="note")
    first = entries[0]["model"]
    differences = [_against(arena["pairs"], entry["model"], first) for entry in entries[1:]]
    edges = [value for middle, around in differences for value in (middle, *(around or ()))]
    frame, marks = _row_frame(edges, len(differences))
    for index, (entry, (middle, around)) in enumerate(zip(entries[1:], differences, strict=True)):
        y = f"{TOP + ROW * (index + 0.5):.1f}"
        significant = around is not None and (around[0] > 0 or around[1] < 0)
        style = "sure" if significant else "open"
        if around is not None:
            marks.append(
                tag("line", class_=f"reach {style}", x1=_at(frame, around[0]), x2=_at(frame, around[1]), y1=y, y2=y)
            )
        marks.append(tag("circle", class_=f"dot {style}", cx=_at(frame, middle), cy=y, r=5))
        marks.append(tag("text", entry["model"], x=NAMES - 14, y=y, dy="0.32em", text_anchor="end", class_="name"))
        label = figures.percent(middle, signed=True, digits=1) + ("" if significant else ", n.s.")
        marks.append(tag("text", label, x=WIDTH - 140, y=y, dy="0.32em"))
    title = f"Final equity of each entrant relative to {first}, with simultaneous 95% intervals"
    caption = f"Compared with {first}, which ended highest; n.s.: not significant"
    return _figure(title, marks, frame.bottom + FOOT, caption)


def repeat_chart(arena: Plain) -> Html:
    """The result of every run: its return, or the metric that the venue is judged by."""
    name = "returns_pct" if arena["has_account"] else "values"
    metric = metric_meaning(arena["by"], meanings_of(arena))
    is_percent = metric.form.endswith("percent")
    entries = [entry for entry in arena["entries"] if entry[name]]
    if not entries:
        return tag("p", "No run has a result yet.", class_="note")
    values = [value for entry in entries for value in entry[name]]
    frame, marks = _row_frame(values, len(entries), "%" if is_percent else "")
    for index, entry in enumerate(entries):
        y = f"{TOP + ROW * (index + 0.5):.1f}"
        returns = entry[name]
        marks.append(
            tag("line", class_="reach open", x1=_at(frame, min(returns)), x2=_at(frame, max(returns)), y1=y, y2=y)
        )
        marks += [tag("circle", class_="dot run", cx=_at(frame, value), cy=y, r=4.5) for value in returns]
        marks.append(tag("text", entry["model"], x=NAMES - 14, y=y, dy="0.32em", text_anchor="end", class_="name"))
        span = max(returns) - min(returns)
        label = f"{span:.1f} points range" if is_percent else f"range {span:.1f}"
        label = label if len(returns) > 1 else "one run"
        marks.append(tag("text", label, x=WIDTH - 140, y=y, dy="0.32em"))
    caption = f"Each dot is one run of the same skill over the same {'market' if arena['has_account'] else 'scenario'}"
    return _figure(f"{metric.label} of every run", marks, frame.bottom + FOOT, caption)


def curve_chart(arena: Plain) -> Html:
    """Daily equity of each entrant from 100, as the mean of its repeats."""
    curves: Mapping[str, Sequence[float]] = arena["curves"]
    entries = [entry for entry in arena["entries"] if curves.get(entry["model"])]
    if not entries:
        return tag("p", "No run has a result yet.", class_="note")
    start = float(parse_instant(str(arena["from_at"])))
    lines = {
        entry["model"]: np.array([100.0, *(100.0 * value for value in curves[entry["model"]])]) for entry in entries
    }
    length = max(len(values) for values in lines.values())
    low, high = padded_range(
        min(float(values.min()) for values in lines.values()), max(float(values.max()) for values in lines.values())
    )
    frame = Frame(56.0, TOP, WIDTH - 56 - 250, 320.0, start, start + (length - 1) * DAY_MS, low, high)
    at = start + np.arange(length, dtype=np.float64) * DAY_MS
    marks: list[Html] = [grid(frame, tick_labels(round_ticks(low, high, 5))), time_axis(frame, frame.top)]
    ends = _spread([(frame.y(float(values[-1])), name) for name, values in lines.items()])
    for index, entry in enumerate(entries):
        name, hue = entry["model"], f"h{index % HUES}"
        style = f"line {hue} {'base' if entry['baseline'] else ''}".strip()
        values = lines[name]
        marks.append(tag("path", class_=style, d="M" + frame.points(at[: len(values)], values)))
        label = f"{name} {figures.percent(float(values[-1]) - 100, signed=True, digits=1)}"
        marks.append(tag("text", label, x=frame.right + 10, y=f"{ends[name]:.1f}", dy="0.32em", class_=f"name {hue}"))
    return _figure("Equity of every entrant", marks, frame.bottom + FOOT, "Equity from 100; baselines are dashed")


def _spread(ends: list[tuple[float, str]], apart: float = 16.0) -> dict[str, float]:
    """Heights at which labels do not overlap."""
    heights: dict[str, float] = {}
    last = -1e9
    for y, name in sorted(ends):
        last = max(y, last + apart)
        heights[name] = last
    return heights


def _against(pairs: Sequence[Plain], name: str, reference: str) -> tuple[float, tuple[float, float] | None]:
    """The difference of `name` from `reference` in percent, with its interval."""
    for difference in pairs:
        around = pair(difference["together"])
        if (difference["first"], difference["second"]) == (name, reference):
            return difference["percent"], around
        if (difference["first"], difference["second"]) == (reference, name):
            bounds = None if around is None else (reversed_percent(around[1]), reversed_percent(around[0]))
            return reversed_percent(difference["percent"]), bounds
    return 0.0, None


def _at(frame: Frame, value: float) -> str:
    return f"{frame.x(value):.1f}"


def _row_frame(values: Sequence[float], row_count: int, unit: str = "%") -> tuple[Frame, list[Html]]:
    """The frame of a chart with one row for each entrant, wide enough for these values, and its scale."""
    low, high = padded_range(min([0.0, *values]), max([0.0, *values]))
    frame = Frame(NAMES, TOP, WIDTH - NAMES - 150, ROW * row_count, low, high, 0, 1)
    return frame, [_scale(frame, low, high, unit)]


def _scale(frame: Frame, low: float, high: float, unit: str) -> Html:
    marks: list[Html] = []
    for value, label in tick_labels(round_ticks(low, high, 7), after=unit):
        x = _at(frame, value)
        style = "zero" if abs(value) < 1e-12 else None
        marks.append(tag("line", x1=x, x2=x, y1=frame.top, y2=frame.bottom, class_=style))
        marks.append(tag("text", label, x=x, y=frame.bottom + 18, text_anchor="middle"))
    return tag("g", *marks, class_="grid")


def _figure(title: str, marks: Sequence[Html], height: float, caption: str) -> Html:
    return chart_figure(title, marks, (WIDTH, height), tag("span", caption, class_="muted"))
