"""`pitboss predict run`: live prices, the status endpoint, kills and stops of a real process, models that misbehave.

Where a process has to die it is one of its own; everything else runs the same code in this one, which saves starting it.
"""

import json
import os
import random
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pitboss_process import run_in_process, wait_for_exit
from predict_live_run import QUICK, PredictLive, after_ticks, killed_at_exit, live_on_prices

from example_counts import cases
from pitboss.cli.main import main
from pitboss.core.errors import RunCancelled
from pitboss.live.board import Entry
from pitboss.testing.provider import Play, call, hang
from provider_thread import fake_provider
from secret_search import leaks, leaks_below


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PredictLive]:
    with live_on_prices(tmp_path, monkeypatch) as found:
        yield found


# A run that goes well ----------------------------------------------------------------------------------------------------


def test_a_policy_trades_on_live_prices_and_the_run_is_kept_like_any_other(live: PredictLive) -> None:
    words = ("predict", "run", live.skill, *QUICK, "--model", "policy/alternate", "--ticks", "4", "--home", live.home)
    result = run_in_process(*words)
    began, *lines = [json.loads(line) for line in result.out.splitlines()]
    run_id = began["run_id"]
    assert (began["kind"], began["mode"], began["model"]) == ("began", "paper", "policy/alternate")
    assert f"run {run_id}, on paper, the markets of the schedule" in result.err
    assert "spends at most 2 a tick, 50 a day, 200 in all" in result.err
    ticks = [one for one in lines if one["kind"] == "tick"]
    assert [one["tick"] for one in ticks] == [1, 2, 3, 4]
    assert [one for one in ticks if one["intents"]], [one["flags"] for one in ticks]
    records = live.verified_records(run_id)
    assert [one["kind"] for one in records].count("tick") == 4
    assert records[-1]["kind"] == "close"
    filled = [one for record in records for one in record["receipts"] if one["kind"] == "filled"]
    assert filled
    assert sum(Decimal(one["facts"]["cost"]) for one in filled) <= 8
    listed = run_in_process("runs", "list", "--json", "--home", live.home).json
    assert [(one["run_id"], one["status"], one["ticks"], one["model"]) for one in listed] == [
        (run_id, "complete", 4, "policy/alternate")
    ]
    assert run_in_process("runs", "verify", run_id, "--home", live.home).out.startswith("OK ")


