"""Resamples bars to a longer interval, complete buckets only.

A bucket that lacks inner bars is built from those it has; the first bucket of a series that starts inside it, and the
last one that is not over yet, are left out. Missing bars are not filled in.
"""

import numpy as np

from pitboss.core.instant import interval_ms
from pitboss.core.market import Bars


def resample(bars: Bars, interval: str) -> Bars:
    """The same market in a longer interval, which the bars' own interval must divide."""
    length = interval_ms(interval)
    if length % bars.interval_ms:
        raise ValueError(f"{bars.interval} does not divide {interval}")
    if length == bars.interval_ms or not len(bars):
        return Bars(
            bars.symbol, interval, length, bars.open_at, bars.open, bars.high, bars.low, bars.close, bars.volume
        )
    buckets = bars.open_at - bars.open_at % length
    starts = np.flatnonzero(np.diff(buckets, prepend=buckets[0] - 1))
    ends = np.append(starts[1:], len(buckets)) - 1
    first = int(bars.open_at[0] != buckets[0])
    unfinished = bars.open_at[-1] + bars.interval_ms < buckets[-1] + length
    keep = slice(first, len(starts) - int(unfinished))
    at = buckets[starts][keep]
    high = np.maximum.reduceat(bars.high, starts)[keep]
    low = np.minimum.reduceat(bars.low, starts)[keep]
    volume = np.add.reduceat(bars.volume, starts)[keep]
    opening, closing = bars.open[starts][keep], bars.close[ends][keep]
    for column in (at, opening, high, low, closing, volume):
        column.setflags(write=False)
    return Bars(bars.symbol, interval, length, at, opening, high, low, closing, volume)
