"""The text around indicators: values, range, warm-up, notes."""

import numpy as np
import pytest

from pitboss.core.asof import Market
from pitboss.core.errors import ToolFailed
from venues.perp.scene import START, STEP, make_bars
from venues.perp.tools.demo_market import call

RISING = Market({("BTC", "5m"): make_bars("BTC", [100.0 + index for index in range(60)])})


def tool_lines(names: str, count: int) -> list[str]:
    asked = {"symbol": "BTC", "interval": "5m", "indicators": names}
    return call("compute_indicators", asked, RISING, START + count * STEP).splitlines()


def test_a_value_comes_with_the_one_before_and_the_range_of_twenty_bars() -> None:
    assert tool_lines("sma5, rsi14", 40) == [
        "BTC 5m, 40 closed bars used, the last opened 06-01 03:15, close 139, by 2025-06-01T03:20:00Z",
        "name now (one bar before; lowest to highest of the last 20 bars)",
        "sma5 137 (136; 118 to 137)",
        "rsi14 100 (100; 100 to 100)",
    ]


def test_a_range_over_fewer_values_says_of_how_many() -> None:
    assert tool_lines("sma5", 8)[-1] == "sma5 105 (104; 102 to 105 of only 4)"


def test_too_little_history_is_said_plainly() -> None:
    assert tool_lines("sma50", 20)[-1] == "sma50 n/a: not enough history for it, or nothing moved, in 20 closed bars"


def test_on_balance_volume_says_where_it_counts_from() -> None:
    lines = tool_lines("obv", 40)
    assert lines[2] == "obv 487.5 (475; 250 to 487.5)"
    assert lines[3] == "(obv counts from 2025-06-01 00:00: only its changes mean something)"


def test_a_daily_vwap_at_day_bars_points_to_a_better_question() -> None:
    days = Market({("BTC", "1d"): make_bars("BTC", [100.0, 101.0, 102.0], "1d", START)})
    asked = {"symbol": "BTC", "interval": "1d", "indicators": "vwap"}
    text = call("compute_indicators", asked, days, START + 3 * 86_400_000)
    assert "ask for vwap20 instead" in text


def test_names_that_are_not_there_are_refused() -> None:
    with pytest.raises(ToolFailed, match="did you mean rsi"):
        tool_lines("rsl", 40)
    with pytest.raises(ToolFailed, match="2 to 200 characters"):
        tool_lines("x", 40)


def test_an_answer_does_not_depend_on_more_than_two_thousand_bars() -> None:
    random = np.random.default_rng(3)
    long = make_bars("BTC", (100 * np.exp(np.cumsum(random.normal(0, 0.003, 3_000)))).tolist())
    at = START + 3_000 * STEP
    asked = {"symbol": "BTC", "interval": "5m", "indicators": "rsi200, ema200, adx14, atr200, macd, bollinger200"}
    whole = call("compute_indicators", asked, Market({("BTC", "5m"): long}), at)
    newest = call("compute_indicators", asked, Market({("BTC", "5m"): long.slice(900, 3_000)}), at)
    assert whole == newest
