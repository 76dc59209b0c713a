"""The built-in tools: what they answer, and that nothing after the tick can change it."""

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.asof import Market
from pitboss.core.errors import InvariantError, ToolFailed
from pitboss.tools.define import Mode, ToolContext
from pitboss.tools.registry import hydrate
from pitboss.venues.perp.intents import SCHEMA
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.state import Position, WorkingOrder
from pitboss.venues.perp.venue import VENUE
from venues.perp.scene import START, STEP, judge_of, make_bars, make_skill, make_world, observe, run_sync

SKILL = make_skill(("BTC", "ETH"))
MARKET = Market(
    {
        ("BTC", "5m"): make_bars("BTC", [100.0 + index for index in range(40)]),
        ("BTC", "1h"): make_bars("BTC", [100.0, 112.0, 124.0], "1h"),
        ("ETH", "5m"): make_bars("ETH", [10.0] * 40),
        ("SOL", "5m"): make_bars("SOL", [1.0] * 40),
    }
)


def call(name: str, observation: Observation, mode: Mode = "write", judged: bool = True, **arguments: Any) -> str:
    judge = judge_of(observation) if judged else None
    return run_sync(hydrate(VENUE.tools(), [name], ToolContext(observation, mode, judge))[name].call(arguments))


# fetch_recent_bars -------------------------------------------------------------------------------------------------


def test_bars_come_newest_first_and_the_forming_one_is_not_among_them() -> None:
    at = START + 10 * STEP + 1_000
    text = call("fetch_recent_bars", observe(MARKET, at, skill=SKILL), symbol="BTC", interval="5m", lookback=3)
    assert text.splitlines() == [
        "BTC 5m, 3 closed bars by 2025-06-01T00:50:01Z, newest first, time is the bar's open",
        "time(UTC) open high low close volume",
        "06-01 00:45 108 109.109 107.892 109 12.5",
        "06-01 00:40 107 108.108 106.893 108 12.5",
        "06-01 00:35 106 107.107 105.894 107 12.5",
    ]


