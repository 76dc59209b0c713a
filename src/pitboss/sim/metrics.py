"""`Outcome`, the input of metrics, and the equity figures that all venues compute in the same way.

Nothing here reads a market. Each venue adds its own figures in `venues/<name>/metrics.py`; baselines are other
`Outcome`s passed through the same functions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np

from pitboss.core.errors import InvariantError
from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.market import Floats, Ints
from pitboss.core.money import ZERO
from pitboss.core.receipt import Receipt
from pitboss.sim.statistics.bootstrap import MIN_BOOTSTRAP_RETURNS, bootstrap_together, interval
from pitboss.sim.statistics.returns import finite, probabilistic_sharpe, sharpe, sortino

YEAR_MS = 365.25 * DAY_MS


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What metrics are computed from.

    Equity is two columns of equal length: `equity_at` rising instants of the base-bar closes, `equity_usd` their
    equity, as Decimals or, faster, as floats that are the nearest to the exact values. `exposed_bars` is counted from
    the fills when None. `ai_cost_usd` is None when no price is known.
    """

    from_at: Instant
    to_at: Instant
    interval_ms: int
    initial_usd: Decimal
    equity_at: Sequence[Instant] | Ints
    equity_usd: Sequence[Decimal] | Floats
    receipts: Sequence[Receipt] = ()
    ticks: int = 0
    proposed: int = 0
    accepted: int = 0
    rejections_by_rule: Mapping[str, int] = field(default_factory=dict[str, int])
    noops_by_flag: Mapping[str, int] = field(default_factory=dict[str, int])
    ai_cost_usd: Decimal | None = ZERO
    decisions_asked: int = 0
    exposed_bars: int | None = None
    rejected_settings: tuple[str, ...] = ()


Interval = list[float] | None
Intervals = tuple[Interval, Interval]
"""The intervals of the total return and of the Sharpe ratio."""


def columns(at: Sequence[Instant] | Ints, usd: Sequence[Decimal] | Floats) -> tuple[Ints, Floats]:
    """Equity as arrays, each value the float nearest to the exact one."""
    times = at if isinstance(at, np.ndarray) else np.fromiter(at, np.int64, len(at))
    values = usd if isinstance(usd, np.ndarray) else np.fromiter(map(float, usd), np.float64, len(usd))
    if len(times) != len(values):
        raise InvariantError(f"{len(times)} equity times but {len(values)} values")
    if (times[1:] <= times[:-1]).any() or not np.isfinite(values).all():
        raise InvariantError("equity points must rise in time and be finite")
    return times, values


def daily_equity(initial: float, at: Ints, equity: Floats) -> Floats:
    """Initial equity, then the last point of each UTC day; a point at 00:00 belongs to the day that ends."""
    day = (at - 1) // DAY_MS
    last = np.flatnonzero(np.append(day[1:] != day[:-1], True)) if len(day) else np.zeros(0, np.int64)
    return np.concatenate(([initial], equity[last]))


def daily_returns(initial: float, at: Ints, equity: Floats) -> list[float]:
    """Simple returns of the daily series. After ruin there is nothing left to gain or lose: such days return 0."""
    series = daily_equity(initial, at, equity).tolist()
    return [now / before - 1 if before > 0 else 0.0 for before, now in pairwise(series)]


def drawdown(from_at: Instant, initial: float, at: Ints, equity: Floats) -> tuple[float, int]:
    """Deepest fall from a peak (fraction, at most 1) and the longest time from a peak to recovery or the end, in ms.

    The initial equity at `from_at` is the first peak. A peak ends with the last point that stands at it.
    """
    curve = np.concatenate(([initial], equity))
    peak = np.maximum.accumulate(curve)
    at_peak = np.flatnonzero(curve == peak)
    if len(at_peak) == len(curve):
        return 0.0, 0
    depth = min(1.0, 1 - float(np.min(curve / peak)))
    times = np.concatenate(([from_at], at))
    ends = np.append(at_peak, len(curve) - 1)
    waits = np.diff(times[ends])
    # Adjacent points at the peak have no drawdown in between; the last stretch of the run counts up to its end.
    waits[:-1][np.diff(at_peak) == 1] = 0
    return depth, int(waits.max())


