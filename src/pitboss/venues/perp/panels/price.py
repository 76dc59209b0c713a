"""The price chart of one symbol with the agent's entries, exits, stops, take-profits, liquidations and refusals.

Every kind of mark has its own shape, so that the chart can be read without colours.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np

from pitboss.core.instant import INTERVALS
from pitboss.report import figures
from pitboss.report.chart_data import chart_json, pack_bars, price_places
from pitboss.report.frame import READOUT, Frame, grid, padded_range, round_ticks, tick_labels, time_axis
from pitboss.report.markup import Html, join, tag
from pitboss.report.series import Floats, merge_bars
from pitboss.report.source import Plain, RunReport, instant, number
from pitboss.venues.perp.panels import position

WIDTH, LEFT, RIGHT = 1120.0, 68.0, 16.0
TOP, MAIN, LANE, FOOT = 12.0, 286.0, 24.0, 30.0
MOST_COLUMNS, CANDLES_UP_TO, MOST_LEVELS, MOST_MARKS = 400, 260, 120, 400
MOST_BARS, MOST_BARS_EACH, LEAST_BARS = 17_000, 8_500, 1_000
"""Bars in the data of the charts: of all symbols together, of each, and how many each may have anyway; more are merged."""

MARKS: dict[str, tuple[str, str]] = {
    "enter_long": ("Buy to open", "M0-6.5L6.5 5.5H-6.5Z"),
    "enter_short": ("Sell to open", "M0 6.5L6.5-5.5H-6.5Z"),
    "exit": ("Close or reduce", "M-4.8-4.8H4.8V4.8H-4.8Z"),
    "stop": ("Stop-loss", "M-5.2-5.2L5.2 5.2M5.2-5.2L-5.2 5.2"),
    "take_profit": ("Take-profit", "M0-7L6 0L0 7L-6 0Z"),
    "liquidation": ("Liquidation", "M0-8.5L2-2.6L8.1-2.6L3.2 1L5 6.9L0 3.4L-5 6.9L-3.2 1L-8.1-2.6L-2-2.6Z"),
    "refused": ("Refused by the engine", "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0-5 0M-3.5 3.5L3.5-3.5"),
}
"""Kind of mark → its name and its outline around the origin."""


def shapes() -> Html:
    """The outlines of the marks, once per page; charts and legends refer to them."""
    hatch = tag(
        "pattern",
        tag("path", d="M0 6L6 0", class_="hatch"),
        id="hatch",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
    )
    outlines = [tag("path", id=f"m-{kind}", class_=f"mark {kind}", d=path) for kind, (_, path) in MARKS.items()]
    return tag("svg", tag("defs", hatch, *outlines), class_="shapes", width=0, height=0, aria_hidden="true")


def legend() -> Html:
    """The marks and shadings with their names."""
    items = [
        tag("li", tag("svg", tag("use", href=f"#m-{kind}"), viewBox="-9 -9 18 18", class_="key"), name)
        for kind, (name, _) in MARKS.items()
    ]
    for side, name in (("long", "Long position"), ("short", "Short position")):
        shade = tag("rect", x=-9, y=-9, width=18, height=18, class_=f"held {side}")
        items.append(tag("li", tag("svg", shade, viewBox="-9 -9 18 18", class_="key"), name))
    for level, name in (("sl", "Stop level"), ("tp", "Take-profit level")):
        line = tag("line", x1=-9, x2=9, y1=0, y2=0, class_=f"level {level}")
        items.append(tag("li", tag("svg", line, viewBox="-9 -9 18 18", class_="key"), name))
    return tag("ul", *items, class_="legend marks", aria_label="Marks of the price charts")


def price_chart(report: RunReport, symbol: str, rows: Mapping[tuple[int, str], str]) -> Html:
    """The chart of one symbol. `rows` maps an instant and a symbol to the element id of the decision."""
    bars = np.asarray(report.prices[symbol], dtype=np.float64).reshape(-1, 5)
    bars = bars[np.isfinite(bars).all(axis=1)]
    if not len(bars):
        return tag("p", f"This report has no bars of {symbol}.", class_="note")
    events, holds = position.read_positions(report.fills, symbol)
    step = float(np.median(np.diff(bars[:, 0]))) if len(bars) > 1 else 60_000.0
    start, end = float(bars[0, 0]), float(bars[-1, 0]) + step
    if report.window is not None:
        bars, start, end = _part(bars, report.window, step)
        events = [event for event in events if start <= event.at <= end]
        holds = [hold for hold in holds if hold.start <= end and (hold.end is None or hold.end >= start)]
    columns = max(200, min(MOST_COLUMNS, 3_000 // max(len(report.prices), 1)))
    merged = merge_bars(bars, start, end, columns)
    low, high = padded_range(
        min(float(bars[:, 3].min()), *(event.price for event in events), np.inf),
        max(float(bars[:, 2].max()), *(event.price for event in events), -np.inf),
    )
    frame = Frame(LEFT, TOP, WIDTH - LEFT - RIGHT, MAIN, start, end, low, high)
    lane = Frame(LEFT, TOP + MAIN, frame.width, LANE, start, end, 0.0, 1.0)
    refused = [row for row in report.decisions if row.get("symbol") == symbol and row.get("outcome") == "refused"]
    svg = tag(
        "svg",
        tag("title", f"Price of {symbol} with the agent's orders"),
        _holding_shades(frame, holds),
        grid(frame, tick_labels(round_ticks(frame.low, frame.high, 5))),
        time_axis(lane, frame.top),
        _levels(frame, holds, report.decisions, symbol),
        _bars(frame, merged),
        tag("rect", class_="lane", x=lane.left, y=lane.top, width=lane.width, height=lane.height),
        tag("text", "refused", class_="pane", x=lane.left - 8, y=lane.top + 15, text_anchor="end"),
        _events(frame, events, rows, max(60, MOST_MARKS // (len(report.prices) + 1))),
        _refusals(lane, refused, rows),
        tag("line", class_="cursor", y1=frame.top, y2=lane.bottom, x1=0, x2=0),
        viewBox=f"0 0 {WIDTH:.0f} {lane.bottom + FOOT:.0f}",
        role="img",
        tabindex="0",
        aria_label=_aria_label(symbol, bars, events, len(refused)),
    )
    return tag(
        "figure",
        tag("figcaption", tag("h3", symbol), READOUT),
        tag("div", svg, class_="scroll"),
        class_="chart timed",
        data_part=f"price/{symbol}",
        data_start=int(start),
        data_end=int(end),
        id=figure_id(symbol),
        data_chart=_data(report, symbol, bars, (start, end, step), rows, refused),
    )


def figure_id(symbol: str) -> str:
    """The element id of the chart of a symbol."""
    return f"price-{symbol}"


def _part(bars: Floats, window: tuple[int, int], step: float) -> tuple[Floats, float, float]:
    """The bars that overlap a window, at least one of them, and the edges of the chart."""
    first = int(np.searchsorted(bars[:, 0] + step, window[0], side="right"))
    last = int(np.searchsorted(bars[:, 0], window[1]))
    first = min(first, len(bars) - 1)
    bars = bars[first : max(last, first + 1)]
    return bars, float(bars[0, 0]), float(bars[-1, 0]) + step


def _bars(frame: Frame, merged: Floats) -> Html:
    """Candles if there is room for them, else the range of each column with a line of closes."""
    if len(merged) > CANDLES_UP_TO:
        width = frame.width / len(merged)
        middle = merged[:, 0] + (frame.end - frame.start) / len(merged) / 2
        ranges = "".join(
            f"M{frame.x(at):.1f} {frame.y(high):.1f}V{frame.y(low):.1f}"
            for at, high, low in zip(middle.tolist(), merged[:, 2].tolist(), merged[:, 3].tolist(), strict=True)
        )
        return join(
            [
                tag("path", class_="range", d=ranges, stroke_width=f"{max(width * 0.9, 1):.1f}"),
                tag("path", class_="close", d="M" + frame.points(middle, merged[:, 4])),
            ]
        )
    wicks: list[str] = []
    bodies: dict[bool, list[str]] = {True: [], False: []}
    slot = frame.width / len(merged)
    half = max(min(slot * 0.32, 7.0), 0.6)
    for at, open_, high, low, close in merged.tolist():
        x = frame.x(at) + slot / 2
        top, bottom = frame.y(max(open_, close)), frame.y(min(open_, close))
        wicks.append(f"M{x:.1f} {frame.y(high):.1f}V{top:.1f}M{x:.1f} {bottom:.1f}V{frame.y(low):.1f}")
        bodies[close >= open_].append(f"M{x - half:.1f} {top:.1f}h{2 * half:.1f}V{bottom + 0.3:.1f}h{-2 * half:.1f}Z")
    return join(
        [
            tag("path", class_="wick", d="".join(wicks)),
            tag("path", class_="candle up", d="".join(bodies[True])),
            tag("path", class_="candle down", d="".join(bodies[False])),
        ]
    )


def _holding_shades(frame: Frame, holds: list[position.HoldingPeriod]) -> Html:
    """The shading of holding periods: with a title each, or as one shape if there are very many."""
    areas: dict[str, list[str]] = {"long": [], "short": []}
    shades: list[Html] = []
    for hold in holds:
        x1 = max(frame.x(hold.start), frame.left)
        x2 = min(frame.x(frame.end if hold.end is None else hold.end), frame.right)
        width = max(x2 - x1, 1.0)
        area = f"M{x1:.1f} {frame.top:.0f}h{width:.1f}v{frame.height:.0f}h-{width:.1f}z"
        areas[hold.side].append(area)
        ends = "still open at the end" if hold.end is None else f"until {figures.clock(hold.end)}"
        title = f"{hold.side} from {figures.clock(hold.start)} {ends}"
        shades.append(tag("path", tag("title", title), class_=f"held {hold.side}", d=area))
    if len(shades) <= MOST_LEVELS:
        return join(shades)
    return join(tag("path", class_=f"held {side}", d="".join(paths)) for side, paths in areas.items() if paths)


def _levels(frame: Frame, holds: list[position.HoldingPeriod], decisions: Sequence[Plain], symbol: str) -> Html:
    """Stop and take-profit levels of the entry, drawn while the position was held."""
    if len(holds) > MOST_LEVELS:
        return Html()
    lines: list[Html] = []
    for hold, levels in zip(holds, _entry_levels(holds, decisions, symbol), strict=True):
        for level, style in zip(levels, ("sl", "tp"), strict=True):
            if level is None or not frame.low <= level <= frame.high:
                continue
            y = f"{frame.y(level):.1f}"
            x2 = min(frame.x(frame.end if hold.end is None else hold.end), frame.right)
            x1 = max(frame.x(hold.start), frame.left)
            lines.append(tag("line", class_=f"level {style}", x1=f"{x1:.1f}", x2=f"{x2:.1f}", y1=y, y2=y))
    return join(lines)


def _entry_levels(
    holds: list[position.HoldingPeriod], decisions: Sequence[Plain], symbol: str
) -> list[tuple[float | None, float | None]]:
    """Stop and take-profit of the last entry that was accepted before each position began."""
    entries: list[tuple[int, Plain]] = []
    for row in decisions:
        if row.get("symbol") == symbol and row.get("outcome") in ("allowed", "reduced"):
            at = instant(row.get("tick_at"))
            if at is not None and str(row.get("action")).startswith("open"):
                entries.append((at, row))
    moments = [at for at, _ in entries]
    indices = [bisect_right(moments, hold.start) - 1 for hold in holds]
    rows = [entries[index][1] if index >= 0 else {} for index in indices]
    return [(number(row.get("stop_loss")), number(row.get("take_profit"))) for row in rows]


def _events(frame: Frame, events: list[position.FillEvent], rows: Mapping[tuple[int, str], str], most: int) -> Html:
    """One mark per kind and position; fills that would overlap share one mark."""
    visible = [event for event in events if frame.inside(event.at)]
    groups: dict[tuple[str, int, int], list[position.FillEvent]] = {}
    for cell in (4, 7, 11, 16, 24, 40, 60):
        groups = {}
        for event in visible:
            cell_key = (event.kind, round(frame.x(event.at) / cell), round(frame.y(event.price) / cell))
            groups.setdefault(cell_key, []).append(event)
        if len(groups) <= most:
            break
    scale = 1.0 if len(groups) <= 50 else 0.78
    return tag("g", *[_mark(frame, group, rows, scale) for group in groups.values()], class_="marks")


def _mark(frame: Frame, group: list[position.FillEvent], rows: Mapping[tuple[int, str], str], scale: float) -> Html:
    event, name = group[0], MARKS[group[0].kind][0]
    fill = event.fill
    title = f"{name} {fill.get('symbol')}: {fill.get('side')} {figures.amount(fill.get('size'))} at "
    title += f"{figures.price(event.price)}, {figures.clock(event.at)} UTC ({fill.get('reason')})"
    if len(group) > 1:
        title += f" and {len(group) - 1} more here"
    transform = f"translate({frame.x(event.at):.1f} {frame.y(event.price):.1f}) scale({scale})"
    use = tag("use", tag("title", title), href=f"#m-{event.kind}", transform=transform)
    anchor = rows.get((event.at, str(fill.get("symbol")))) if fill.get("reason") == "market" else None
    return tag("a", use, href=f"#{anchor}", tabindex="-1") if anchor else use


def _refusals(lane: Frame, refused: list[Plain], rows: Mapping[tuple[int, str], str]) -> Html:
    groups: dict[int, list[tuple[int, Plain]]] = {}
    for row in refused:
        at = instant(row.get("tick_at"))
        if at is not None and lane.inside(at):
            groups.setdefault(round(lane.x(at) / 5), []).append((at, row))
    marks: list[Html] = []
    for group in groups.values():
        at, row = group[0]
        title = f"Refused {row.get('action')} at {figures.clock(at)} UTC: {row.get('code')} {row.get('detail') or ''}"
        if len(group) > 1:
            title += f" and {len(group) - 1} more here"
        use = tag("use", tag("title", title), href="#m-refused", x=f"{lane.x(at):.1f}", y=f"{lane.top + LANE / 2:.1f}")
        anchor = rows.get((at, str(row.get("symbol"))))
        marks.append(tag("a", use, href=f"#{anchor}", tabindex="-1") if anchor else use)
    return tag("g", *marks, class_="marks")


def _aria_label(symbol: str, bars: Floats, events: list[position.FillEvent], refused: int) -> str:
    counts = [
        figures.plural(sum(event.kind == kind for event in events), f"mark “{name.lower()}”", f"marks “{name.lower()}”")
        for kind, (name, _) in MARKS.items()
        if any(event.kind == kind for event in events)
    ]
    marked = ", ".join(counts) or "no fills"
    return (
        f"Price chart of {symbol}: from {figures.price(bars[0, 1])} to {figures.price(bars[-1, 4])}, lowest "
        f"{figures.price(bars[:, 3].min())}, highest {figures.price(bars[:, 2].max())}. Marked: {marked}; "
        f"{figures.plural(refused, 'refusal')}."
    )


def _data(
    report: RunReport,
    symbol: str,
    bars: Floats,
    time: tuple[float, float, float],
    rows: Mapping[tuple[int, str], str],
    refused: list[Plain],
) -> str:
    """The data of the chart: bars, positions with their levels, fills and refusals. `time` is its start, end and step."""
    start, end, step = time
    events, holds = position.read_positions(report.fills, symbol)
    if report.window is not None:
        events = [event for event in events if start <= event.at <= end]
        holds = [hold for hold in holds if hold.start <= end and (hold.end is None or hold.end >= start)]
    kinds, reasons, words = list(MARKS), _Table(), _Table()
    length = _data_interval(bars, step, len(report.prices))
    columns = int(-(-(end - start) // length))
    pane = {
        "height": int(MAIN),
        "format": "price",
        "bars": pack_bars(merge_bars(bars, start, start + columns * length, columns), length),
        "holds": [
            (int(hold.side == "short"), hold.start, hold.end, *levels)
            for hold, levels in zip(holds, _entry_levels(holds, report.decisions, symbol), strict=True)
        ],
        "marks": [
            (
                kinds.index(event.kind),
                event.at,
                event.price,
                (number(event.fill.get("size")) or 0.0) * (1 if event.fill.get("side") == "buy" else -1),
                reasons.index(str(event.fill.get("reason"))),
                _seq(rows, event.at, symbol) if event.fill.get("reason") == "market" else -1,
            )
            for event in events
        ],
    }
    refusals = [
        (at, words.index(f"{row.get('action')} {row.get('code')}"), _seq(rows, at, symbol))
        for row in refused
        if (at := instant(row.get("tick_at"))) is not None
    ]
    return chart_json(
        start,
        end,
        [pane],
        symbol=symbol,
        places=price_places(float(bars[:, 2].max())),
        refused=refusals,
        kinds=[(kind, name) for kind, (name, _) in MARKS.items()],
        reasons=list(reasons),
        words=list(words),
    )


def _data_interval(bars: Floats, step: float, symbols: int) -> float:
    """The interval of the bars in the data: theirs, or the shortest with which they are few enough."""
    most = min(max(MOST_BARS // max(symbols, 1), LEAST_BARS), MOST_BARS_EACH)
    span = float(bars[-1, 0] - bars[0, 0]) + step
    fitting = (length for length in (step, *INTERVALS.values()) if length % step == 0 and span / length <= most)
    return next(fitting, step * -(-span // (step * most)))


def _seq(rows: Mapping[tuple[int, str], str], at: int, symbol: str) -> int:
    """The number of the decision at an instant, of which `rows` has the element id; -1 if it is not on the page."""
    return int(rows.get((at, symbol), "d-1")[1:])


class _Table(dict[str, int]):
    """Texts in the order in which they first came."""

    def index(self, text: str) -> int:
        return self.setdefault(text, len(self))
