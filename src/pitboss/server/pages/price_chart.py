"""The chart of the backtest page: prices with two handles that choose a range. `backtest.js` moves the handles."""

import json

import numpy as np

from pitboss.core.instant import Instant
from pitboss.report import figures
from pitboss.report.frame import Frame, grid, padded_range, round_ticks, tick_labels, time_axis
from pitboss.report.markup import Html, tag
from pitboss.report.series import downsample
from pitboss.runs.price_range import PriceRange

WIDTH, HEIGHT, LEFT, RIGHT, TOP, FOOT = 1120.0, 270.0, 72.0, 16.0, 12.0, 30.0
COLUMNS = 520


def range_chart(prices: PriceRange, from_at: Instant, to_at: Instant) -> Html:
    """The chart with its handles at a range."""
    bars = prices.bars
    at, close = np.asarray(bars.open_at + bars.interval_ms, dtype=np.float64), np.asarray(bars.close, dtype=np.float64)
    low, high = padded_range(float(close.min()), float(close.max()))
    frame = Frame(
        LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - FOOT, float(prices.first_at), float(prices.end_at), low, high
    )
    keep = downsample(at, close, frame.start, frame.end, COLUMNS)
    line = "M" + frame.points(at[keep], close[keep])
    left, right = frame.x(from_at), frame.x(to_at)
    facts = {"start": prices.first_at, "end": prices.end_at, "left": frame.left, "width": frame.width}
    svg = tag(
        "svg",
        tag("title", f"Close of {bars.symbol} with the chosen range"),
        grid(frame, tick_labels(round_ticks(low, high, 4))),
        time_axis(frame, frame.top),
        tag("path", class_="line other-price", d=line),
        tag("rect", class_="outside", data_side="before", x=frame.left, y=frame.top, width=f"{max(left - frame.left, 0):.1f}", height=frame.height),
        tag("rect", class_="outside", data_side="after", x=f"{right:.1f}", y=frame.top, width=f"{max(frame.right - right, 0):.1f}", height=frame.height),
        tag("rect", class_="inside", x=f"{left:.1f}", y=frame.top, width=f"{max(right - left, 0):.1f}", height=frame.height),
        _handle("from", "Start of the range", frame, from_at),
        _handle("to", "End of the range", frame, to_at),
        viewBox=f"0 0 {WIDTH:.0f} {HEIGHT:.0f}",
        preserveAspectRatio="none",
        class_="range-chart",
        id="range-chart",
        data_frame=json.dumps(facts),
        role="group",
        aria_label=f"Price of {bars.symbol}, {figures.day(prices.first_at)} to {figures.day(prices.end_at)}",
    )  # fmt: skip
    caption = tag(
        "figcaption",
        tag(
            "span",
            tag("b", bars.symbol),
            f" on {prices.data_venue}",
            " (generated, not real)" if prices.synthetic else "",
        ),
        tag("output", id="range-text", class_="readout"),
    )
    return tag("figure", caption, tag("div", svg, class_="scroll"), class_="chart")


def _handle(key: str, label: str, frame: Frame, at: Instant) -> Html:
    middle = frame.top + frame.height / 2
    return tag(
        "g",
        tag("line", x1=0, x2=0, y1=frame.top, y2=frame.bottom),
        tag("rect", class_="grip", x=-6, y=f"{middle - 17:.1f}", width=12, height=34, rx=4),
        tag("rect", class_="reach", x=-18, y=frame.top, width=36, height=frame.height),
        class_="handle",
        data_handle=key,
        transform=f"translate({frame.x(at):.1f} 0)",
        tabindex="0",
        role="slider",
        aria_label=label,
        aria_valuemin=int(frame.start),
        aria_valuemax=int(frame.end),
        aria_valuenow=at,
        aria_valuetext=figures.clock(at),
    )
