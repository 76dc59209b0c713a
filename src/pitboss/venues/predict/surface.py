"""A surface where none is recorded: flat, from the realised volatility of one-minute returns. A report must say so.

Realised volatility is the root of the mean squared log return, over a year of 525,600 minutes; no mean is taken off.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import fsum, log, sqrt

import numpy as np

from pitboss.core.instant import DAY_MS, MINUTE_MS, Instant
from pitboss.core.market import Floats
from pitboss.venues.predict.svi import Svi, flat

MINUTES_A_YEAR = 525_600
YEAR_MS = 365 * DAY_MS
WINDOW = DAY_MS // MINUTE_MS
LEAST_VARIANCE = 1e-12
"""A market an instant from its expiry, or prices that never moved, still have a variance."""


def realised(closes: Sequence[float]) -> float:
    """Annualised volatility of a run of one-minute closes; 0 where there are fewer than two."""
    if len(closes) < 2:
        return 0.0
    squares = [log(later / earlier) ** 2 for earlier, later in pairwise(closes)]
    return sqrt(fsum(squares) / len(squares) * MINUTES_A_YEAR)


def realised_at(closes: Floats, window: int = WINDOW) -> Floats:
    """The same at every close of a column, over the returns of the last `window` minutes up to it; 0 at the first."""
    squares = np.zeros(len(closes))
    squares[1:] = np.log(closes[1:] / closes[:-1]) ** 2
    sums = np.cumsum(squares)
    earlier = np.concatenate([np.zeros(window), sums])[: len(sums)]
    counts = np.minimum(np.arange(len(closes)), window)
    return np.sqrt(np.maximum(sums - earlier, 0.0) / np.maximum(counts, 1) * MINUTES_A_YEAR)


def synthetic(volatility: float, expiry_at: Instant, now: Instant) -> Svi:
    """The flat surface of an annual volatility, with the time left."""
    return flat(max(volatility * volatility * (expiry_at - now) / YEAR_MS, LEAST_VARIANCE))
