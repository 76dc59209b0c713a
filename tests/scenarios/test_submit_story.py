"""Backtests of both venues through the queue: the same run and report when workers are killed or stopped."""

import hashlib
import math
import os
import re
import signal
import sqlite3
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pitboss_process import provider_environment, run_in_process, start_pitboss, wait_for_exit, wait_for_records

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core import codec
from pitboss.core.instant import MINUTE_MS, iso, parse_instant
from pitboss.runs.run import job_of, request_of
from pitboss.testing.provider import Play, call
from provider_thread import fake_provider

START = parse_instant("2026-02-21T12:00:00Z")
BETS = """\
pitboss: 1
name: bets
venue: predict
model: standin/analyst
strategy: {mandate: momentum}
context: {tiers: [15m, 1h]}
risk: {max_spend_per_day: 20}
"""
TRENDS = """\
pitboss: 1
name: trends
venue: perp
model: standin/analyst
schedule: {every: 15m}
strategy: {mode: thesis, thesis: Trends go on., avoid: Ranges.}
context: {symbols: [SOL], bars_interval: 15m, bars_lookback: 40}
"""
HALF_AN_HOUR = ("--from", "2026-02-22T12:00:00Z", "--to", "2026-02-22T12:30:00Z")
SIX_HOURS = ("--from", "2025-03-20", "--to", "2025-03-20T06:00:00Z")
PAID = ("--model", "llm/fake", "--price-in", "1", "--price-out", "2", "--speculate", "0")
WORK = ("worker", "--idle-exit", "0s", "--processes", "0")


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day and an hour of one-minute bars."""
    rng, price, rows = Random(11), 64_000.0, ["open_time,open,high,low,close,volume"]
    for place in range(25 * 60):
        opens = price
        price = round(price * math.exp(rng.gauss(0, 0.0006)), 2)
        rows.append(f"{iso(START + place * MINUTE_MS)},{opens},{max(opens, price)},{min(opens, price)},{price},1")
    path = tmp_path_factory.mktemp("prices") / "btc.csv"
    path.write_text("\n".join(rows))
    return path


@pytest.fixture(autouse=True)
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are started by the tests."""
    monkeypatch.setenv("PITBOSS_EXECUTOR", "none")


@pytest.fixture
def bets_skill(tmp_path: Path) -> Path:
    path = tmp_path / "bets.yaml"
    path.write_text(BETS)
    return path


@pytest.fixture
def trends_skill(tmp_path: Path) -> Path:
    path = tmp_path / "trends.yaml"
    path.write_text(TRENDS)
    return path


def betting_model(question: Mapping[str, Any]) -> Play:
    """Holds, but for about one tick in eight, as the prompt says."""
    words = next(one["content"] for one in question["messages"] if one["role"] == "user")
    digest = hashlib.sha256(words.encode()).digest()
    found = re.findall(r"^(BTC-\S+) \|.*\| (\d+): YES", words, re.MULTILINE)
    if digest[0] % 8 or not found:
        return call("submit_decision", {"action": "hold", "reasoning": "Nothing."})
    name, strike = found[digest[1] % len(found)]
    mint = {"action": "mint", "market_id": name, "side": "YES", "strike": int(strike), "spend": 2}
    return call("submit_decision", {**mint, "confidence": 0.55, "reasoning": "It turns."})


def page(run: Mapping[str, Any]) -> str:
    """A report without what is of one run only: its id, and how long it took."""
    text = Path(run["report"]).read_text().replace(run["run_id"], "RUN")
    return re.sub(r"\b\d+(\.\d+)? ?(ms|s)\b", "TIME", text)


@pytest.mark.parametrize("venue", ["perp", "predict"])
def test_what_is_queued_ends_as_it_would_in_the_foreground_with_the_same_report(
    venue: str, home: Path, prices: Path, bets_skill: Path, trends_skill: Path
) -> None:
    words = {
        "perp": ("backtest", trends_skill, *SIX_HOURS),
        "predict": ("predict", "backtest", bets_skill, *HALF_AN_HOUR),
    }[venue]
    more = ("--prices", prices) if venue == "predict" else ()
    direct = run_in_process(*words, *more, "--json", "--home", home).json
    submitted = run_in_process("submit", *words[words.index("backtest") + 1 :], *more, "--json", "--home", home).json
    queued = run_in_process(*words, *more, "--queue", "--priority", "2", "--json", "--home", home).json
    for result in (submitted, queued):
        assert set(result) == {"run_id", "estimate"}
        assert {"usd", "lo", "hi", "basis"} <= set(result["estimate"])
    waiting = run_in_process("jobs", "list", "--json", "--home", home).json["runs"]
    assert [(one["run_id"], one["priority"], one["venue"]) for one in waiting] == [
        (queued["run_id"], 2, venue),
        (submitted["run_id"], 0, venue),
    ]
    assert run_in_process(*WORK, "--home", home).code == 0
    for result in (submitted, queued):
        run = run_in_process("runs", "show", result["run_id"], "--json", "--home", home).json
        assert (run["status"], run["digest"]) == ("complete", direct["digest"])
        assert run["metrics"] == direct["metrics"]
        assert run["report"] == str(home / "reports" / f"{run['run_id']}.html")
        assert page(run) == page(direct)
        assert run_in_process("runs", "verify", run["run_id"], "--home", home).out.strip() == f"OK {run['digest']}"
        shown = run_in_process("jobs", "show", run["run_id"], "--home", home).out
        assert "estimated cost: none" in shown
        assert run["report"] in shown.replace("\n", "")
    assert sorted(os.listdir(home / "reports")) == sorted(
        f"{one['run_id']}.html" for one in (direct, submitted, queued)
    )


