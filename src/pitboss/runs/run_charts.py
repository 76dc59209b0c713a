"""The charts of a stored run for a part of its time, drawn from its index by the components of its report."""

from typing import Any

import numpy as np

from pitboss.core.instant import Instant
from pitboss.report.chart_series import NO_SERIES, ChartSeries
from pitboss.report.markup import Html
from pitboss.report.series import Floats, downsample, value_at
from pitboss.report.source import RunReport
from pitboss.runs.run_index import Ints, RunIndex
from pitboss.runs.stored import request_of, row_document
from pitboss.runs.venues import venue_of
from pitboss.store.runs import Run

LEAST_POINTS = 12
"""A window is never shorter than this many points or bars."""
MOST_ROWS, ROWS_BEFORE = 3_000, 60
"""Decisions that a chart is given: of those inside its window, and of those before it for levels of positions that were open."""

Window = tuple[Instant, Instant]


def run_chart(
    run: Run, part: str, index: RunIndex, series: ChartSeries = NO_SERIES, window: Window | None = None
) -> Html | None:
    """The chart with a name for a window, or for all of its time; None if the run has no such chart."""
    venue = venue_of(run.params["skill"])
    symbol = part.partition("/")[2]
    at = series.prices[symbol][:, 0] if symbol in series.prices else index.equity_at
    shown = None if window is None else _clamped(window, at)
    prices = {symbol: series.prices[symbol]} if symbol in series.prices else {}
    return venue.chart(part, _report(run, index, series, shown, symbol, prices))


def _clamped(window: Window, at: Any) -> Window | None:
    """The window inside the time that there is, and not too short; None without points."""
    if len(at) < 2:
        return None
    first, last = int(at[0]), int(at[-1])
    least = min((last - first) * LEAST_POINTS // len(at), last - first)
    start, end = max(min(window), first), min(max(window), last)
    if end - start < least:
        middle = min(max((start + end) // 2, first), last)
        start = min(max(middle - least // 2, first), last - least)
        end = start + least
    return None if (start, end) == (first, last) else (start, end)


def _report(
    run: Run, index: RunIndex, series: ChartSeries, window: Window | None, symbol: str, prices: dict[str, Floats]
) -> RunReport:
    request: Any = request_of(run)
    return RunReport(
        document=row_document(run),
        skill_name=str(request.skill.get("name", "")),
        skill_text="",
        initial_usd=float(request.equity_usd),
        equity=np.column_stack((index.equity_at, index.equity_usd)),  # pyright: ignore[reportArgumentType]
        baseline_equity=series.baselines,  # pyright: ignore[reportArgumentType]
        prices=prices,
        fills=index.fills if prices else (),
        decisions=[index.row(int(number)) for number in _rows(index, window, symbol)] if prices else (),
        halts=index.halts,
        window=window,
    )


def _rows(index: RunIndex, window: Window | None, symbol: str) -> Ints:
    rows = index.find({"symbol": symbol, "outcome": "proposed"})
    if window is not None:
        first, last = np.searchsorted(index.numbers["tick_at"][rows], [window[0], window[1] + 1])
        rows = rows[max(int(first) - ROWS_BEFORE, 0) : int(last)]
    if len(rows) > MOST_ROWS:  # marks that are closer together than these would be drawn as one
        rows = rows[np.linspace(0, len(rows) - 1, MOST_ROWS).astype(np.int64)]
    return rows


def equity_points(index: RunIndex, series: ChartSeries, points: int) -> dict[str, Any]:
    """Equity and baselines at the same instants: all of them, or about `points`: the first, the last and every extreme."""
    at, usd = index.equity_at.astype(np.float64), index.equity_usd
    if len(at) > points:
        drawn = downsample(at, usd, float(at[0]), float(at[-1]), max((points - 1) // 3, 1))
        keep = np.union1d([0], drawn)
        at, usd = at[keep], usd[keep]
    return {
        "at": at.astype(np.int64).tolist(),
        "equity_usd": usd.tolist(),
        "baselines": {
            name: value_at(rows[:, 0], rows[:, 1], at).tolist() for name, rows in series.baselines.items() if len(rows)
        },
    }
