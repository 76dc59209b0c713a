"""Candle patterns by TA-Lib: their names, their direction, and the bars on which they ended.

TA-Lib does not rate a pattern, so the number of its occurrences in the window is given instead. Its rules are not
symmetrical: a hammer upside down is another pattern with another name.
"""

from dataclasses import dataclass

import numpy as np

from pitboss.core.market import Bars

WARM_UP = 40
"""Bars needed before the window: the patterns compare with averages of up to about fifteen bars."""

_NAMES = {
    "CDL2CROWS": "two crows", "CDL3BLACKCROWS": "three black crows", "CDL3INSIDE": "three inside",
    "CDL3LINESTRIKE": "three-line strike", "CDL3OUTSIDE": "three outside",
    "CDL3STARSINSOUTH": "three stars in the south", "CDL3WHITESOLDIERS": "three white soldiers",
    "CDLABANDONEDBABY": "abandoned baby", "CDLADVANCEBLOCK": "advance block", "CDLBELTHOLD": "belt hold",
    "CDLBREAKAWAY": "breakaway", "CDLCONCEALBABYSWALL": "concealing baby swallow",
    "CDLCOUNTERATTACK": "counterattack", "CDLDARKCLOUDCOVER": "dark cloud cover", "CDLDOJI": "doji",
    "CDLDOJISTAR": "doji star", "CDLDRAGONFLYDOJI": "dragonfly doji", "CDLENGULFING": "engulfing",
    "CDLEVENINGDOJISTAR": "evening doji star", "CDLEVENINGSTAR": "evening star",
    "CDLGAPSIDESIDEWHITE": "gap side-by-side white lines", "CDLGRAVESTONEDOJI": "gravestone doji",
    "CDLHAMMER": "hammer", "CDLHANGINGMAN": "hanging man", "CDLHARAMI": "harami", "CDLHARAMICROSS": "harami cross",
    "CDLHIGHWAVE": "high wave", "CDLHIKKAKE": "hikkake", "CDLHIKKAKEMOD": "modified hikkake",
    "CDLHOMINGPIGEON": "homing pigeon", "CDLIDENTICAL3CROWS": "identical three crows", "CDLINNECK": "in-neck",
    "CDLINVERTEDHAMMER": "inverted hammer", "CDLKICKING": "kicking", "CDLLADDERBOTTOM": "ladder bottom",
    "CDLMARUBOZU": "marubozu", "CDLMATCHINGLOW": "matching low", "CDLMATHOLD": "mat hold",
    "CDLMORNINGDOJISTAR": "morning doji star", "CDLMORNINGSTAR": "morning star", "CDLONNECK": "on-neck",
    "CDLPIERCING": "piercing", "CDLRISEFALL3METHODS": "three methods", "CDLSEPARATINGLINES": "separating lines",
    "CDLSHOOTINGSTAR": "shooting star", "CDLSPINNINGTOP": "spinning top", "CDLSTALLEDPATTERN": "stalled pattern",
    "CDLSTICKSANDWICH": "stick sandwich", "CDLTAKURI": "takuri", "CDLTASUKIGAP": "tasuki gap",
    "CDLTHRUSTING": "thrusting", "CDLTRISTAR": "tristar", "CDLUNIQUE3RIVER": "unique three river",
    "CDLUPSIDEGAP2CROWS": "upside gap two crows", "CDLXSIDEGAP3METHODS": "gap three methods",
}  # fmt: skip
"""Left out: long and short lines and closing marubozu, which are half of all candles, and three that repeat others
(kicking by length, long-legged doji and rickshaw man)."""

_UNDECIDED = frozenset({"CDLDOJI", "CDLHIGHWAVE", "CDLSPINNINGTOP"})
"""Patterns whose sign in TA-Lib is a constant or the colour of the candle."""


@dataclass(frozen=True, slots=True)
class Candle:
    """One pattern that ended on the bar at `index`. `count` is the number of its occurrences in the window, this one included."""

    index: int
    name: str
    direction: str
    count: int


def candles(bars: Bars, window: int, newest: int) -> list[Candle]:
    """The patterns that ended on the `newest` bars, newest first; occurrences are counted over `window` bars."""
    import talib  # imported here: it takes a tenth of a second

    used = bars.slice(max(0, len(bars) - window - WARM_UP), len(bars))
    columns = [np.ascontiguousarray(column) for column in (used.open, used.high, used.low, used.close)]
    shift, first = len(bars) - len(used), max(0, len(used) - window)
    patterns: list[Candle] = []
    for function, name in _NAMES.items():
        signs = getattr(talib, function)(*columns)
        recent = np.flatnonzero(signs[-newest:])
        if not len(recent):
            continue
        count = int(np.count_nonzero(signs[first:]))
        for back in recent.tolist():
            index = max(0, len(used) - newest) + back
            sign = 0 if function in _UNDECIDED else int(np.sign(signs[index]))
            patterns.append(Candle(shift + index, name, ("undecided", "bullish", "bearish")[sign], count))
    return sorted(patterns, key=lambda candle: (-candle.index, candle.name))
