"""How a return came about over time: months, the Sharpe ratio of the last days, and the worst drawdowns. For every venue with accounts."""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from pitboss.core.instant import DAY_MS, Instant
from pitboss.report import figures
from pitboss.report.chart_data import chart_json, line_data
from pitboss.report.frame import Frame, chart_figure, grid, padded_range, round_ticks, tick_labels, time_axis
from pitboss.report.markup import Html, join, tag
from pitboss.report.series import Floats, as_arrays
from pitboss.report.source import RunReport
from pitboss.report.table import LEFT, RIGHT, gain_or_loss, table
from pitboss.sim.metrics import daily_returns
from pitboss.sim.statistics.returns import sharpe

ROLLING_DAYS = 30
MOST_DRAWDOWNS = 5
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
WIDTH, LEFT_SIDE, RIGHT_SIDE, TOP, HEIGHT, FOOT = 1120.0, 68.0, 16.0, 14.0, 170.0, 30.0


@dataclass(frozen=True, slots=True)
class Drawdown:
    """A fall of equity from a peak, until the peak was reached again or the run ended."""

    depth_pct: float
    peak_at: Instant
    trough_at: Instant
    recovered_at: Instant | None
    end_at: Instant


def return_section(report: RunReport) -> Html:
    """Months, rolling Sharpe and drawdowns; a sentence if there is no equity."""
    at, equity = as_arrays(report.equity)
    if not len(at) or report.initial_usd <= 0:
        return tag("p", "The run recorded no equity point.", class_="note")
    start = report.from_at if report.from_at is not None else int(at[0])
    return join(
        [
            tag("h3", "Months"),
            _month_table(monthly_returns(report.initial_usd, at, equity)),
            tag("h3", "Worst drawdowns"),
            _drawdown_table(worst_drawdowns(start, report.initial_usd, at, equity)),
            tag("h3", f"Sharpe of the last {ROLLING_DAYS} days"),
            _rolling_chart(*rolling_sharpe(report.initial_usd, at, equity)),
        ]
    )


def monthly_returns(initial: float, at: Floats, equity: Floats) -> dict[int, dict[int, float]]:
    """Change in percent by year and month (1 to 12; 0 is the year), from the last equity of the month before.

    A point at 00:00 belongs to the month that ends.
    """
    moments = [datetime.fromtimestamp((moment - 1) / 1000, UTC) for moment in at.tolist()]
    last = {(moment.year, moment.month): float(value) for moment, value in zip(moments, equity.tolist(), strict=True)}
    result: dict[int, dict[int, float]] = {}
    before = before_year = initial
    for (year, month), value in last.items():
        if year not in result:
            before_year = before
        result.setdefault(year, {})[month] = _change(before, value)
        result[year][0] = _change(before_year, value)
        before = value
    return result


def worst_drawdowns(
    start: Instant, initial: float, at: Floats, equity: Floats, most: int = MOST_DRAWDOWNS
) -> list[Drawdown]:
    """The deepest drawdowns, the deepest first. The initial equity at `start` is the first peak."""
    times, curve = np.concatenate(([start], at)), np.concatenate(([initial], equity))
    peak = np.maximum.accumulate(curve)
    at_peak = np.flatnonzero(curve == peak)
    drawdowns: list[Drawdown] = []
    for first, after in zip(at_peak.tolist(), [*at_peak[1:].tolist(), len(curve)], strict=True):
        if after == first + 1:
            continue
        trough = first + int(curve[first:after].argmin())
        recovered = int(times[after]) if after < len(curve) else None
        depth = min(100.0, 100.0 * (1 - float(curve[trough]) / float(curve[first]))) if curve[first] > 0 else 0.0
        end = int(times[-1]) if recovered is None else recovered
        drawdowns.append(Drawdown(depth, int(times[first]), int(times[trough]), recovered, end))
    return sorted(drawdowns, key=lambda each: (-each.depth_pct, each.peak_at))[:most]


