"""A skill of the predict venue over the past, through the program: run, verify, export, fork, bundle, refuse clearly."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pitboss_process import run_in_process

from pitboss.core.instant import MINUTE_MS, iso, parse_instant
from pitboss.testing.provider import Play, call
from provider_thread import fake_provider

START = parse_instant("2026-02-21T12:00:00Z")
RANGE = ("--from", "2026-02-22T12:00:00Z", "--to", "2026-02-22T15:00:00Z")
SKILL = """\
pitboss: 1
name: bets
venue: predict
model: standin/analyst
strategy: {mandate: momentum}
context: {tiers: [15m, 1h]}
risk: {max_spend_per_day: 20}
"""


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-eight hours of one-minute bars."""
    rng, price, rows = Random(7), 64_000.0, ["open_time,open,high,low,close,volume"]
    for place in range(28 * 60):
        opens = price
        price = round(price * math.exp(rng.gauss(0, 0.0006)), 2)
        at = iso(START + place * MINUTE_MS)
        rows.append(f"{at},{opens},{max(opens, price)},{min(opens, price)},{price},1")
    path = tmp_path_factory.mktemp("prices") / "btc.csv"
    path.write_text("\n".join(rows))
    return path


@pytest.fixture
def bets(tmp_path: Path) -> Path:
    path = tmp_path / "bets.yaml"
    path.write_text(SKILL)
    return path


def test_a_file_of_prices_serves_each_underlying_that_it_is_given_for(tmp_path: Path, prices: Path, bets: Path) -> None:
    words = ("predict", "backtest", bets, *RANGE, "--prices", prices, "--model", "policy/yes_only")
    for underlying in ("BTC", "ETH"):
        run = run_in_process(
            *words, "--set", f"context.underlying={underlying}", "--json", "--home", tmp_path / "home"
        ).json
        assert run["status"] == "complete"


def test_a_run_is_scored_verified_exported_forked_and_taken_elsewhere(tmp_path: Path, prices: Path, bets: Path) -> None:
    home = tmp_path / "home"
    run = run_in_process("predict", "backtest", bets, *RANGE, "--prices", prices, "--json", "--home", home).json
    assert run["status"] == "complete"
    metrics = run["metrics"]
    assert metrics["total_ticks"] == 180
    assert metrics["mints"] > 0
    assert metrics["scores"]["all"]["brier"] is not None
    assert metrics["scores"]["all"]["against"]["normalised"]["market_brier"] is not None
    assert set(run["baselines"]["trading"]) == {"alternate", "no_only", "yes_only"}
    assert {"market", "coin", "always_no"} <= set(run["baselines"]["forecasts"]["all"])
    assert run["realism"]["surfaces"]["value"] == "fitted from realised volatility"
    assert run_in_process("runs", "verify", run["run_id"], "--home", home).out.strip() == f"OK {run['digest']}"
    shown = run_in_process("runs", "show", run["run_id"], "--home", home).out
    for words in ("NOT A LANGUAGE MODEL", "market's price", "always NO"):
        assert words in shown
    page = Path(run["report"]).read_text()
    assert "Surfaces fitted from realised volatility" in page

    fills = [
        json.loads(line)
        for line in run_in_process("runs", "export", run["run_id"], "--what", "fills", "--home", home).out.splitlines()
    ]
    assert len(fills) == metrics["mints"] + metrics["redeems"]
    assert set(fills[0]) == {"at", "market_id", "action", "side", "strike", "quantity", "price", "cost"}
    decided = tmp_path / "decisions.jsonl"
    far = {"action": "mint", "market_id": "BTC-2026-02-22T13:00:00Z", "side": "YES", "strike": 140_000, "spend": 1}
    refused = {"tick_at": "2026-02-22T12:00:00Z", "proposal": {**far, "reasoning": "It could be."}}
    kept = run_in_process("runs", "export", run["run_id"], "--what", "decisions", "--home", home).out
    decided.write_text(json.dumps(refused) + "\n" + kept)
    words = ("predict", "backtest", bets, *RANGE, "--prices", prices, "--decisions", decided)
    again = run_in_process(*words, "--json", "--home", home).json
    assert again["metrics"]["final_equity_usd"] == metrics["final_equity_usd"]
    shown = run_in_process("runs", "show", again["run_id"], "--home", home).out
    for words in ("One refused order", "mint YES at 140,000", "It could be.", "B5_NOT_QUOTED"):
        assert words in shown

    bundle = tmp_path / "bets.zip"
    run_in_process("runs", "export", run["run_id"], "--bundle", bundle, "--home", home)
    assert run["digest"] in run_in_process("runs", "verify", bundle).out
    run_in_process("runs", "import", bundle, "--home", tmp_path / "elsewhere")
    assert (
        run_in_process("runs", "verify", run["run_id"], "--home", tmp_path / "elsewhere").out.strip()
        == f"OK {run['digest']}"
    )

    at = fills[0]["at"]
    changed = ("--set", "risk.max_spend_per_tick=1", "--json", "--home", home)
    branch = run_in_process("runs", "fork", run["run_id"], "--at", at, *changed).json
    assert branch["digest"] != run["digest"]
    refused = run_in_process(
        "runs", "fork", run["run_id"], "--at", at, "--set", "context.tiers=[1h]", "--home", home, code=2
    )
    assert "cannot change context.tiers" in refused.err


