"""The figures of a finished run, from its equity points and receipts only.

`compute` fills every key of the metrics contract: sums of money are exact until the very end and leave as JSON
numbers, ratios are floats, and what cannot be said is None, never NaN or infinity. It runs nothing and reads no
market; baselines are other `Outcome`s put through the same function.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np

from pitboss.core.errors import InvariantError
from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.market import Floats, Ints
from pitboss.core.money import ZERO, exact
from pitboss.core.receipt import Receipt
from pitboss.sim.statistics.bootstrap import MIN_BOOTSTRAP_RETURNS, bootstrap_together, interval
from pitboss.sim.statistics.returns import deflated_sharpe, probabilistic_sharpe, sharpe, sortino
from pitboss.venues.perp.trades import Trade, TradeBook, amount, book

YEAR_MS = 365.25 * DAY_MS


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a run left behind.

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


@exact
def compute(outcome: Outcome, seed: int = 0, trials: Sequence[float] | None = None) -> dict[str, Any]:
    """All figures of a run.

    `win_rate`, `avg_win_usd`, `avg_loss_usd` are None where there is nothing to average (no trades, no wins, no
    losses); a trade that came out at exactly zero is neither. `total_return_ci` is in percent like the figure it
    surrounds. `seed` is that of the bootstrap. `trials`: annualised Sharpes of every run of the study this run belongs
    to; only then is there a `deflated_sharpe`.
    """
    course = _course(outcome)
    metrics = _figures(outcome, course, intervals([course.returns], seed)[0])
    if trials is not None:
        metrics["deflated_sharpe"] = deflated_sharpe(course.returns, trials)
    return metrics


@exact
def compute_together(outcomes: Sequence[Outcome], seed: int = 0) -> list[dict[str, Any]]:
    """`compute` of each, cheaper: a run and its baselines last the same days and share what the bootstrap draws."""
    courses = [_course(outcome) for outcome in outcomes]
    around = intervals([course.returns for course in courses], seed)
    return list(map(_figures, outcomes, courses, around))


@dataclass(frozen=True, slots=True, eq=False)
class _EquityCourse:
    """How a run went: its checked equity columns and their daily returns."""

    initial: float
    at: Ints
    equity: Floats
    returns: list[float]


def _course(outcome: Outcome) -> _EquityCourse:
    if outcome.initial_usd <= 0:
        raise InvariantError(f"a run cannot start with {outcome.initial_usd} USD")
    initial = float(outcome.initial_usd)
    at, equity = columns(outcome.equity_at, outcome.equity_usd)
    return _EquityCourse(initial, at, equity, daily_returns(initial, at, equity))


Interval = list[float] | None
Intervals = tuple[Interval, Interval]
"""Around the total return and around the Sharpe."""


def _figures(outcome: Outcome, course: _EquityCourse, around: Intervals) -> dict[str, Any]:
    initial, at, equity, returns = course.initial, course.at, course.equity, course.returns
    final = float(equity[-1]) if len(equity) else initial
    depth, duration_ms = drawdown(outcome.from_at, initial, at, equity)
    trades = book(outcome.receipts)
    exposed = _exposed(trades, at) if outcome.exposed_bars is None else outcome.exposed_bars
    sums = _Sums(outcome.receipts)
    cost, asked = outcome.ai_cost_usd, outcome.decisions_asked
    return_ci, sharpe_ci = around
    return {
        "total_return_pct": _finite((final - initial) / initial * 100),
        "cagr": growth_rate(initial, final, outcome.to_at - outcome.from_at),
        "sharpe": sharpe(returns),
        "sortino": sortino(returns),
        "max_drawdown_pct": depth * 100,
        "max_drawdown_duration_days": duration_ms / DAY_MS,
        **_trade_figures(trades.closed),
        "total_fees_usd": float(sums.fees),
        "total_funding_usd": float(sums.funding),
        "total_slippage_usd": float(sums.slippage),
        "total_penalties_usd": float(sums.penalties),
        "liquidations": sums.liquidations,
        "deficit_usd": float(sums.deficit),
        "total_ai_cost_usd": None if cost is None else float(cost),
        "cost_per_decision_usd": None if cost is None or not asked else float(cost / asked),
        "total_ticks": outcome.ticks,
        "total_proposed_actions": outcome.proposed,
        "total_accepted_actions": outcome.accepted,
        "rejections_by_rule": _sorted(outcome.rejections_by_rule),
        "noops_by_flag": _sorted(outcome.noops_by_flag),
        "exposure_time_pct": exposed / len(equity) * 100 if len(equity) else None,
        "turnover": float(sums.notional / outcome.initial_usd),
        "total_return_ci": return_ci,
        "sharpe_ci": sharpe_ci,
        "probabilistic_sharpe": probabilistic_sharpe(returns),
        "final_equity_usd": final,
        "funnel": {
            "ticks": outcome.ticks,
            "asked": asked,
            "proposals": outcome.proposed,
            "refused": _sorted(outcome.rejections_by_rule),
            "accepted": outcome.accepted,
            "fills": sums.fills,
        },
        "warnings": _warnings(outcome, trades, sums, len(returns)),
    }


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
    """Simple returns of the daily series. After ruin nothing is left to gain or lose: such days return 0."""
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
    # Neighbouring points at the peak have nothing below it in between; the run's last stretch counts as it stands.
    waits[:-1][np.diff(at_peak) == 1] = 0
    return depth, int(waits.max())


def growth_rate(initial: float, final: float, span_ms: int) -> float | None:
    """Compound growth a year as a fraction; None under one day or where the number is too big to mean anything."""
    if span_ms < DAY_MS:
        return None
    if final <= 0:
        return -1.0
    try:
        return _finite((final / initial) ** (YEAR_MS / span_ms) - 1)
    except OverflowError:
        return None


def exposed_bars(receipts: Iterable[Receipt], equity_at: Sequence[Instant] | Ints) -> int:
    """Base bars at whose close any position is open. A close at the end of the run happens after the last close."""
    return _exposed(book(receipts), np.asarray(equity_at, dtype=np.int64))


def _exposed(trades: TradeBook, at: Ints) -> int:
    count = len(at)
    if not count:
        return 0
    opened = [trade.opened_at for trade in trades.closed] + [trade.opened_at for trade in trades.open]
    closed = [trade.closed_at for trade in trades.closed if trade.exit_reason != "end"]
    # A fill carries its bar's open time, so its bar is the first one that closes later.
    first = np.minimum(np.searchsorted(at, np.asarray(opened, np.int64), side="right"), count)
    last = np.minimum(np.searchsorted(at, np.asarray(closed, np.int64), side="right"), count)
    change = np.bincount(first, minlength=count + 1) - np.bincount(last, minlength=count + 1)
    return int(np.count_nonzero(np.cumsum(change)[:count]))


class _Sums:
    """Exact totals over all receipts."""

    __slots__ = (
        "cancelled",
        "deficit",
        "fees",
        "fills",
        "funding",
        "liquidations",
        "notional",
        "penalties",
        "rejected",
        "slippage",
    )

    def __init__(self, receipts: Iterable[Receipt]) -> None:
        self.fees = self.funding = self.slippage = self.penalties = self.deficit = self.notional = ZERO
        self.fills = self.liquidations = 0
        self.rejected: Counter[str] = Counter()
        self.cancelled: Counter[str] = Counter()
        for receipt in receipts:
            facts = receipt.facts
            if receipt.kind == "filled":
                self.fills += 1
                self.fees += amount(facts["fee_usd"])
                self.slippage += amount(facts["slippage_usd"])
                self.penalties += amount(facts["penalty_usd"])
                self.notional += amount(facts["size"]) * amount(facts["price"])
            elif receipt.kind == "funded":
                self.funding += amount(facts["amount_usd"])
            elif receipt.kind == "liquidated":
                self.liquidations += 1
                self.deficit += amount(facts["deficit_usd"])
            elif receipt.kind == "rejected":
                self.rejected[str(facts.get("reason", "unknown"))] += 1
            elif receipt.kind == "cancelled":
                self.cancelled[str(facts.get("reason", "unknown"))] += 1


def _trade_figures(closed: Sequence[Trade]) -> dict[str, Any]:
    wins = [trade.pnl_usd for trade in closed if trade.pnl_usd > 0]
    losses = [-trade.pnl_usd for trade in closed if trade.pnl_usd < 0]
    won, lost = sum(wins, ZERO), sum(losses, ZERO)
    return {
        "total_trades": len(closed),
        "win_rate": len(wins) / len(closed) if closed else None,
        "profit_factor": _finite(float(won / lost)) if losses else None,
        "avg_win_usd": float(won / len(wins)) if wins else None,
        "avg_loss_usd": float(lost / len(losses)) if losses else None,
    }


def intervals(histories: Sequence[list[float]], seed: int) -> list[Intervals]:
    """Around the total return in percent and around the Sharpe of each history of daily returns; None where it is too short."""
    found: list[Intervals] = []
    moving: dict[int, list[int]] = {}
    for place, returns in enumerate(histories):
        if len(returns) < MIN_BOOTSTRAP_RETURNS:
            found.append((None, None))
        else:
            found.append(([0.0, 0.0], None))  # where nothing ever moved, nothing resampled does
            if any(returns):
                moving.setdefault(len(returns), []).append(place)
    for places in moving.values():
        samples = bootstrap_together([histories[place] for place in places], seed=seed)
        for place, (totals, sharpes) in zip(places, samples, strict=True):
            # Where the run itself has no Sharpe there is nothing for an interval to surround.
            around = interval(sharpes) if sharpe(histories[place]) is not None else None
            found[place] = interval(totals * 100), around
    return found


def _warnings(outcome: Outcome, trades: TradeBook, sums: _Sums, days: int) -> list[str]:
    said: list[str] = []
    if not sums.fills:
        said.append(f"No trades: nothing was filled. {_why(outcome, sums)}")
    elif not trades.closed:
        held = ", ".join(trade.symbol for trade in trades.open)
        said.append(f"No trades: no position was closed; still open at the end: {held}.")
    if sums.liquidations:
        said.append(f"Liquidated {_times(sums.liquidations)}.")
    if sums.deficit:
        said.append(f"Losses went {float(sums.deficit):.2f} USD beyond the account; on a venue that may be owed.")
    if days < MIN_BOOTSTRAP_RETURNS:
        said.append(f"Only {days} daily returns: intervals need {MIN_BOOTSTRAP_RETURNS}.")
    return said


def _why(outcome: Outcome, sums: _Sums) -> str:
    """The funnel of a run without fills in one sentence each."""
    parts = [f"{outcome.ticks} ticks", f"{outcome.decisions_asked} asked", f"{outcome.proposed} proposals"]
    parts.append(f"{sum(outcome.rejections_by_rule.values())} refused{_by(outcome.rejections_by_rule)}")
    parts.append(f"{outcome.accepted} accepted")
    if sums.rejected:
        parts.append(f"{sums.rejected.total()} rejected by the venue{_by(sums.rejected)}")
    if sums.cancelled:
        parts.append(f"{sums.cancelled.total()} cancelled{_by(sums.cancelled)}")
    noops = f" No-ops:{_by(outcome.noops_by_flag)}." if outcome.noops_by_flag else ""
    return " → ".join([*parts, "0 fills"]) + "." + noops


def _by(counts: Mapping[str, int]) -> str:
    shown = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()) if count)
    return f" ({shown})" if shown else ""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: counts[name] for name in sorted(counts)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