def growth_rate(initial: float, final: float, span_ms: int) -> float | None:
    """Compound annual growth as a fraction; None for less than one day or if the number is too large to be useful."""
    if span_ms < DAY_MS:
        return None
    if final <= 0:
        return -1.0
    try:
        return finite((final / initial) ** (YEAR_MS / span_ms) - 1)
    except OverflowError:
        return None


def intervals(histories: Sequence[list[float]], seed: int) -> list[Intervals]:
    """Intervals of the total return in percent and of the Sharpe ratio for each history of daily returns.

    None where a history is too short.
    """
    result: list[Intervals] = []
    indices_by_length: dict[int, list[int]] = {}
    for index, returns in enumerate(histories):
        if len(returns) < MIN_BOOTSTRAP_RETURNS:
            result.append((None, None))
        else:
            result.append(([0.0, 0.0], None))  # resampling a constant series gives the same series
            if any(returns):
                indices_by_length.setdefault(len(returns), []).append(index)
    for indices in indices_by_length.values():
        samples = bootstrap_together([histories[index] for index in indices], seed=seed)
        for index, (totals, sharpes) in zip(indices, samples, strict=True):
            # A run without a Sharpe ratio has no interval for it either.
            sharpe_interval = interval(sharpes) if sharpe(histories[index]) is not None else None
            result[index] = interval(totals * 100), sharpe_interval
    return result


@dataclass(frozen=True, slots=True, eq=False)
class EquityCourse:
    """The equity of a run: its checked columns and their daily returns."""

    initial: float
    at: Ints
    equity: Floats
    returns: list[float]

    @property
    def final(self) -> float:
        """The last point, or the initial equity if there is none."""
        return float(self.equity[-1]) if len(self.equity) else self.initial


def equity_course(outcome: Outcome) -> EquityCourse:
    """The equity of a run, checked."""
    if outcome.initial_usd <= 0:
        raise InvariantError(f"a run cannot start with {outcome.initial_usd} USD")
    initial = float(outcome.initial_usd)
    at, equity = columns(outcome.equity_at, outcome.equity_usd)
    return EquityCourse(initial, at, equity, daily_returns(initial, at, equity))


def equity_figures(outcome: Outcome, course: EquityCourse, bounds: Intervals) -> dict[str, Any]:
    """The equity figures that every venue reports. `bounds` are the intervals from `intervals`."""
    depth, duration_ms = drawdown(outcome.from_at, course.initial, course.at, course.equity)
    return_ci, sharpe_ci = bounds
    return {
        "total_return_pct": finite((course.final - course.initial) / course.initial * 100),
        "total_return_ci": return_ci,
        "final_equity_usd": course.final,
        "max_drawdown_pct": depth * 100,
        "max_drawdown_duration_days": duration_ms / DAY_MS,
        "cagr": growth_rate(course.initial, course.final, outcome.to_at - outcome.from_at),
        "sharpe": sharpe(course.returns),
        "sortino": sortino(course.returns),
        "sharpe_ci": sharpe_ci,
        "probabilistic_sharpe": probabilistic_sharpe(course.returns),
    }


def count_figures(outcome: Outcome, fills: int) -> dict[str, Any]:
    """Cost and counts of the decisions of a run, from ticks to fills."""
    cost, asked = outcome.ai_cost_usd, outcome.decisions_asked
    refused = dict(sorted(outcome.rejections_by_rule.items()))
    return {
        "total_ai_cost_usd": None if cost is None else float(cost),
        "cost_per_decision_usd": None if cost is None or not asked else float(cost / asked),
        "total_ticks": outcome.ticks,
        "total_proposed_actions": outcome.proposed,
        "total_accepted_actions": outcome.accepted,
        "rejections_by_rule": refused,
        "noops_by_flag": dict(sorted(outcome.noops_by_flag.items())),
        "funnel": {
            "ticks": outcome.ticks,
            "asked": asked,
            "proposals": outcome.proposed,
            "refused": refused,
            "accepted": outcome.accepted,
            "fills": fills,
        },
        **({"rejected_settings": list(outcome.rejected_settings)} if outcome.rejected_settings else {}),
    }


def shared_metrics(outcome: Outcome, fills: int, seed: int = 0) -> dict[str, Any]:
    """All figures common to every venue, for a venue that adds few of its own."""
    course = equity_course(outcome)
    figures = equity_figures(outcome, course, intervals([course.returns], seed)[0])
    return {**figures, **count_figures(outcome, fills), "warnings": []}
