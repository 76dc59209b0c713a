"""Policy `sma_cross`: long while the 20-bar average of closes is above the 50-bar average, flat otherwise."""

from decimal import Decimal
from functools import lru_cache

import numpy as np

from pitboss.core.market import Bars, Floats
from pitboss.core.money import ZERO, decimals, exact
from pitboss.core.scaled import scale
from pitboss.prompt import render
from pitboss.venues.perp.policy import define_policy
from pitboss.venues.perp.signals import FLAT, LONG, STAY, SignalPolicy, Signals

FAST, SLOW = 20, 50


def signal(bars: Bars) -> Signals:
    """Return the signal of every bar; it compares exact sums, so equal averages never count as above."""
    count = len(bars)
    targets = np.full(count, STAY, np.int8)
    if count < SLOW:
        return targets
    units, fits = scale(bars.close)
    # The running total may wrap around; its differences are still right, because the sum of a window fits.
    total = np.concatenate((np.zeros(1, np.int64), np.cumsum(units)))
    ends = np.arange(SLOW, count + 1)
    fast, slow = total[ends] - total[ends - FAST], total[ends] - total[ends - SLOW]
    targets[SLOW - 1 :] = np.where(fast * SLOW > slow * FAST, LONG, FLAT)
    misfits = np.concatenate((np.zeros(1, np.int64), np.cumsum(~fits)))
    for end in ends[misfits[ends] > misfits[ends - SLOW]].tolist():
        targets[end - 1] = LONG if _above(bars.close[end - SLOW : end]) else FLAT
    return targets


@exact
def _above(window: Floats) -> bool:
    if not np.isfinite(window).all():
        return False
    prices: list[Decimal] = decimals(window.tolist())
    return sum(prices[-FAST:], ZERO) * SLOW > sum(prices, ZERO) * FAST


@lru_cache(maxsize=64)
def _averages(bars: Bars) -> tuple[Floats, Floats]:
    """Return both averages of every bar as floats, for the reason text only; the signal compares exact sums."""
    sums = np.concatenate((np.zeros(1), np.cumsum(bars.close)))
    fast, slow = (np.full(len(bars), np.nan) for _ in range(2))
    for averages, length in ((fast, FAST), (slow, SLOW)):
        averages[length - 1 :] = (sums[length:] - sums[:-length]) / length
    return fast, slow


def reason(bars: Bars, closed: int, target: int) -> str:
    """Return the reason text with both averages."""
    fast, slow = _averages(bars)
    relation = "above" if target == LONG else "not above"
    return f"SMA({FAST}) {render.price(fast.item(closed - 1))} {relation} SMA({SLOW}) {render.price(slow.item(closed - 1))}"


POLICY = define_policy(
    "sma_cross",
    "long while SMA(20) is above SMA(50), flat otherwise",
    lambda seed: SignalPolicy("sma_cross", signal, reason),
)
