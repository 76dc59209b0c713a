"""Runs that ask a provider over HTTP, from the command line: same digests, money kept, faults survived, nothing paid twice."""

import hashlib
import os
import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from program import begin, here, wait_for_records
from serving import served

from pitboss.testing import provider
from pitboss.testing.provider import FakeProvider, Play, call, decide

SIX_HOURS = ("--from", "2025-03-20", "--to", "2025-03-20T06:00:00Z")
TICKS = 24
PRICES = ("--price-in", "1", "--price-out", "2")


def trading(question: Mapping[str, Any]) -> Play:
    """Holds, but for about one tick in six, as the prompt says."""
    words = next(one["content"] for one in question["messages"] if one["role"] == "user")
    if hashlib.sha256(words.encode()).digest()[0] % 6:
        return decide(question)
    action: dict[str, Any] = {"action": "open_long", "symbol": "SOL", "size_usd": 500, "reason": "It turns."}
    if "no open positions" not in words:
        action = {"action": "close", "symbol": "SOL", "reason": "Done."}
    return call("propose_order", action)


def environment(server: FakeProvider, **more: str) -> dict[str, str]:
    return {"LLM_BASE_URL": server.url, "LLM_API_KEY": "test-key-123456", "LLM_MODEL": "fake", **more}


def backtest(home: Path, skill: Path, server: FakeProvider, *words: str, **more: str) -> Any:
    asked = ("backtest", skill, *SIX_HOURS, "--model", "llm/fake", *PRICES, *words, "--json", "--home", home)
    return here(*asked, **environment(server, **more)).json


def test_one_after_the_other_ahead_of_time_again_and_replayed_end_in_the_same_digest(home: Path, skill: Path) -> None:
    with served(trading, 0.02) as server:
        alone = backtest(home, skill, server, "--speculate", "0")
        assert (alone["ticks"], server.calls) == (TICKS, TICKS)
        assert alone["metrics"]["total_trades"] > 0
        again = backtest(home, skill, server)
        assert server.calls == TICKS, "every answer was known"
        assert (again["cost_usd"], again["saved_usd"]) == (0, alone["cost_usd"])
        other = home.parent / "other"
        other.mkdir()
        (home / "lake").rename(other / "lake")
        ahead = backtest(other, skill, server)
    assert ahead["wasted_usd"] <= 0.35 * (ahead["cost_usd"] - ahead["wasted_usd"])
    assert ahead["cost_usd"] - ahead["wasted_usd"] == pytest.approx(alone["cost_usd"])
    (other / "lake").rename(home / "lake")
    replayed = here(
        "backtest", skill, *SIX_HOURS, "--model", f"replay/{alone['run_id']}", "--json", "--home", home
    ).json
    assert len({one["digest"] for one in (alone, again, ahead, replayed)}) == 1
    assert here("runs", "verify", again["run_id"], "--home", home).code == 0


def test_a_fork_from_a_model_to_a_policy_says_who_decided_which_part(home: Path, skill: Path) -> None:
    at = "2025-03-20T03:00:00Z"
    with served(trading) as server:
        source = backtest(home, skill, server)
    branch = here("runs", "fork", source["run_id"], "--at", at, "--model", "policy/hold", "--json", "--home", home).json

    assert source["forked_from"] is None
    assert branch["forked_from"] == {"run_id": source["run_id"], "tick_at": at, "model": "llm/fake"}
    shown = here("runs", "show", branch["run_id"], "--json", "--home", home).json
    assert shown["forked_from"] == branch["forked_from"]
    assert [part["model"] for part in shown["decided_by"]] == ["llm/fake", "policy/hold"]
    assert shown["cutoff"]["range"] == "unknown", "a language model decided the first half"
    text = here("runs", "show", branch["run_id"], "--home", home).out
    page = Path(branch["report"]).read_text("utf-8")
    for place in (" ".join(text.split()), page):
        assert f"Fork of run {source['run_id']} at {at}" in place
        assert f"llm/fake from 2025-03-20T00:00:00Z to {at}, then policy/hold from {at}" in place
        assert "not a language model" not in place.lower()
        assert "decided by policy/hold," not in place.lower()
    listed = "".join(here("runs", "list", "--home", home).out.split())
    assert f"forkof{source['run_id'][:8]}" in listed
    assert "before:llm/fake" in listed


def test_a_budget_stops_a_run_before_the_call_that_could_pass_it_and_it_can_go_on(home: Path, skill: Path) -> None:
    with served(trading) as server:
        asked = ("backtest", skill, *SIX_HOURS, "--model", "llm/fake", *PRICES, "--max-cost-usd", "0.04")
        found = here(*asked, "--json", "--home", home, code=1, **environment(server)).json
        assert found["status"] == "error"
        assert found["errors"][0].startswith("budget: ")
        assert 0 < found["ticks"] < TICKS
        assert 0 < found["cost_usd"] <= 0.04
        words = ("runs", "resume", found["run_id"], "--max-cost-usd", "5", "--json", "--home", home)
        done = here(*words, **environment(server)).json
    assert (done["status"], done["ticks"]) == ("complete", TICKS)
    assert done["cost_usd"] > found["cost_usd"]


def test_an_unknown_price_is_refused_then_shown_as_unknown(home: Path, skill: Path) -> None:
    with served(decide) as server:
        asked = ("backtest", skill, *SIX_HOURS, "--model", "llm/fake", "--json", "--home", home)
        refused = here(*asked, code=2, **environment(server))
        assert server.calls == 0
        assert "is unknown" in refused.err
        assert here(*asked, "--yes", **environment(server)).json["cost_usd"] is None


