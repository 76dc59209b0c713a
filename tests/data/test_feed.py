"""Which bars a run stands on, what it refuses, and what its market holds."""

from pathlib import Path

import numpy as np
import pytest
from import_files import HOUR, MIN5, START, bar_rows, make_bars, write

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, INTERVALS, iso, parse_instant
from pitboss.data.feed import base_intervals, check_gaps, choose_venue, data_digest, load_market
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.resample import resample

TO = START + DAY_MS


def put_bars(
    lake: Lake, tmp_path: Path, symbol: str, interval: str, start: int, end: int, price: float = 100.0
) -> None:
    step = INTERVALS[interval]
    rows = bar_rows((end - start) // step, start, step, price)
    import_paths(lake, [write(tmp_path / "in" / interval / f"{symbol}.parquet", rows)])


def test_base_bars_are_the_finest_that_divide_the_tick_and_cover_all_symbols(tmp_path: Path, lake: Lake) -> None:
    put_bars(lake, tmp_path, "BTC", "5m", START, TO)
    put_bars(lake, tmp_path, "BTC", "15m", START, TO)
    put_bars(lake, tmp_path, "ETH", "15m", START, TO)
    put_bars(lake, tmp_path, "ETH", "5m", START + HOUR, TO)
    quarter = INTERVALS["15m"]
    assert next(base_intervals(lake, "hyperliquid", ["BTC"], quarter, START, TO)) == "5m"
    assert next(base_intervals(lake, "hyperliquid", ["BTC", "ETH"], quarter, START, TO)) == "15m"
    assert next(base_intervals(lake, "hyperliquid", ["BTC", "ETH"], quarter, START + HOUR, TO)) == "5m"
    with pytest.raises(UserError, match="no bars that fit the schedule cover"):
        next(base_intervals(lake, "hyperliquid", ["ETH"], MIN5, START, TO))


@pytest.mark.parametrize(("from_at", "to_at"), [(START - 1, TO), (START, TO + 1)])
def test_a_range_beyond_the_bars_is_refused_with_what_is_covered(
    tmp_path, lake: Lake, from_at: int, to_at: int
) -> None:
    put_bars(lake, tmp_path, "BTC", "5m", START, TO)
    with pytest.raises(UserError) as refused:
        next(base_intervals(lake, "hyperliquid", ["BTC"], MIN5, from_at, to_at))
    assert refused.value.hint == f"imported: BTC 5m {iso(START)} to {iso(TO)}"


def test_a_range_upside_down_is_refused(tmp_path: Path, lake: Lake) -> None:
    put_bars(lake, tmp_path, "BTC", "5m", START, TO)
    with pytest.raises(UserError, match="before it begins"):
        next(base_intervals(lake, "hyperliquid", ["BTC"], MIN5, TO, START))


def test_an_unknown_symbol_is_refused_with_the_nearest_known_one(tmp_path: Path, lake: Lake) -> None:
    with pytest.raises(UserError, match="no bars of BTC") as refused:
        load_market(lake, "hyperliquid", ["BTC"], ["5m"], TO)
    assert "pitboss data import" in refused.value.hint
    put_bars(lake, tmp_path, "BTC", "5m", START, TO)
    with pytest.raises(UserError, match="no bars of btc for venue hyperliquid") as refused:
        load_market(lake, "hyperliquid", ["btc"], ["5m"], TO)
    assert refused.value.hint == "did you mean BTC?"
    with pytest.raises(UserError, match="there is no data of venue 'binance'") as refused:
        load_market(lake, "binance", ["BTC"], ["5m"], TO)
    assert refused.value.hint == "venues with data: hyperliquid"
    with pytest.raises(UserError, match="no data of venue") as refused:
        load_market(lake, "hyperliqid", ["BTC"], ["5m"], TO)
    assert refused.value.hint == "did you mean hyperliquid?"


def test_only_the_symbol_that_lacks_bars_is_named(tmp_path: Path, lake: Lake) -> None:
    put_bars(lake, tmp_path, "BTC", "5m", START, TO)
    put_bars(lake, tmp_path, "ETH", "4h", START, TO)
    with pytest.raises(UserError, match=r"cover \S+ to \S+ for ETH$"):
        base_intervals(lake, "hyperliquid", ["BTC", "ETH"], HOUR, START, TO)
    import_paths(lake, [tmp_path / "in"], venue="mine")
    (tmp_path / "in" / "5m" / "SOL.parquet").write_bytes((tmp_path / "in" / "5m" / "BTC.parquet").read_bytes())
    import_paths(lake, [tmp_path / "in" / "5m" / "SOL.parquet"], venue="mine")
    assert choose_venue("", lake, ["BTC", "SOL", "XRP"]) == "mine"


def test_an_imported_interval_is_used_if_it_covers_the_span_else_it_is_built(tmp_path: Path, lake: Lake) -> None:
    put_bars(lake, tmp_path, "BTC", "5m", START, TO, price=100.0)
    put_bars(lake, tmp_path, "BTC", "1h", START + 3 * HOUR, TO, price=500.0)
    covered = load_market(lake, "hyperliquid", ["BTC"], ["1h"], TO, from_at=START + 3 * HOUR)
    assert covered.bars["BTC", "1h"].open[0] == 500.0
    resampled = load_market(lake, "hyperliquid", ["BTC"], ["1h"], TO, from_at=START)
    fine = lake.bars("hyperliquid", "BTC", "5m")
    assert fine is not None
    assert resampled.bars["BTC", "1h"].open.tolist() == resample(fine, "1h").open.tolist()
    assert len(resampled.bars["BTC", "1h"]) == 24


def test_an_interval_is_built_from_the_finest_source_that_covers_the_span(tmp_path: Path, lake: Lake) -> None:
    put_bars(lake, tmp_path, "BTC", "5m", START + 12 * HOUR, TO, price=100.0)
    put_bars(lake, tmp_path, "BTC", "15m", START, TO, price=500.0)
    market = load_market(lake, "hyperliquid", ["BTC"], ["1h"], TO, from_at=START)
    assert len(market.bars["BTC", "1h"]) == 24
    assert market.bars["BTC", "1h"].open[0] == 500.0


def test_the_market_ends_at_the_end_of_the_run(tmp_path: Path, lake: Lake) -> None:
    put_bars(lake, tmp_path, "BTC", "5m", START, TO)
    rows = [{"date": START + HOUR * hour, "rate": 1e-5} for hour in range(24)]
    import_paths(lake, [write(tmp_path / "funding" / "BTC.csv", rows)])
    rows = [{"published": START + HOUR * hour + 1, "text": f"{hour}"} for hour in range(24)]
    import_paths(lake, [write(tmp_path / "news.jsonl", rows)])
    end = START + 6 * HOUR
    market = load_market(lake, "hyperliquid", ["BTC"], ["5m", "1h"], end, news_latency_ms=HOUR)
    assert market.bars["BTC", "5m"].open_at[-1] == end - MIN5
    assert market.bars["BTC", "1h"].open_at[-1] == end - HOUR
    assert market.points["funding", "BTC"].at[-1] == end
    assert [item.text for item in market.news] == ["0", "1", "2", "3", "4"]


def test_any_interval_that_can_be_built_is_there_when_a_tool_asks(tmp_path: Path, lake: Lake) -> None:
    put_bars(lake, tmp_path, "BTC", "15m", START, TO)
    market = load_market(lake, "hyperliquid", ["BTC"], ["15m"], TO)
    view = market.view(TO)
    assert view.has_bars("BTC", "4h")
    assert len(view.bars("BTC", "4h", 10)) == 6
    assert not view.has_bars("BTC", "5m")
    assert not view.has_bars("ETH", "15m")
    assert [interval for _, interval in market.bars] == ["15m", "30m", "1h", "2h", "4h", "8h", "12h", "1d"]
    with pytest.raises(UserError, match="from which 5m can be built"):
        load_market(lake, "hyperliquid", ["BTC"], ["5m"], TO)


def test_news_of_any_real_venue_are_heard_once_and_generated_ones_only_at_home(tmp_path: Path, lake: Lake) -> None:
    put_bars(lake, tmp_path, "BTC", "5m", START, TO)
    item = [{"published": START + 1, "text": "both heard this", "source": "wire"}]
    for venue in ("binance", "hyperliquid"):
        import_paths(lake, [write(tmp_path / "news.jsonl", item)], venue=venue)
    import_paths(lake, [write(tmp_path / "news.jsonl", [{"published": START + 2, "text": "made up"}])], venue="dreams")
    lake.mark_synthetic("dreams", "generated")
    assert [each.text for each in load_market(lake, "hyperliquid", ["BTC"], ["5m"], TO).news] == ["both heard this"]
    assert list(load_market(lake, "hyperliquid", ["BTC"], ["5m"], TO, with_news=False).news) == []


def test_nothing_can_be_imported_into_a_generated_venue(tmp_path: Path, lake: Lake) -> None:
    lake.mark_synthetic("demo", "generated")
    with pytest.raises(UserError, match="holds generated data"):
        import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows())], venue="demo")