def test_a_predict_run_is_estimated_from_its_own_prompt_limited_by_the_day_and_settled(
    home: Path, prices: Path, bets_skill: Path, lend_credentials: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_DAILY_USD", "2")
    words = ("submit", bets_skill, *HALF_AN_HOUR, "--prices", prices, *PAID, "--json", "--home", home)
    asked: list[int] = []

    def counting(question: Mapping[str, Any]) -> Play:
        said = "".join(one.get("content") or "" for one in question["messages"])
        asked.append(len(said) + len(str(question.get("tools", ""))))
        return betting_model(question)

    with fake_provider(counting) as server:
        lend_credentials(server)
        result = run_in_process(*words).json
        basis = " ".join(result["estimate"]["basis"])
        assert "30 ticks" in basis
        tokens = int(re.findall(r"([\d,]+) tokens a prompt", basis)[0].replace(",", ""))
        assert "measured on the prompt of the skill at the first tick" in basis
        assert server.calls == 0
        stored = run_in_process("jobs", "show", result["run_id"], "--json", "--home", home).json
        assert stored["estimate"] == result["estimate"]
        cap = Decimal(stored["max_cost_usd"])
        assert result["estimate"]["hi"] <= cap <= 2
        assert "daily_usd" in run_in_process(*words, code=2).err, "twice of that is more than a day has"
        assert run_in_process(*WORK, "--home", home).code == 0
    assert 0.8 < tokens * 4 / asked[0] < 1.25, "what was measured is what was asked"
    run = run_in_process("jobs", "show", result["run_id"], "--json", "--home", home).json
    assert run["status"] == "complete"
    assert 0 < run["cost_usd"] < cap
    spent = run_in_process("jobs", "show", result["run_id"], "--home", home).out
    assert f"of at most ${cap}" in spent
    with sqlite3.connect(home / "pitboss.db") as base:
        reserved = base.execute("SELECT count(*) FROM reservations").fetchone()[0]
    assert reserved == 0, "what was not spent came back"


@pytest.mark.chaos
def test_a_predict_run_whose_worker_was_killed_goes_on_elsewhere_and_ends_the_same(
    home: Path, prices: Path, bets_skill: Path, lend_credentials: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_COMMIT_RECORDS", "4")
    monkeypatch.setenv("PITBOSS_LEASE_HEARTBEAT_S", "0.2")
    monkeypatch.setenv("PITBOSS_LEASE_STALE_S", "0.6")
    monkeypatch.setenv("PITBOSS_SCAN_S", "0.1")
    words = (bets_skill, *HALF_AN_HOUR, "--prices", prices, *PAID, "--json", "--home", home)
    with fake_provider(betting_model, 0.04) as server:
        lend_credentials(server)
        run_id = run_in_process("submit", *words).json["run_id"]
        worker = start_pitboss(
            "worker", "--processes", "0", "--home", home, **{**os.environ, **provider_environment(server)}
        )
        assert wait_for_records(worker, home, 8) == run_id
        worker.send_signal(signal.SIGKILL)
        wait_for_exit(worker)
        assert run_in_process("worker", "--idle-exit", "1s", "--processes", "0", "--home", home).code == 0
        run = run_in_process("jobs", "show", run_id, "--json", "--home", home).json
        assert (run["status"], run["requeues"]) == ("complete", 1)
        calls = server.calls
        alone = run_in_process("predict", "backtest", *words).json
        assert server.calls == calls, "every answer was known"
    assert alone["digest"] == run["digest"]
    assert page(alone)
    assert Path(run["report"]).exists()


def test_waiting_writes_the_report_that_a_killed_worker_still_owed(
    home: Path, prices: Path, bets_skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pitboss.jobs import run_report as report

    result = run_in_process("submit", bets_skill, *HALF_AN_HOUR, "--prices", prices, "--json", "--home", home).json
    with monkeypatch.context() as patched:
        patched.setattr(report.ReportWriter, "schedule", lambda self, run: None)
        assert run_in_process(*WORK, "--home", home).code == 0
    assert run_in_process("runs", "show", result["run_id"], "--json", "--home", home).json["report"] is None
    monkeypatch.setattr(report, "GRACE_S", 0.0)
    (run,) = run_in_process("jobs", "wait", result["run_id"], "--json", "--home", home).json
    assert Path(run["report"]).exists()


@pytest.mark.parametrize("venue", ["perp", "predict"])
def test_repeats_are_queued_as_if_each_were_made_by_itself(
    venue: str, home: Path, prices: Path, bets_skill: Path, trends_skill: Path
) -> None:
    """The data under them is loaded and hashed once for all."""
    words = (trends_skill, *SIX_HOURS) if venue == "perp" else (bets_skill, *HALF_AN_HOUR, "--prices", prices)
    result = run_in_process("submit", *words, "--model", "policy/" + {"perp": "random", "predict": "alternate"}[venue],
                "--repeats", "3", "--json", "--home", home).json  # fmt: skip
    with open_workspace(load_settings(home)) as workspace:
        runs = [workspace.runs.get(run_id) for run_id in result["run_ids"]]
        assert [(run.params["seed"], run.params["repeat"]) for run in runs] == [(0, 0), (1, 1), (2, 2)]
        for run in runs:
            alone = job_of(workspace, request_of(run))
            assert {name: value for name, value in run.params.items() if name != "queued"} == codec.plain(alone.params)
            assert (run.data_digest, run.skill_id, run.model) == (alone.data_digest, alone.skill_id, alone.model)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("submit", "bets", "--fees-taker-bps", "3"), "--fees-taker-bps: backtests on the predict venue"),
        (("submit", "trends", "--vault", "3"), "--vault: backtests on the perp venue"),
        (("submit", "bets", "--queue"), "--queue"),
        (("backtest", "trends", "--priority", "3"), "--priority works only with --queue"),
        (("submit", "bets", "--equity", "0"), "above zero"),
        (("submit", "trends", "--repeats", "0"), "--repeats"),
        (("submit", "trends", "--speculate", "-1"), "--speculate"),
        (("submit", "trends", "--price-in", "1"), "go together"),
        (("jobs", "show", "nothing"), "nothing"),
    ],
)
def test_what_cannot_be_queued_gets_one_clear_line(
    home: Path, bets_skill: Path, trends_skill: Path, words: tuple[str, ...], said: str
) -> None:
    files = {"bets": (bets_skill, *HALF_AN_HOUR), "trends": (trends_skill, *SIX_HOURS)}
    filled = [part for word in words for part in files.get(word, (word,))]
    done = run_in_process(*filled, "--home", home, code=2)
    assert said in done.err
    assert done.err.count("error:") == 1
    assert run_in_process("jobs", "list", "--json", "--home", home).json["runs"] == []


