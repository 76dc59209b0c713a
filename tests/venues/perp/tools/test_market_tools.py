"""What every tool that reads the market promises: nothing after the tick, the same bytes again, bounded text."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.asof import Market
from pitboss.core.errors import ToolFailed
from pitboss.core.past import Recording
from pitboss.tools.registry import lookup
from pitboss.venues.perp.venue import VENUE
from venues.perp.scene import STEP, make_market, make_skill, make_world
from venues.perp.tools.demo_market import (
    AT,
    END,
    SYMBOLS,
    call,
    load_demo_market,
    market_until,
    market_with_other_future,
)

ASKED: dict[str, list[dict[str, Any]]] = {
    "get_funding_rate": [{"symbol": "BTC"}, {"symbol": "SOL", "hours": 168}],
    "get_open_interest": [{}, {"symbol": "ETH", "hours": 168}],
    "get_top_traders": [{}, {"count": 3}],
    "compute_indicators": [
        {"symbol": "BTC", "interval": "1h", "indicators": "rsi14,ema50,macd,bollinger,atr14,adx14,stochastic,vwap,obv"},
        {"symbol": "ETH", "interval": "5m", "indicators": "sma200,willr,cci,roc,donchian,volatility,vwap30"},
    ],
    "analyze_chart_pattern": [
        {"symbol": "BTC", "interval": "1h", "lookback": 120},
        {"symbol": "SOL", "interval": "5m", "lookback": 500},
        {"symbol": "SOL", "interval": "5m", "lookback": 20},
    ],
    "compute_var": [
        {"horizon": 12, "confidence": 95},
        {"horizon": 1, "confidence": 99, "symbol": "SOL", "side": "short", "size_usd": 750},
    ],
    "fetch_news_sentiment": [{"hours": 168, "limit": 50}, {"hours": 48, "symbol": "ETH"}],
}
EACH = [(name, arguments) for name, asked in ASKED.items() for arguments in asked]
HELD = make_world({"BTC": 1, "ETH": -1})


class LeakingRecordings:
    """Returns a recording of one instant for every query, even for earlier ones."""

    def __init__(self, known_at: int) -> None:
        self.known_at = known_at

    def latest(self, server: str, tool: str, arguments: str, by: int) -> Recording | None:
        del by
        return Recording(server, tool, arguments, self.known_at, "LEAK")


@pytest.mark.parametrize("name", sorted(ASKED))
@pytest.mark.parametrize("mode", ["read", "write"])
def test_the_example_works_on_the_demo_market_in_both_modes(name: str, mode: Any) -> None:
    text = call(name, lookup(VENUE.tools(), name).example, mode=mode)
    assert text
    assert text == call(name, lookup(VENUE.tools(), name).example, mode=mode)
    assert "nan" not in text.lower()


@settings(max_examples=12, deadline=None)
@given(at=st.integers(AT - 9 * 288 * STEP, END + STEP), factor=st.sampled_from([0.5, 3.0, float("nan")]))
def test_no_market_tool_can_tell_what_comes_after_the_tick(at: int, factor: float) -> None:
    full, past = load_demo_market(), market_until(load_demo_market(), at)
    other = market_with_other_future(full, at, factor)
    for name, arguments in EACH:
        result = call(name, arguments, full, at, HELD)
        assert result == call(name, arguments, past, at, HELD)
        assert result == call(name, arguments, other, at, HELD)
        assert "LEAK" not in result


def test_the_future_matters_once_it_is_past() -> None:
    other = market_with_other_future(load_demo_market(), AT, 3.0)
    later = AT + 12 * 3_600_000
    differ = [
        name
        for name, arguments in EACH
        if call(name, arguments, load_demo_market(), later, HELD) != call(name, arguments, other, later, HELD)
    ]
    assert set(differ) == set(ASKED) - {"get_top_traders"}


def test_a_recording_from_after_the_tick_is_not_shown_even_if_it_is_handed_over() -> None:
    assert "LEAK" not in call("get_top_traders", {}, recordings=LeakingRecordings(AT + 1))
    assert "LEAK" in call("get_top_traders", {}, recordings=LeakingRecordings(AT))


@pytest.mark.parametrize(("name", "arguments"), EACH)
def test_an_answer_is_bounded_and_has_no_control_signs(name: str, arguments: dict[str, Any]) -> None:
    text = call(name, arguments, world=HELD)
    assert len(text) < 25_000
    assert all(sign >= " " or sign == "\n" for sign in text)


@pytest.mark.parametrize("name", sorted(set(ASKED) - {"get_top_traders", "compute_var", "get_open_interest"}))
def test_a_symbol_that_is_not_yours_is_refused_with_one_that_is(name: str) -> None:
    with pytest.raises(ToolFailed, match="'btc' is not one of your symbols; did you mean BTC"):
        call(name, {**lookup(VENUE.tools(), name).example, "symbol": "btc"})
    with pytest.raises(ToolFailed, match="symbols: BTC, ETH, SOL"):
        call(name, {**lookup(VENUE.tools(), name).example, "symbol": "QQQQ"})


@pytest.mark.parametrize("name", ["compute_indicators", "analyze_chart_pattern"])
def test_bars_that_are_not_there_are_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(ToolFailed, match="there are no 1d bars of BTC; available: 5m, 1h, 4h"):
        call(name, {**lookup(VENUE.tools(), name).example, "interval": "1d"})


@pytest.mark.parametrize(("name", "arguments"), EACH)
def test_a_market_without_history_is_answered_in_words(name: str, arguments: dict[str, Any]) -> None:
    full = load_demo_market()
    empty = market_until(full, int(full.bars["BTC", "5m"].open_at[0]) - 1)
    text = call(name, arguments, empty, int(full.bars["BTC", "5m"].open_at[0]) - 1, HELD)
    words = ("no bar has closed", "has no value yet", "was recorded by", "no news", "too little history")
    assert any(each in text for each in words)
    bare = Market(full.bars)
    assert call(name, arguments, bare, world=HELD)


@pytest.mark.parametrize(("name", "arguments"), EACH)
def test_a_price_that_never_moves_is_no_trouble(name: str, arguments: dict[str, Any]) -> None:
    still = {symbol: [7.0] * 700 for symbol in SYMBOLS}
    market = make_market(still)
    hourly = make_market(still, "1h")
    market = Market({**market.bars, **hourly.bars})
    at = int(hourly.bars["BTC", "1h"].open_at[-1]) + 3_600_000
    assert "nan" not in call(name, arguments, market, at, HELD, make_skill(SYMBOLS)).lower()
