"""`pitboss audit memory` from the command line: planted memories are found, guessing is not, and nothing is paid twice."""

import json
import shutil
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl
import pytest
from pitboss_process import provider_environment, run_in_process, start_pitboss, wait_for_exit, wait_for_records

from audit.memory_models import MarketMemory, guess, guessing_model, memorising_model, refusing_model
from pitboss.cli.main import main
from pitboss.core.instant import MINUTE_MS, parse_instant
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.data.series import TIME
from pitboss.testing.provider import FakeProvider, Script
from pitboss.venues.predict.venue import PredictVenue
from provider_thread import fake_provider

SKILL = """\
pitboss: 1
name: recall
venue: perp
model: policy/hold
schedule: {every: 1d}
strategy: {mode: thesis, thesis: Trends go on., avoid: Ranges.}
context: {symbols: [BTC, ETH, SOL], bars_interval: 1h, bars_lookback: 24, news_top_k: 0}
"""
RANGE = ("--from", "2025-03-01", "--to", "2025-03-25")
DAYS = 24
PRICES = ("--price-in", "1", "--price-out", "2")
ASKED = ("--model", "llm/fake", *RANGE, *PRICES)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("remembered")
    write_demo(Lake(home / "lake"), 7, 60)
    return home


@pytest.fixture
def home(tmp_path: Path, lake: Path) -> Path:
    shutil.copytree(lake / "lake", tmp_path / "home" / "lake")
    return tmp_path / "home"


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    path = tmp_path / "recall.yaml"
    path.write_text(SKILL)
    return path


