"""The stationary bootstrap: resampled histories of daily returns and percentile intervals of what they give.

Works on daily returns as plain floats and knows nothing of runs. All draws move forward one day at a time with
elementwise arithmetic only, so that the same returns and seed give the same digits on every machine.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pitboss.core.market import Floats, Ints
from pitboss.sim.statistics.returns import DAYS_A_YEAR, NO_DEVIATION

DRAWS = 2_000
MIN_BOOTSTRAP_RETURNS = 20
DAYS_AT_ONCE = 16
"""Days whose random numbers are drawn in one call: enough to spread its cost, few enough to stay in the CPU cache.
The numbers drawn do not depend on it."""


def stationary_days(count: int, draws: int, seed: int, block: float | None = None) -> Iterator[Ints]:
    """Yield, for each position of the resampled history, the source day of every draw (Politis and Romano 1994).

    Blocks have geometric length, `block` days on average (default: the cube root of the number of days), start on any
    day and wrap around the end. One uniform number decides both: below 1/block it starts a new block, and its position
    within that range selects the first day.

    A block that wraps continues to count, so a day must be taken modulo `count`. The same array is updated in place and
    yielded each time: its content is valid until the next iteration.
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
        for index, (begin, end) in enumerate(pairwise(ends)):
            day += 1
            day[fresh[begin:end] - index * draws] = start[begin:end]
            yield day


@lru_cache(maxsize=1)
def _drawn_days(count: int, draws: int, seed: int) -> NDArray[np.unsignedinteger]:
    """All of `stationary_days`, kept for the next run of the same length: the runs of a study share them.

    A year takes 1.5 MB.
    """
    days = np.empty((count, draws), np.uint16 if 2 * count <= 1 << 16 else np.uint32)  # a day wraps once at most
    for position, day in enumerate(stationary_days(count, draws, seed)):
        days[position] = day
    return days


def bootstrap(returns: Sequence[float], draws: int = DRAWS, seed: int = 0) -> tuple[Floats, Floats]:
    """Total return (a fraction) and annualised Sharpe of resampled histories of the same length.

    A draw whose returns are all zero counts as a Sharpe of 0: without it a run with one lucky day would look certain.
    A draw that repeats one nonzero return has no Sharpe and is omitted, so the second array may be shorter.
    """
    return bootstrap_together([returns], draws, seed)[0]


def bootstrap_together(
    histories: Sequence[Sequence[float]], draws: int = DRAWS, seed: int = 0
) -> list[tuple[Floats, Floats]]:
    """`bootstrap` of several histories of equal length. They share the drawn days, which are most of the cost."""
    count, wanted = len(histories[0]), len(histories)
    if wanted == 3:  # numpy copies rows of 1, 2 or 4 numbers in half the time: a run and two baselines are three
        histories = (*histories, histories[0])
    means = np.array([math.fsum(returns) / count for returns in histories])
    values = np.ascontiguousarray(np.array(histories, dtype=np.float64).T)
    factors, centred = 1 + values, values - means
    shape = draws, len(histories)
    growth, total, squares = np.ones(shape), np.zeros(shape), np.zeros(shape)
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    factor, deviation_of_day, square = np.empty(shape), np.empty(shape), np.empty(shape)
    some_flat = True
    with np.errstate(all="ignore"):
        for position, day in enumerate(_drawn_days(count, draws, seed)):
            factors.take(day, axis=0, out=factor, mode="wrap")
            centred.take(day, axis=0, out=deviation_of_day, mode="wrap")
            growth *= factor
            total += deviation_of_day
            np.multiply(deviation_of_day, deviation_of_day, out=square)
            squares += square
            if some_flat:  # after a few days every draw has usually moved, and a draw that moved needs no further check
                np.minimum(low, deviation_of_day, out=low)
                np.maximum(high, deviation_of_day, out=high)
                if position % DAYS_AT_ONCE == 0:
                    some_flat = not (high - low > NO_DEVIATION).all()
        drift = means + total / count
        deviation = np.sqrt(np.maximum(squares - total * total / count, 0) / (count - 1))
        ratio = drift / deviation * math.sqrt(DAYS_A_YEAR)
    moved = high - low > NO_DEVIATION
    zero = ~moved & (np.abs(drift) <= NO_DEVIATION)
    ratio[zero] = 0.0
    usable = (moved | zero) & np.isfinite(ratio)
    return [(growth[:, column] - 1, ratio[usable[:, column], column]) for column in range(wanted)]


def interval(samples: Floats, level: float = 0.95) -> list[float] | None:
    """The central percentile interval as [lo, hi]; None without samples or where one of them is not finite."""
    if not len(samples) or not np.isfinite(samples).all():
        return None
    lo, hi = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return [float(lo), float(hi)]