def test_llm_without_a_key_falls_back_to_alternate_with_a_warning(
    tmp_path: Path, prices: Path, bets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LLM_API_KEY", "GROQ_API_KEY", "LLM_PROVIDER", "LLM_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    words = ("predict", "backtest", bets, *RANGE, "--prices", prices, "--home", tmp_path / "home")
    done = run_in_process(*words, "--model", "llm", "--json")
    assert "policy/alternate decides instead" in done.err
    assert done.json["model"] == "policy/alternate"
    assert done.json["digest"] == run_in_process(*words, "--model", "policy/alternate", "--json").json["digest"]


def betting_model(question: Mapping[str, Any]) -> Play:
    """Holds, but for about one tick in eight, as the prompt says; looks at the strikes before it mints."""
    words = next(one["content"] for one in question["messages"] if one["role"] == "user")
    digest = hashlib.sha256(words.encode()).digest()
    found = re.findall(r"^(BTC-\S+) \|.*\| (\d+): YES", words, re.MULTILINE)
    if digest[0] % 8 or not found:
        return call("submit_decision", {"action": "hold", "reasoning": "Nothing."})
    name, strike = found[digest[1] % len(found)]
    if question["messages"][-1]["role"] == "user":
        return call("list_strikes", {"market_id": name})
    side = "YES" if digest[2] % 2 else "NO"
    mint = {"action": "mint", "market_id": name, "side": side, "strike": int(strike), "spend": 2}
    return call("submit_decision", {**mint, "confidence": 0.55, "reasoning": "It turns."})


@pytest.mark.parametrize("command", [("predict", "backtest"), ("backtest",)])
def test_a_dear_backtest_needs_yes_and_is_held_to_the_day(
    command: tuple[str, ...], tmp_path: Path, prices: Path, bets: Path
) -> None:
    dear = ("--model", "ollama/any", "--price-in", "1000", "--price-out", "1000")
    words = (*command, bets, *RANGE, "--prices", prices, *dear, "--home", tmp_path / "home")
    refused = run_in_process(*words, "--json", code=2)
    assert "this may cost $" in refused.err
    assert "--yes" in refused.err
    assert refused.out == ""
    assert "may spend $5 a day" in run_in_process(*words, "--yes", code=2).err
    assert run_in_process("runs", "list", "--json", "--home", tmp_path / "home").json == []


def test_a_model_asked_alone_again_ahead_and_replayed_gives_one_digest(
    tmp_path: Path, prices: Path, bets: Path
) -> None:
    home, short = tmp_path / "home", ("--from", "2026-02-22T12:00:00Z", "--to", "2026-02-22T12:40:00Z")
    words = ("predict", "backtest", bets, *short, "--prices", prices, "--price-in", "1", "--price-out", "2", "--json")
    with fake_provider(betting_model, 0.02) as server:
        reached = {"LLM_BASE_URL": server.url, "LLM_API_KEY": "test-key-123456", "LLM_MODEL": "fake"}
        alone = run_in_process(*words, "--model", "llm/fake", "--speculate", "0", "--home", home, **reached).json
        asked = server.calls
        assert asked > 40
        assert alone["metrics"]["mints"] > 0
        again = run_in_process(*words, "--model", "llm/fake", "--home", home, **reached).json
        assert server.calls == asked, "every answer was known"
        assert (again["cost_usd"], again["saved_usd"]) == (0, alone["cost_usd"])
        ahead = run_in_process(*words, "--model", "llm/fake", "--home", tmp_path / "other", **reached).json
    assert ahead["wasted_usd"] <= 0.35 * (ahead["cost_usd"] - ahead["wasted_usd"])
    replayed = run_in_process(*words, "--model", f"replay/{alone['run_id']}", "--home", home).json
    assert len({one["digest"] for one in (alone, again, ahead, replayed)}) == 1
    assert "test-key-123456" not in Path(alone["report"]).read_text()


def minting_model(question: Mapping[str, Any]) -> Play:
    """Mints at every tick, also beyond its budget."""
    words = next(one["content"] for one in question["messages"] if one["role"] == "user")
    name, strike = re.findall(r"^(BTC-\S+) \|.*\| (\d+): YES", words, re.MULTILINE)[-1]
    mint = {"action": "mint", "market_id": name, "side": "YES", "strike": int(strike), "spend": 1}
    return call("submit_decision", {**mint, "confidence": 0.55, "reasoning": "It turns."})


def test_an_agent_that_acts_at_every_tick_is_hardly_asked_ahead_and_not_at_all_once_it_has_a_past(
    tmp_path: Path, prices: Path, bets: Path
) -> None:
    home, asked = tmp_path / "home", list[int]()
    with fake_provider(minting_model, 0.01) as server:
        reached = {"LLM_BASE_URL": server.url, "LLM_API_KEY": "test-key-123456", "LLM_MODEL": "fake"}
        for hour in ("12", "13"):
            before = server.calls
            span = ("--from", f"2026-02-22T{hour}:00:00Z", "--to", f"2026-02-22T{hour}:59:00Z")
            words = ("predict", "backtest", bets, *span, "--prices", prices, "--price-in", "1", "--price-out", "2")
            run = run_in_process(*words, "--model", "llm/fake", "--json", "--home", home, **reached).json
            assert run["metrics"]["total_proposed_actions"] == run["ticks"] == 59
            asked.append(server.calls - before - run["ticks"])
    assert 0 < asked[0] <= 6
    assert asked[1] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "2026-02-22T12:00:00Z", "--to", "2026-03-22T12:00:00Z"), "bars"),
        (("--from", "2026-02-22T18:00:00Z", "--to", "2026-02-22T12:00:00Z"), "the range is empty"),
        ((*RANGE, "--equity", "0"), "above zero"),
        ((*RANGE, "--model", "policy/sma_cross"), "unknown policy 'policy/sma_cross'"),
        ((*RANGE, "--surfaces", "nowhere.parquet"), "nowhere.parquet"),
    ],
)
def test_what_cannot_be_run_gets_one_clear_line(
    tmp_path: Path, prices: Path, bets: Path, words: tuple[str, ...], said: str
) -> None:
    done = run_in_process("predict", "backtest", bets, "--prices", prices, "--home", tmp_path / "home", *words, code=2)
    assert said in done.err
    assert done.err.count("error:") == 1


