"""Policy `mean_reversion`: trades against a move away from the 48-bar average of closes.

It enters when the close is more than two standard deviations from the average, exits within half a deviation, and keeps
its position in between.
"""

from math import fsum, sqrt

import numpy as np

from pitboss.core.market import Bars, Floats
from pitboss.prompt import render
from pitboss.venues.perp.policy import define_policy
from pitboss.venues.perp.signals import FLAT, LONG, SHORT, STAY, SignalPolicy, Signals, closes

WINDOW = 48
ENTER, LEAVE = 2.0, 0.5
_BLOCK = 8192


def scores(close: Floats) -> Floats:
    """Return the z-score of each close against the window that ends with it, by population deviation.

    The first bars, which have no full window, have no score. Sums run over the window in one fixed order, bar by bar,
    so a value depends on its own window only. Distances are taken from the window's last close: in a window of equal
    prices they are exactly zero, and so is z.
    """
    count = len(close) - WINDOW + 1
    z = np.empty(count)
    # Blocks only help the processor's cache: no value depends on where a block ends.
    for start in range(0, count, _BLOCK):
        z[start : start + _BLOCK] = _block(close[start : start + _BLOCK + WINDOW - 1])
    return z


def _block(close: Floats) -> Floats:
    count = len(close) - WINDOW + 1
    last = close[WINDOW - 1 :]
    total, squares, part = np.zeros(count), np.zeros(count), np.empty(count)
    with np.errstate(all="ignore"):
        for offset in range(WINDOW):
            total += np.subtract(close[offset : offset + count], last, out=part)
        mean = total / WINDOW
        for offset in range(WINDOW):
            np.subtract(close[offset : offset + count], last, out=part)
            part -= mean
            part *= part
            squares += part
        deviation = np.sqrt(squares / WINDOW)
        return np.where(deviation > 0, -mean / deviation, 0.0)


def signal(bars: Bars) -> Signals:
    """Return the signal of every bar: enter, exit or stay."""
    targets = np.full(len(bars), STAY, np.int8)
    if len(bars) < WINDOW:
        return targets
    z = scores(bars.close)
    away = np.where(z < -ENTER, LONG, np.where(z > ENTER, SHORT, STAY))
    targets[WINDOW - 1 :] = np.where(np.abs(z) < LEAVE, FLAT, away)
    return targets


def reason(bars: Bars, closed: int, target: int) -> str:
    """Return the reason text with the z-score."""
    del target
    window = closes(bars, closed, WINDOW)
    mean = fsum(window) / WINDOW
    deviation = sqrt(fsum((price - mean) * (price - mean) for price in window) / WINDOW)
    z = (window[-1] - mean) / deviation if deviation else 0.0
    return f"close is {render.volume(z)} standard deviations from SMA({WINDOW})"


POLICY = define_policy(
    "mean_reversion",
    "fades closes beyond 2 deviations of SMA(48), leaves inside 0.5",
    lambda seed: SignalPolicy("mean_reversion", signal, reason),
)
