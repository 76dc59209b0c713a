"""Computes the metrics of a finished perp run from its equity points and receipts only.

`compute` fills every key of the metrics contract: sums of money are exact until they are converted to JSON numbers,
ratios are floats, and an undefined value is None, never NaN or infinity.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pitboss.core.market import Ints
from pitboss.core.money import ZERO, exact
from pitboss.core.receipt import Receipt
from pitboss.sim.metrics import (
    EquityCourse,
    Intervals,
    Outcome,
    count_figures,
    equity_course,
    equity_figures,
    finite,
    intervals,
)
from pitboss.sim.statistics.bootstrap import MIN_BOOTSTRAP_RETURNS
from pitboss.sim.statistics.returns import deflated_sharpe
from pitboss.venues.perp.trades import ADOPTED, Trade, TradeBook, amount, book


@exact
def compute(outcome: Outcome, seed: int = 0, trials: Sequence[float] | None = None) -> dict[str, Any]:
    """Compute all metrics of a run.

    `win_rate`, `avg_win_usd` and `avg_loss_usd` are None where there is nothing to average (no trades, no wins, no
    losses); a trade with a result of exactly zero is neither a win nor a loss. `total_return_ci` is in percent, like
    `total_return_pct`. `seed` is the seed of the bootstrap. `trials` are the annualised Sharpe ratios of every run of
    the same study; `deflated_sharpe` is computed only if they are given.
    """
    course = equity_course(outcome)
    metrics = _figures(outcome, course, intervals([course.returns], seed)[0])
    if trials is not None:
        metrics["deflated_sharpe"] = deflated_sharpe(course.returns, trials)
    return metrics


@exact
def compute_together(outcomes: Sequence[Outcome], seed: int = 0) -> list[dict[str, Any]]:
    """Compute the metrics of several runs over the same days, such as a run and its baselines.

    It is cheaper than separate calls because the runs share the draws of the bootstrap.
    """
    courses = [equity_course(outcome) for outcome in outcomes]
    confidence = intervals([course.returns for course in courses], seed)
    return list(map(_figures, outcomes, courses, confidence))


def _figures(outcome: Outcome, course: EquityCourse, confidence: Intervals) -> dict[str, Any]:
    trades = book(outcome.receipts)
    exposed = exposed_bars(trades, course.at) if outcome.exposed_bars is None else outcome.exposed_bars
    sums = _Sums(outcome.receipts)
    return {
        **equity_figures(outcome, course, confidence),
        **_trade_figures(trades.closed),
        "total_fees_usd": float(sums.fees),
        "total_funding_usd": float(sums.funding),
        "total_slippage_usd": float(sums.slippage),
        "total_penalties_usd": float(sums.penalties),
        "liquidations": sums.liquidations,
        "deficit_usd": float(sums.deficit),
        "exposure_time_pct": exposed / len(course.equity) * 100 if len(course.equity) else None,
        "turnover": float(sums.notional / outcome.initial_usd),
        **count_figures(outcome, sums.fills),
        "warnings": _warnings(outcome, trades, sums, len(course.returns)),
    }


def exposed_bars(trades: TradeBook, close_at: Ints) -> int:
    """Return the number of base bars at whose close any position is open.

    A close at the end of the run happens after the last bar's close, so that bar counts.
    """
    count = len(close_at)
    if not count:
        return 0
    opened = [trade.opened_at for trade in trades.closed] + [trade.opened_at for trade in trades.open]
    closed = [trade.closed_at for trade in trades.closed if trade.exit_reason != "end"]
    # A fill carries its bar's open time, so its bar is the first one that closes later.
    first = np.minimum(np.searchsorted(close_at, np.asarray(opened, np.int64), side="right"), count)
    last = np.minimum(np.searchsorted(close_at, np.asarray(closed, np.int64), side="right"), count)
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
                if facts.get("reason") == ADOPTED:  # the account had it already: nothing was traded
                    continue
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
    gains, total_loss = sum(wins, ZERO), sum(losses, ZERO)
    return {
        "total_trades": len(closed),
        "win_rate": len(wins) / len(closed) if closed else None,
        "profit_factor": finite(float(gains / total_loss)) if losses else None,
        "avg_win_usd": float(gains / len(wins)) if wins else None,
        "avg_loss_usd": float(total_loss / len(losses)) if losses else None,
    }


def _warnings(outcome: Outcome, trades: TradeBook, sums: _Sums, days: int) -> list[str]:
    warnings: list[str] = []
    if not sums.fills:
        warnings.append(f"No trades: nothing was filled. {_why(outcome, sums)}")
    elif not trades.closed:
        symbols = ", ".join(trade.symbol for trade in trades.open)
        warnings.append(f"No trades: no position was closed; still open at the end: {symbols}.")
    if sums.liquidations:
        warnings.append(f"Liquidated {_times(sums.liquidations)}.")
    if sums.deficit:
        warnings.append(f"Losses went {float(sums.deficit):.2f} USD beyond the account; on a venue that may be owed.")
    if days < MIN_BOOTSTRAP_RETURNS:
        warnings.append(f"Only {days} daily returns: intervals need {MIN_BOOTSTRAP_RETURNS}.")
    return warnings


def _why(outcome: Outcome, sums: _Sums) -> str:
    """Describe where a run without fills lost its proposals, from ticks to fills."""
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
    text = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()) if count)
    return f" ({text})" if text else ""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
