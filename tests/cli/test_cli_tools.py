"""`pitboss tools`: listing, showing, and calling a tool as an agent would see it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from market_files import FROM, TO
from run_command import pitboss, pitboss_ok, pitboss_refused

from pitboss.core.instant import iso
from pitboss.venues.perp.venue import VENUE


@pytest.fixture
def run(finished_run: Callable[[str], dict[str, Any]]) -> str:
    """A stored run of three days by a policy that trades."""
    return finished_run("policy/sma_cross")["run_id"]


def test_every_tool_is_listed_and_can_be_shown() -> None:
    listed = pitboss_ok("tools", "list", "--json").json
    assert [tool["name"] for tool in listed] == list(VENUE.tools())
    text = pitboss_ok("tools", "list").out
    for name in VENUE.tools():
        assert name in text
        assert pitboss_ok("tools", "show", name, "--json").json["name"] == name
    assert "did you mean get_pnl_summary" in pitboss_refused("tools", "show", "get_pnl_sumary")


def test_a_tool_is_called_at_the_end_of_a_run_and_at_a_tick_in_the_middle(home: Path, run: str) -> None:
    ended = pitboss_ok("tools", "call", "get_pnl_summary", "--run", run, "--home", home, "--json").json
    assert (ended["at"], ended["mode"], ended["tool"]) == (f"{TO}T00:00:00Z", "read", "get_pnl_summary")
    at = "2025-06-03T12:00:00Z"
    middle = pitboss_ok("tools", "call", "get_pnl_summary", "--run", run[:6], "--at", at, "--home", home, "--json").json
    assert middle["at"] == at
    first, last = json.loads(middle["result"]), json.loads(ended["result"])
    assert first["windows"]["all"]["fills"] < last["windows"]["all"]["fills"]


def test_the_account_in_the_middle_is_that_of_a_run_that_ends_there(home: Path, skill: Path, run: str) -> None:
    words = ("backtest", skill, "--from", FROM, "--to", "2025-06-03T12:00:00Z", "--home", home, "--json")
    short = pitboss_ok(*words).json["run_id"]
    for name in (
        "get_portfolio",
        "get_current_position",
        "get_position_risk",
        "get_pnl_summary",
        "get_recent_decisions",
    ):
        there = pitboss_ok("tools", "call", name, "--run", run, "--at", "2025-06-03T12:00:00Z", "--home", home)
        assert there.out == pitboss_ok("tools", "call", name, "--run", short, "--home", home).out


def test_the_account_in_the_middle_is_the_one_that_was_recorded_there(home: Path, run: str) -> None:
    lines = pitboss_ok("runs", "export", run, "--what", "snapshots", "--home", home).lines
    (acting, *_) = [one for one in reversed(lines) if one.get("kind") == "tick" and one["before"]["positions"]]
    at = acting["tick_at"]
    moment = iso(at) if isinstance(at, int) else at
    result = pitboss_ok("tools", "call", "get_portfolio", "--run", run, "--at", moment, "--home", home)
    assert json.loads(result.out)["equity_usd"] == f"{float(acting['before']['equity_usd']):.2f}"
    sizes = {one["symbol"]: float(one["size"]) for one in json.loads(result.out)["positions"]}
    assert sizes == {
        symbol: pytest.approx(abs(float(one["size"]))) for symbol, one in acting["before"]["positions"].items()
    }


def test_calling_changes_nothing(home: Path, run: str) -> None:
    database = home / "pitboss.db"
    before = database.read_bytes(), sorted((file, file.stat().st_mtime_ns) for file in (home / "lake").rglob("*"))
    for name in ("get_portfolio", "get_recent_decisions", "get_engine_rejections"):
        pitboss_ok("tools", "call", name, "--run", run, "--at", "2025-06-03T12:00:00Z", "--home", home)
    after = database.read_bytes(), sorted((file, file.stat().st_mtime_ns) for file in (home / "lake").rglob("*"))
    assert after == before


def test_a_tool_is_called_for_a_skill_with_a_flat_account(home: Path, skill: Path) -> None:
    words = ("symbol=BTC", "interval=15m", "lookback=2")
    call = ("tools", "call", "fetch_recent_bars", *words, "--skill", skill, "--home", home)
    assert pitboss_ok(*call).out.startswith("BTC 15m, 2 closed bars by 2025-06-06T00:00:00Z")
    shown = pitboss_ok(*call, "--at", "2025-06-03T12:00:00Z", "--mode", "write", "--json").json
    assert (shown["at"], shown["mode"]) == ("2025-06-03T12:00:00Z", "write")
    assert shown["arguments"] == {"symbol": "BTC", "interval": "15m", "lookback": 2}
    assert "06-03 11:45" in shown["result"]
    as_json = json.dumps(shown["arguments"])
    again = ("tools", "call", "fetch_recent_bars", "--args", as_json, "--skill", skill, "--home", home)
    assert pitboss_ok(*again, "--at", "2025-06-03T12:00:00Z").out == shown["result"] + "\n"
    flat = pitboss_ok("tools", "call", "get_current_position", "--skill", skill, "--home", home)
    assert json.loads(flat.out)["positions"] == []


def test_a_tool_that_replays_recordings_finds_them_for_a_skill_too(home: Path, skill: Path, tmp_path: Path) -> None:
    call = ("tools", "call", "get_top_traders", "--skill", skill, "--home", home)
    assert pitboss_ok(*call).out.startswith("no answer about 5 top traders")
    file = tmp_path / "old.jsonl"
    file.write_text('{"known_at": "2025-06-03T12:00:00Z", "result": "a whale is long"}\n')
    pitboss_ok("mcp", "record", "hyperliquid-info-mcp", "top_traders", "--from", file, "--home", home)
    assert "a whale is long" in pitboss_ok(*call).out
    assert "no answer" in pitboss_ok(*call, "--at", "2025-06-03T11:45:00Z").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("mcp_time-mcp__get_current_time", "--run", "RUN"), "pitboss mcp test time-mcp --call get_current_time"),
        (("get_portfolio",), "give either --run or --skill"),
        (("get_portfolio", "--run", "zzz"), "zzz"),
        (("get_portfolios", "--run", "RUN"), "did you mean get_portfolio?"),
        (("propose_order", "--run", "RUN"), "Tool propose_order not allowed in mode read"),
        (("propose_order", "--run", "RUN", "--mode", "write"), "is the decision itself"),
        (("get_recent_decisions", "--run", "RUN", "--mode", "write"), "not allowed in mode write"),
        (("get_recent_decisions", "--run", "RUN", "count=many"), "count must be a"),
        (("get_recent_decisions", "--run", "RUN", "cuont=3"), "did you mean count?"),
        (("get_recent_decisions", "--run", "RUN", "count"), "is not name=value"),
        (("get_recent_decisions", "--run", "RUN", "count=1", "count=2"), "count is given twice"),
        (("get_recent_decisions", "--run", "RUN", "--args", "{"), "not valid JSON"),
        (("get_recent_decisions", "--run", "RUN", "--args", "[1]"), "must be a JSON object"),
        (("get_recent_decisions", "--run", "RUN", "count=1", "--args", "{}"), "not both"),
        (("get_portfolio", "--run", "RUN", "--at", "2025-06-03T12:01:00Z"), "is not a tick"),
        (("get_portfolio", "--run", "RUN", "--at", "2025-07-03"), "is outside run"),
        (("get_portfolio", "--skill", "SKILL", "--at", "2025-06-03T12:01:00Z"), "is not a tick of a 15m schedule"),
        (
            ("get_news_for_window", "--run", "RUN", "--at", "2025-06-03", "from=2025-06-02", "to=2025-06-04"),
            "nothing from later can be known",
        ),
    ],
)
def test_what_cannot_be_called_is_said_in_a_line(
    words: tuple[str, ...], message: str, home: Path, skill: Path, run: str
) -> None:
    typed = [{"RUN": run, "SKILL": str(skill)}.get(word, word) for word in words]
    assert message in pitboss_refused("tools", "call", *typed, "--home", home)


def test_the_help_of_call_has_examples() -> None:
    said = pitboss("tools", "call", "--help").out
    assert "pitboss tools call get_recent_decisions --run 3f9a count=5" in said
