"""Summary of several runs with different seeds: the mean of each metric with its interval."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.sim.statistics.student import mean_of_repeats


def summary(metrics: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float | None]]:
    """For every numeric metric: the mean over the runs that have it, with a 95 % t-interval of the mean."""
    names = [name for name in (metrics[0] if metrics else ()) if any(_is_number(row.get(name)) for row in metrics)]
    return {name: _mean_interval([float(row[name]) for row in metrics if _is_number(row.get(name))]) for name in names}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _mean_interval(values: Sequence[float]) -> dict[str, float | None]:
    estimate = mean_of_repeats(values)
    low, high = estimate.interval or (None, None)
    return {"mean": estimate.mean, "lo": low, "hi": high}
