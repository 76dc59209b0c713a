"""The coordinate frame of a chart: positions of values, round ticks for both axes, and the figure around the drawing."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS
from pitboss.report.figures import MINUS, percent
from pitboss.report.markup import Html, join, tag
from pitboss.report.series import Floats

_STEPS = (
    *(minutes * MINUTE_MS for minutes in (5, 15, 30)),
    *(hours * HOUR_MS for hours in (1, 3, 6, 12)),
    *(days * DAY_MS for days in (1, 2, 7, 14)),
)
_MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60)
READOUT = tag("output", class_="readout", aria_live="off")
"""Where scripts write the values at the pointer."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A rectangle of the drawing and the ranges of time and value that it shows."""

    left: float
    top: float
    width: float
    height: float
    start: float
    end: float
    low: float
    high: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def x(self, at: float) -> float:
        return self.left + self.width * (at - self.start) / max(self.end - self.start, 1.0)

    def y(self, value: float) -> float:
        return self.bottom - self.height * (value - self.low) / ((self.high - self.low) or 1.0)

    def points(self, at: Floats, values: Floats) -> str:
        """Coordinates of a line through the points, in the syntax of an SVG path."""
        xs = self.left + self.width * (at - self.start) / max(self.end - self.start, 1.0)
        ys = self.bottom - self.height * (values - self.low) / ((self.high - self.low) or 1.0)
        return "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True))

    def inside(self, at: float) -> bool:
        return self.start <= at <= self.end


def padded_range(low: float, high: float, share: float = 0.06) -> tuple[float, float]:
    """The range with a margin above and below; an empty range is widened so that it can be drawn."""
    gap = (high - low) * share or abs(high) * 0.01 or 1.0
    return low - gap, high + gap


def round_ticks(low: float, high: float, count: int) -> list[float]:
    """Round values inside a range, about `count` of them."""
    raw = (high - low) / max(count, 1)
    if not math.isfinite(raw) or raw <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    ticks = [step * index for index in range(first, math.floor(high / step + 1e-9) + 1)]
    return ticks if len(ticks) > 1 else round_ticks(low, high, count + 1)  # one value alone shows no scale


def tick_labels(ticks: list[float], before: str = "", after: str = "") -> list[tuple[float, str]]:
    """Ticks with labels that have as many digits as their step needs."""
    step = ticks[1] - ticks[0] if len(ticks) > 1 else abs(ticks[0]) if ticks else 1.0
    digits = next((count for count in range(9) if abs(step * 10**count - round(step * 10**count)) < 1e-6), 8)
    labels: list[tuple[float, str]] = []
    for tick in ticks:
        digits_text = f"{abs(tick):,.{digits}f}"
        minus = MINUS if tick < 0 and any(digit in digits_text for digit in "123456789") else ""
        labels.append((tick, f"{minus}{before}{digits_text}{after}"))
    return labels


def label_room(ticks: list[tuple[float, str]], character: float, least: float) -> float:
    """The width left of a frame for the labels of its grid, at most `character` wide for each of their characters."""
    return max(least, 12.0 + character * max((len(label) for _, label in ticks), default=0))


def time_ticks(start: float, end: float, most: int = 8) -> list[tuple[float, str]]:
    """Round instants with a label of their date or time of day."""
    for step in _STEPS:
        if (end - start) / step <= most:
            return [(at, _label(at, step)) for at in np.arange(math.ceil(start / step) * step, end + 1, step).tolist()]
    return _month_ticks(start, end, most)


def _month_ticks(start: float, end: float, most: int) -> list[tuple[float, str]]:
    first, last = _moment(start), _moment(end)
    months = (last.year - first.year) * 12 + last.month - first.month
    step = next((step for step in _MONTH_STEPS if months / step <= most), _MONTH_STEPS[-1])
    ticks: list[tuple[float, str]] = []
    for month in range(first.year * 12 + first.month - 1, last.year * 12 + last.month):
        moment = datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)
        at = moment.timestamp() * 1000
        if month % step == 0 and start <= at <= end:
            ticks.append((at, f"{moment:%Y}" if step >= 12 else f"{moment:%b %Y}"))
    return ticks


def _label(at: float, step: float) -> str:
    moment = _moment(at)
    if step < DAY_MS and (moment.hour or moment.minute):
        return f"{moment:%H:%M}"
    return f"{moment.day} {moment:%b}"


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC)


def chart_figure(
    title: str, marks: Iterable[object], size: tuple[float, float], caption: object, note: str = "", data: str = ""
) -> Html:
    """A drawing of this width and height with its caption; wide drawings scroll inside the page.

    With the `data` of `chart_data.py`, scripts draw any part of its time, in the width that there is.
    """
    svg = tag(
        "svg",
        tag("title", title),
        *marks,
        viewBox=f"0 0 {size[0]:.0f} {size[1]:.0f}",
        role="img",
        aria_label=title,
        tabindex="0",
    )
    note_span = tag("span", note, class_="muted") if note else None
    return tag(
        "figure",
        tag("figcaption", caption, note_span, READOUT if data else None),
        tag("div", svg, class_="scroll"),
        class_="chart timed" if data else "chart",
        data_chart=data or None,
    )


def legend_item(shape: Html, *content: object, **attributes: str) -> Html:
    """One item of a legend: a mark of the chart, 28 units wide and 12 high, and what it means."""
    swatch = tag("svg", shape, viewBox="0 0 28 12", class_="swatch", aria_hidden="true")
    return tag("li", swatch, *content, **attributes)


def line_legend(entries: Iterable[tuple[str, str, str, float]]) -> Html:
    """Curves by style, name in the data of the chart, text and change in percent; scripts make switches of them."""
    items = [
        legend_item(
            tag("line", class_=f"line {style}", x1=0, x2=28, y1=6, y2=6),
            tag("span", text),
            tag("b", percent(change_pct, signed=True)),
            data_line=name,
        )
        for style, name, text, change_pct in entries
    ]
    return tag("ul", *items, class_="legend")


def grid(frame: Frame, values: list[tuple[float, str]]) -> Html:
    """Horizontal lines with their labels on the left."""
    lines: list[Html] = []
    for value, label in values:
        y = f"{frame.y(value):.1f}"
        lines.append(tag("line", x1=frame.left, x2=frame.right, y1=y, y2=y))
        lines.append(tag("text", label, x=frame.left - 8, y=y, dy="0.32em", text_anchor="end"))
    return tag("g", *lines, class_="grid")


def time_axis(frame: Frame, top: float) -> Html:
    """Vertical lines from `top` to the bottom of the frame, with labels below."""
    marks: list[Html] = []
    for at, label in time_ticks(frame.start, frame.end):
        x = f"{frame.x(at):.1f}"
        marks.append(tag("line", x1=x, x2=x, y1=top, y2=frame.bottom))
        marks.append(tag("text", label, x=x, y=frame.bottom + 18, text_anchor="middle"))
    return tag("g", join(marks), class_="grid time")