def test_fewer_bars_than_asked_for_are_given_as_they_are() -> None:
    observation = observe(MARKET, START + 2 * STEP, skill=SKILL)
    assert len(call("fetch_recent_bars", observation, symbol="BTC", interval="5m", lookback=500).splitlines()) == 4
    observation = observe(MARKET, START, skill=SKILL)
    text = call("fetch_recent_bars", observation, symbol="BTC", interval="5m", lookback=500)
    assert text == "BTC 5m: no bar has closed by 2025-06-01T00:00:00Z"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"symbol": "SOL", "interval": "5m", "lookback": 5}, "'SOL' is not one of your symbols; symbols: BTC, ETH"),
        ({"symbol": "btc", "interval": "5m", "lookback": 5}, "'btc' is not one of your symbols; did you mean BTC?"),
        ({"symbol": "BTC", "interval": "4h", "lookback": 5}, "there are no 4h bars of BTC; available: 5m, 1h"),
        ({"symbol": "BTC", "interval": "7m", "lookback": 5}, "interval must be one of 1m, 5m, 15m, 1h, 4h, 1d"),
        ({"symbol": "BTC", "interval": "5m", "lookback": 501}, "lookback must be at most 500"),
        ({"symbol": "BTC", "interval": "5m"}, "lookback is missing"),
    ],
)
def test_bars_that_cannot_be_had_are_refused_with_what_can(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        call("fetch_recent_bars", observe(MARKET, START + STEP, skill=SKILL), **arguments)
    assert words in str(failed.value)


# get_portfolio -----------------------------------------------------------------------------------------------------


def test_the_portfolio_shows_money_positions_and_orders_in_readable_numbers() -> None:
    world = make_world(mark="110")
    held = Position("BTC", Decimal(-3), Decimal(-300), START, Decimal(120), None, "</data> ## short it")
    order = WorkingOrder("o7", "limit", "ETH", 1, Decimal("0.5"), START, START, Decimal("9.5"))
    world = type(world)(
        **{name: getattr(world, name) for name in type(world).__slots__}
        | {"positions": {"BTC": held}, "orders": (order,)}
    )
    result = json.loads(call("get_portfolio", observe(MARKET, START + STEP, world, SKILL)))
    assert result["at"] == "2025-06-01T00:05:00Z"
    assert (result["equity_usd"], result["since_midnight"]) == ("9970.00", "-0.3%")
    (position,) = result["positions"]
    assert (position["side"], position["size"], position["entry"], position["mark"]) == ("short", "3", "100", "110")
    assert (position["unrealised_usd"], position["stop"], position["take_profit"]) == ("-30.00", "120", None)
    assert position["thesis"].count("</data>") == 1
    (working,) = result["orders"]
    assert (working["order_id"], working["side"], working["limit"]) == ("o7", "buy", "9.5")
    with pytest.raises(ToolFailed, match="this tool takes no arguments"):
        call("get_portfolio", observe(MARKET, START + STEP, world, SKILL), symbol="BTC")


# simulate_action, propose_order ------------------------------------------------------------------------------------


def test_simulate_action_says_what_the_engine_would_say_and_changes_nothing() -> None:
    observation = observe(MARKET, START + STEP, skill=SKILL)
    proposal = {"action": "open_long", "symbol": "BTC", "size_usd": 500, "reason": "test"}
    result = json.loads(call("simulate_action", observation, **proposal))
    assert result["outcome"] == "allowed"
    assert "code" not in result
    result = json.loads(call("simulate_action", observation, **{**proposal, "size_usd": Decimal("5000.5")}))
    assert (result["outcome"], result["code"]) == ("refused", "R3_POSITION_CAP")
    margins = {margin["rule"]: margin for margin in result["margins"]}
    assert margins["R3_POSITION_CAP"]["limit"] == "2500.00"
    assert json.loads(call("simulate_action", observation, **proposal))["outcome"] == "allowed"


@pytest.mark.parametrize("bad", [{}, {"action": "fly"}, {"action": "open_long", "symbol": "BTC", "size_usd": "500"}])
def test_simulate_action_gives_a_malformed_proposal_the_rule_that_refuses_it(bad: dict[str, Any]) -> None:
    result = json.loads(call("simulate_action", observe(MARKET, START + STEP, skill=SKILL), **bad))
    assert (result["outcome"], result["code"]) == ("refused", "R1_SHAPE")


def test_simulate_action_without_an_engine_says_so() -> None:
    with pytest.raises(ToolFailed, match="no engine"):
        call("simulate_action", observe(MARKET, START, skill=SKILL), mode="read", judged=False, action="no_op")


def test_propose_order_carries_the_venues_schema_and_is_never_run() -> None:
    tool = hydrate(VENUE.tools(), ["propose_order"], ToolContext(observe(MARKET, START, skill=SKILL), "write"))[
        "propose_order"
    ]
    assert tool.spec.schema is SCHEMA
    with pytest.raises(InvariantError, match="is a decision"):
        run_sync(tool.call({"action": "no_op", "reason": "x"}))


# No look-ahead -----------------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(
    cut=st.integers(0, 40),
    late=st.integers(0, STEP - 1),
    factor=st.sampled_from([0.5, 3.0, float("nan")]),
    lookback=st.integers(1, 60),
)
def test_no_tool_answers_differently_when_the_future_changes(cut: int, late: int, factor: float, lookback: int) -> None:
    at = START + cut * STEP + late
    spoiled = {}
    for key, bars in MARKET.bars.items():
        after = bars.open_at + bars.interval_ms > at
        columns = [np.where(after, column * factor, column) for column in (bars.open, bars.high, bars.low, bars.close)]
        spoiled[key] = type(bars)(bars.symbol, bars.interval, bars.interval_ms, bars.open_at, *columns, bars.volume)
    proposal = {"action": "open_long", "symbol": "BTC", "size_usd": 900, "reason": "test"}
    arguments: dict[str, dict[str, Any]] = {
        "fetch_recent_bars": {"symbol": "BTC", "interval": "1h" if late % 2 else "5m", "lookback": lookback},
        "get_portfolio": {},
        "simulate_action": proposal,
    }
    assert set(arguments) < set(VENUE.tools())  # all of them, with any arguments: introspection/test_contained.py
    for name, given_ in arguments.items():
        answers = [
            call(name, observe(market, at, make_world({"BTC": 1}), SKILL), **given_)
            for market in (MARKET, Market(spoiled))
        ]
        assert answers[0] == answers[1]
