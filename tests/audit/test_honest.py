"""An audit of the real program finds no difference, and everything that was compared is counted by name."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.random import PCG64, Generator
from small_audits import FROM, SHARED, run_audit, skill, tool_without_arguments

from pitboss.audit import setup as preparation
from pitboss.audit.changed_future import ChangedFuture
from pitboss.audit.cut_lake import CutLake, SourceRows, without_future
from pitboss.audit.record_facts import DECISION, EVENTS, PROMPT, STATE
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, MINUTE_MS, parse_instant
from pitboss.core.market import Bars
from pitboss.data.feed import data_digest, load_market
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.series import TIME
from pitboss.venues.perp.assembly import tools as builtin_tools

needs_data = pytest.mark.skipif(not SHARED.exists(), reason="needs the market data in ../shared/data")


def test_nothing_differs_and_every_tool_is_called(home: Path) -> None:
    found = run_audit(home, skill("policy/momentum"), 2)
    assert (found.leaks, found.result.cuts) == (set(), 2)
    assert [run.name for run in found.setup.runs] == ["policy/momentum", "standin/analyst"]
    names = {f"tool {name}" for name, tool in builtin_tools().items() if not tool.decides and tool.reach != "live_only"}
    assert {DECISION, EVENTS, PROMPT, STATE, *names} <= set(found.result.counts)


def test_a_copy_ends_at_the_cut_in_every_series(home: Path, tmp_path: Path) -> None:
    at, source = FROM + 10 * HOUR_MS + 5 * MINUTE_MS, Lake(home / "lake")
    cut = CutLake(SourceRows(source), tmp_path / "cut", at)
    bars, whole = cut.bars("demo", "BTC", "5m"), source.bars("demo", "BTC", "5m")
    assert bars is not None
    assert whole is not None
    assert int(bars.open_at[-1]) + bars.interval_ms == at
    assert bars.close.tolist() == whole.close[: len(bars)].tolist()
    for kind in ("funding", "open_interest"):
        points = cut.points(kind, "demo", "BTC")
        assert points is not None
        assert points.at[-1] <= at
    assert all(item.available_at <= at for item in cut.news("demo"))
    assert all(event.known_at <= at for event in cut.events("demo"))
    assert cut.news("demo")
    assert cut.is_synthetic("demo")


def test_copies_that_share_the_rows_of_the_lake_are_those_of_a_lake_read_for_each(home: Path, tmp_path: Path) -> None:
    source, to_at = Lake(home / "lake"), FROM + 20 * HOUR_MS
    shared = SourceRows(source)
    for at in (FROM + 10 * HOUR_MS, FROM + 5 * MINUTE_MS, FROM + 10 * HOUR_MS):
        for rows in (without_future, ChangedFuture(at, to_at, {"BTC", "ETH"}, Generator(PCG64(4)))):
            copy = CutLake(shared, tmp_path, at, rows)
            again = ChangedFuture(at, to_at, {"BTC", "ETH"}, Generator(PCG64(4)))
            alone = CutLake(SourceRows(source), tmp_path, at, without_future if rows is without_future else again)
            found, wanted = (load_market(lake, "demo", ["BTC", "ETH"], ["5m", "1h"], to_at) for lake in (copy, alone))
            assert data_digest(found, ["BTC", "ETH"], ["5m", "1h"]) == data_digest(wanted, ["BTC", "ETH"], ["5m", "1h"])
            if rows is without_future:
                assert 0 < latest_in_memory(found) <= at


def latest_in_memory(market: Market) -> int:
    """The latest time in all arrays of a market, and in what they are views of."""
    latest = 0
    for column in (*market.bars.values(), *market.points.values()):
        array: Any = column.open_at if isinstance(column, Bars) else column.at
        while isinstance(array, np.ndarray):
            latest, length, array = max(latest, int(array.view(np.int64).max())), len(array), array.base
        assert array is None or array.len() == length
    return latest


def test_a_funding_row_inside_the_hour_of_a_cut_is_no_look_ahead(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is paid in the hour of its timestamp, so a run up to the cut has paid it too."""
    lake = Lake(tmp_path / "lake")
    for path in (home / "lake").rglob("part.parquet"):
        target = lake.root / path.relative_to(home / "lake")
        target.parent.mkdir(parents=True, exist_ok=True)
        frame = pl.read_parquet(path)
        if "funding" in path.parts:
            frame = frame.with_columns(pl.col("at") + pl.duration(minutes=37))
        frame.with_columns(pl.selectors.datetime().cast(TIME)).write_parquet(target)
    found = run_audit(tmp_path, skill("policy/buy_and_hold", schedule={"every": "15m"}), 2, data_venue="demo")
    assert found.leaks == set()


def test_a_tool_that_always_fails_is_not_called_covered(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(context: object, arguments: object) -> str:
        raise ZeroDivisionError("broken")

    monkeypatch.setattr(preparation, "load_tool", lambda path: tool_without_arguments(broken))
    found = run_audit(home, tools=("leaky",), tool_files=(Path("leaky.py"),), cuts=2)
    assert found.leaks == set()
    assert found.result.not_covered["tool leaky"] == "every call of it failed"


@needs_data
def test_binance_with_news_shows_nothing_of_its_future(tmp_path: Path) -> None:
    lake, source = Lake(tmp_path / "lake"), SHARED / "binance_2023_2024"
    import_paths(lake, sorted(source.glob("*/BTC.parquet")) + sorted(source.glob("*/ETH.parquet")), venue="binance")
    import_paths(lake, [SHARED / "news"], venue="binance")
    span = {"from_at": parse_instant("2023-03-08"), "to_at": parse_instant("2023-03-08T12:00")}
    found = run_audit(tmp_path, skill("policy/sma_cross"), 2, data_venue="binance", **span)
    assert (found.leaks, found.result.cuts) == (set(), 2)
    assert found.result.counts["section News"].compared


@needs_data
def test_hyperliquid_with_funding_and_meetings_shows_nothing_of_its_future(tmp_path: Path) -> None:
    lake, source = Lake(tmp_path / "lake"), SHARED / "hyperliquid"
    files = [path for symbol in ("BTC", "ETH") for path in sorted(source.rglob(f"{symbol}.parquet"))]
    import_paths(lake, files, venue="hyperliquid")
    import_paths(lake, [SHARED / "events"], known_at=parse_instant("2025-07-27T09:00:00Z"))
    span = {"from_at": parse_instant("2025-07-27"), "to_at": parse_instant("2025-07-27T12:00")}
    found = run_audit(tmp_path, skill("policy/buy_and_hold"), 2, data_venue="hyperliquid", **span)
    assert (found.leaks, found.result.cuts) == (set(), 2)
    assert found.result.counts["section Upcoming events"].compared


@pytest.mark.proof
@pytest.mark.timeout(7200)
def test_two_thousand_cuts_of_a_generated_market_differ_nowhere(home: Path) -> None:
    found = run_audit(home, skill("policy/momentum"), 2_000, from_at=parse_instant("2025-03-24"))
    assert (found.leaks, found.result.cuts) == (set(), 2_000)


def test_without_data_or_without_a_skill_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no bars of BTC"):
        run_audit(tmp_path)
    with pytest.raises(UserError, match="name a skill"):
        run_audit(tmp_path, skill=None)
