"""Several runs of the same thing with different seeds, as one summary: the mean of each metric and how sure it is."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

CONFIDENCE = 0.95


def summary(metrics: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float | None]]:
    """For every metric that is a number: the mean over the runs that have it, with a 95 % t-interval of the mean."""
    names = [name for name in (metrics[0] if metrics else ()) if any(_number(one.get(name)) for one in metrics)]
    return {name: _spread([float(one[name]) for one in metrics if _number(one.get(name))]) for name in names}


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _spread(values: Sequence[float]) -> dict[str, float | None]:
    count = len(values)
    mean = math.fsum(values) / count
    if count < 2:
        return {"mean": mean, "lo": None, "hi": None}
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    reach = quantile(count - 1) * deviation / math.sqrt(count)
    return {"mean": mean, "lo": mean - reach, "hi": mean + reach}


def quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """The t for which Student's distribution holds `confidence` between −t and t. `freedom` is a whole number."""
    low, high = 0.0, math.pi / 2
    for _ in range(80):  # halving the angle θ = atan(t/√ν), in which the whole line is finite
        middle = (low + high) / 2
        low, high = (middle, high) if _inside(middle, freedom) < confidence else (low, middle)
    return math.tan((low + high) / 2) * math.sqrt(freedom)


def _inside(angle: float, freedom: int) -> float:
    """Probability between −t and t, by the finite series that whole degrees of freedom have."""
    cos, sin = math.cos(angle), math.sin(angle)
    if freedom % 2:
        term = total = cos if freedom > 1 else 0.0
        for number in range(3, freedom - 1, 2):
            term *= cos * cos * (number - 1) / number
            total += term
        return 2 / math.pi * (angle + sin * total)
    term = total = 1.0
    for number in range(2, freedom - 1, 2):
        term *= cos * cos * (number - 1) / number
        total += term
    return sin * total
