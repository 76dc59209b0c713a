"""Studies from the command line with a paid provider: estimated, agreed to, stopped, resumed, never paid twice."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from pitboss_process import provider_environment, run_in_process, start_pitboss, wait_for_exit, wait_for_records

from pitboss.testing.provider import decide
from provider_thread import fake_provider

SKILL = """\
pitboss: 1
name: story
venue: perp
model: llm/fake
schedule: {every: 15m}
strategy: {mode: thesis, thesis: Trends go on., avoid: Ranges.}
context: {symbols: [SOL], bars_interval: 15m, bars_lookback: 40}
"""
TICKS = 24
SIX_HOURS = ("--from", "2025-03-20", "--to", "2025-03-20T06:00:00Z")
PRICES = ("--price-in", "1", "--price-out", "2", "--speculate", "0")
HERE = ("--executor", "here")


@pytest.fixture
def study_skill(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(SKILL)
    return path


def test_a_second_study_of_the_same_questions_calls_no_model(
    home: Path, study_skill: Path, lend_credentials: Any
) -> None:
    vary = ("--vary", "run.maker_bps=1,2,3", "--repeats", "2", "--concurrency", "6")
    words = ("sweep", study_skill, *SIX_HOURS, *PRICES, *HERE, *vary, "--json", "--home", home)
    with fake_provider(decide) as server:
        lend_credentials(server)
        first = run_in_process(*words).json
        assert server.calls == 2 * TICKS, "fees nobody meets ask the same questions; repeats do not share their answers"
        second = run_in_process(*words, "--name", "again").json
        assert server.calls == 2 * TICKS
    assert first["study_id"] != second["study_id"]
    assert (second["cost_usd"], first["cost_usd"] > 0) == (0, True)
    assert second["saved_usd"] == pytest.approx(first["cost_usd"] + first["saved_usd"])
    estimated = first["estimate"]
    assert 0 < first["cost_usd"] + first["saved_usd"] <= estimated["hi"]
    assert second["estimate"]["usd"] == pytest.approx(first["cost_usd"] + first["saved_usd"], rel=0.2), (
        "from earlier runs"
    )
    assert "earlier runs of this skill and model" in " ".join(second["estimate"]["basis"])


def test_a_pilot_foretells_the_cost_within_a_fifth(home: Path, study_skill: Path, lend_credentials: Any) -> None:
    words = ("sweep", study_skill, *SIX_HOURS, *PRICES, *HERE, "--vary", "seed=0,1", "--json", "--home", home)
    with fake_provider(decide) as server:
        lend_credentials(server)
        result = run_in_process(*words, "--pilot", "--estimate").json["estimate"]
        assert server.calls == 5
        found = run_in_process(*words).json
    assert "pilot" in " ".join(result["basis"])
    assert found["cost_usd"] + found["saved_usd"] == pytest.approx(result["usd"], rel=0.2)


def test_more_than_five_dollars_are_not_spent_without_a_word(
    home: Path, study_skill: Path, lend_credentials: Any
) -> None:
    dear = ("--price-in", "1000", "--price-out", "1000", "--speculate", "0")
    words = ("sweep", study_skill, *SIX_HOURS, *dear, *HERE, "--vary", "seed=0", "--home", home)
    with fake_provider(decide) as server:
        lend_credentials(server)
        refused = run_in_process(*words, code=2)
        assert "this may cost $" in refused.err
        assert "--yes" in refused.err
        limited = run_in_process(*words, "--yes", code=2)
        assert "may spend $5 a day" in limited.err
        assert "daily_usd" in limited.err
        assert server.calls == 0
        assert run_in_process("runs", "list", "--json", "--home", home).json == []
        result = run_in_process(*words, "--estimate", "--json").json
        assert result["estimate"]["usd"] > 5


def test_the_same_command_with_a_higher_limit_goes_on_with_the_runs_that_met_theirs(
    home: Path, study_skill: Path, lend_credentials: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_DAILY_USD", "2")
    words = ("sweep", study_skill, *SIX_HOURS, *PRICES, *HERE, "--vary", "seed=0,1", "--json", "--home", home)
    with fake_provider(decide) as server:
        lend_credentials(server)
        stopped = run_in_process(*words, "--max-cost-usd", "0.03", code=1)
        assert stopped.json["counts"] == {"error": 2}
        assert "resume with a higher --max-cost-usd" in stopped.err
        asked = server.calls
        assert 0 < asked < TICKS
        done = run_in_process(*words, "--max-cost-usd", "0.5").json
        assert done["study_id"] == stopped.json["study_id"]
        assert done["counts"] == {"complete": 2}
        assert server.calls == TICKS, "nothing was asked again"
    runs = run_in_process("study", "runs", done["study_id"], "--json", "--home", home).json
    shown = [run_in_process("jobs", "show", run["run_id"], "--json", "--home", home).json for run in runs]
    assert {run["max_cost_usd"] for run in shown} == {"0.5"}
    spend = run_in_process("runs", "spend", "--home", home)
    assert "$0 is reserved" in spend.err
    assert f"today ${done['cost_usd']:.6f}".rstrip("0") in spend.err


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(
    home: Path, study_skill: Path, lend_credentials: Any
) -> None:
    words = ("sweep", study_skill, *SIX_HOURS, *PRICES, *HERE, "--vary", "seed=0..2", "--concurrency", "2")
    with fake_provider(decide, 0.03) as server:
        process = start_pitboss(*words, "--json", "--home", home, **provider_environment(server))
        wait_for_records(process, home, 5)
        process.send_signal(signal.SIGINT)
        stopped = wait_for_exit(process)
        assert stopped.code == 130, stopped.err
        assert "the same command continues" in stopped.err
        counts = stopped.json["counts"]
        assert set(counts) <= {"complete", "cancelled"}
        before = server.calls
        lend_credentials(server)
        found = run_in_process(*words, "--json", "--home", home).json
        assert found["counts"] == {"complete": 3}
        assert before < server.calls <= TICKS + 2, (
            "answers are kept and shared; what was on its way when it was stopped may not be"
        )
    kept = [f"{found['study_id']}.{kind}" for kind in ("jsonl", "lock", "luck")]
    assert sorted(os.listdir(home / "studies")) == kept
    assert run_in_process("study", "runs", found["study_id"], "--home", home).out.count("complete") == 3


def test_an_arena_holds_a_model_against_programs_and_writes_a_page(
    home: Path, study_skill: Path, lend_credentials: Any, tmp_path: Path
) -> None:
    out = tmp_path / "arena.html"
    words = ("arena", study_skill, *SIX_HOURS, *PRICES, *HERE, "--models", "llm/fake", "--repeats", "2", "--home", home)
    with fake_provider(decide, 0.002) as server:
        lend_credentials(server)
        found = run_in_process(*words, "--json", "--out", out).json
        assert server.calls == 2 * TICKS
    model = next(entry for entry in found["entries"] if entry["model"] == "llm/fake")
    assert (model["repeats"], model["baseline"], model["decided"]) == (2, False, 1)
    assert model["cost_usd"] > 0
    assert model["latency_ms"] >= 2
    assert {entry["tier"] for entry in found["entries"]} == {1}, "a few hours tell nobody apart"
    assert "llm/fake" in out.read_text("utf-8")
    shown = run_in_process("study", "show", found["study_id"][:6], "--home", home).out
    assert "llm/fake" in shown
    assert "0 of 6 pairs differ significantly" in shown


def test_mistakes_are_one_line_each(home: Path, study_skill: Path) -> None:
    for words, said in (
        (("--vary", "risk.max_lever=1"), "no such field"),
        (("--vary", "context.bars_lookback=50..200"), "a grid needs a step"),
        (("--vary", "seed=0", "--by", "sharp"), "no metric 'sharp'"),
        (("--vary", "seed=0", "--walk-forward", "30"), "is not two lengths"),
        (("--vary", "seed=0", "--random", "3", "--search", "3"), "two ways"),
        (("--vary", "seed=0", "--repeats", "0"), "--repeats"),
        (("--vary", "seed=0", "--concurrency", "0"), "--concurrency"),
    ):
        result = run_in_process(
            "sweep", study_skill, *SIX_HOURS, "--model", "policy/hold", *words, "--home", home, code=2
        )
        assert said in result.err
        assert result.err.count("error:") == 1


def test_submitting_queues_what_a_backtest_would_run_and_says_what_it_will_cost(
    home: Path, study_skill: Path, lend_credentials: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_EXECUTOR", "none")
    words = ("submit", study_skill, *SIX_HOURS, "--home", home)
    free = run_in_process(*words, "--model", "policy/momentum", "--priority", "3", "--json").json
    assert (free["estimate"]["usd"], free["estimate"]["lo"], free["estimate"]["hi"]) == (0, 0, 0)
    assert run_in_process("runs", "show", free["run_id"], "--json", "--home", home).json["status"] == "queued"
    with fake_provider(decide) as server:
        lend_credentials(server)
        paid = run_in_process(*words, *PRICES, "--repeats", "2", "--json").json
        assert 0 < paid["estimate"]["lo"] < paid["estimate"]["usd"] < paid["estimate"]["hi"] < 5
        assert "measured on the prompt" in " ".join(paid["estimate"]["basis"])
        assert len(paid["run_ids"]) == 2
        refused = run_in_process(*words, "--price-in", "1000", "--price-out", "1000", code=2)
        assert "needs your consent" in refused.err
        assert server.calls == 0
    queued = run_in_process("jobs", "list", "--json", "--home", home).json
    assert [run["run_id"] for run in queued["runs"]].count(free["run_id"]) == 1
    assert queued["ready"] == 3
