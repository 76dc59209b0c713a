"""Indicators against slow arithmetic written out by hand, and the names by which they are asked for."""

from collections.abc import Callable
from math import isnan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.errors import ToolFailed
from pitboss.core.instant import DAY_MS
from pitboss.core.market import Bars
from pitboss.venues.perp.analysis.indicators import KEPT, KINDS, IndicatorSpec, columns_of, read_names
from venues.perp.analysis.random_walks import walk


def lines_of(bars: Bars, name: str) -> dict[str, np.ndarray]:
    (asked,) = read_names(name)
    with np.errstate(all="ignore"):
        return KINDS[asked.kind].lines(columns_of(bars), asked.period)


def sample(seed: int, count: int = 400) -> Bars:
    random = np.random.default_rng(seed)
    bars = walk(random, count, 0.01)
    return Bars("X", "1h", 3_600_000, 3_600_000 * np.arange(count), bars.open, bars.high, bars.low, bars.close,
                random.uniform(1, 9, count))  # fmt: skip


# The slow way ------------------------------------------------------------------------------------------------------


def wilder(values: list[float], period: int) -> float:
    mean = sum(values[:period]) / period
    for value in values[period:]:
        mean += (value - mean) / period
    return mean


def ema(values: list[float], period: int) -> list[float]:
    result = [sum(values[:period]) / period]
    for value in values[period:]:
        result.append(result[-1] + 2 / (period + 1) * (value - result[-1]))
    return result


def rsi(bars: Bars, period: int) -> float:
    steps = np.diff(bars.close).tolist()
    up, down = wilder([max(0, s) for s in steps], period), wilder([max(0, -s) for s in steps], period)
    return 100 * up / (up + down)


def true_ranges(bars: Bars) -> list[float]:
    high, low, close = bars.high.tolist(), bars.low.tolist(), bars.close.tolist()
    return [max(high[i], close[i - 1]) - min(low[i], close[i - 1]) for i in range(1, len(close))]


def adx(bars: Bars, period: int) -> tuple[float, float, float]:
    high, low = bars.high.tolist(), bars.low.tolist()
    ups, downs = [], []
    for i in range(1, len(high)):
        up, down = high[i] - high[i - 1], low[i - 1] - low[i]
        ups.append(up if up > down and up > 0 else 0.0)
        downs.append(down if down > up and down > 0 else 0.0)
    ranges, strengths = true_ranges(bars), []
    plus = minus = 0.0
    for i in range(period, len(ranges) + 1):
        wide = wilder(ranges[:i], period)
        plus, minus = 100 * wilder(ups[:i], period) / wide, 100 * wilder(downs[:i], period) / wide
        strengths.append(100 * abs(plus - minus) / (plus + minus))
    return wilder(strengths, period), plus, minus


def stochastic(bars: Bars, period: int) -> tuple[float, float]:
    fast = []
    for i in range(period - 1, len(bars)):
        top, bottom = max(bars.high[i - period + 1 : i + 1]), min(bars.low[i - period + 1 : i + 1])
        fast.append(100 * (bars.close[i] - bottom) / (top - bottom))
    slow = [sum(fast[i - 2 : i + 1]) / 3 for i in range(2, len(fast))]
    return slow[-1], sum(slow[-3:]) / 3


SLOW: dict[str, Callable[[Bars], dict[str, float]]] = {
    "rsi14": lambda b: {"": rsi(b, 14)},
    "rsi2": lambda b: {"": rsi(b, 2)},
    "ema50": lambda b: {"": ema(b.close.tolist(), 50)[-1]},
    "sma20": lambda b: {"": sum(b.close.tolist()[-20:]) / 20},
    "atr14": lambda b: {"": (a := wilder(true_ranges(b), 14)), "%": 100 * a / float(b.close[-1])},
    "adx14": lambda b: dict(zip(("", "+di", "-di"), adx(b, 14), strict=True)),
    "stochastic14": lambda b: dict(zip(("%k", "%d"), stochastic(b, 14), strict=True)),
    "willr14": lambda b: {"": -100 * (max(b.high[-14:]) - b.close[-1]) / (max(b.high[-14:]) - min(b.low[-14:]))},
    "donchian20": lambda b: {"upper": max(b.high[-20:]), "lower": min(b.low[-20:])},
    "roc10": lambda b: {"%": 100 * (b.close[-1] / b.close[-11] - 1)},
    "volatility20": lambda b: {"%": 100 * float(np.std(np.diff(np.log(b.close))[-20:], ddof=1)) * sqrt(24 * 365)},
    "vwap30": lambda b: {
        "": sum((b.high[i] + b.low[i] + b.close[i]) / 3 * b.volume[i] for i in range(-30, 0)) / sum(b.volume[-30:])
    },
    "vwap": lambda b: (
        lambda today: {"": sum((b.high[i] + b.low[i] + b.close[i]) / 3 * b.volume[i] for i in today)
                       / sum(b.volume[i] for i in today)}
    )([i for i in range(len(b)) if b.open_at[i] // DAY_MS == b.open_at[-1] // DAY_MS]),
    "obv": lambda b: {
        "": sum(float(np.sign(b.close[i] - b.close[i - 1])) * b.volume[i] for i in range(1, len(b)))
    },
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(SLOW))
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_last_value_is_that_of_the_arithmetic_written_out(name: str, seed: int) -> None:
    bars = sample(seed)
    result, slow = lines_of(bars, name), SLOW[name](bars)
    assert set(slow) == set(result)
    for part, value in slow.items():
        assert result[part][-1] == pytest.approx(float(value), rel=1e-7, abs=1e-9)


def test_macd_and_bollinger_are_those_of_the_books() -> None:
    bars = sample(4)
    closes = bars.close.tolist()
    fast, slow = ema(closes, 12), ema(closes, 26)
    line = [f - s for f, s in zip(fast[-len(slow) :], slow, strict=True)]
    signal = ema(line, 9)[-1]
    result = lines_of(bars, "macd")
    assert result["line"][-1] == pytest.approx(line[-1], rel=1e-6)
    assert result["signal"][-1] == pytest.approx(signal, rel=1e-6)
    assert result["histogram"][-1] == pytest.approx(line[-1] - signal, rel=1e-5)
    bands = lines_of(bars, "bollinger")
    mean = sum(closes[-20:]) / 20
    spread = sqrt(sum((close - mean) ** 2 for close in closes[-20:]) / 20)
    assert bands["upper"][-1] == pytest.approx(mean + 2 * spread)
    assert bands["lower"][-1] == pytest.approx(mean - 2 * spread)
    assert bands["%b"][-1] == pytest.approx((closes[-1] - mean + 2 * spread) / (4 * spread))
    assert bands["width%"][-1] == pytest.approx(100 * 4 * spread / mean)


def test_cci_is_the_distance_from_the_mean_in_mean_deviations() -> None:
    bars = sample(5)
    typical = ((bars.high + bars.low + bars.close) / 3)[-20:]
    mean = typical.mean()
    assert lines_of(bars, "cci20")[""][-1] == pytest.approx(
        (typical[-1] - mean) / (0.015 * np.abs(typical - mean).mean()), rel=1e-7
    )


# Properties --------------------------------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 300), name=st.sampled_from(sorted(KINDS)))
def test_a_value_never_depends_on_a_later_bar(seed: int, count: int, name: str) -> None:
    bars = sample(seed, 330)
    early, late = lines_of(bars.slice(0, count), name), lines_of(bars.slice(0, min(330, count + 30)), name)
    for part, column in early.items():
        # Prices are scaled by the last close, so the very last digits may differ.
        assert np.allclose(column[-20:], late[part][max(0, count - 20) : count], rtol=1e-9, atol=1e-9, equal_nan=True)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), power=st.integers(-40, 40), name=st.sampled_from(sorted(KINDS)))
