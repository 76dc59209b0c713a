"""Funding: sign, units, annualising, and what is not known."""

from typing import Any

import numpy as np
import pytest

from pitboss.core.asof import Market
from pitboss.core.errors import ToolFailed
from pitboss.core.instant import HOUR_MS
from pitboss.core.market import Points
from venues.perp.scene import START, make_bars, make_world
from venues.perp.tools.demo_market import call


def market(rates: list[float], hours: int = 1, late: int = 0) -> Market:
    at = START + HOUR_MS * hours * np.arange(len(rates), dtype=np.int64) + late
    return Market(
        {("BTC", "5m"): make_bars("BTC", [100.0] * 10)},
        {("funding", "BTC"): Points("BTC", "funding", at, np.array(rates))},
    )


def tool_lines(rates: list[float], at: int, world: Any = None, apart: int = 1, **arguments: Any) -> list[str]:
    asked = {"symbol": "BTC", **arguments}
    return call("get_funding_rate", asked, market(rates, apart, 48), at, world or make_world()).splitlines()


def test_the_last_known_rate_is_shown_with_what_it_costs() -> None:
    assert tool_lines([0.0001, 0.0000125, 0.5], START + HOUR_MS + 60_000) == [
        "BTC funding, last known 0.00125% for 1h at 2025-06-01T01:00:00.048Z; longs pay shorts",
        "annualised 10.95%; a 1000 USD long pays 0.01 USD an hour at this rate, a short the opposite; "
        "the next rate is not known yet",
    ]


def test_a_negative_rate_is_paid_by_shorts_and_a_short_held_pays_it() -> None:
    lines = tool_lines([-0.0002, -0.0002], START + 2 * HOUR_MS - 1, make_world({"BTC": -2}, mark="500"))
    assert "shorts pay longs" in lines[0]
    assert "a 1000 USD long receives 0.20 USD an hour" in lines[1]
    assert lines[2] == "your short of 1000.00 USD pays 0.20 USD an hour at this rate"
    lines = tool_lines([-0.0002, -0.0002], START + 2 * HOUR_MS - 1, make_world({"BTC": 2}, mark="500"))
    assert lines[2] == "your long of 1000.00 USD receives 0.20 USD an hour at this rate"


def test_rates_for_eight_hours_are_annualised_by_the_hour_too() -> None:
    lines = tool_lines([0.0008] * 4, START + 24 * HOUR_MS + 1_000, apart=8)
    assert "0.08% for 8h" in lines[0]
    assert lines[1].startswith("annualised 87.6%; a 1000 USD long pays 0.10 USD an hour")


def test_history_has_its_mean_its_range_and_a_table_newest_first() -> None:
    rates = [0.0001, 0.0003, -0.0001, 0.9]
    lines = tool_lines(rates, START + 2 * HOUR_MS + 48, hours=2)
    assert lines[2:] == [
        "last 2h: 2 rates, mean 0.01% (annualised 87.6%), from -0.01% to 0.03%, sum 0.02%, 1 of them paid by longs",
        "time(UTC) rate, newest first",
        "06-01 02:00 -0.01%",
        "06-01 01:00 0.03%",
    ]


def test_an_old_rate_is_called_old_and_a_span_without_any_says_so() -> None:
    lines = tool_lines([0.0001, 0.0001], START + 30 * HOUR_MS, hours=5)
    assert "which is 1d 4h old" in lines[0]
    assert lines[-1] == "no rate in the last 5h"


def test_a_series_that_is_missing_or_has_not_begun_is_named_as_that() -> None:
    bare = Market({("BTC", "5m"): make_bars("BTC", [100.0] * 10)})
    assert call("get_funding_rate", {"symbol": "BTC"}, bare, START) == (
        "BTC: the funding series is not in this run; no rate is known"
    )
    assert tool_lines([0.1], START - 5) == ["BTC: the funding series has no value yet; no rate is known"]


@pytest.mark.parametrize("hours", [-1, 169, "5"])
def test_the_span_is_bounded(hours: Any) -> None:
    with pytest.raises(ToolFailed, match="hours must be"):
        tool_lines([0.1], START, hours=hours)


def test_a_series_finer_than_hours_shows_its_newest_rows_only() -> None:
    minutes = np.arange(600, dtype=np.int64) * 60_000 + START
    fine = Market(
        {("BTC", "5m"): make_bars("BTC", [1.0])},
        {("funding", "BTC"): Points("BTC", "funding", minutes, np.full(600, 1e-6))},
    )
    lines = call("get_funding_rate", {"symbol": "BTC", "hours": 168}, fine, START + 600 * 60_000).splitlines()
    assert "432 older ones left out" in lines[3]
    assert len(lines) == 4 + 168