def test_a_skill_of_the_other_venue_is_sent_to_the_command_that_takes_any(
    tmp_path: Path, bets: Path, skill: Path
) -> None:
    perp = run_in_process("perp", "backtest", bets, *RANGE, "--home", tmp_path / "home", code=2)
    assert "is a skill of the predict venue" in perp.err
    assert "pitboss backtest" in perp.err
    other = run_in_process("predict", "backtest", skill, *RANGE, "--home", tmp_path / "home", code=2)
    assert "is a skill of the perp venue" in other.err
    assert "pitboss backtest" in other.err


def test_prices_outside_of_all_strikes_are_refused_and_no_model_is_called_at_them(
    tmp_path: Path, prices: Path, bets: Path
) -> None:
    home, scaled = tmp_path / "home", tmp_path / "scaled.csv"

    def scale(factor: Any) -> Path:
        head, *rows = prices.read_text().splitlines()
        cells = [row.split(",") for row in rows]
        lines = [
            ",".join([at, *(f"{float(cell) * factor(place):.2f}" for cell in four), volume])
            for place, (at, *four, volume) in enumerate(cells)
        ]
        scaled.write_text("\n".join([head, *lines]))
        return scaled

    eth = run_in_process(
        "predict",
        "backtest",
        bets,
        *RANGE,
        "--prices",
        scale(lambda place: 0.05),
        "--set",
        "context.underlying=ETH",
        "--home",
        home,
        code=2,
    )
    assert "no contract could be quoted: prices of ETH are" in eth.err
    assert "strikes are 50,000 to 150,000" in eth.err
    assert run_in_process("runs", "list", "--json", "--home", home).json == []
    warned = run_in_process("skill", "check", bets, "--set", "context.underlying=ETH", "--home", home)
    assert "the protocol's markets are of BTC" in warned.out + warned.err
    half = scale(lambda place: 0.5 if place < 1_530 else 1)  # until half of the run
    run = run_in_process("predict", "backtest", bets, *RANGE, "--prices", half, "--json", "--home", home).json
    assert run["metrics"]["noops_by_flag"]["no_quote"] >= 89
    assert run["metrics"]["funnel"]["asked"] <= 91
    assert run["metrics"]["mints"] > 0


@pytest.mark.parametrize("day", ["2026-02-21T10:00", "2026-02-22T18:00", "2027-02-22T18:00"])
def test_a_short_range_without_one_price_is_refused(tmp_path: Path, prices: Path, bets: Path, day: str) -> None:
    span = ("--from", f"{day}:00Z", "--to", f"{day[:-1]}5:00Z")
    words = ("predict", "backtest", bets, *span, "--prices", prices, "--model", "policy/alternate")
    result = run_in_process(*words, "--home", tmp_path / "home", code=2)
    assert "no price of BTC is known in the range" in result.err
