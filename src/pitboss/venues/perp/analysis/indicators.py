"""Indicators by name (`rsi14`, `ema50`, `macd`): the available kinds, the parser of a list of names, and the columns.

Columns come from TA-Lib where it has them, over closed bars only, and are NaN while there is too little history. Prices
are first scaled near 1 by a power of two, which is exact: TA-Lib treats differences below 1e-14 as zero, and some coins
trade at 1e-8. Nothing here rounds or formats.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import frexp
from typing import Any

import numpy as np

from pitboss.core.errors import ToolFailed
from pitboss.core.instant import DAY_MS
from pitboss.core.market import Bars, Floats
from pitboss.core.suggestion import did_you_mean, nearest

SHORTEST, LONGEST = 2, 200
MOST_NAMES = 12
KEPT = 64
"""How many of the newest values are computed for indicators over a fixed window."""

Lines = dict[str, Floats]
"""The columns of one indicator by the name of the line, each as long as the bars."""

_NAME = re.compile(r"([a-z]+)[ _(-]?(\d{1,6})?\)?")


@dataclass(frozen=True, slots=True)
class IndicatorKind:
    """One kind of indicator. `period` is the default: 0 for none, None if it takes no period. `unit` is the values' unit."""

    about: str
    period: int | None
    unit: str
    lines: Callable[["Columns", int], Lines]