def test_the_price_level_changes_only_what_counts_in_prices(seed: int, power: int, name: str) -> None:
    bars, factor = sample(seed, 300), 2.0**power
    scaled = Bars("X", "1h", bars.interval_ms, bars.open_at, *(getattr(bars, each) * factor for each in
                  ("open", "high", "low", "close")), bars.volume)  # fmt: skip
    here, there = lines_of(bars, name), lines_of(scaled, name)
    for part, column in here.items():
        priced = KINDS[name].unit == "price" and "%" not in part
        assert np.array_equal(column * factor if priced else column, there[part], equal_nan=True)


@pytest.mark.parametrize("name", ["rsi14", "stochastic14", "willr14", "bollinger20", "roc10", "cci20"])
def test_a_price_that_stands_still_is_never_called_an_extreme(name: str) -> None:
    count = 100
    still = np.full(count, 5.0)
    bars = Bars("X", "1h", 3_600_000, 3_600_000 * np.arange(count), still, still, still, still, np.ones(count))
    for part, column in lines_of(bars, name).items():
        assert isnan(column[-1]) or column[-1] == 0.0 or column[-1] == 5.0, part
    if name in ("rsi14", "stochastic14", "willr14"):
        assert all(isnan(column[-1]) for column in lines_of(bars, name).values())


def test_too_little_history_is_not_a_number() -> None:
    assert isnan(lines_of(sample(1, 14), "rsi14")[""][-1])
    assert not isnan(lines_of(sample(1, 15), "rsi14")[""][-1])
    assert KEPT >= 30


def test_a_day_that_began_before_the_first_bar_has_no_vwap_yet() -> None:
    bars = sample(1, 60)
    assert isnan(lines_of(bars.slice(5, 20), "vwap")[""][-1])
    assert not isnan(lines_of(bars.slice(5, 30), "vwap")[""][-1])


# Names -------------------------------------------------------------------------------------------------------------


def test_names_are_read_with_or_without_a_period_in_any_case_and_once() -> None:
    assert read_names(" RSI14, ema(50);macd\nbb, rsi 14, atr_7, vwap,vwap20,") == [
        IndicatorSpec("rsi14", "rsi", 14),
        IndicatorSpec("ema50", "ema", 50),
        IndicatorSpec("macd", "macd", 0),
        IndicatorSpec("bollinger20", "bollinger", 20),
        IndicatorSpec("atr7", "atr", 7),
        IndicatorSpec("vwap", "vwap", 0),
        IndicatorSpec("vwap20", "vwap", 20),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" , ", "no indicator is named; there are rsi14, ema20"),
        ("rsl14", "unknown indicator 'rsl14'; did you mean rsi?"),
        ("zzz", "unknown indicator 'zzz'; rsi14, ema20"),
        ("rsi1", "the period of rsi must be 2 to 200, not 1"),
        ("ema201", "the period of ema must be 2 to 200, not 201"),
        ("macd12", "macd takes no period"),
        (",".join(f"ema{n}" for n in range(2, 15)), "at most 12 indicators at a time, not 13"),
        ("rsi14; drop table", "unknown indicator 'drop table'"),
    ],
)
def test_names_that_cannot_be_read_are_refused_with_help(text: str, words: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        read_names(text)
    assert words in str(failed.value)
