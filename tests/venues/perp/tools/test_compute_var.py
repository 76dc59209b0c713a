"""Value at risk of an account: flat, one position, several, and one added in thought."""

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from pitboss.core.asof import Market
from pitboss.core.errors import ToolFailed
from venues.perp.scene import START, STEP, make_bars, make_skill, make_world
from venues.perp.tools.demo_market import SYMBOLS, call

RANDOM = np.random.default_rng(9)
SHARED = RANDOM.normal(0, 0.01, 600)
CLOSES = {
    "BTC": 100 * np.exp(np.cumsum(SHARED)),
    "ETH": 100 * np.exp(np.cumsum(SHARED)),
    "SOL": 100 * np.exp(np.cumsum(RANDOM.normal(0, 0.01, 600))),
}
MARKET = Market({(symbol, "5m"): make_bars(symbol, closes.tolist()) for symbol, closes in CLOSES.items()})
AT = START + 600 * STEP


def tool_lines(world: Any = None, at: int = AT, market: Market = MARKET, **arguments: Any) -> list[str]:
    asked = {"horizon": 1, "confidence": 95, **arguments}
    return call("compute_var", asked, market, at, world or make_world(), make_skill(SYMBOLS)).splitlines()


def figures(line: str) -> list[float]:
    return [float(found) for found in re.findall(r"([\d.]+) USD(?! added| alone)", line)]


def test_a_flat_account_risks_nothing() -> None:
    assert tool_lines() == [
        "value at risk over 1 bar of 5m at 95%, by 2025-06-03T02:00:00Z: 0, there is no open position"
    ]


def test_one_position_is_shown_by_both_methods_and_they_agree_on_normal_returns() -> None:
    lines = tool_lines(make_world({"BTC": 1}, mark="1000"))
    assert lines[0].endswith("from 599 joint returns")
    at_risk, shortfall, normal, normal_shortfall = figures(lines[1])
    assert at_risk == pytest.approx(1_000 * 0.01 * 1.645, rel=0.2)
    assert normal == pytest.approx(1_000 * 0.01 * 1.645, rel=0.1)
    assert shortfall > at_risk
    assert normal_shortfall == pytest.approx(normal * 2.063 / 1.645, rel=0.01)


def test_opposite_positions_in_the_same_thing_cancel_and_are_shown_alone_too() -> None:
    lines = tool_lines(make_world({"BTC": 1, "ETH": -1}, mark="1000"))
    assert figures(lines[1])[0] == pytest.approx(0.0, abs=0.01)
    assert lines[2].startswith("- BTC long 1000.00 USD alone: historical ")
    assert lines[3].startswith("- ETH short 1000.00 USD alone: historical ")


def test_a_position_added_in_thought_is_shown_and_changes_nothing() -> None:
    world = make_world({"BTC": 1}, mark="1000")
    lines = tool_lines(world, symbol="ETH", side="short", size_usd=1000, method="historical")
    assert lines[1] == tool_lines(world, method="historical")[1]
    assert lines[2].startswith("with ETH short 1000.00 USD added: historical 0")
    alone = tool_lines(symbol="SOL", side="long", size_usd=Decimal("500.5"), method="parametric")
    assert alone[1] == "account: 0, there is no open position"
    assert alone[2].startswith("with SOL long 500.50 USD added: parametric ")


def test_an_addition_that_is_not_whole_is_refused() -> None:
    with pytest.raises(ToolFailed, match="needs symbol, side and size_usd; only symbol, side given"):
        tool_lines(symbol="BTC", side="long")
    with pytest.raises(ToolFailed, match="not one of your symbols"):
        tool_lines(symbol="XRP", side="long", size_usd=5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"horizon": 0}, "horizon must be at least 1"),
        ({"confidence": 89}, "confidence must be at least 90"),
        ({"confidence": Decimal("99.91")}, "confidence must be at most 99.9"),
        ({"method": "magic"}, "method must be one of"),
        ({"size_usd": 0}, "size_usd must be at least 1"),
    ],
)
def test_arguments_are_bounded(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolFailed, match=words):
        tool_lines(**arguments)


def test_too_little_history_is_said() -> None:
    world = make_world({"BTC": 1})
    assert tool_lines(world, START + 31 * STEP)[0].endswith(
        "too little history, 30 joint returns; needed are 60 and 20 times the horizon"
    )
    assert "too little history" in tool_lines(world, START + 300 * STEP, horizon=20)[0]
    assert "too little history, 0 joint returns" in tool_lines(world, START)[0]
    assert "too little history, 0 joint returns" in tool_lines(make_world({"XRP": 1}))[0]


def test_a_tail_thinner_than_one_stretch_is_unknown_by_history_and_known_by_the_normal() -> None:
    line = tool_lines(make_world({"BTC": 1}), confidence=Decimal("99.9"))[1]
    assert "historical unknown: 599 stretches are too few for a tail at 99.9%" in line
    assert "parametric " in line
