"""Audits of skills of other venues: the same commands, the same path."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_audits import run_audit

from pitboss.audit.record_facts import DECISION, EVENTS, PROMPT, STATE
from pitboss.core.asof import Market, View
from pitboss.core.instant import HOUR_MS, MINUTE_MS, parse_instant
from pitboss.data.lake import Lake
from pitboss.data.series import TIME
from pitboss.venues.predict.course import PredictCourse

FROM = parse_instant("2026-02-22")
SPAN = {"from_at": FROM, "to_at": FROM + HOUR_MS}
SKILL = {
    "pitboss": 1,
    "name": "updown",
    "venue": "predict",
    "model": "policy/alternate",
    "strategy": {"mandate": "momentum"},
    "tools": {"built_in": ["list_btc_markets", "btc_candles"]},
}


@pytest.fixture(scope="module")
def minute_lake_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("minutes")
    at = np.arange(FROM - 3 * HOUR_MS, FROM + 3 * 24 * HOUR_MS, MINUTE_MS)
    price = 80_000 * np.exp(np.cumsum(np.random.default_rng(3).normal(0, 4e-4, len(at))))
    columns = {"open": price, "high": price * 1.001, "low": price * 0.999, "close": price * 1.0002, "volume": at * 0.0}
    bars = pl.DataFrame({"open_at": pl.Series(at).cast(TIME), **columns})
    Lake(home / "lake").put("bars", "minutes", "BTC", "1m", bars)
    return home


def test_an_honest_predict_run_shows_no_difference_with_its_heuristic_and_with_its_tools(
    minute_lake_home: Path,
) -> None:
    found = run_audit(minute_lake_home, SKILL, 4, **SPAN)
    assert (found.leaks, found.result.cuts) == (set(), 4)
    assert [run.name for run in found.setup.runs] == ["policy/alternate", "standin/analyst"]
    assert {PROMPT, DECISION, EVENTS, STATE, "tool btc_candles"} <= set(found.result.counts)


def test_prices_that_come_one_update_early_are_found_on_predict(
    minute_lake_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = PredictCourse.tick_offsets

    def ahead(self: PredictCourse) -> list[int]:
        return [min(len(self.updates), offset + 1) for offset in honest(self)]

    monkeypatch.setattr(PredictCourse, "tick_offsets", ahead)
    found = run_audit(minute_lake_home, SKILL, cuts=2, **SPAN)
    assert {EVENTS, STATE} <= found.leaks


def test_a_view_one_bar_ahead_is_found_on_predict(minute_lake_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Market, "view", lambda self, at: View(self, at + MINUTE_MS))
    assert "tool btc_candles" in run_audit(minute_lake_home, SKILL, cuts=2, **SPAN).leaks
