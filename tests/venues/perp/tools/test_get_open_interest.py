"""Open interest: level, change, history, and what is not known."""

import numpy as np

from pitboss.core.asof import Market
from pitboss.core.instant import HOUR_MS
from pitboss.core.market import Points
from venues.perp.scene import START, make_bars, make_world
from venues.perp.tools.demo_market import call


def market(values: list[float]) -> Market:
    at = START + HOUR_MS * np.arange(len(values), dtype=np.int64)
    return Market(
        {("BTC", "5m"): make_bars("BTC", [100.0] * 10)},
        {("open_interest", "BTC"): Points("BTC", "open_interest", at, np.array(values))},
    )


def tool_lines(values: list[float], hours_on: int, **arguments: object) -> list[str]:
    asked = {"symbol": "BTC", **arguments}
    return call(
        "get_open_interest", asked, market(values), START + hours_on * HOUR_MS, make_world(mark="50")
    ).splitlines()


def test_the_level_is_shown_in_coins_and_dollars_with_its_changes() -> None:
    values = [1_000.0] * 24 + [1_250.0, 1_500.0, 9_999.0]
    assert tool_lines(values, 25) == [
        "BTC open interest 1500 coins (about 75000 USD at the mark) at 2025-06-02T01:00:00Z; 1h: +20%, 24h: +50%"
    ]


def test_a_change_over_more_than_the_series_is_unknown() -> None:
    assert tool_lines([1_000.0, 900.0], 1)[0].endswith("1h: -10%, 24h: unknown, the series is shorter")


def test_a_series_from_nothing_has_no_percentage() -> None:
    assert tool_lines([0.0, 900.0], 1)[0].endswith("1h: from nothing, 24h: unknown, the series is shorter")
    assert "1h: no change" in tool_lines([0.0, 0.0], 1)[0]


def test_history_is_a_table_newest_first() -> None:
    assert tool_lines([10.0, 20.0, 40.0, 80.0], 2, hours=2)[1:] == [
        "last 2h: 2 values, from 20 to 40, mean 30",
        "time(UTC) coins, newest first",
        "06-01 02:00 40",
        "06-01 01:00 20",
    ]


def test_without_a_symbol_every_one_of_yours_has_a_line() -> None:
    lines = call("get_open_interest", {}, market([10.0]), START).splitlines()
    assert [line.split()[0].rstrip(":") for line in lines] == ["BTC", "ETH", "SOL"]
    assert lines[1] == "ETH: the open interest series is not in this run; nothing is known"


def test_a_stale_value_is_called_stale() -> None:
    assert "which is 3h old" in tool_lines([10.0, 10.0], 4)[0]
