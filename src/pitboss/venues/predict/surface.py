"""Fallback surface if none is recorded: flat, from the realised volatility of one-minute returns.

Realised volatility is the root mean square of log returns, annualised over 525,600 minutes; the mean is not subtracted.
A report must state the use of this surface.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import fsum, log, sqrt

import numpy as np

from pitboss.core.instant import DAY_MS, MINUTE_MS, Instant
from pitboss.core.market import Floats, Ints
from pitboss.venues.predict.svi import Svi, flat

MINUTES_A_YEAR = 525_600
YEAR_MS = 365 * DAY_MS
WINDOW = DAY_MS // MINUTE_MS
LEAST_VARIANCE = 1e-12
"""Minimum variance, used immediately before expiry or if prices never moved."""


def realised(open_at: Sequence[Instant], closes: Sequence[float]) -> float:
    """Return the annualised volatility of one-minute closes; 0 without two in a row.

    The change over a hole in the prices is not a return of one minute and does not count.
    """
    bars = pairwise(zip(open_at, closes, strict=True))
    squares = [log(close / earlier) ** 2 for (before, earlier), (at, close) in bars if at - before == MINUTE_MS]
    return sqrt(fsum(squares) / len(squares) * MINUTES_A_YEAR) if squares else 0.0


def realised_at(open_at: Ints, closes: Floats, window: int = WINDOW) -> Floats:
    """Return the same at every close of a column, over the returns of the last `window` minutes; 0 at the first."""
    is_return = np.zeros(len(closes), dtype=bool)
    is_return[1:] = np.diff(open_at) == MINUTE_MS
    squares = np.zeros(len(closes))
    squares[1:] = np.log(closes[1:] / closes[:-1]) ** 2
    first = np.searchsorted(open_at, open_at - window * MINUTE_MS, side="right")
    sums = np.concatenate([np.zeros(1), np.cumsum(np.where(is_return, squares, 0.0))])
    counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(is_return)])
    within, returns = sums[1:] - sums[first], counts[1:] - counts[first]
    return np.sqrt(np.maximum(within, 0.0) / np.maximum(returns, 1) * MINUTES_A_YEAR)


def synthetic(volatility: float, expiry_at: Instant, now: Instant) -> Svi:
    """Return the flat surface of an annual volatility for the time left."""
    return flat(max(volatility * volatility * (expiry_at - now) / YEAR_MS, LEAST_VARIANCE))
