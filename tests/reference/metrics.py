"""Metrics of the reference: PERP §8 in plain floats, one function a figure.

Takes the lists a `Result` holds (or a hand-written one). No bootstrap and no probabilistic Sharpe: the page gives them no
exact definition.

Where the page is silent: the base-bar series begins with the initial equity at the first tick; trades still open at the
end are no trades; a trade of exactly 0 is neither a win nor a loss; a figure with nothing to divide by is None; the span
of `cagr` runs from the first tick to the last equity point; a base bar counts as exposed if a position is open at its close.
"""

from collections.abc import Iterable
from math import sqrt
from typing import Any

DAY = 86_400_000
Points = list[tuple[int, float]]


def as_points(equity: Iterable[tuple[int, Any]]) -> Points:
    return [(at, float(value)) for at, value in equity]


def final(initial: float, points: Points) -> float:
    return points[-1][1] if points else initial


def daily_series(initial: float, points: Points) -> list[float]:
    """ "initial equity, then the last equity point of each UTC day (a point at 00:00 belongs to the day that ends)"."""
    last_of_day: dict[int, float] = {}
    for at, value in points:
        last_of_day[(at - 1) // DAY] = value
    return [initial] + [last_of_day[day] for day in sorted(last_of_day)]


def daily_returns(initial: float, points: Points) -> list[float]:
    series = daily_series(initial, points)
    return [series[i] / series[i - 1] - 1 for i in range(1, len(series)) if series[i - 1] != 0]


def sharpe(returns: list[float]) -> float | None:
    """ "mean/std(ddof 1) × √365 …; null with fewer than 3 daily returns or zero deviation"."""
    if len(returns) < 3:
        return None
    mean = sum(returns) / len(returns)
    deviation = sqrt(sum((r - mean) ** 2 for r in returns) / (len(returns) - 1))
    return None if deviation == 0 else mean / deviation * sqrt(365)


def sortino(returns: list[float]) -> float | None:
    """ "mean / √(mean(min(r,0)²)) × √365"."""
    if len(returns) < 3:
        return None
    mean = sum(returns) / len(returns)
    deviation = sqrt(sum(min(r, 0.0) ** 2 for r in returns) / len(returns))
    return None if deviation == 0 else mean / deviation * sqrt(365)


def total_return_pct(initial: float, points: Points) -> float:
    return (final(initial, points) / initial - 1) * 100


def cagr(initial: float, points: Points, start_ms: int) -> float | None:
    """ "fraction, 365.25-day years, null under 1 day"."""
    days = (points[-1][0] - start_ms) / DAY if points else 0
    if days < 1:
        return None
    growth = max(final(initial, points) / initial, 0.0)
    return growth ** (365.25 / days) - 1


def max_drawdown_pct(initial: float, points: Points) -> float:
    """Positive, "on the base-bar series"."""
    peak, worst = initial, 0.0
    for _, value in points:
        peak = max(peak, value)
        worst = max(worst, (peak - value) / peak)
    return worst * 100


def max_drawdown_duration_days(initial: float, points: Points, start_ms: int) -> float:
    """ "longest peak-to-recovery, or to the end". Recovered = back at the peak or above."""
    peak, peak_at, longest, under = initial, start_ms, 0, False
    for at, value in points:
        if value >= peak:
            if under:
                longest = max(longest, at - peak_at)
            peak, peak_at, under = value, at, False
        else:
            under = True
    if under:
        longest = max(longest, points[-1][0] - peak_at)
    return longest / DAY


def trades(fills: list[dict[str, Any]], funding_rows: list[dict[str, Any]]) -> list[float]:
    """Net result of every round trip flat→flat per symbol, "net of fees, funding, penalties", in order of their end.
    Funding of a bar comes before its fills (§6).
    """
    events = [(row["at"], 0, i, row) for i, row in enumerate(funding_rows)]
    events += [(row["at"], 1, i, row) for i, row in enumerate(fills)]
    size: dict[str, Any] = {}
    net: dict[str, Any] = {}
    results = []
    for _at, kind, _i, row in sorted(events, key=lambda event: event[:3]):
        symbol = row["symbol"]
        if kind == 0:
            net[symbol] = net.get(symbol, 0) - row["paid_usd"]
            continue
        side = 1 if row["side"] == "buy" else -1
        size[symbol] = size.get(symbol, 0) + side * row["size"]
        net[symbol] = net.get(symbol, 0) - side * row["size"] * row["price"] - row["fee_usd"] - row["penalty_usd"]
        if size[symbol] == 0:
            results.append(float(net.pop(symbol)))
    return results


def trade_figures(results: list[float]) -> dict[str, Any]:
    wins = [r for r in results if r > 0]
    losses = [-r for r in results if r < 0]
    return {
        "total_trades": len(results),
        "win_rate": len(wins) / len(results) if results else None,
        "profit_factor": sum(wins) / sum(losses) if losses else None,
        "avg_win_usd": sum(wins) / len(wins) if wins else None,
        "avg_loss_usd": sum(losses) / len(losses) if losses else None,
    }


def verdict_figures(verdicts: list[tuple[int, str, str | None]]) -> dict[str, Any]:
    by_rule: dict[str, int] = {}
    for _, outcome, code in verdicts:
        if outcome == "refused":
            assert code is not None
            by_rule[code] = by_rule.get(code, 0) + 1
    return {
        "total_proposed_actions": sum(outcome != "noop" for _, outcome, _ in verdicts),
        "total_accepted_actions": sum(outcome == "allowed" for _, outcome, _ in verdicts),
        "rejections_by_rule": by_rule,
    }


def summary(result: Any, initial: str | float, start_ms: int) -> dict[str, Any]:
    """All figures of a `perp.Result`; `start_ms` is the first tick."""
    start = float(initial)
    points = as_points(result.equity)
    returns = daily_returns(start, points)
    return {
        "total_return_pct": total_return_pct(start, points),
        "cagr": cagr(start, points, start_ms),
        "sharpe": sharpe(returns),
        "sortino": sortino(returns),
        "max_drawdown_pct": max_drawdown_pct(start, points),
        "max_drawdown_duration_days": max_drawdown_duration_days(start, points, start_ms),
        **trade_figures(trades(result.fills, result.funding_rows)),
        "total_fees_usd": float(sum(fill["fee_usd"] for fill in result.fills)),
        "total_funding_usd": float(result.funding_paid),
        "total_slippage_usd": float(sum(fill["slippage_usd"] for fill in result.fills)),
        "total_penalties_usd": float(sum(fill["penalty_usd"] for fill in result.fills)),
        "liquidations": result.liquidations,
        "deficit_usd": float(result.deficit),
        **verdict_figures(result.verdicts),
        "exposure_time_pct": 100 * sum(result.held) / len(result.held) if result.held else 0.0,
        "turnover": float(sum(fill["size"] * fill["price"] for fill in result.fills)) / start,
    }
