"""Fallback surface if none is recorded: flat, from the realised volatility of one-minute returns.

Realised volatility is the root mean square of log returns, annualised over 525,600 minutes; the mean is not subtracted.
A report must state the use of this surface.
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
"""Minimum variance, used immediately before expiry or if prices never moved."""


def realised(closes: Sequence[float]) -> float:
    """Return the annualised volatility of consecutive one-minute closes; 0 with fewer than two."""
    if len(closes) < 2:
        return 0.0
    squares = [log(later / earlier) ** 2 for earlier, later in pairwise(closes)]
    return sqrt(fsum(squares) / len(squares) * MINUTES_A_YEAR)


def realised_at(closes: Floats, window: int = WINDOW) -> Floats:
    """Return the same at every close of a column, over the returns of the last `window` minutes; 0 at the first."""
    squares = np.zeros(len(closes))
    squares[1:] = np.log(closes[1:] / closes[:-1]) ** 2
    sums = np.cumsum(squares)
    earlier = np.concatenate([np.zeros(window), sums])[: len(sums)]
    counts = np.minimum(np.arange(len(closes)), window)
    return np.sqrt(np.maximum(sums - earlier, 0.0) / np.maximum(counts, 1) * MINUTES_A_YEAR)


def synthetic(volatility: float, expiry_at: Instant, now: Instant) -> Svi:
    """Return the flat surface of an annual volatility for the time left."""
    return flat(max(volatility * volatility * (expiry_at - now) / YEAR_MS, LEAST_VARIANCE))