def test_signals_end_it_cleanly_another_start_goes_on_and_a_second_one_is_refused(
    live: PredictLive, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--model", "policy/alternate")
    with killed_at_exit(live.start(*words)) as process:
        began = live.read_until(process, "began")[0]
        live.read_until(process, "tick", 2)
        process.send_signal(signal.SIGTERM)
        assert wait_for_exit(process).code == 0
    run_id, records = began["run_id"], live.verified_records(began["run_id"])
    shown = run_in_process("runs", "show", run_id, "--json", "--home", live.home).json
    assert (shown["status"], shown["ticks"]) == ("cancelled", sum(one["kind"] == "tick" for one in records))
    with killed_at_exit(live.start(*words, "--resume")) as process:
        again = live.read_until(process, "began")[0]
        assert (again["run_id"], again["ticks"]) == (run_id, shown["ticks"])
        live.read_until(process, "tick")
        capsys.readouterr()
        assert main(["predict", "run", str(live.skill), *QUICK, *words, "--home", str(live.home)]) == 2
        assert f"run {run_id} of this skill is being worked on by another process" in capsys.readouterr().err
        run_in_process("runs", "cancel", run_id, "--home", live.home)
        ended = wait_for_exit(process)
        assert ended.code == 130
        assert "Traceback" not in ended.err
    assert run_in_process("runs", "show", run_id, "--json", "--home", live.home).json["status"] == "cancelled"
    assert len(live.verified_records(run_id)) > len(records)


def check_repeated_kills(live: PredictLive, kills: int, seed: int) -> None:
    """Kill it again and again, let it end, and look at what is left."""
    rng, runs = random.Random(seed), set[str]()
    words = ("--model", "policy/alternate", "--set", "risk.max_total_spend=7")
    for _ in range(kills):
        with killed_at_exit(live.start(*words)) as process:
            runs.add(live.read_until(process, "began")[0]["run_id"])
            live.read_until(process, "tick", rng.randint(1, 3))
            with suppress(subprocess.TimeoutExpired):  # anywhere within a period: while it waits, brings or commits
                process.wait(rng.random())
            process.kill()
            assert wait_for_exit(process).code == -signal.SIGKILL
    with killed_at_exit(live.start(*words)) as process:
        runs.add(live.read_until(process, "began")[0]["run_id"])
        live.read_until(process, "tick", 2)
        process.send_signal(signal.SIGINT)
        ended = wait_for_exit(process)
        assert (ended.code, "Traceback" in ended.err) == (130, False)
    (run_id,) = runs
    records = live.verified_records(run_id)
    ticks = [round(datetime.fromisoformat(one["tick_at"]).timestamp()) for one in records if one["kind"] == "tick"]
    assert ticks == sorted(set(ticks))
    assert ticks[-1] - ticks[0] + 1 <= len(ticks) + sum(one.get("missed", 0) for one in records)
    result = {one["seq"] for one in live.lines if "seq" in one}
    assert result <= {one["seq"] for one in records}, "nothing was told that was not kept"
    filled = [one for record in records for one in record["receipts"] if one["kind"] == "filled"]
    assert len({one["order_id"] for one in filled}) == len(filled)
    assert sum(Decimal(one["facts"]["cost"]) for one in filled) <= 7


@pytest.mark.chaos
def test_killed_at_any_moment_it_goes_on_with_the_same_run_and_spends_nothing_twice(live: PredictLive) -> None:
    check_repeated_kills(live, 1, 6)


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(4))
def test_killed_often_it_is_still_the_same_run(live: PredictLive, seed: int) -> None:
    check_repeated_kills(live, 12, seed)


# When things go wrong ----------------------------------------------------------------------------------------------------


def test_without_prices_no_model_is_called_and_the_run_continues_when_they_return(live: PredictLive) -> None:
    live.services.fault = lambda path: "down"

    def until(entries: list[Entry]) -> bool:
        if after_ticks(2)(entries):
            live.services.fault = lambda path: ""
        return bool(entries[-1].get("intents"))

    story = live.run_in_process(until, model="policy/alternate")
    first, second, *_ = story.ticks
    assert [first["flags"], second["flags"]] == [["no_feed"], ["no_feed"]]
    remarks = [one["detail"] for one in story.entries if one["kind"] == "remark"]
    assert remarks[0].startswith("feed: 127.0.0.1")
    assert "503" in remarks[0]
    assert story.health == {"ok": True}
    assert story.status["errors"] >= 2
    assert story.status["ticks"] == len(story.ticks)
    assert story.status["feed"]["symbol"] == "BTC"
    assert story.result is not None
    assert (story.result.how, story.result.run.status) == ("terminated", "cancelled")
    live.verified_records(story.run_id)


def minting_model(question: Mapping[str, Any]) -> Play:
    """A model that mints at once, more than it may, at the last market it is shown."""
    words = next(one["content"] for one in question["messages"] if one["role"] == "user")
    market = max(word.strip("|,") for word in words.split() if word.startswith("BTC-20"))
    wish = {"action": "mint", "market_id": market, "side": "YES", "strike": 68_000, "spend": 50, "confidence": 0.6}
    return call("submit_decision", {**wish, "reasoning": "<b>cheap</b>"})


SECRET = "llm/Canary+9f3aQ7xZb2-LIVEKEY"
PRICES = {"price_in": Decimal(1), "price_out": Decimal(2)}


