"""Runs that write lessons, from the command line: paid, cached, killed, resumed, verified, replayed, forked and bundled."""

import hashlib
import os
import signal
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from pitboss_process import provider_environment, run_in_process, start_pitboss, wait_for_records

from pitboss.testing.provider import FakeProvider, Play, call, decide
from provider_thread import fake_provider

FIVE_HOURS = ("--from", "2025-03-20", "--to", "2025-03-20T05:00:00Z")
TICKS = 20
PRICES = ("--price-in", "1", "--price-out", "2")
SLOTS = ("entry_timing", "sizing", "symbol_selection", "exit_timing", "regime_fit")
SKILL = """\
pitboss: 1
name: lessons
venue: perp
model: standin/analyst
schedule: {every: 15m}
strategy: {mode: thesis, thesis: Trends go on., avoid: Ranges.}
context: {symbols: [SOL], bars_interval: 15m, bars_lookback: 40, memory: {trades: 4, reflection_every: 2}}
"""


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    path = tmp_path / "lessons.yaml"
    path.write_text(SKILL)
    return path


def trading_model(question: Mapping[str, Any]) -> Play:
    """In and out again at every second tick or so, and lessons that tell one reflection from another."""
    words = next(one["content"] for one in question["messages"] if one["role"] == "user")
    name = hashlib.sha256(words.encode()).hexdigest()
    if is_reflection(question):
        return call("write_lessons", dict.fromkeys(SLOTS, f"Lesson {name[:8]}."))
    if name[0] in "0123":
        return decide(question)
    if "no open positions" in words:
        return call("propose_order", {"action": "open_long", "symbol": "SOL", "size_usd": 500, "reason": "It turns."})
    return call("propose_order", {"action": "close", "symbol": "SOL", "reason": "Done."})


def is_reflection(question: Mapping[str, Any]) -> bool:
    return [tool["function"]["name"] for tool in question["tools"]] == ["write_lessons"]


def backtest(home: Path, skill: Path, server: FakeProvider, *words: str) -> Any:
    asked = ("backtest", skill, *FIVE_HOURS, "--model", "llm/fake", *PRICES, *words, "--json", "--home", home)
    return run_in_process(*asked, **provider_environment(server)).json


def snapshots(home: Path, run_id: str) -> list[dict[str, Any]]:
    result = run_in_process("runs", "export", run_id, "--what", "snapshots", "--home", home).out
    return [orjson.loads(line) for line in result.splitlines() if line.strip()]


def test_lessons_are_paid_for_once_and_every_way_of_doing_it_again_ends_in_the_same_digest(
    home: Path, skill: Path, tmp_path: Path
) -> None:
    with fake_provider(trading_model, 0.01) as server:
        alone = backtest(home, skill, server, "--speculate", "0")
        lessons = [question for question in server.questions if is_reflection(question)]
        assert len(lessons) >= 2
        assert server.calls == TICKS + len(lessons)
        assert alone["cost_usd"] == pytest.approx(server.calls * (1_000 * 1 + 50 * 2) / 1e6), "all of it is counted"
        calls = server.calls
        again = backtest(home, skill, server)
        assert (server.calls, again["cost_usd"]) == (calls, 0), "every answer was known"
        assert again["saved_usd"] == pytest.approx(alone["cost_usd"])
        other = tmp_path / "other"
        other.mkdir()
        (home / "lake").rename(other / "lake")
        ahead = backtest(other, skill, server)
        (other / "lake").rename(home / "lake")
    replayed = run_in_process(
        "backtest", skill, *FIVE_HOURS, "--model", f"replay/{alone['run_id']}", "--json", "--home", home
    ).json
    assert len({one["digest"] for one in (alone, again, ahead, replayed)}) == 1
    for run in (alone, again, replayed):
        assert run_in_process("runs", "verify", run["run_id"], "--home", home).code == 0
    rows = snapshots(home, alone["run_id"])
    assert sum("reflection" in row for row in rows) == len(lessons)
    fork = run_in_process(
        "runs", "fork", alone["run_id"], "--at", "2025-03-20T04:00:00Z", "--model", "policy/hold", "--home", home
    )
    assert fork.code == 0
    bundle = tmp_path / "run.zip"
    run_in_process("runs", "export", alone["run_id"], "--bundle", bundle, "--home", home)
    assert run_in_process("runs", "verify", bundle).code == 0
    with zipfile.ZipFile(bundle) as found:
        assert orjson.loads(found.read("manifest.json"))["answers"] == "used"
        answers = [orjson.loads(line) for line in found.read("answers.jsonl").splitlines()]
    assert len(answers) == calls, "those of the lessons are inside"
    assert all(answer["used"] for answer in answers)


@pytest.mark.chaos
def test_a_run_killed_between_lessons_goes_on_to_the_same_digest(home: Path, skill: Path, tmp_path: Path) -> None:
    with fake_provider(trading_model, 0.05) as server:
        asked = ("backtest", skill, *FIVE_HOURS, "--model", "llm/fake", *PRICES, "--speculate", "0", "--home", home)
        run = start_pitboss(*asked, **provider_environment(server))
        run_id = wait_for_records(run, home, 14)
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        done = run_in_process("runs", "resume", run_id, "--json", "--home", home, **provider_environment(server)).json
    assert (done["status"], done["ticks"]) == ("complete", TICKS)
    again = tmp_path / "again"
    again.mkdir()
    (home / "lake").rename(again / "lake")
    with fake_provider(trading_model) as server:
        assert backtest(again, skill, server, "--speculate", "0")["digest"] == done["digest"]
        assert sum(map(is_reflection, server.questions)) >= 2


@pytest.mark.chaos
def test_the_stand_in_reflects_too_and_a_policy_never_does(home: Path, skill: Path) -> None:
    days = ("--from", "2025-03-18", "--to", "2025-03-23")
    document = skill.read_text().replace("symbols: [SOL]", "symbols: [SOL, BTC, ETH]").replace("every: 2", "every: 3")
    skill.write_text(document)
    one = run_in_process("backtest", skill, *days, "--json", "--home", home).json
    other = run_in_process("backtest", skill, *days, "--json", "--home", home).json
    assert one["digest"] == other["digest"]
    rows = snapshots(home, one["run_id"])
    assert sum("reflection" in row for row in rows) >= 2
    assert run_in_process("runs", "verify", one["run_id"], "--home", home).code == 0
    replayed = run_in_process(
        "backtest", skill, *days, "--model", f"replay/{one['run_id']}", "--json", "--home", home
    ).json
    assert replayed["digest"] == one["digest"]
    at = next(row["tick_at"] for row in rows if "reflection" in row)
    result = run_in_process(
        "tools", "call", "get_decision_snapshot", f"at={at}", "--run", one["run_id"], "--home", home
    ).out
    assert "lessons were written first:" in result
    audited = run_in_process(
        "audit", "lookahead", "--run", one["run_id"], "--cuts", "20", "--json", "--home", home
    ).json
    assert audited["passed"]
    assert {"section Lessons", "section Trade history", "prompt", "state after the tick"} <= set(audited["covered"])
    for words in ((), ("--prompts",)):
        policy = run_in_process(
            "backtest", skill, *days, "--model", "policy/random", *words, "--json", "--home", home
        ).json
        assert not any("reflection" in row for row in snapshots(home, policy["run_id"]))
