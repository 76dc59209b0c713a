"""The choice among trials by a metric: its direction, its path in the metrics of a run, and the handling of ties."""

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
        "false_reports",
        "repeated_reports",
        "duplicate_posts",
    }
)
PATHS = {
    **{name: ("scores", "all", name) for name in ("brier", "log_loss", "calibration_error")},
    "brier_skill": ("scores", "all", "against", "normalised", "skill"),
}
"""The paths of metrics that are nested: scores of forecasts."""

Metrics = Mapping[str, Any]


def score(repeats: Sequence[Metrics], metric: str) -> float | None:
    """The score of a trial, higher being better: the mean over its repeats. None if a repeat lacks the metric."""
    values = [value for repeat in repeats if (value := figure(repeat, metric)) is not None]
    if not values or len(values) < len(repeats):
        return None
    mean = math.fsum(values) / len(values)
    return -mean if metric in SMALLER_IS_BETTER else mean


def best(trials: Sequence[Sequence[Metrics]], metric: str) -> int | None:
    """The index of the best trial, the first of equal ones; None if no trial has the metric."""
    scores = [score(repeats, metric) for repeats in trials]
    best_index: int | None = None
    for index, value in enumerate(scores):
        if value is not None and (best_index is None or value > (scores[best_index] or 0.0)):
            best_index = index
    return best_index


def figure(metrics: Metrics, metric: str) -> float | None:
    """A metric of a run as a finite number; None if it is missing or not finite."""
    value: Any = metrics
    for name in PATHS.get(metric, (metric,)):
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None
