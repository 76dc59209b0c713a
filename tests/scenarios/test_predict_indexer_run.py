"""`pitboss predict run` on the protocol's markets, as the stand-in of its indexer and price feed reports them."""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pitboss_process import run_in_process
from predict_live_run import PredictLive, after_ticks, live_on_indexer

from pitboss.cli.main import main
from pitboss.live.board import Entry
from pitboss.testing.prediction_services import PredictionServices
from pitboss.testing.provider import Play, call
from provider_thread import fake_provider

SECRET = "llm/Canary+indexer-4f1c"


@pytest.fixture
def services() -> PredictionServices:
    return PredictionServices(tiers=("1w",))


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, services: PredictionServices) -> Iterator[PredictLive]:
    with live_on_indexer(tmp_path, monkeypatch, services) as found:
        yield found


def traded(entries: list[Entry]) -> bool:
    return any(event["kind"] == "filled" for entry in entries for event in entry.get("events", ()))


def test_a_policy_trades_the_indexers_markets_at_the_protocols_prices(
    live: PredictLive, services: PredictionServices
) -> None:
    words = ("--every", "1s", "--port", "0", "--json", "--indexer", live.url, "--prices-url", live.url)
    told = run_in_process(
        "predict", "run", live.skill, *words, "--model", "policy/alternate", "--ticks", "4", "--home", live.home
    )
    began, *_ = [json.loads(line) for line in told.out.splitlines()]
    assert (began["mode"], began["markets"]) == ("paper", "indexer")
    assert "the protocol's markets with live prices" in told.err
    paths = " ".join(services.requests)
    for part in ("/oracles", "/state", "/vault/summary", "/trades/", "/v2/updates/price/latest", "/history"):
        assert part in paths
    records = live.verified_records(began["run_id"])
    filled = [one for record in records for one in record["receipts"] if one["kind"] == "filled"]
    names = {row["oracle_id"] for row in services.oracles()}
    assert filled
    assert {one["symbol"] for one in filled} <= names
    shown = run_in_process("runs", "show", began["run_id"], "--json", "--home", live.home).json
    closing = Decimal(records[-1]["after"]["equity"])
    assert shown["metrics"]["final_equity_usd"] == pytest.approx(float(closing))
    assert shown["metrics"]["final_equity_usd"] != 100
    assert run_in_process("runs", "verify", began["run_id"], "--home", live.home).out.startswith("OK ")


def test_a_model_gets_markets_and_fills_and_may_decide_in_the_seeds_own_shape(
    live: PredictLive, monkeypatch: pytest.MonkeyPatch, services: PredictionServices
) -> None:
    prompts: list[str] = []

    def bare(question: Mapping[str, Any]) -> Play:
        """Looks at the tape of the nearest market, then decides without naming one."""
        texts = [str(one.get("content")) for one in question["messages"]]
        prompts.append("\n".join(texts))
        if question["messages"][-1]["role"] == "user":
            market = next(word for word in texts[-1].split() if word.startswith("0x") and len(word) == 66)
            return call("recent_fills", {"market_id": market})
        decision = {"action": "mint", "side": "YES", "strike": 68_100, "spendDusdc": 2, "confidence": 0.7}
        return call("submit_decision", {**decision, "reasoning": "drift"})

    with fake_provider(bare) as server:
        for name, value in {"LLM_BASE_URL": server.url, "LLM_API_KEY": SECRET, "LLM_MODEL": "fake"}.items():
            monkeypatch.setenv(name, value)
        # longer ticks than elsewhere: two questions have to fit into three quarters of one
        story = live.run_in_process(traded, model="llm", every_ms=2_000, price_in=Decimal(1), price_out=Decimal(2))
    assert any("minted: YES" in prompt or "minted: NO" in prompt for prompt in prompts)
    nearest = services.oracle_id(min(at for at in services.expiries() if at > services.now()))
    records = live.verified_records(story.run_id)
    verdicts = [one for record in records if record["kind"] == "tick" for one in record["verdicts"]]
    allowed = next(one for one in verdicts if one["outcome"] in ("allowed", "reduced"))
    assert ["B2_MARKET", None, "the nearest open market"] in [
        list(margin.values()) if isinstance(margin, dict) else margin for margin in allowed["margins"]
    ]
    fill = next(one for record in records for one in record["receipts"] if one["kind"] == "filled")
    assert fill["symbol"] == nearest
    assert story.status["feed"]["surface"] == "the protocol's own, from its indexer"
    assert {one["id"] for one in story.status["feed"]["markets"]} >= {nearest}


def test_a_run_that_was_stopped_has_its_figures_and_goes_on(live: PredictLive) -> None:
    story = live.run_in_process(traded, model="policy/alternate")
    shown = run_in_process("runs", "show", story.run_id, "--json", "--home", live.home).json
    assert shown["status"] == "cancelled"
    assert shown["metrics"]["mints"] >= 1
    assert run_in_process("runs", "verify", story.run_id, "--home", live.home).out.startswith("OK ")
    page = live.folder / "page.html"
    run_in_process("report", story.run_id, "--out", page, "--home", live.home)
    text = page.read_text()
    assert "Live run" in text
    assert "Backtest report" not in text
    assert "Prices are closes of one-minute bars" not in text
    assert "the protocol" in text
    again = live.run_in_process(after_ticks(1), model="policy/alternate")
    assert again.run_id == story.run_id


def test_without_quotes_no_model_is_asked_and_it_is_told(
    live: PredictLive, services: PredictionServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.price = lambda second: 30_000 + second % 7
    with fake_provider(lambda question: call("submit_decision", {"action": "hold", "reasoning": "x"})) as server:
        for name, value in {"LLM_BASE_URL": server.url, "LLM_API_KEY": SECRET, "LLM_MODEL": "fake"}.items():
            monkeypatch.setenv(name, value)
        story = live.run_in_process(after_ticks(3), model="llm", price_in=Decimal(1), price_out=Decimal(2))
        assert server.calls == 0
    assert story.ticks[-1]["flags"] == ["no_quote"]
    remarks = [one["detail"] for one in story.entries if one["kind"] == "remark"]
    assert any("outside the strikes 50,000 to 150,000" in remark for remark in remarks), remarks


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "indexer is not set"),
        (("--scheduled", "--set", "context.underlying=ETH"), "ETH would never be quoted"),
        (("--indexer", "URL", "--set", "context.underlying=ETH"), "lists no market of ETH"),
        (("--indexer", "URL", "--scheduled"), "exclude each other"),
        (("--indexer", "URL", "--dry-run"), "orders go to the paper venue"),
        (("--scheduled", "--writer", "sui"), "do not exist on the chain"),
    ],
)
def test_what_cannot_be_traded_is_one_line_and_leaves_no_run_behind(
    live: PredictLive, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [live.url if word == "URL" else word for word in words]
    common = ["--model", "policy/alternate", "--port", "0", "--home", str(live.home)]
    assert main(["predict", "run", str(live.skill), *given, *common]) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.err.count("error: ") == 1
    assert live.runs() == 0
