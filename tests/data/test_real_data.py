"""The real files next to the project, when they are there."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from import_files import SHARED

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, INTERVALS, parse_instant
from pitboss.data.feed import base_intervals, check_gaps, load_market
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.quality import check_lake
from pitboss.data.resample import resample

pytestmark = pytest.mark.skipif(not SHARED.exists(), reason="needs the market data in ../shared/data")
HL = SHARED / "hyperliquid"
BIN = SHARED / "binance_2023_2024"


@pytest.fixture(scope="module")
def real_lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(tmp_path_factory.mktemp("real") / "lake")
    import_paths(lake, [*sorted(HL.glob("candles/*/BTC.parquet")), HL / "funding" / "BTC.parquet"])
    import_paths(lake, [HL / "candles" / "1h" / "kBONK.parquet", SHARED / "news", SHARED / "events"])
    import_paths(lake, sorted(BIN.glob("*/1000PEPE.parquet")), venue="binance")
    return lake


def test_every_row_of_every_file_arrives_as_it_is(real_lake: Lake) -> None:
    for interval in ("5m", "15m", "1h", "4h"):
        frame = pl.read_parquet(HL / "candles" / interval / "BTC.parquet")
        bars = real_lake.bars("hyperliquid", "BTC", interval)
        assert bars is not None
        assert bars.open_at.tolist() == frame["date"].dt.epoch("ms").to_list()
        for name in ("open", "high", "low", "close", "volume"):
            assert np.array_equal(getattr(bars, name), frame[name].to_numpy())
    frame = pl.read_parquet(BIN / "funding_8h" / "1000PEPE.parquet")
    rates = real_lake.points("funding", "binance", "1000PEPE")
    assert rates is not None
    assert rates.value.tolist() == frame["funding_rate"].to_list()
    frame = pl.read_parquet(BIN / "mark_8h" / "1000PEPE.parquet")
    marks = real_lake.points("mark", "binance", "1000PEPE")
    assert marks is not None
    assert marks.value.tolist() == frame["open"].to_list()


def test_the_known_holes_are_found(real_lake: Lake) -> None:
    gaps = {(each.venue, each.kind, each.symbol, each.interval): each.gaps for each in real_lake.list()}
    assert gaps["hyperliquid", "bars", "BTC", "5m"] == 2
    assert gaps["hyperliquid", "bars", "BTC", "15m"] == 0
    assert gaps["hyperliquid", "funding", "BTC", None] == 3
    assert gaps["binance", "bars", "1000PEPE", "5m"] == 0
    findings = check_lake(real_lake)
    assert all(finding.usable for finding in findings)
    said = {(finding.problem, finding.symbol, finding.interval): finding for finding in findings}
    assert ("ends_early", "kBONK", "1h") in said
    gaps = said["gaps", "BTC", "5m"]
    assert (gaps.count, gaps.severity) == (2, "warning")
    assert "1782 bars missing" in gaps.detail
    assert "between 2026-02-26T17:45:00Z and 2026-02-28T07:10:00Z" in gaps.detail
    assert "between 2026-03-17T18:10:00Z and 2026-03-22T09:25:00Z" in gaps.detail
    change = said["funding_interval", "BTC", None]
    assert (change.first_at, change.severity) == (parse_instant("2023-06-08"), "note")
    assert "every 8h until 2023-06-08T00:00:00Z, every 1h" in change.detail
    assert not [finding for finding in findings if finding.problem in ("stale", "changed", "missing")]


def test_both_silences_of_all_symbols_at_once_are_distinguished_from_an_outage_of_the_venue(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    import_paths(
        lake, [HL / "candles" / each / f"{symbol}.parquet" for each in ("5m", "15m") for symbol in ("BTC", "ETH")]
    )
    outages = [finding for finding in check_lake(lake) if finding.problem == "outage"]
    assert [(each.interval, each.count) for each in outages] == [("5m", 448), ("5m", 1334)]
    assert all("bars of 15m are there: not the venue" in each.detail for each in outages)


def test_a_run_over_the_hole_stops_before_it_starts(real_lake: Lake) -> None:
    from_at, to_at = parse_instant("2026-02-01"), parse_instant("2026-03-01")
    assert next(base_intervals(real_lake, "hyperliquid", ["BTC"], INTERVALS["15m"], from_at, to_at)) == "5m"
    market = load_market(real_lake, "hyperliquid", ["BTC"], ["5m"], to_at)
    with pytest.raises(UserError, match="BTC: 448 bars of 5m are missing from 2026-02-26T17:50:00Z"):
        check_gaps(market.bars["BTC", "5m"], from_at, to_at)
    check_gaps(market.bars["BTC", "5m"], from_at, parse_instant("2026-02-26"))


def test_coarser_bars_carry_a_range_that_finer_ones_do_not_reach(real_lake: Lake) -> None:
    before = parse_instant("2025-02-10"), parse_instant("2025-03-20")
    assert next(base_intervals(real_lake, "hyperliquid", ["BTC"], INTERVALS["15m"], *before)) == "15m"
    with pytest.raises(UserError, match="cover"):
        next(base_intervals(real_lake, "hyperliquid", ["BTC"], INTERVALS["5m"], *before))


def test_bars_built_from_finer_ones_match_the_exchange(real_lake: Lake) -> None:
    fine, coarse = real_lake.bars("hyperliquid", "BTC", "15m"), real_lake.bars("hyperliquid", "BTC", "1h")
    assert fine is not None
    assert coarse is not None
    resampled = resample(fine, "1h")
    both, ours, theirs = np.intersect1d(resampled.open_at, coarse.open_at, return_indices=True)
    assert len(both) > 9_000
    for name in ("open", "high", "low", "close"):
        same = getattr(resampled, name)[ours] == getattr(coarse, name)[theirs]
        assert same.mean() > 0.99, name


def test_news_with_only_a_date_wait_for_the_next_midnight(real_lake: Lake) -> None:
    news = real_lake.news("hyperliquid")
    dated = [item for item in news if item.published_at % DAY_MS == 0]
    assert len(news) == 11_293
    assert len(dated) > 1_400
    assert all(item.available_at == item.published_at + DAY_MS for item in dated)
    assert [item.available_at for item in news] == sorted(item.available_at for item in news)


def test_a_binance_run_hears_the_news_that_were_imported_for_another_venue(real_lake: Lake) -> None:
    market = load_market(real_lake, "binance", ["1000PEPE"], ["5m", "1h"], parse_instant("2024-01-01"))
    assert len(market.news) > 5_000
    assert market.news[-1].available_at <= parse_instant("2024-01-01")


def test_all_other_real_files_are_taken_without_complaint(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    results = import_paths(lake, [*sorted(HL.glob("candles/4h/*.parquet")), *sorted(HL.glob("funding/*.parquet"))[:8]])
    assert all(each.rows == each.added for each in results)
    assert {note for each in results for note in each.notes} == set()