def test_a_run_of_the_foreground_is_no_job(home: Path, trends_skill: Path) -> None:
    run = run_in_process("backtest", trends_skill, *SIX_HOURS, "--model", "policy/hold", "--json", "--home", home).json
    assert "was never queued" in run_in_process("jobs", "show", run["run_id"], "--home", home, code=2).err


@pytest.mark.parametrize("command", ["sweep", "arena"])
def test_a_study_of_a_predict_skill_takes_its_prices_and_ends_like_single_backtests(
    command: str, home: Path, prices: Path, bets_skill: Path
) -> None:
    own = ("--prices", prices, "--vault", "500000")
    varied = {
        "sweep": ("--vary", "risk.max_spend_per_day=10,20", "--model", "policy/alternate"),
        "arena": ("--models", "policy/alternate,policy/yes_only", "--baselines", "", "--repeats", "1"),
    }[command]
    where = (*HALF_AN_HOUR, "--json", "--home", home)
    result = run_in_process(command, bets_skill, *varied, *own, *where).json
    listed = run_in_process("study", "runs", result["study_id"], "--json", "--home", home).json
    alone = run_in_process("predict", "backtest", bets_skill, "--model", "policy/alternate", *own, *where).json
    assert alone["digest"] in {run["digest"] for run in listed}
    refused = run_in_process(command, bets_skill, *varied, *own, "--fees-taker-bps", "3", *where, code=2)
    assert "--fees-taker-bps: backtests on the predict venue have no such option" in refused.err