def configure_model(url: str, patch: pytest.MonkeyPatch) -> None:
    for name, value in {"LLM_BASE_URL": url, "LLM_API_KEY": SECRET, "LLM_MODEL": "fake"}.items():
        patch.setenv(name, value)


def test_a_model_decides_within_its_caps_and_its_key_is_nowhere(
    live: PredictLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    def until(entries: list[Entry]) -> bool:
        return sum(bool(one.get("intents")) for one in entries) >= 2

    with fake_provider(minting_model) as server:
        configure_model(server.url, monkeypatch)
        story = live.run_in_process(until, model="llm", **PRICES)
    assert (story.status["strategy"], story.status["model"]) == ("llm", "llm")
    wishes = [one["verdicts"][0] for one in story.ticks if one["intents"]]
    assert {one["outcome"] for one in wishes} <= {"reduced", "refused"}
    assert "B9_SPEND_TICK" in {one["code"] for one in wishes}
    assert Decimal(story.status["costUsd"]) > 0
    assert story.status["actionFeed"]
    records = live.verified_records(story.run_id)
    assert any(one["extra"].get("prompt") for one in records if one["kind"] == "tick")
    printed = json.dumps([story.status, story.entries]).encode()
    assert leaks({"LLM_API_KEY": SECRET}, printed, "what was told") == []
    assert leaks_below({"LLM_API_KEY": SECRET}, live.home) == []


@pytest.mark.parametrize("limit", cases(("max_cost_usd", "max_cost_usd_per_day"), ("max_cost_usd",)))
def test_a_budget_that_is_used_up_makes_it_hold_with_a_flag_and_keep_serving(
    live: PredictLive, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    def until(entries: list[Entry]) -> bool:
        return sum("budget" in one.get("flags", ()) for one in entries) >= 2

    with fake_provider(minting_model) as server:
        configure_model(server.url, monkeypatch)
        # The worst case of one call is 4,096 tokens written, and every byte of the prompt read: some $0.018. It costs $0.0011.
        most = {limit: Decimal("0.02")}
        story = live.run_in_process(until, model="llm", **PRICES, **most)
        asked = server.calls
    held = [one for one in story.ticks if "budget" in one["flags"]]
    assert held[0]["intents"] == []
    assert "spent" in held[0]["reasoning"]
    assert 0 < Decimal(story.status["costUsd"]) <= Decimal("0.02")
    assert 0 < asked < len(story.ticks)
    assert story.health == {"ok": True}
    assert story.status["flags"]["budget"] >= 2


def test_a_model_that_hangs_makes_no_tick_late(live: PredictLive, monkeypatch: pytest.MonkeyPatch) -> None:
    def until(entries: list[Entry]) -> bool:
        return sum("deadline" in one.get("flags", ()) for one in entries) >= 2

    with fake_provider([hang]) as server:
        configure_model(server.url, monkeypatch)
        story = live.run_in_process(until, model="llm", **PRICES)
    assert {flag for one in story.ticks for flag in one["flags"]} <= {"deadline", "no_feed"}
    assert story.status["errors"] >= 2
    live.verified_records(story.run_id)


def test_a_second_ctrl_c_does_not_wait_for_a_model_that_hangs(
    live: PredictLive, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = [threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGINT)) for after_s in (0.2, 0.5)]

    def hanging(question: Mapping[str, Any]) -> Play:
        for timer in timers:
            timer.start()
        return hang

    with fake_provider(hanging) as server:
        configure_model(server.url, monkeypatch)
        # the first tick may be asked before there is a price: then the next one is
        with pytest.raises(RunCancelled):  # after one Ctrl-C the run returns once the model's deadline has passed
            live.run_in_process(lambda entries: False, model="llm", every_ms=4_000, **PRICES)
    (run,) = run_in_process("runs", "list", "--json", "--home", live.home).json
    assert run["status"] == "cancelled"
    live.verified_records(run["run_id"])


def test_llm_without_a_key_is_alternate_with_a_warning(
    live: PredictLive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mine.md").write_text("Buy what nobody wants.")
    given = {"STRATEGY": "llm", "NAME": "my brain", "TRADE_DUSDC": "0.5", "PROMPT_FILE": str(tmp_path / "mine.md")}
    for name, value in given.items():
        monkeypatch.setenv(f"AGENT_{name}", value)
    story = live.run_in_process(after_ticks(1))
    assert story.run_start is not None
    assert story.run_start.model == "policy/alternate"
    assert any("policy/alternate decides instead" in words for words in story.run_start.warnings)
    assert story.status["warnings"] == list(story.run_start.warnings)
    result = {name: story.status[name] for name in ("name", "strategy", "model", "mandate")}
    assert result == {"name": "my brain", "strategy": "alternate", "model": None, "mandate": "Buy what nobody wants."}
    assert story.status["config"]["tradeDusdc"] == "0.5"


# Mistakes ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "environment", "said"),
    [
        (("--host", "0.0.0.0"), {}, "other machines could read the status there"),
        (("--every", "100ms"), {}, "not from 1s to 1h"),
        (("--every", "0s"), {}, "not from 1s to 1h"),
        (("--equity", "0"), {}, "must be above zero"),
        (("--ticks", "0"), {}, "must be at least 1"),
        (("--port", "70000"), {}, "not from 0 to 65535"),
        (("--model", "policy/nobody"), {}, "policy/nobody"),
        (("--model", "policy/sma_cross"), {}, "sma_cross"),
        (("--model", "groq/llama-3.3-70b-versatile"), {}, "GROQ_API_KEY"),
        (("--resume", "--model", "policy/alternate"), {}, "there is no unfinished run"),
        (("--set", "risk.max_spend=1"), {}, "no such field"),
        (("--price-in", "1"), {}, "go together"),
        ((), {"AGENT_STRATEGY": "martingale"}, "AGENT_STRATEGY is 'martingale'"),
        ((), {"AGENT_TRADE_DUSDC": "lots"}, "AGENT_TRADE_DUSDC is 'lots'"),
        ((), {"AGENT_TICK_MS": "12.5"}, "AGENT_TICK_MS is '12.5'"),
        ((), {"AGENT_STATUS_PORT": "eighty"}, "AGENT_STATUS_PORT is 'eighty'"),
        ((), {"AGENT_PROMPT_FILE": "nowhere.md"}, "AGENT_PROMPT_FILE"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_no_run_behind(
    live: PredictLive,
    words: tuple[str, ...],
    environment: dict[str, str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    port = () if "--port" in words or environment else ("--port", "0")
    code = main(["predict", "run", str(live.skill), "--scheduled", *port, *words, "--home", str(live.home)])
    told = capsys.readouterr()
    assert (code, told.out) == (2, ""), told.err
    assert said in told.err
    assert told.err.count("error: ") == 1
    assert "Traceback" not in told.err
    assert live.runs() == 0


@pytest.mark.parametrize("text", ["", " \n", "buy\x07"])
def test_a_prompt_file_without_a_usable_text_is_one_line(
    live: PredictLive, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.md").write_text(text)
    monkeypatch.setenv("AGENT_PROMPT_FILE", str(tmp_path / "mine.md"))
    assert main(["predict", "run", str(live.skill), "--scheduled", "--port", "0", "--home", str(live.home)]) == 2
    told = capsys.readouterr().err
    assert "error: AGENT_PROMPT_FILE: its text must not" in told
    assert live.runs() == 0


def test_a_port_that_is_taken_leaves_no_run_behind(live: PredictLive, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        words = ["predict", "run", str(live.skill), "--scheduled", "--model", "policy/alternate", "--port", port]
        assert main([*words, "--home", str(live.home)]) == 2
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err
    assert live.runs() == 0


def test_a_skill_of_another_venue_is_refused(
    live: PredictLive, skill: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", "run", str(skill), "--home", str(live.home)]) == 2
    assert "perp" in capsys.readouterr().err