def times_with_hole(missing: int, at: int = 50) -> list[int]:
    return [START + (i if i < at else i + missing) * MIN5 for i in range(200)]


def test_a_hole_of_twelve_bars_passes_and_thirteen_are_refused_by_symbol_and_span() -> None:
    check_gaps(make_bars(times_with_hole(12), "5m", MIN5), START, START + 150 * MIN5)
    with pytest.raises(
        UserError, match=f"X: 13 bars of 5m are missing from {iso(START + 50 * MIN5)} to {iso(START + 63 * MIN5)}"
    ):
        check_gaps(make_bars(times_with_hole(13), "5m", MIN5), START, START + 150 * MIN5)
    check_gaps(make_bars(times_with_hole(13), "5m", MIN5), START, START + 150 * MIN5, max_gap=13)


def test_only_missing_bars_inside_the_range_count() -> None:
    bars = make_bars(times_with_hole(40), "5m", MIN5)
    check_gaps(bars, START, START + 62 * MIN5)
    check_gaps(bars, START + 78 * MIN5, START + 200 * MIN5)
    with pytest.raises(UserError, match="13 bars"):
        check_gaps(bars, START, START + 63 * MIN5)
    with pytest.raises(UserError, match="13 bars"):
        check_gaps(bars, START + 77 * MIN5, START + 200 * MIN5)