@pytest.fixture
def run_with_script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ask in this process: a provider that plays a script, and the one document that comes back.

    The same address every time, as replies of another server would not be used again.
    """
    port = 0

    def ask(script: Script, home: Path, skill: Path, *words: str) -> tuple[dict[str, Any], FakeProvider]:
        nonlocal port
        with fake_provider(script, port=port) as server:
            port = int(server.url.removesuffix("/v1").rpartition(":")[2])
            for name, value in provider_environment(server).items():
                monkeypatch.setenv(name, value)
            result = run_in_process("audit", "memory", skill, *ASKED, *words, "--json", "--home", home)
        return result.json, server

    return ask


def findings(found: dict[str, Any]) -> dict[str, str]:
    return {one["about"]: one["finding"] for one in found["conclusions"]}


def test_a_planted_memory_is_found_in_names_and_in_results_and_again_for_nothing(
    run_with_script: Any, home: Path, lake: Path, skill: Path
) -> None:
    page = home.parent / "memory.html"
    words = ("--windows", "10", "--repeats", "3", "--cutoff", "2025-03-04", "--out", str(page))
    found, server = run_with_script(memorising_model(MarketMemory(lake)), home, skill, *words)
    assert found["verdict"] == "sign"
    assert findings(found)["naming"] == findings(found)["pairs"] == "sign"
    period = found["naming"]["period"]
    assert (period["hits"], period["of"], found["naming"]["asked"]) == (10, 10, 10)
    assert period["chance"] == pytest.approx(1 / len(found["naming"]["periods"]))
    pairs = found["pairs"]
    assert (pairs["days"], pairs["repeats"], pairs["found"]) == (DAYS, 3, 1)
    assert pairs["figures"]["total_return_pct"]["difference"]["interval"][0] > 0
    assert found["cutoff"]["range"] == "across"
    assert (found["split"]["before"]["days"], found["split"]["after"]["days"]) == (4, 20)
    assert found["cost_usd"] == pytest.approx(server.calls * (1_000 * 1 + 50 * 2) / 1e6)
    text = page.read_text()
    assert "SIGNS OF MEMORY" in text
    assert "<script" not in text

    again, server = run_with_script(memorising_model(MarketMemory(lake)), home, skill, *words)
    assert (server.calls, again["cost_usd"], again["runs_made_before"], again["windows_asked_now"]) == (0, 0, 6, 0)
    assert {**again, "cost_usd": 0, "runs_made_before": 0, "windows_asked_now": 0} == {
        **found, "cost_usd": 0, "runs_made_before": 0, "windows_asked_now": 0
    }  # fmt: skip

    runs = run_in_process("runs", "list", "--json", "--home", home).json
    assert sorted(run["run_id"] for run in runs) == sorted(run for pair in found["runs"] for run in pair.values())
    assert sum(run.get("blind", False) for run in runs) == 3
    assert run_in_process("runs", "verify", found["runs"][0]["blind"], "--home", home).code == 0


@pytest.mark.proof
def test_guessing_and_random_trading_are_no_sign_of_memory(run_with_script: Any, home: Path, skill: Path) -> None:
    found, _ = run_with_script(guessing_model, home, skill, "--windows", "20", "--repeats", "2")
    assert found["verdict"] == "no_sign"
    assert "sign" not in findings(found).values()
    assert found["cutoff"]["range"] == "unknown"
    assert found["split"] is None


def test_without_a_range_it_is_the_newest_month_of_the_data(home: Path, skill: Path) -> None:
    with fake_provider(refusing_model) as server:
        words = ("audit", "memory", skill, "--model", "llm/fake", *PRICES, "--windows", "3", "--repeats", "0", "--json")
        found = run_in_process(*words, "--home", home, **provider_environment(server)).json
    assert (found["from"], found["to"], found["ticks"]) == ("2025-03-02T00:00:00Z", "2025-04-01T00:00:00Z", 30)
    rows = run_in_process("models", "cutoffs", "--json").json
    assert {"models", "until", "kind", "source", "as_of"} == set(rows[0])


def test_refusals_count_as_wrong_and_are_shown(
    home: Path, skill: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_provider(refusing_model) as server:
        for name, value in provider_environment(server).items():
            monkeypatch.setenv(name, value)
        words = ("audit", "memory", skill, *ASKED, "--windows", "6", "--repeats", "0", "--home", home)
        assert main([str(word) for word in words]) == 0
    out = capsys.readouterr().out
    assert "Answers that could not be used count as wrong: 6 not readable." in out
    assert "no sign that it recognises the day" in out
    assert "no split: the training cutoff is unknown" in out
    assert "cost $0.0066" in out


@pytest.mark.chaos
def test_ctrl_c_keeps_everything_and_the_same_command_goes_on(home: Path, skill: Path) -> None:
    words = ("audit", "memory", skill, *ASKED, "--windows", "4", "--repeats", "1", "--json", "--home", home)
    with fake_provider(guessing_model, 0.05) as server:
        process = start_pitboss(*words, **provider_environment(server))
        wait_for_records(process, home, 3)
        process.send_signal(signal.SIGINT)
        stopped = wait_for_exit(process)
        assert stopped.code == 130, stopped.err
        assert stopped.json["partial"] == "stopped"
        assert stopped.json["naming"]["asked"] == 4, "the windows were done before"
        assert "the same command continues" in stopped.err
        done = run_in_process(*words, **provider_environment(server)).json
        times = Counter(orjson.dumps(question["messages"]) for question in server.questions)
    assert (done["partial"], done["windows_asked_now"], len(done["runs"])) == ("", 0, 1)
    assert sum(times.values()) - len(times) <= 8, "only what was under way was asked again"
    runs = run_in_process("runs", "list", "--json", "--home", home).json
    assert [run["status"] for run in runs] == ["complete", "complete"], "the stopped run is the one that went on"


def test_a_budget_is_kept_over_windows_and_runs_together(home: Path, skill: Path) -> None:
    words = ("audit", "memory", skill, *ASKED, "--windows", "4", "--repeats", "1", "--max-cost-usd", "0.05", "--json")
    with fake_provider(guessing_model) as server:
        result = run_in_process(*words, "--home", home, code=1, **provider_environment(server))
    assert "--max-cost-usd" in result.err
    found = result.json
    assert 0 < found["cost_usd"] <= 0.05
    assert found["naming"]["asked"] == 4
    assert found["pairs"] is None
    assert findings(found)["pairs"] == "cannot_tell"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "standin/analyst"), "was not trained on anything"),
        (("--model", "policy/hold"), "was not trained on anything"),
        (("--model", "llm/fake", "--windows", "-1"), "--windows: -1 is not from 0"),
        (("--model", "llm/fake", "--windows", "0", "--repeats", "0"), "there is nothing to do"),
        (("--model", "llm/fake", "--cutoff", "soon"), "is not a day for a cutoff"),
        (("--model", "llm/fake", "--out", "/nowhere/at/all.html"), "there is no folder"),
        (("--model", "llm/fake"), "is unknown"),
    ],
)
def test_a_mistake_is_said_in_one_line_and_nothing_is_stored(
    home: Path,
    skill: Path,
    words: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in {"LLM_BASE_URL": "http://127.0.0.1:9/v1", "LLM_API_KEY": "x", "LLM_MODEL": "fake"}.items():
        monkeypatch.setenv(name, value)
    assert main([str(word) for word in ("audit", "memory", skill, *RANGE, *words, "--home", home)]) == 2
    assert said in capsys.readouterr().err
    assert run_in_process("runs", "list", "--json", "--home", home).json == []


def test_every_report_states_the_cutoff_and_on_which_side_of_it_the_range_lies(
    home: Path, skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = ("--from", "2025-03-01", "--to", "2025-03-03")
    with fake_provider(guessing_model) as server:
        for name, value in provider_environment(server).items():
            monkeypatch.setenv(name, value)
        asked = run_in_process("backtest", skill, "--model", "llm/fake", *short, *PRICES, "--json", "--home", home).json
    assert asked["cutoff"]["range"] == "unknown"
    assert "unknown" in run_in_process("runs", "show", asked["run_id"], "--home", home).out
    assert "Training cutoff" in Path(asked["report"]).read_text()
    monkeypatch.setenv("PITBOSS_MODEL_CUTOFFS", "llm/fake=2025-06")
    shown = run_in_process("runs", "show", asked["run_id"], "--json", "--home", home).json
    assert (shown["cutoff"]["until"], shown["cutoff"]["range"]) == ("2025-06-30", "before")
    report = home.parent / "again.html"
    run_in_process("report", asked["run_id"], "--out", report, "--home", home)
    assert "2025-06-30; the range lies before it" in report.read_text()
    program = run_in_process("backtest", skill, *short, "--json", "--home", home).json
    assert program["cutoff"]["range"] == "not_applicable"
    assert "not applicable" in Path(program["report"]).read_text()
    assert json.loads(json.dumps(program["cutoff"])) == program["cutoff"]


def test_windows_are_asked_for_a_skill_of_another_venue_whose_runs_cannot_be_blind(
    run_with_script: Any, tmp_path: Path, skill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PredictVenue, "can_be_blind", False)
    skill.write_text("pitboss: 1\nname: updown\nvenue: predict\nmodel: llm/fake\nstrategy: {mandate: momentum}\n")
    at = np.arange(parse_instant("2025-02-27"), parse_instant("2025-03-25"), MINUTE_MS)
    price = 80_000 * np.exp(np.cumsum(np.random.default_rng(3).normal(0, 4e-4, len(at))))
    columns = {"open": price, "high": price * 1.001, "low": price * 0.999, "close": price, "volume": np.ones(len(at))}
    bars = pl.DataFrame({"open_at": pl.Series(at).cast(TIME), **columns})
    Lake(tmp_path / "home" / "lake").put("bars", "minutes", "BTC", "1m", bars)
    found, server = run_with_script(guess, tmp_path / "home", skill)
    assert (len(server.questions), found["windows"], found["repeats"]) == (40, 40, 0)
    assert found["not_compared"] == "runs of the predict venue cannot be blind"
