"""Value at risk and expected shortfall of linear positions, from joint returns of closed bars.

Historical: the loss of the current positions over every past window of `horizon` bars, windows overlapping. Parametric:
normal, mean zero, the covariance of one-bar returns times the horizon. Losses are positive; both figures are at least
zero. Floats: this is an estimate, not money.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import sqrt
from statistics import NormalDist

import numpy as np

from pitboss.core.market import Bars, Floats, Ints
from pitboss.core.money import HUNDRED

FEWEST_RETURNS = 60
FEWEST_STRETCHES = 20
"""Windows that do not overlap: fewer are too small a sample."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Value at risk and expected shortfall in US dollars."""

    at_risk: float
    shortfall: float


@dataclass(frozen=True, slots=True, eq=False)
class Joint:
    """Closes of several symbols at the instants they share, oldest first, one column per symbol.

    `unbroken` says for each row whether it follows the previous row by exactly one bar.
    """

    symbols: tuple[str, ...]
    closes: Floats
    unbroken: np.ndarray

    def returns(self, horizon: int) -> Floats:
        """Returns over every window of `horizon` bars without a gap, overlapping."""
        count = len(self.closes)
        if count <= horizon:
            return np.empty((0, len(self.symbols)))
        steps = np.concatenate(([0], np.cumsum(self.unbroken)))  # steps[i + 1] counts the unbroken steps up to row i
        has_no_gap = steps[horizon + 1 :] - steps[1 : count - horizon + 1] == horizon
        return (self.closes[horizon:] / self.closes[:-horizon] - 1.0)[has_no_gap]


def joint(bars: Mapping[str, Bars]) -> Joint:
    """The rows that all symbols have."""
    symbols = tuple(sorted(bars))
    shared: Ints = bars[symbols[0]].open_at
    for symbol in symbols[1:]:
        shared = np.intersect1d(shared, bars[symbol].open_at, assume_unique=True)
    closes = [bars[symbol].close[np.searchsorted(bars[symbol].open_at, shared)] for symbol in symbols]
    unbroken = np.diff(shared, prepend=shared[:1]) == bars[symbols[0]].interval_ms
    return Joint(symbols, np.column_stack(closes), unbroken)


def historical(returns: Floats, exposure: Floats, confidence: Decimal) -> Loss | None:
    """From past windows; None if the tail is smaller than one window.

    At risk: the smallest loss that at most the tail's share of the windows exceeds. Shortfall: the mean of the tail,
    with the window at its edge weighted by the part inside the tail.
    """
    losses = np.sort(-(returns @ exposure))[::-1]
    tail = len(losses) * (HUNDRED - confidence) / HUNDRED
    worst = int(tail)
    if worst < 1:
        return None
    part = float(tail - worst)
    shortfall = (losses[:worst].sum() + part * losses[worst]) / float(tail)
    return Loss(max(0.0, float(losses[worst])), max(0.0, float(shortfall)))


def parametric(returns: Floats, exposure: Floats, confidence: Decimal, horizon: int) -> Loss:
    """From the covariance of one-bar returns around zero."""
    deviation = sqrt(float(np.mean((returns @ exposure) ** 2)) * horizon)
    share = float(confidence / HUNDRED)
    normal = NormalDist()
    quantile = normal.inv_cdf(share)
    return Loss(quantile * deviation, normal.pdf(quantile) / (1.0 - share) * deviation)


def enough(joint: Joint, horizon: int) -> bool:
    """Whether there is enough history for an estimate."""
    count = int(np.count_nonzero(joint.unbroken))
    return count >= FEWEST_RETURNS and count >= FEWEST_STRETCHES * horizon


def exposure_of(symbols: Sequence[str], signed_usd: Mapping[str, float]) -> Floats:
    """Signed notionals in the order of the columns."""
    return np.array([signed_usd.get(symbol, 0.0) for symbol in symbols])
