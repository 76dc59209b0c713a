"""Short forms on the command line: `last` for a run, times before the end of the data."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from run_command import pitboss_ok, pitboss_refused


def test_a_range_is_counted_back_from_the_end_of_the_data_and_the_run_is_the_last(
    home: Path, skill: Path, finished_run: Callable[[str], dict[str, Any]]
) -> None:
    earlier = finished_run("policy/sma_cross")
    where = ("--home", home)
    run = pitboss_ok(
        "backtest", skill, "--from", "-2d", "--to", "-12h", "--model", "policy/hold", "--json", *where
    ).json
    assert (run["from"], run["to"]) == ("2025-06-04T00:00:00Z", "2025-06-05T12:00:00Z")
    assert pitboss_ok("runs", "show", "last", "--json", *where).json["run_id"] == run["run_id"]
    assert pitboss_ok("runs", "verify", "last~1", "--json", *where).json["run_id"] == earlier["run_id"]
    assert "the oldest is last~1" in pitboss_refused("report", "last~2", *where)

    message = pitboss_refused("backtest", skill, "--from", "-1d", "--model", "replay/last", *where)
    assert f"write replay/{run['run_id']}" in message


def test_a_time_that_is_not_before_the_end_is_refused(home: Path, skill: Path) -> None:
    asked = ("backtest", skill, "--home", home, "--model", "policy/hold")
    assert "--from: cannot read '-2x' as a time" in pitboss_refused(*asked, "--from", "-2x")
    assert "the range is empty" in pitboss_refused(*asked, "--from", "-1h", "--to", "-2h")
    assert "2025-06-01T00:00:00Z to" in pitboss_refused(*asked, "--from", "-900d")
    community = ("backtest", Path(__file__).parents[2] / "src/pitboss/venues/community/examples", "--home", home)
    example = sorted(community[1].glob("*.yaml"))[0]
    assert "write both ends of the range as dates" in pitboss_refused(
        "backtest", example, "--from", "-1d", "--home", home
    )
