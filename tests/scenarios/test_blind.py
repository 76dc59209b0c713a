"""Blind runs from the command line: every byte sent is scanned; runs are repeated, resumed and verified."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from pitboss_process import provider_environment, run_in_process

from blind_leaks import BlindLeakScanner, texts
from pitboss.core.asof import Market
from pitboss.core.instant import DAY_MS, parse_instant
from pitboss.data.feed import load_market
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.testing.provider import FakeProvider, Play, call, calls, decide
from provider_thread import fake_provider

THREE_HOURS = ("--from", "2025-03-20", "--to", "2025-03-20T03:00:00Z")
PRICES = ("--price-in", "1", "--price-out", "2")
SYMBOLS = ("BTC", "ETH", "SOL")
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(not SHARED.exists(), reason="needs the market data in ../shared/data")

TRADER = """\
pitboss: 1
name: story
venue: perp
model: standin/analyst
schedule: {every: 15m}
strategy: {mode: thesis, thesis: Bitcoin trends go on since 2024 and BTC leads ETH., avoid: Ranges.}
tools:
  built_in: [fetch_recent_bars, get_portfolio, simulate_action, read_my_prior_decisions, fetch_news_sentiment, get_top_traders]
context: {symbols: [SOL, BTC, ETH], bars_interval: 15m, bars_lookback: 40}
"""


def trading_model(question: Mapping[str, Any]) -> Play:
    """Looks around, opens with a stop, reaches too far, closes: by what the prompt says and nothing else."""
    offered = [tool["function"]["name"] for tool in question.get("tools", ())]
    user = next(one["content"] for one in question["messages"] if one["role"] == "user")
    if offered == ["write_lessons"]:
        slots = question["tools"][0]["function"]["parameters"]["properties"]
        return call("write_lessons", dict.fromkeys(slots, "Patience paid."))
    if not offered or "### " not in user:
        return decide(question)
    number = hashlib.sha256(user.encode()).digest()[0]
    name = re.findall(r"^### (\S+)", user, re.MULTILINE)[number % 3]
    close = float(
        re.findall(rf"^### {name}\n(?:.+\n){{3}}(?:.+\n)*?(\d\d-\d\d .+)\n1h", user, re.MULTILINE)[0].split()[5]
    )
    if number % 4 == 0 and len(question["messages"]) <= 2 and len(offered) > 1:
        return calls(
            ("fetch_recent_bars", {"symbol": name, "interval": "1h", "lookback": 5}),
            ("get_portfolio", {}),
            ("read_my_prior_decisions", {}),
            (
                "simulate_action",
                {"action": "open_long", "symbol": name, "size_usd": 400, "stop_loss": 2 * close, "reason": "?"},
            ),
        )
    if number % 3:
        return decide(question)
    if "no open positions" in user:
        stop = close * (0.98 if number % 2 else 1.5)
        return call(
            "propose_order",
            {
                "action": "open_long",
                "symbol": name,
                "size_usd": 500,
                "stop_loss": stop,
                "reason": f"{name} turns at {close}.",
            },
        )
    held = re.findall(r"^- (\S+) (?:long|short):", user, re.MULTILINE)[0]
    return call("propose_order", {"action": "close", "symbol": held, "reason": "Done."})


def backtest(home: Path, skill: Path, server: FakeProvider, *words: str, span: tuple[str, ...] = THREE_HOURS) -> Any:
    asked = ("backtest", skill, *span, "--model", "llm/fake", *PRICES, "--blind", *words, "--json", "--home", home)
    return run_in_process(*asked, **provider_environment(server)).json


@pytest.fixture
def trader(tmp_path: Path) -> Path:
    path = tmp_path / "trader.yaml"
    path.write_text(TRADER)
    return path


def scanner_of(home: Path, venue: str, symbols: tuple[str, ...], until: str) -> BlindLeakScanner:
    to_at = parse_instant(until)
    market = load_market(Lake(home / "lake"), venue, symbols, ("15m", "1h", "4h"), to_at)
    recent = {
        key: bars.slice(int(bars.open_at.searchsorted(to_at - 60 * DAY_MS)), len(bars))
        for key, bars in market.bars.items()
    }
    return BlindLeakScanner(Market(recent), symbols)


def leaks(scanner: BlindLeakScanner, sent: list[Any]) -> list[str]:
    """Everything in these questions, each text once: schemas and what was said before come again and again."""
    return scanner.request(list(dict.fromkeys(texts(sent))))


def export_rows(home: Path, run: str, what: str) -> list[Any]:
    return [
        orjson.loads(line)
        for line in run_in_process("runs", "export", run, "--what", what, "--home", home).out.splitlines()
    ]


def venue_of(home: Path) -> str:
    return Lake(home / "lake").venues("bars")[0]


def test_nothing_true_is_in_any_byte_that_is_sent_and_the_run_can_be_made_again_replayed_and_verified(
    home: Path, trader: Path
) -> None:
    with fake_provider(trading_model) as server:
        first = backtest(home, trader, server)
        asked = server.calls
        assert first["blind"] is True
        again = backtest(home, trader, server)
        assert server.calls == asked, "every answer was known"
        other = backtest(home, trader, server, "--seed", "8")
        assert server.calls > asked, "another seed is another disguise"
        sent = list(server.questions)
    assert again["digest"] == first["digest"] != other["digest"]
    assert first["metrics"]["total_trades"] > 0
    scanner = scanner_of(home, venue_of(home), SYMBOLS, "2025-03-20T03:00:00Z")
    fills = export_rows(home, first["run_id"], "fills")
    scanner.add([float(fill["price"]) for fill in fills])
    assert leaks(scanner, sent) == []
    assert not [
        name for one in sent for tool in one.get("tools", ()) if (name := tool["function"]["name"]) == "get_top_traders"
    ]
    assert {fill["symbol"] for fill in fills} <= set(SYMBOLS), "what was traded is the true market"
    proposals = [one["proposal"]["symbol"] for one in export_rows(home, first["run_id"], "decisions")]
    assert proposals
    assert set(proposals) <= set(SYMBOLS)
    assert run_in_process("runs", "verify", first["run_id"], "--home", home).code == 0
    replayed = run_in_process(
        "backtest", trader, *THREE_HOURS, "--model", f"replay/{first['run_id']}", "--blind", "--json", "--home", home
    )
    assert replayed.json["digest"] == first["digest"]


def test_an_open_run_of_the_same_decisions_ends_with_the_same_money_and_the_scanner_sees_it(
    home: Path, trader: Path, tmp_path: Path
) -> None:
    with fake_provider(trading_model) as server:
        blind = backtest(home, trader, server)
        server.questions.clear()
        asked = ("backtest", trader, *THREE_HOURS, "--model", "llm/fake", *PRICES, "--json", "--home", home)
        run_in_process(*asked, **provider_environment(server))
        scanner = scanner_of(home, venue_of(home), SYMBOLS, "2025-03-20T03:00:00Z")
        kinds = {leak.split()[0] for question in server.questions[:5] for leak in scanner.request(question)}
    assert kinds >= {"name", "price", "day"}
    file = tmp_path / "decisions.jsonl"
    file.write_text(run_in_process("runs", "export", blind["run_id"], "--what", "decisions", "--home", home).out)
    result = run_in_process("backtest", trader, *THREE_HOURS, "--decisions", file, "--json", "--home", home).json
    assert export_rows(home, result["run_id"], "fills") == export_rows(home, blind["run_id"], "fills")
    assert export_rows(home, result["run_id"], "equity") == export_rows(home, blind["run_id"], "equity")
    for name in ("total_return_pct", "max_drawdown_pct", "total_trades", "win_rate", "sharpe"):
        assert result["metrics"][name] == blind["metrics"][name]


def test_programs_and_files_of_decisions_do_the_same_blind_and_their_kept_prompts_are_disguised(
    home: Path, trader: Path
) -> None:
    asked = ("backtest", trader, *THREE_HOURS, "--model", "policy/sma_cross", "--prompts", "--json", "--home", home)
    opened, blind = run_in_process(*asked).json, run_in_process(*asked, "--blind").json
    assert blind["metrics"] == opened["metrics"]
    assert export_rows(home, blind["run_id"], "equity") == export_rows(home, opened["run_id"], "equity")
    scanner = scanner_of(home, venue_of(home), SYMBOLS, "2025-03-20T03:00:00Z")
    kept = export_rows(home, blind["run_id"], "snapshots")
    prompts = [prompt for one in kept if (prompt := one.get("prompt") or one.get("extra", {}).get("prompt"))]
    assert any("thesis at entry: <data>" in prompt[1] for prompt in prompts), "a program's words are in true prices"
    assert [leak for prompt in prompts for leak in scanner.request(prompt)] == []


@pytest.mark.chaos
def test_a_stopped_blind_run_goes_on_with_the_mapping_it_began_with(home: Path, trader: Path) -> None:
    with fake_provider(trading_model) as server:
        whole = backtest(home, trader, server, "--speculate", "0")
    with fake_provider(trading_model) as server:
        asked = (
            "backtest",
            trader,
            *THREE_HOURS,
            "--model",
            "llm/fake",
            *PRICES,
            "--blind",
            "--seed",
            "0",
            "--max-cost-usd",
            "0.02",
        )
        other = home.parent / "other"
        other.mkdir()
        (home / "lake").rename(other / "lake")
        stopped = run_in_process(
            *asked, "--speculate", "0", "--json", "--home", other, code=1, **provider_environment(server)
        ).json
        assert stopped["status"] == "error"
        words = ("runs", "resume", stopped["run_id"], "--max-cost-usd", "5", "--json", "--home", other)
        done = run_in_process(*words, **provider_environment(server)).json
    assert done["digest"] == whole["digest"]


@pytest.mark.chaos
def test_a_fork_of_a_blind_run_is_blind_and_takes_its_past_over(home: Path, trader: Path) -> None:
    with fake_provider(trading_model) as server:
        first = backtest(home, trader, server)
        words = ("runs", "fork", first["run_id"], "--at", "2025-03-20T01:30:00Z", "--set", "risk.max_position_pct=20")
        branch = run_in_process(*words, "--json", "--home", home, **provider_environment(server)).json
        sent = list(server.questions)
    assert branch["blind"] is True
    scanner = scanner_of(home, venue_of(home), SYMBOLS, "2025-03-20T03:00:00Z")
    assert leaks(scanner, sent) == []


def test_a_reader_is_shown_that_the_run_was_blind_who_was_who_and_what_cannot_be_offered(
    home: Path, trader: Path
) -> None:
    with fake_provider(trading_model) as server:
        asked = ("backtest", trader, *THREE_HOURS, "--model", "llm/fake", *PRICES, "--blind", "--home", home)
        result = run_in_process(*asked, **provider_environment(server))
    assert "blind: not offered, because its replies cannot be anonymised: get_top_traders" in result.err + result.out
    run = run_in_process("runs", "list", "--json", "--home", home).json
    rows = run["runs"] if isinstance(run, dict) else run
    run_id = rows[0]["run_id"]
    shown = run_in_process("runs", "show", run_id, "--home", home).out
    assert "BLIND" in shown
    assert "ASSET-K was " in shown
    page = Path(run_in_process("runs", "show", run_id, "--json", "--home", home).json["report"]).read_text("utf-8")
    assert "Blind run" in page
    assert re.search(r"ASSET-K was (?:BTC|ETH|SOL) \(prices", page)
    assert re.search(r"(?:BTC|ETH|SOL) \[ASSET-[KMN]\] turns at", page), "the model's words, unmasked and marked"


# Real data ------------------------------------------------------------------------------------------------------------


def leaks_of_real_run(tmp_path: Path, venue: str, symbols: str, span: tuple[str, ...]) -> list[str]:
    """Every leak of a blind run over imported data."""
    skill = tmp_path / "real.yaml"
    skill.write_text(TRADER.replace("[SOL, BTC, ETH]", symbols))
    with fake_provider(trading_model) as server:
        done = backtest(tmp_path, skill, server, "--data-venue", venue, "--speculate", "0", span=span)
        sent = list(server.questions)
    assert done["status"] == "complete"
    assert len(sent) >= done["ticks"]
    names = tuple(symbols.strip("[]").split(", "))
    scanner = scanner_of(tmp_path, venue, names, span[-1])
    assert any("## News" in one["messages"][1]["content"] for one in sent) or venue != "binance"
    return leaks(scanner, sent)


@needs_data
def test_real_bars_with_real_headlines_give_nothing_away(tmp_path: Path) -> None:
    lake, source = Lake(tmp_path / "lake"), SHARED / "binance_2023_2024"
    names = ("BTC", "ETH", "LTC")
    import_paths(lake, [path for name in names for path in sorted(source.glob(f"*/{name}.parquet"))], venue="binance")
    import_paths(lake, [SHARED / "news"], venue="binance")
    assert (
        leaks_of_real_run(
            tmp_path, "binance", "[BTC, ETH, LTC]", ("--from", "2023-03-10", "--to", "2023-03-10T03:00:00Z")
        )
        == []
    )


@needs_data
@pytest.mark.proof
def test_real_bars_of_a_coin_that_is_called_like_its_venue_give_nothing_away(tmp_path: Path) -> None:
    lake, source = Lake(tmp_path / "lake"), SHARED / "hyperliquid"
    files = [path for name in ("BTC", "HYPE", "LINK") for path in sorted(source.rglob(f"{name}.parquet"))]
    import_paths(lake, files, venue="hyperliquid")
    import_paths(lake, [SHARED / "events"], known_at=parse_instant("2025-07-27T09:00:00Z"))
    assert (
        leaks_of_real_run(
            tmp_path, "hyperliquid", "[BTC, HYPE, LINK]", ("--from", "2025-07-29", "--to", "2025-07-29T06:00:00Z")
        )
        == []
    )
