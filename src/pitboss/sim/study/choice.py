"""Choosing among trials by a named metric: which way is better, what a trial without the figure is worth, who wins a tie."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

SMALLER_IS_BETTER = frozenset(
    {
        "max_drawdown_pct",
        "max_drawdown_duration_days",
        "total_fees_usd",
        "total_funding_usd",
        "total_slippage_usd",
        "total_penalties_usd",
        "liquidations",
        "deficit_usd",
        "total_ai_cost_usd",
        "cost_per_decision_usd",
        "turnover",
        "avg_loss_usd",
        "brier",
        "log_loss",
        "calibration_error",
    }
)
WHERE = {
    **{name: ("scores", "all", name) for name in ("brier", "log_loss", "calibration_error")},
    "brier_skill": ("scores", "all", "against", "normalised", "skill"),
}
"""Figures that lie deeper than others: scores of forecasts."""

Metrics = Mapping[str, Any]


def score(repeats: Sequence[Metrics], metric: str) -> float | None:
    """What a trial is worth, more being better: the mean over its repeats. None if one of them has no such figure."""
    found = [figure(one, metric) for one in repeats]
    known = [value for value in found if value is not None]
    if not known or len(known) < len(found):
        return None
    mean = math.fsum(known) / len(known)
    return -mean if metric in SMALLER_IS_BETTER else mean


def best(trials: Sequence[Sequence[Metrics]], metric: str) -> int | None:
    """The place of the best trial, the first of equals; None if no trial has the figure."""
    scores = [score(repeats, metric) for repeats in trials]
    chosen: int | None = None
    for place, value in enumerate(scores):
        if value is not None and (chosen is None or value > (scores[chosen] or 0.0)):
            chosen = place
    return chosen


def figure(metrics: Metrics, metric: str) -> float | None:
    """One figure as a finite number."""
    value: Any = metrics
    for name in WHERE.get(metric, (metric,)):
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