def rolling_sharpe(initial: float, at: Floats, equity: Floats, days: int = ROLLING_DAYS) -> tuple[Floats, Floats]:
    """The ends of days and the Sharpe ratio of the `days` before each; nothing where it is not defined."""
    returns = daily_returns(initial, at.astype(np.int64), equity)
    day = (at.astype(np.int64) - 1) // DAY_MS
    ends = at[np.append(day[1:] != day[:-1], True)] if len(at) else at
    values = [sharpe(returns[end - days : end]) for end in range(days, len(returns) + 1)]
    pairs = [
        (moment, value) for moment, value in zip(ends[days - 1 :].tolist(), values, strict=True) if value is not None
    ]
    return np.array([moment for moment, _ in pairs]), np.array([value for _, value in pairs])


def _change(before: float, after: float) -> float:
    return 100.0 * (after / before - 1.0) if before > 0 else 0.0


def _month_table(years: dict[int, dict[int, float]]) -> Html:
    names = (*MONTHS, "All")
    columns = (("Year", LEFT), *((name, RIGHT) for name in names))
    order = (*range(1, 13), 0)
    rows = [
        (str(year), *(_month(name, months.get(month)) for name, month in zip(names, order, strict=True)))
        for year, months in years.items()
    ]
    return table("Return of each month", columns, rows, style="months")


def _month(name: str, value: float | None) -> Html:
    """The return of a month; its name is shown where there is no room for a heading."""
    if value is None:
        return Html()
    shown = gain_or_loss(figures.percent(value, signed=True), figures.tone(value))
    return join([tag("small", name), shown])


def _drawdown_table(drawdowns: list[Drawdown]) -> Html:
    if not drawdowns:
        return tag("p", "Equity never fell below an earlier peak.", class_="note")
    columns = (
        ("Depth", RIGHT),
        ("From (UTC)", LEFT),
        ("Lowest (UTC)", LEFT),
        ("Recovered (UTC)", LEFT),
        ("Length", RIGHT),
    )
    rows = [
        (
            figures.drawdown(each.depth_pct),
            _moment(each.peak_at),
            _moment(each.trough_at),
            _moment(each.recovered_at) if each.recovered_at is not None else "not by the end",
            figures.span(each.end_at - each.peak_at),
        )
        for each in drawdowns
    ]
    return table("Worst drawdowns", columns, rows, style="drawdowns", stacks=True)


def _moment(at: Instant) -> Html:
    """An instant that is broken between its day and its time, if anywhere."""
    day, _, time = figures.clock(at).partition(" ")
    return join([tag("span", day, class_="day"), " ", time])


def _rolling_chart(at: Floats, values: Floats) -> Html:
    if len(at) < 2:
        return tag("p", f"The run is too short: it takes more than {ROLLING_DAYS} days.", class_="note")
    low, high = padded_range(min(float(values.min()), 0.0), max(float(values.max()), 0.0))
    frame = Frame(LEFT_SIDE, TOP, WIDTH - LEFT_SIDE - RIGHT_SIDE, HEIGHT, float(at[0]), float(at[-1]), low, high)
    zero = f"{frame.y(0.0):.1f}"
    title = f"Sharpe ratio of the last {ROLLING_DAYS} days, from {figures.plain(values.min())} to {figures.plain(values.max())}"
    marks = [
        grid(frame, tick_labels(round_ticks(low, high, 4))),
        time_axis(frame, frame.top),
        tag("line", class_="start", x1=frame.left, x2=frame.right, y1=zero, y2=zero),
        tag("path", class_="line agent", d="M" + frame.points(at, values)),
    ]
    line = line_data(f"Sharpe of {ROLLING_DAYS} days", "agent", at, values, len(at))
    panes = [{"height": int(HEIGHT), "format": "ratio", "lines": [line], "level": 0}]
    return chart_figure(title, marks, (WIDTH, frame.bottom + FOOT), None, data=chart_json(at[0], at[-1], panes))