@dataclass(frozen=True, slots=True)
class IndicatorSpec:
    """One requested indicator."""

    name: str
    kind: str
    period: int


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Bars with their prices scaled near 1: `price × scale`."""

    bars: Bars
    scale: float
    high: Floats
    low: Floats
    close: Floats
    talib: Any


def columns_of(bars: Bars) -> Columns:
    """The columns of at least one bar, scaled."""
    import talib  # imported here: it takes a tenth of a second

    scale = 2.0 ** -frexp(float(bars.close[-1]))[1]
    high, low, close = (np.ascontiguousarray(column * scale) for column in (bars.high, bars.low, bars.close))
    return Columns(bars, scale, high, low, close, talib)


def read_names(text: str) -> list[IndicatorSpec]:
    """Read a list such as `rsi14, ema50, macd`, without duplicates. Raises `ToolFailed` that lists the available kinds."""
    specs: dict[str, IndicatorSpec] = {}
    for item in (part.strip().lower() for part in re.split(r"[,;\n]", text)):
        if item:
            spec = _read(item)
            specs.setdefault(spec.name, spec)
    if not specs:
        raise ToolFailed(f"no indicator is named; there are {offer()}")
    if len(specs) > MOST_NAMES:
        raise ToolFailed(f"at most {MOST_NAMES} indicators at a time, not {len(specs)}")
    return list(specs.values())


def offer() -> str:
    """All kinds in one line, with the default period of those that take one."""
    return ", ".join(f"{name}{kind.period}" if kind.period else name for name, kind in KINDS.items())


def _read(text: str) -> IndicatorSpec:
    match = _NAME.fullmatch(text)
    name = _ALIASES.get(match[1], match[1]) if match else text
    kind = KINDS.get(name)
    if match is None or kind is None:
        raise ToolFailed(f"unknown indicator {text[:40]!r}; {did_you_mean(nearest(name, KINDS), offer())}")
    if match[2] is None:
        return IndicatorSpec(f"{name}{kind.period}" if kind.period else name, name, kind.period or 0)
    if kind.period is None:
        raise ToolFailed(f"{name} takes no period: {kind.about}")
    period = int(match[2])
    if not SHORTEST <= period <= LONGEST:
        raise ToolFailed(f"the period of {name} must be {SHORTEST} to {LONGEST}, not {period}")
    return IndicatorSpec(f"{name}{period}", name, period)


# Columns ----------------------------------------------------------------------------------------------------------


def _priced(columns: Columns, column: Floats) -> Floats:
    return column / columns.scale


def _rsi(columns: Columns, period: int) -> Lines:
    line = columns.talib.RSI(columns.close, timeperiod=period)
    # TA-Lib gives 0, "all losses", for a price that does not move.
    line[(line == 0.0) & (_spread(columns.close, columns.close, period + 1) == 0.0)] = np.nan
    return {"": line}


def _ema(columns: Columns, period: int) -> Lines:
    return {"": _priced(columns, columns.talib.EMA(columns.close, timeperiod=period))}


def _sma(columns: Columns, period: int) -> Lines:
    return {"": _priced(columns, columns.talib.SMA(columns.close, timeperiod=period))}


def _macd(columns: Columns, _: int) -> Lines:
    line, signal, gap = columns.talib.MACD(columns.close, fastperiod=12, slowperiod=26, signalperiod=9)
    return {
        "line": _priced(columns, line),
        "signal": _priced(columns, signal),
        "histogram": _priced(columns, gap),
    }


def _bollinger(columns: Columns, period: int) -> Lines:
    middle = columns.talib.SMA(columns.close, timeperiod=period)
    # Not TA-Lib's deviation: it computes mean(x²) − mean(x)², which loses precision in a calm market.
    deviation = _over(columns.close, period, lambda windows: windows.std(axis=1))
    upper, lower = middle + 2 * deviation, middle - 2 * deviation
    return {
        "upper": _priced(columns, upper),
        "middle": _priced(columns, middle),
        "lower": _priced(columns, lower),
        "%b": _share(columns.close - lower, upper - lower),
        "width%": 100 * _share(upper - lower, middle),
    }


def _atr(columns: Columns, period: int) -> Lines:
    line = columns.talib.ATR(columns.high, columns.low, columns.close, timeperiod=period)
    return {"": _priced(columns, line), "%": 100 * line / columns.close}


def _adx(columns: Columns, period: int) -> Lines:
    prices = (columns.high, columns.low, columns.close)
    return {
        "": columns.talib.ADX(*prices, timeperiod=period),
        "+di": columns.talib.PLUS_DI(*prices, timeperiod=period),
        "-di": columns.talib.MINUS_DI(*prices, timeperiod=period),
    }


def _stochastic(columns: Columns, period: int) -> Lines:
    top, bottom = _highest(columns.high, period), -_highest(-columns.low, period)
    fast = 100 * _share(columns.close - bottom, top - bottom)
    slow = _mean3(fast)
    return {"%k": slow, "%d": _mean3(slow)}


def _willr(columns: Columns, period: int) -> Lines:
    top, bottom = _highest(columns.high, period), -_highest(-columns.low, period)
    return {"": -100 * _share(top - columns.close, top - bottom)}


def _donchian(columns: Columns, period: int) -> Lines:
    top, bottom = _highest(columns.high, period), -_highest(-columns.low, period)
    return {"upper": _priced(columns, top), "lower": _priced(columns, bottom)}


def _cci(columns: Columns, period: int) -> Lines:
    return {"": columns.talib.CCI(columns.high, columns.low, columns.close, timeperiod=period)}


def _roc(columns: Columns, period: int) -> Lines:
    return {"%": columns.talib.ROC(columns.close, timeperiod=period)}


def _volatility(columns: Columns, period: int) -> Lines:
    steps = np.diff(np.log(columns.close), prepend=np.nan)
    line = _over(steps, period, lambda windows: windows.std(axis=1, ddof=1))
    return {"%": 100 * line * np.sqrt(365 * DAY_MS / columns.bars.interval_ms)}


def _vwap(columns: Columns, period: int) -> Lines:
    typical = (columns.high + columns.low + columns.close) / 3
    volume = columns.bars.volume
    if period:
        turnover, total_volume = _sum(typical * volume, period), _sum(volume, period)
    else:
        turnover, total_volume = _today(columns.bars, typical * volume), _today(columns.bars, volume)
    return {"": _priced(columns, _share(turnover, total_volume))}


def _today(bars: Bars, column: Floats) -> Floats:
    """Sums since 00:00 UTC of each bar's day; NaN on the first day if the bars begin in the middle of it."""
    days = bars.open_at // DAY_MS
    first = np.searchsorted(days, days, side="left")
    sums = np.concatenate(([0.0], np.cumsum(column)))
    day_sums = sums[1:] - sums[first]
    if bars.open_at[0] % DAY_MS:
        day_sums[days == days[0]] = np.nan
    return day_sums


