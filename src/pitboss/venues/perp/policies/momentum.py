"""Policy `momentum`: long after a 48-bar rise of more than 0.5 %, short after such a fall, flat in between."""

from decimal import Decimal

import numpy as np

from pitboss.core.market import Bars
from pitboss.core.money import decimal
from pitboss.core.scaled import scale
from pitboss.prompt import render
from pitboss.venues.perp.policy import define_policy
from pitboss.venues.perp.signals import FLAT, LONG, SHORT, STAY, SignalPolicy, Signals, closes

LOOKBACK = 48
BASE, UPPER, LOWER = 200, 201, 199
"""±0.5 % in integers: a rise is above the band if 200 × now > 201 × then."""


def signal(bars: Bars) -> Signals:
    """Return the signal of every bar.

    The comparison is exact, so a move of exactly 0.5 % is inside the band in both directions.
    """
    count = len(bars)
    targets = np.full(count, STAY, np.int8)
    if count <= LOOKBACK:
        return targets
    units, fits = scale(bars.close)
    now, then = units[LOOKBACK:] * BASE, units[:-LOOKBACK]
    targets[LOOKBACK:] = np.where(now > then * UPPER, LONG, np.where(now < then * LOWER, SHORT, FLAT))
    for index in np.flatnonzero(~(fits[LOOKBACK:] & fits[:-LOOKBACK])).tolist():
        targets[index + LOOKBACK] = _target(float(bars.close[index + LOOKBACK]), float(bars.close[index]))
    return targets


def _target(now: float, then: float) -> int:
    if not np.isfinite(now) or not np.isfinite(then):
        return STAY
    ahead: Decimal = decimal(now) * BASE
    return LONG if ahead > decimal(then) * UPPER else SHORT if ahead < decimal(then) * LOWER else FLAT


def reason(bars: Bars, closed: int, target: int) -> str:
    """Return the reason text with the return."""
    del target
    window = closes(bars, closed, LOOKBACK + 1)
    return f"{LOOKBACK}-bar return {render.percent((window[-1] / window[0] - 1) * 100)}"


POLICY = define_policy(
    "momentum",
    "long or short with the 48-bar return, flat within 0.5 %",
    lambda seed: SignalPolicy("momentum", signal, reason),
)
