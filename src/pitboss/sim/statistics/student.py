"""Student's t distribution: its quantiles, and the confidence interval of the mean of a few repeats."""

import math
from collections.abc import Sequence

from pitboss.core.noun import noun

CONFIDENCE = 0.95


@noun
class MeanEstimate:
    """A mean with its 95 % interval; None where there are too few values."""

    mean: float | None
    interval: tuple[float, float] | None

    @property
    def side(self) -> int:
        """1 if the whole interval lies above zero, −1 if below, else 0."""
        if self.interval is None:
            return 0
        low, high = self.interval
        return 1 if low > 0 else -1 if high < 0 else 0


def mean_of_repeats(values: Sequence[float]) -> MeanEstimate:
    """The mean with Student's interval; a single value has no interval."""
    count = len(values)
    if not count:
        return MeanEstimate(None, None)
    mean = math.fsum(values) / count
    if count < 2:
        return MeanEstimate(mean, None)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = student_quantile(count - 1) * deviation / math.sqrt(count)
    return MeanEstimate(mean, (mean - half, mean + half))


def student_quantile(degrees: int, confidence: float = CONFIDENCE) -> float:
    """The t for which Student's distribution has probability `confidence` between −t and t; `degrees` is an integer."""
    low, high = 0.0, math.pi / 2
    for _ in range(80):  # bisection on the angle atan(t/√ν), whose range is finite
        middle = (low + high) / 2
        low, high = (middle, high) if _central_probability(middle, degrees) < confidence else (low, middle)
    return math.tan((low + high) / 2) * math.sqrt(degrees)


def _central_probability(angle: float, degrees: int) -> float:
    """The probability between −t and t for the angle of t (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    cos, sin = math.cos(angle), math.sin(angle)
    odd = degrees % 2
    total = term = (cos if degrees > 1 else 0.0) if odd else 1.0
    for number in range(3 if odd else 2, degrees - 1, 2):
        term *= cos * cos * (number - 1) / number
        total += term
    return 2 / math.pi * (angle + sin * total) if odd else sin * total
