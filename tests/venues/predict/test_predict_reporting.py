"""The page of a stored predict run: from its records alone, with the data for what the records do not have."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.instant import HOUR_MS, MINUTE_MS, iso, parse_instant
from pitboss.data.importing import import_paths
from pitboss.report.shell import html_document
from pitboss.runs.run import journal_of, start, verify
from pitboss.store.runs import Run
from pitboss.venues.predict.outcome import MarketCall
from pitboss.venues.predict.report_source import build_predict_report, surfaces_of
from pitboss.venues.predict.request import PredictRequest
from pitboss.venues.predict.venue import VENUE

FROM = parse_instant("2026-02-22T12:00:00Z")
TO = FROM + 3 * HOUR_MS
SKILL = {
    "pitboss": 1,
    "name": "btc-brain",
    "venue": "predict",
    "model": "policy/alternate",
    "schedule": {"every": "60s"},
    "strategy": {"mandate": "momentum"},
    "context": {"tiers": ["15m", "1h"]},
}


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    rng, price = Random(3), 65_000.0
    lines = ["date,open,high,low,close,volume"]
    for place in range(-24 * 60, 3 * 60 + 5):
        before, price = price, price * (1 + rng.gauss(0, 0.0006))
        row = (before, max(before, price), min(before, price), price)
        lines.append(f"{iso(FROM + place * MINUTE_MS)},{','.join(f'{one:.2f}' for one in row)},1")
    (tmp_path / "bars.csv").write_text("\n".join(lines))
    with open_workspace(load_settings(tmp_path / "home")) as opened:
        import_paths(opened.lake, [tmp_path / "bars.csv"], "bars", "BTC", "1m", "generated", False, None, TO, None)
        yield opened


def decisions() -> str:
    """A mint every five minutes, each with a confidence."""
    rng, lines = Random(4), []
    for at in range(FROM, TO - 20 * MINUTE_MS, 5 * MINUTE_MS):
        expiry = at - at % (15 * MINUTE_MS) + 30 * MINUTE_MS
        proposal = {"action": "mint", "market_id": f"BTC-{iso(expiry)}", "side": rng.choice(("YES", "NO"))}
        proposal |= {"strike": 65_000, "spend": 2, "confidence": round(rng.uniform(0.3, 0.7), 2)}
        lines.append(json.dumps({"tick_at": iso(at), "proposal": {**proposal, "reasoning": "<b>because</b>"}}))
    return "\n".join(lines)


def start_run(workspace: Workspace) -> Run:
    return asyncio.run(start(workspace, PredictRequest(SKILL, FROM, TO, decisions=decisions(), seed=1)))


def test_a_stored_run_has_its_page_with_the_curves_of_the_heuristics_and_verifies(workspace: Workspace) -> None:
    run = start_run(workspace)
    assert verify(workspace, run.id) == []
    report = build_predict_report(workspace, run)
    assert set(report.run.baseline_equity) == {"alternate", "yes_only", "no_only"}
    assert run.metrics is not None
    assert report.run.equity[-1][1] == run.metrics["final_equity_usd"]
    assert run.metrics["scores"]["all"]["calls"] > 10
    shown = html_document(VENUE.page(workspace, run))
    assert str(run.digest) in shown
    assert "Surfaces fitted from realised volatility" in shown
    assert "&lt;b&gt;because&lt;/b&gt;" in shown
    assert "<b>because" not in shown
    assert html_document(VENUE.page(workspace, run)) == shown


def test_a_day_that_has_only_its_first_instant_is_no_day(workspace: Workspace) -> None:
    run = start_run(workspace)
    ledger = VENUE.read_ledger(journal_of(workspace, run).records())
    outcome = ledger.outcome(FROM, TO, MINUTE_MS, Decimal(200))
    assert ledger.equity[0][0] == FROM
    assert outcome.equity_at[0] > FROM


def test_without_its_data_a_run_still_has_a_page_that_says_so(workspace: Workspace) -> None:
    run = start_run(workspace)
    shutil.rmtree(workspace.lake.root)
    shown = html_document(VENUE.page(workspace, run))
    assert "The data of this run is missing" in shown
    assert str(run.digest) in shown


def test_surfaces_are_recorded_in_part_or_whole_by_what_was_known_at_each_call(tmp_path: Path) -> None:
    head = "oracle_id,onchain_timestamp,a,b,rho,rho_negative,m,m_negative,sigma"
    file = tmp_path / "svi.csv"
    file.write_text(f"{head}\nBTC-{iso(TO)},{FROM},1000,1000,0,false,0,false,1000000\n")

    def call(at: int, expiry: int) -> MarketCall:
        return MarketCall(at, "mint", f"BTC-{iso(expiry)}", "YES", Decimal(65_000), "refused", "B8_EDGE")

    def kind(path: Path | str, *calls: MarketCall) -> tuple[str, str]:
        return surfaces_of(PredictRequest(SKILL, FROM, TO, surfaces=str(path)), calls)

    assert kind("", call(FROM, TO)) == ("fitted", "")
    assert kind(file, call(FROM, TO)) == ("recorded", "1 of 1 calls had a recorded one.")
    assert kind(file, call(FROM - 1, TO)) == ("mixed", "0 of 1 calls had a recorded one.")
    assert kind(file, call(FROM, TO), call(FROM, TO + HOUR_MS)) == ("mixed", "1 of 2 calls had a recorded one.")
    by_expiry = tmp_path / "expiry.csv"
    by_expiry.write_text(f"{head}\n{TO},{FROM},1000,1000,0,false,0,false,1000000\n")
    assert kind(by_expiry, call(FROM, TO))[0] == "recorded"
    kept, note = kind(tmp_path / "gone.csv", call(FROM, TO))
    assert (kept, "missing" in note) == ("mixed", True)
