"""Candle patterns by TA-Lib: names, what each points to, and the bars they ended on.

TA-Lib has no measure of how good one is, so how often the same one was seen in the window is told instead. Its rules
are not the same upwards as downwards: a hammer upside down is another pattern with another name.
"""

from dataclasses import dataclass

import numpy as np

from pitboss.core.market import Bars

WARM_UP = 40
"""Bars before the first one looked at: the patterns compare with averages of up to about fifteen bars."""

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
"""TA-Lib gives them a sign, but it is a constant or the colour of the candle."""


@dataclass(frozen=True, slots=True)
class Candle:
    """One pattern that ended on the bar at `place`. `seen` counts it in the whole window, this one included."""

    place: int
    name: str
    direction: str
    seen: int


def candles(bars: Bars, window: int, newest: int) -> list[Candle]:
    """What ended on the `newest` bars, newest first; the `window` newest are counted."""
    import talib  # takes a tenth of a second, which only those who ask for patterns pay

    taken = bars.slice(max(0, len(bars) - window - WARM_UP), len(bars))
    columns = [np.ascontiguousarray(each) for each in (taken.open, taken.high, taken.low, taken.close)]
    shift, first = len(bars) - len(taken), max(0, len(taken) - window)
    found: list[Candle] = []
    for function, name in _NAMES.items():
        signs = getattr(talib, function)(*columns)
        recent = np.flatnonzero(signs[-newest:])
        if not len(recent):
            continue
        seen = int(np.count_nonzero(signs[first:]))
        for back in recent.tolist():
            place = max(0, len(taken) - newest) + back
            sign = 0 if function in _UNDECIDED else int(np.sign(signs[place]))
            found.append(Candle(shift + place, name, ("undecided", "bullish", "bearish")[sign], seen))
    return sorted(found, key=lambda candle: (-candle.place, candle.name))
