"""Summary of several runs with different seeds: the mean of each metric with its interval."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.sim.statistics.student import student_quantile


def summary(metrics: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float | None]]:
    """For every numeric metric: the mean over the runs that have it, with a 95 % t-interval of the mean."""
    names = [name for name in (metrics[0] if metrics else ()) if any(_is_number(row.get(name)) for row in metrics)]
    return {name: _mean_interval([float(row[name]) for row in metrics if _is_number(row.get(name))]) for name in names}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _mean_interval(values: Sequence[float]) -> dict[str, float | None]:
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return {"mean": mean, "lo": None, "hi": None}
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half_width = student_quantile(count - 1) * deviation / math.sqrt(count)
    return {"mean": mean, "lo": mean - half_width, "hi": mean + half_width}
