"""How far the price went for and against a trade while it was open, from bars."""

from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from pitboss.core.instant import Instant
from pitboss.venues.perp.trades import TradeSide


def excursion(
    bars: NDArray[np.float64],
    side: TradeSide,
    prices: tuple[Decimal, Decimal | None],
    opened_at: Instant,
    closed_at: Instant | None,
    bar_ms: int,
) -> tuple[float, float]:
    """Return the best and the worst excursion in percent of the entry price, the worst at most 0.

    `bars` are rows of open time, open, high, low, close, of bars `bar_ms` long; `prices` are entry and exit. The bar of the entry
    counts whole; of the bar of the exit only the exit price counts, because what came after it in that bar is not the trade's.
    """
    first = int(np.searchsorted(bars[:, 0], opened_at - bar_ms, side="right"))
    last = len(bars) if closed_at is None else int(np.searchsorted(bars[:, 0], closed_at - bar_ms, side="right"))
    entry, *points = (float(price) for price in prices if price is not None)
    between = bars[first:last]
    highest = max([entry, *points, *between[:, 2].tolist()])
    lowest = min([entry, *points, *between[:, 3].tolist()])
    rise, fall = 100.0 * (highest / entry - 1.0), 100.0 * (lowest / entry - 1.0)
    return (rise, fall) if side == "long" else (-fall, -rise)
