"""How sure a result is: Sharpe and Sortino, the stationary bootstrap, probabilistic and deflated Sharpe.

Works on daily returns as plain floats and knows nothing of runs. Means and moments are summed with `fsum`, and the
bootstrap moves all draws forward one day at a time with elementwise arithmetic only, so that the same returns and seed
give the same digits on every machine.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from pitboss.core.market import Floats, Ints

DAYS_A_YEAR = 365
"""These markets never close."""

DRAWS = 2_000
DAYS_AT_ONCE = 16
"""Days whose random numbers are drawn in one go: enough to spread the cost of a call, few enough to stay in the cache.
Which numbers come does not depend on it."""

MIN_RETURNS = 3
MIN_BOOTSTRAP_RETURNS = 20
NO_DEVIATION = 1e-14
"""A return is a ratio near one, so about 2e-16 of it is rounding; a deviation this small is none."""

EULER_GAMMA = 0.5772156649015329
_NORMAL = NormalDist()


def sharpe(returns: Sequence[float]) -> float | None:
    """Annualised mean over sample deviation; None with fewer than three returns or no deviation."""
    daily = daily_sharpe(returns)
    return None if daily is None else _finite(daily * math.sqrt(DAYS_A_YEAR))


def daily_sharpe(returns: Sequence[float]) -> float | None:
    """The same, not annualised."""
    count = len(returns)
    if count < MIN_RETURNS:
        return None
    mean = math.fsum(returns) / count
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in returns) / (count - 1))
    return None if deviation <= NO_DEVIATION else _finite(mean / deviation)


def sortino(returns: Sequence[float]) -> float | None:
    """Annualised mean over downside deviation (all returns count in its mean); None as for Sharpe."""
    count = len(returns)
    if count < MIN_RETURNS:
        return None
    downside = math.sqrt(math.fsum(min(value, 0.0) ** 2 for value in returns) / count)
    if downside <= NO_DEVIATION:
        return None
    return _finite(math.fsum(returns) / count / downside * math.sqrt(DAYS_A_YEAR))


def shape(returns: Sequence[float]) -> tuple[float, float] | None:
    """Skewness and kurtosis (3 for a normal distribution), population moments; None without deviation."""
    count = len(returns)
    if not count:
        return None
    mean = math.fsum(returns) / count
    apart = [value - mean for value in returns]
    second = math.fsum(value**2 for value in apart) / count
    if math.sqrt(second) <= NO_DEVIATION:
        return None
    third = math.fsum(value**3 for value in apart) / count
    fourth = math.fsum(value**4 for value in apart) / count
    return third / second**1.5, fourth / second**2


def sharpe_confidence(sharpe: float, benchmark: float, count: int, skew: float, kurtosis: float) -> float | None:
    """Probability that the true Sharpe is above `benchmark` (Bailey and López de Prado 2012).

    Both ratios are per period, over `count` periods. None where the estimate has no spread to judge by.
    """
    spread = 1 - skew * sharpe + (kurtosis - 1) / 4 * sharpe**2
    if count < 2 or not spread > 0:
        return None
    return _finite(_NORMAL.cdf((sharpe - benchmark) * math.sqrt((count - 1) / spread)))


def probabilistic_sharpe(returns: Sequence[float], benchmark: float = 0.0) -> float | None:
    """Probability that the true daily Sharpe behind these returns is above `benchmark` (daily)."""
    ratio, moments = daily_sharpe(returns), shape(returns)
    if ratio is None or moments is None:
        return None
    return sharpe_confidence(ratio, benchmark, len(returns), *moments)


def expected_best_sharpe(variance: float, trials: int) -> float:
    """The best Sharpe to be expected from so many skill-less trials whose Sharpes vary by `variance`."""
    if trials < 2:
        return 0.0
    return math.sqrt(variance) * (
        (1 - EULER_GAMMA) * _NORMAL.inv_cdf(1 - 1 / trials) + EULER_GAMMA * _NORMAL.inv_cdf(1 - 1 / (trials * math.e))
    )


def lucky_sharpe(trials: Sequence[float]) -> float:
    """The daily Sharpe that luck alone gives the best of a study, from the annualised Sharpes of all its runs."""
    count = len(trials)
    if count < 2:
        return 0.0
    mean = math.fsum(trials) / count
    variance = math.fsum((value - mean) ** 2 for value in trials) / (count - 1) / DAYS_A_YEAR
    return expected_best_sharpe(variance, count)


def deflated_sharpe(returns: Sequence[float], trials: Sequence[float]) -> float | None:
    """Probability that the true Sharpe is above what luck alone gives the best of a study (2014, same authors).

    `trials` are the annualised Sharpes of all runs of the study, this one among them.
    """
    return probabilistic_sharpe(returns, lucky_sharpe(trials))


def stationary_days(count: int, draws: int, seed: int, block: float | None = None) -> Iterator[Ints]:
    """Stationary bootstrap (Politis and Romano 1994): for each position in turn, which day each draw takes.

    Blocks have geometric length, `block` days on average (default: the cube root of the number of days), start
    anywhere and run round the end. One uniform number does both jobs: below 1/block it starts a new block, and where
    it lies below says on which day.

    A block that runs round the end goes on counting, so a day is to be taken modulo `count`. It is one array all the
    way, good until the next one is asked for.
    """
    restart = 1 / max(1.0, count ** (1 / 3) if block is None else block)
    random = np.random.Generator(np.random.PCG64(seed))  # noqa: TID251 (seeded: same seed, same bytes)
    day = np.minimum((random.random(draws) * count).astype(np.int64), count - 1)
    yield day
    for first in range(1, count, DAYS_AT_ONCE):
        days = min(DAYS_AT_ONCE, count - first)
        uniform = random.random(days * draws)
        fresh = np.flatnonzero(uniform < restart)
        start = np.minimum((uniform[fresh] / restart * count).astype(np.int64), count - 1)
        ends: list[int] = np.searchsorted(fresh, np.arange(days + 1) * draws).tolist()
        for place, (begin, end) in enumerate(pairwise(ends)):
            day += 1
            day[fresh[begin:end] - place * draws] = start[begin:end]
            yield day


def bootstrap(returns: Sequence[float], draws: int = DRAWS, seed: int = 0) -> tuple[Floats, Floats]:
    """Total return (a fraction) and annualised Sharpe of resampled histories of the same length.

    A draw in which nothing moved counts as a Sharpe of 0: to leave it out would make a run with one lucky day look
    certain. A draw that repeats one other return has no Sharpe and is left out, so the second array may be shorter.
    """
    return bootstrap_together([returns], draws, seed)[0]


def bootstrap_together(
    histories: Sequence[Sequence[float]], draws: int = DRAWS, seed: int = 0
) -> list[tuple[Floats, Floats]]:
    """`bootstrap` of each of several histories of one length. They share the days drawn, which cost the most."""
    count = len(histories[0])
    means = np.array([math.fsum(returns) / count for returns in histories])
    values = np.ascontiguousarray(np.array(histories, dtype=np.float64).T)
    factors, aparts = 1 + values, values - means
    shape = draws, len(histories)
    growth, total, squares = np.ones(shape), np.zeros(shape), np.zeros(shape)
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    factor, apart, square = np.empty(shape), np.empty(shape), np.empty(shape)
    in_doubt = True
    with np.errstate(all="ignore"):
        for place, day in enumerate(stationary_days(count, draws, seed)):
            factors.take(day, axis=0, out=factor, mode="wrap")
            aparts.take(day, axis=0, out=apart, mode="wrap")
            growth *= factor
            total += apart
            np.multiply(apart, apart, out=square)
            squares += square
            if in_doubt:  # what has moved stays moved, and after a few days most often every draw has
                np.minimum(low, apart, out=low)
                np.maximum(high, apart, out=high)
                if place % DAYS_AT_ONCE == 0:
                    in_doubt = not (high - low > NO_DEVIATION).all()
        drift = means + total / count
        deviation = np.sqrt(np.maximum(squares - total * total / count, 0) / (count - 1))
        ratio = drift / deviation * math.sqrt(DAYS_A_YEAR)
    moved = high - low > NO_DEVIATION
    still = ~moved & (np.abs(drift) <= NO_DEVIATION)
    ratio[still] = 0.0
    usable = (moved | still) & np.isfinite(ratio)
    return [(growth[:, place] - 1, ratio[usable[:, place], place]) for place in range(len(histories))]


def interval(samples: Floats, level: float = 0.95) -> list[float] | None:
    """The middle `level` of the samples as [lo, hi]; None where there is none or it is not finite."""
    if not len(samples) or not np.isfinite(samples).all():
        return None
    lo, hi = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return [float(lo), float(hi)]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
