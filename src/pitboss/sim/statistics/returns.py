"""Risk-adjusted return ratios: Sharpe, Sortino, probabilistic Sharpe and deflated Sharpe.

Works on daily returns as plain floats and knows nothing of runs. Means and moments are summed with `fsum`, so that the
same returns give the same digits on every machine. Confidence intervals by resampling are in `bootstrap.py`.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist

DAYS_A_YEAR = 365
"""The factor of annualisation: crypto markets trade every day."""

MIN_RETURNS = 3
NO_DEVIATION = 1e-14
"""Deviations up to this count as zero: a return is a ratio near one, so about 2e-16 of it is rounding."""

EULER_GAMMA = 0.5772156649015329
_NORMAL = NormalDist()


def sharpe(returns: Sequence[float]) -> float | None:
    """Annualised mean over sample deviation; None with fewer than three returns or no deviation."""
    daily = daily_sharpe(returns)
    return None if daily is None else finite(daily * math.sqrt(DAYS_A_YEAR))


def daily_sharpe(returns: Sequence[float]) -> float | None:
    """Mean over sample deviation, not annualised; None as for `sharpe`."""
    count = len(returns)
    if count < MIN_RETURNS:
        return None
    mean = math.fsum(returns) / count
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in returns) / (count - 1))
    return None if deviation <= NO_DEVIATION else finite(mean / deviation)


def sortino(returns: Sequence[float]) -> float | None:
    """Annualised mean over downside deviation (the mean square over all returns); None as for `sharpe`."""
    count = len(returns)
    if count < MIN_RETURNS:
        return None
    downside = math.sqrt(math.fsum(min(value, 0.0) ** 2 for value in returns) / count)
    if downside <= NO_DEVIATION:
        return None
    return finite(math.fsum(returns) / count / downside * math.sqrt(DAYS_A_YEAR))


def skew_and_kurtosis(returns: Sequence[float]) -> tuple[float, float] | None:
    """Skewness and kurtosis (3 for a normal distribution), population moments; None without deviation."""
    count = len(returns)
    if not count:
        return None
    mean = math.fsum(returns) / count
    deviations = [value - mean for value in returns]
    second = math.fsum(value**2 for value in deviations) / count
    if math.sqrt(second) <= NO_DEVIATION:
        return None
    third = math.fsum(value**3 for value in deviations) / count
    fourth = math.fsum(value**4 for value in deviations) / count
    return third / second**1.5, fourth / second**2


def sharpe_confidence(sharpe: float, benchmark: float, count: int, skew: float, kurtosis: float) -> float | None:
    """Probability that the true Sharpe is above `benchmark` (Bailey and López de Prado 2012).

    Both ratios are per period, over `count` periods. None where the estimate has no positive variance.
    """
    variance = 1 - skew * sharpe + (kurtosis - 1) / 4 * sharpe**2
    if count < 2 or not variance > 0:
        return None
    return finite(_NORMAL.cdf((sharpe - benchmark) * math.sqrt((count - 1) / variance)))


def probabilistic_sharpe(returns: Sequence[float], benchmark: float = 0.0) -> float | None:
    """Probability that the true daily Sharpe behind these returns is above `benchmark` (daily)."""
    ratio, moments = daily_sharpe(returns), skew_and_kurtosis(returns)
    if ratio is None or moments is None:
        return None
    return sharpe_confidence(ratio, benchmark, len(returns), *moments)


def expected_best_sharpe(variance: float, trials: int) -> float:
    """The expected maximum Sharpe of `trials` trials without skill whose Sharpes have this variance."""
    if trials < 2:
        return 0.0
    return math.sqrt(variance) * (
        (1 - EULER_GAMMA) * _NORMAL.inv_cdf(1 - 1 / trials) + EULER_GAMMA * _NORMAL.inv_cdf(1 - 1 / (trials * math.e))
    )


def deflation_benchmark(trials: Sequence[float]) -> float:
    """The expected maximum daily Sharpe of a study without skill, from the annualised Sharpes of all its runs."""
    count = len(trials)
    if count < 2:
        return 0.0
    mean = math.fsum(trials) / count
    variance = math.fsum((value - mean) ** 2 for value in trials) / (count - 1) / DAYS_A_YEAR
    return expected_best_sharpe(variance, count)


def deflated_sharpe(returns: Sequence[float], trials: Sequence[float]) -> float | None:
    """Probability that the true Sharpe exceeds the `deflation_benchmark` (Bailey and López de Prado 2014).

    `trials` are the annualised Sharpes of all runs of the study, this run included.
    """
    return probabilistic_sharpe(returns, deflation_benchmark(trials))


def finite(value: float) -> float | None:
    """The value; None if it is infinite or not a number."""
    return value if math.isfinite(value) else None