def _obv(columns: Columns, _: int) -> Lines:
    signs = np.sign(np.diff(columns.close))
    return {"": np.concatenate(([0.0], np.cumsum(signs * columns.bars.volume[1:])))}


def _highest(column: Floats, period: int) -> Floats:
    return _over(column, period, lambda windows: windows.max(axis=1))


def _spread(high: Floats, low: Floats, period: int) -> Floats:
    return _highest(high, period) + _highest(-low, period)


def _sum(column: Floats, period: int) -> Floats:
    return _over(column, period, lambda windows: windows.sum(axis=1))


def _over(column: Floats, period: int, reduce: Callable[[Floats], Floats]) -> Floats:
    """`reduce` of each of the `KEPT` newest windows; older values are never shown and stay NaN."""
    line = np.full(len(column), np.nan)
    if len(column) >= period:
        windows = np.lib.stride_tricks.sliding_window_view(column, period)[-KEPT:]
        line[-len(windows) :] = reduce(windows)
    return line


def _mean3(column: Floats) -> Floats:
    return _sum(column, 3) / 3


def _share(numerator: Floats, denominator: Floats) -> Floats:
    """The quotient; NaN where the denominator is zero."""
    shares = np.full(len(denominator), np.nan)
    return np.divide(numerator, denominator, out=shares, where=np.abs(denominator) > 0)


KINDS: Mapping[str, IndicatorKind] = {
    "rsi": IndicatorKind("relative strength, 0 to 100, Wilder", 14, "", _rsi),
    "ema": IndicatorKind("exponential mean of closes", 20, "price", _ema),
    "sma": IndicatorKind("mean of closes", 20, "price", _sma),
    "macd": IndicatorKind(
        "12, 26, 9: fast less slow exponential mean, its own mean, the gap between them", None, "price", _macd
    ),
    "bollinger": IndicatorKind(
        "mean ± 2 deviations; %b is 0 at the lower and 1 at the upper band", 20, "price", _bollinger
    ),
    "atr": IndicatorKind("average true range, Wilder", 14, "price", _atr),
    "adx": IndicatorKind("strength of a trend, 0 to 100, and its two sides, Wilder", 14, "", _adx),
    "stochastic": IndicatorKind("slow: %k smoothed over 3, %d over 3 more; 0 to 100", 14, "", _stochastic),
    "willr": IndicatorKind("Williams %R, −100 to 0", 14, "", _willr),
    "cci": IndicatorKind("commodity channel", 20, "", _cci),
    "roc": IndicatorKind("change of the close over the period in percent", 10, "", _roc),
    "donchian": IndicatorKind("highest high and lowest low", 20, "price", _donchian),
    "volatility": IndicatorKind("deviation of log returns, annualised, in percent", 20, "", _volatility),
    "vwap": IndicatorKind("mean price by volume since 00:00 UTC; with a period over that many bars", 0, "price", _vwap),
    "obv": IndicatorKind(
        "on-balance volume from the first bar used: only its changes mean something", None, "volume", _obv
    ),
}

_ALIASES = {
    "bb": "bollinger", "bbands": "bollinger", "stoch": "stochastic", "vol": "volatility", "williams": "willr",
    "ma": "sma", "channel": "donchian",
}  # fmt: skip
"""Other names that models use for these indicators."""