FAULTS: dict[str, Play] = {
    "a storm of 429": provider.busy("0"),
    "errors of the server": provider.error(500),
    "hangs": provider.hang,
    "half bodies": provider.half,
    "no JSON": provider.garbage(),
    "slow drips": provider.drip,
    "resets": provider.reset,
    "another model's name": call("propose_order", provider.HOLD, model="somebody/else"),
    "empty replies": provider.say(""),
    "words": provider.say("I would rather not."),
}


LONG = ("errors of the server", "no JSON", "slow drips", "another model's name", "words")
"""Those whose like is among the others, or in the tests of the client; `make chaos` has them all."""


@pytest.mark.parametrize("fault", [pytest.param(one, marks=pytest.mark.chaos if one in LONG else ()) for one in FAULTS])
def test_whatever_a_provider_does_every_tick_is_accounted_for(home: Path, skill: Path, fault: str) -> None:
    """Two of three calls go wrong; the run ends, in time, with every tick recorded."""
    count = 0

    def script(question: Mapping[str, Any]) -> Play:
        nonlocal count
        count += 1
        return FAULTS[fault] if count % 3 else decide(question)

    patience = {"PITBOSS_MODEL_TIMEOUT_S": "0.3", "PITBOSS_MODEL_ATTEMPTS": "2", "PITBOSS_MODEL_DEADLINE_S": "1"}
    short = ("--from", "2025-03-20", "--to", "2025-03-20T02:00:00Z")
    with served(script) as server:
        asked = ("backtest", skill, *short, "--model", "llm/fake", *PRICES, "--json", "--home", home)
        found = here(*asked, **environment(server, PITBOSS_MODEL_ERRORS="100", **patience)).json
    funnel = found["metrics"]["funnel"]
    assert (found["status"], found["ticks"], funnel["ticks"], funnel["asked"]) == ("complete", 8, 8, 8)
    assert sum(found["metrics"]["noops_by_flag"].values()) == 8
    assert found["wall_s"] < 8 * 6  # at most a forced question and two rescues a tick, each within its deadline
    assert here("runs", "verify", found["run_id"], "--home", home).code == 0


def test_five_failures_in_a_row_end_a_run_that_can_be_resumed(home: Path, skill: Path) -> None:
    with served([provider.error(503)]) as server:
        asked = ("backtest", skill, *SIX_HOURS, "--model", "llm/fake", *PRICES, "--speculate", "0", "--json")
        broken = here(*asked, "--home", home, code=1, **environment(server, PITBOSS_MODEL_ATTEMPTS="1"))
        assert broken.json["ticks"] == 5
        server.script = decide
        words = ("runs", "resume", broken.json["run_id"], "--json", "--home", home)
        done = here(*words, **environment(server)).json
    assert (done["status"], done["ticks"]) == ("complete", TICKS)


def test_a_bad_key_is_said_at_once(home: Path, skill: Path) -> None:
    with served([provider.error(401, "Invalid API Key", code="invalid_api_key")]) as server:
        asked = ("backtest", skill, *SIX_HOURS, "--model", "llm/fake", *PRICES, "--speculate", "0", "--home", home)
        refused = here(*asked, code=2, **environment(server))
    assert server.calls == 1
    assert "key" in refused.err


@pytest.mark.parametrize(("speculate", "under_way"), [pytest.param("0", 1, marks=pytest.mark.chaos), ("4", 5)])
def test_an_answer_that_came_is_never_paid_for_again_after_a_kill(
    home: Path, skill: Path, speculate: str, under_way: int
) -> None:
    """Killed where it stands and resumed: only the questions that were under way may be asked again."""
    with served(trading, 0.05) as server:
        asked = (
            "backtest",
            skill,
            *SIX_HOURS,
            "--model",
            "llm/fake",
            *PRICES,
            "--speculate",
            speculate,
            "--home",
            home,
        )
        run = begin(*asked, **environment(server))
        run_id = wait_for_records(run, home, 5)
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        done = here("runs", "resume", run_id, "--json", "--home", home, **environment(server)).json
        times = Counter(orjson.dumps(question["messages"]) for question in server.questions)
    assert (done["status"], done["ticks"]) == ("complete", TICKS)
    assert len(times) == TICKS if speculate == "0" else len(times) >= TICKS
    assert sum(times.values()) - len(times) <= under_way
    again = home.parent / "again"
    again.mkdir()
    (home / "lake").rename(again / "lake")
    with served(trading) as server:
        assert backtest(again, skill, server, "--speculate", "0")["digest"] == done["digest"]


def test_a_server_that_speaks_only_responses_decides_every_tick_and_gets_its_reasoning_back(
    home: Path, skill: Path
) -> None:
    """Chat completions are refused once; the run goes on by Responses, with tools, and its digest verifies."""

    def script(question: Mapping[str, Any]) -> Play:
        if len(question["input"]) == 1 and len(question.get("tools", ())) > 1:
            return call("get_portfolio", {})
        return decide(question)

    with served(script, path="/responses") as server:
        run = backtest(home, skill, server, "--speculate", "0")
    assert (run["status"], run["ticks"]) == ("complete", TICKS)
    assert [question for question in server.questions if "messages" in question] == server.questions[:1]
    second = next(question for question in server.questions if len(question.get("input", ())) > 1)
    kinds = [item.get("type") for item in second["input"]]
    assert kinds == [None, "reasoning", "function_call", "function_call_output"]
    assert here("runs", "verify", run["run_id"], "--home", home).code == 0