def test_the_digest_ignores_listing_order_and_notices_any_changed_number(tmp_path: Path, lake: Lake) -> None:
    for symbol in ("BTC", "ETH"):
        put_bars(lake, tmp_path, symbol, "5m", START, TO)
    import_paths(lake, [write(tmp_path / "funding" / "BTC.csv", [{"date": START, "rate": 1e-5}])])
    market = load_market(lake, "hyperliquid", ["ETH", "BTC"], ["5m"], TO)
    digest = data_digest(market, ["ETH", "BTC"], ["5m", "1h"])
    again = load_market(Lake(lake.root), "hyperliquid", ["BTC", "ETH"], ["5m", "1h"], TO)
    assert data_digest(again, ["BTC", "ETH"], ["1h", "5m"]) == digest
    assert data_digest(market, ["BTC"], ["5m", "1h"]) != digest
    assert data_digest(market, ["BTC", "ETH"], ["5m"]) != digest
    import_paths(lake, [write(tmp_path / "funding" / "BTC.csv", [{"date": START, "rate": 2e-5}])], replace=True)
    changed = load_market(lake, "hyperliquid", ["BTC", "ETH"], ["5m"], TO)
    assert data_digest(changed, ["ETH", "BTC"], ["5m", "1h"]) != digest


def test_loading_reads_bars_that_cannot_be_written_to(tmp_path: Path, lake: Lake) -> None:
    put_bars(lake, tmp_path, "BTC", "5m", START, TO)
    market = load_market(lake, "hyperliquid", ["BTC"], ["5m", "1h"], TO)
    for interval in ("5m", "1h"):
        bars = market.bars["BTC", interval]
        for column in (bars.open_at, bars.open, bars.high, bars.low, bars.close, bars.volume):
            with pytest.raises(ValueError, match="read-only"):
                column[0] = np.float64(1)


def test_bars_over_new_year_are_one_series(tmp_path: Path, lake: Lake) -> None:
    put_bars(lake, tmp_path, "BTC", "1h", START - 5 * HOUR, START + 5 * HOUR)
    bars = lake.bars("hyperliquid", "BTC", "1h")
    assert bars is not None
    assert np.all(np.diff(bars.open_at) == HOUR)
    before = lake.bars("hyperliquid", "BTC", "1h", parse_instant("2024-12-31T22:00:00Z"))
    assert before is not None
    assert len(before) == 3
    assert lake.extent("hyperliquid", "BTC", "1h") == (START - 5 * HOUR, START + 4 * HOUR)


@pytest.mark.parametrize("name", ["\0", "a\0b", "x/../venue=hyperliquid", ".."])
def test_a_text_that_is_no_name_of_a_venue_is_refused_before_it_becomes_a_path(
    tmp_path: Path, lake: Lake, name: str
) -> None:
    for _ in range(2):  # an empty lake, and one with data
        with pytest.raises(UserError, match="is not a venue name"):
            choose_venue(name, lake, ["BTC"])
        put_bars(lake, tmp_path, "BTC", "5m", START, TO)
