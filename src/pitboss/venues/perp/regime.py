"""Classifies the market at the last closed bar: one tag from volatility and trend, and the ATR behind it.

Indicators are computed once over a whole set of bars. They are causal, so the value at a bar never depends on a later
one, and only values of closed bars are read. They are floats: a tag is a hint to a model, not an amount of money.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import talib

from pitboss.core.market import Bars, Floats

Tag = Literal["unknown", "high_vol", "trend_up", "trend_down", "chop"]

UNKNOWN: Tag = "unknown"
BARS_NEEDED = 50
PERIOD = 14
EMA_PERIOD = 20
TREND_ADX = 25.0


@dataclass(frozen=True, slots=True, eq=False)
class Indicators:
    """Indicator columns as long as the bars; NaN where there is too little history."""

    atr: Floats
    volatility: Floats
    adx: Floats
    ema: Floats


@lru_cache(maxsize=32)
def indicators(bars: Bars) -> Indicators:
    """Return the indicator columns of a set of bars, cached by the identity of the bars."""
    if len(bars) == 0:
        return Indicators(*(np.empty(0) for _ in range(4)))
    high, low, close = (np.ascontiguousarray(column, np.float64) for column in (bars.high, bars.low, bars.close))
    atr = talib.ATR(high, low, close, timeperiod=PERIOD)
    adx = talib.ADX(high, low, close, timeperiod=PERIOD)
    with np.errstate(all="ignore"):  # a future bar must not cause a warning either
        volatility = atr / close
    return Indicators(atr, volatility, adx, talib.EMA(close, timeperiod=EMA_PERIOD))


def atr(bars: Bars, closed: int) -> float | None:
    """Return ATR(14) at the last of the first `closed` bars; None if there is too little history."""
    if closed <= PERIOD:
        return None
    return float(indicators(bars).atr[closed - 1])


def tag(bars: Bars, closed: int, lookback: int) -> Tag:
    """Return the regime after the first `closed` bars; volatility is ranked among the newest `lookback` of them."""
    if closed < BARS_NEEDED:
        return UNKNOWN
    columns, last = indicators(bars), closed - 1
    window = columns.volatility[max(PERIOD, closed - lookback) : closed]  # the first defined value is at PERIOD
    if 100 * np.count_nonzero(window <= window[-1]) >= 80 * len(window):
        return "high_vol"
    if columns.adx[last] >= TREND_ADX:
        slope = columns.ema[last] - columns.ema[last - 1]
        if slope > 0:
            return "trend_up"
        if slope < 0:
            return "trend_down"
    return "chop"
