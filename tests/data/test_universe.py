"""Runs over symbols that are listed late or delisted early: their bars, refusals and notes."""

from pathlib import Path

import pytest
from import_files import HOUR, MIN5, SHARED, START, bar_rows, write

from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, INTERVALS, parse_instant
from pitboss.core.market import Listing
from pitboss.data.feed import base_intervals, data_digest, load_market, with_listings
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.listings import listing_notes
from pitboss.venues.perp.assembly import prepare
from pitboss.venues.perp.course import first_state
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import plain_skill
from pitboss.venues.perp.venue import VENUE

TO = START + DAY_MS
LATE = START + 6 * HOUR


def import_bars(lake: Lake, tmp_path: Path, symbol: str, start: int, end: int, interval: str = "5m") -> None:
    step = INTERVALS[interval]
    rows = bar_rows((end - start) // step, start, step)
    import_paths(lake, [write(tmp_path / "in" / interval / f"{symbol}.parquet", rows)])


def listings(lake: Lake, symbols: tuple[str, ...], max_gap: int = 12) -> dict[str, Listing]:
    base = next(base_intervals(lake, "hyperliquid", symbols, MIN5, START, TO, max_gap))
    market = load_market(lake, "hyperliquid", symbols, [base], TO, from_at=START)
    return dict(with_listings(market, lake, "hyperliquid", base, START, TO, max_gap).listings)


def test_a_symbol_whose_bars_begin_inside_the_range_is_listed_from_its_first_close_on(
    tmp_path: Path, lake: Lake
) -> None:
    import_bars(lake, tmp_path, "BTC", START, TO)
    import_bars(lake, tmp_path, "SUI", LATE, TO)
    found = listings(lake, ("BTC", "SUI"))
    assert found == {"SUI": Listing("SUI", LATE + MIN5)}
    assert listing_notes(found, START, TO) == [
        "SUI is not offered before 2025-01-01T06:05:00Z: it was not listed, or has no bars from before."
    ]


def test_a_symbol_whose_bars_end_is_given_up_only_after_the_longest_hole_that_is_allowed(
    tmp_path: Path, lake: Lake
) -> None:
    import_bars(lake, tmp_path, "BTC", START, TO)
    import_bars(lake, tmp_path, "SUI", START, LATE)
    assert listings(lake, ("BTC", "SUI")) == {"SUI": Listing("SUI", None, LATE + 12 * MIN5)}
    assert listings(lake, ("BTC", "SUI"), 20) == {"SUI": Listing("SUI", None, LATE + 20 * MIN5)}
    assert listings(lake, ("BTC", "SUI"), 1000) == {}  # then it is one of the holes that are allowed


def test_a_hole_while_a_symbol_is_listed_is_refused_as_ever(tmp_path: Path, lake: Lake) -> None:
    import_bars(lake, tmp_path, "BTC", START, TO)
    import_bars(lake, tmp_path, "SUI", LATE, LATE + HOUR)
    import_bars(lake, tmp_path, "SUI", LATE + 4 * HOUR, TO)
    with pytest.raises(UserError, match="SUI: 36 bars of 5m are missing from 2025-01-01T07:00:00Z"):
        listings(lake, ("BTC", "SUI"))


def test_bars_that_are_merely_not_here_are_not_taken_for_a_listing(tmp_path: Path, lake: Lake) -> None:
    import_bars(lake, tmp_path, "SUI", LATE, TO)
    with pytest.raises(UserError, match="no bars that fit the schedule"):
        listings(lake, ("SUI",))  # no other symbol covers the range
    import_bars(lake, tmp_path, "BTC", START, TO)
    import_bars(lake, tmp_path, "SUI", START, TO, "1h")  # it traded all the time
    with pytest.raises(UserError, match="no bars that fit the schedule"):
        listings(lake, ("BTC", "SUI"))


def test_a_symbol_without_one_bar_in_the_range_is_refused(tmp_path: Path, lake: Lake) -> None:
    import_bars(lake, tmp_path, "BTC", START, TO)
    import_bars(lake, tmp_path, "SUI", TO + HOUR, TO + DAY_MS)
    with pytest.raises(UserError, match="no bars that fit the schedule"):
        listings(lake, ("BTC", "SUI"))


def test_an_imported_listing_explains_a_late_beginning_alone(tmp_path: Path, lake: Lake) -> None:
    import_bars(lake, tmp_path, "SUI", LATE, TO)
    import_paths(lake, [write(tmp_path / "listings.csv", [{"symbol": "SUI", "listed_at": "2025-01-01T05:30:00Z"}])])
    assert listings(lake, ("SUI",)) == {"SUI": Listing("SUI", LATE + MIN5)}


def test_an_imported_listing_counts_although_there_are_bars_from_before(tmp_path: Path, lake: Lake) -> None:
    import_bars(lake, tmp_path, "SUI", START, TO)
    row = {"symbol": "SUI", "listed_at": LATE, "delisted_at": TO - HOUR, "known_at": TO - 2 * HOUR}
    import_paths(lake, [write(tmp_path / "listings.csv", [row])])
    assert listings(lake, ("SUI",)) == {"SUI": Listing("SUI", LATE, TO - HOUR, TO - 2 * HOUR)}


def test_a_listing_that_begins_before_the_range_and_does_not_end_in_it_changes_nothing(
    tmp_path: Path, lake: Lake
) -> None:
    import_bars(lake, tmp_path, "BTC", START, TO)
    before = data_digest(load_market(lake, "hyperliquid", ["BTC"], ["5m"], TO), ["BTC"], ["5m"])
    import_paths(lake, [write(tmp_path / "listings.csv", [{"symbol": "BTC", "listed_at": START - DAY_MS}])])
    assert listings(lake, ("BTC",)) == {}
    market = load_market(lake, "hyperliquid", ["BTC"], ["5m"], TO)
    market = with_listings(market, lake, "hyperliquid", "5m", START, TO)
    assert data_digest(market, ["BTC"], ["5m"]) == before


def test_a_listing_that_counts_is_part_of_the_data_digest(tmp_path: Path, lake: Lake) -> None:
    import_bars(lake, tmp_path, "BTC", START, TO)
    market = load_market(lake, "hyperliquid", ["BTC"], ["5m"], TO)
    before = data_digest(market, ["BTC"], ["5m"])
    import_paths(lake, [write(tmp_path / "listings.csv", [{"symbol": "BTC", "listed_at": LATE}])])
    market = with_listings(market, lake, "hyperliquid", "5m", START, TO)
    assert data_digest(market, ["BTC"], ["5m"]) != before


def test_an_interval_that_spans_everything_is_preferred_to_a_finer_one_that_does_not(
    tmp_path: Path, lake: Lake
) -> None:
    import_bars(lake, tmp_path, "BTC", START, TO)
    import_bars(lake, tmp_path, "BTC", START, TO, "1h")
    import_bars(lake, tmp_path, "SUI", LATE, TO)
    import_bars(lake, tmp_path, "SUI", START, TO, "1h")
    assert next(base_intervals(lake, "hyperliquid", ["BTC", "SUI"], HOUR, START, TO)) == "1h"


@pytest.mark.skipif(not SHARED.exists(), reason="needs the market data in ../shared/data")
def test_a_real_listing_inside_the_range_runs(tmp_path: Path, lake: Lake) -> None:
    folder = SHARED / "binance_2023_2024"
    import_paths(lake, [folder / "5m" / f"{name}.parquet" for name in ("BTC", "SUI")], venue="binance")
    request = PerpRequest(
        plain_skill(("BTC", "SUI"), "1h"), parse_instant("2023-05-01"), parse_instant("2023-05-10"), model="policy/hold"
    )
    run = prepare(request, lake, Settings.model_construct())
    assert run.base_interval == "5m"
    assert dict(run.market.listings) == {"SUI": Listing("SUI", parse_instant("2023-05-03T16:05:00Z"))}


@pytest.mark.parametrize("hours", [5, 6, 7, 8, 20])
def test_a_preview_offers_a_symbol_whose_bars_have_ended_exactly_as_long_as_a_run_does(
    hours: int, tmp_path: Path, lake: Lake
) -> None:
    import_bars(lake, tmp_path, "BTC", START, TO)
    import_bars(lake, tmp_path, "SUI", START, LATE)
    at = START + hours * HOUR
    request = PerpRequest(plain_skill(["BTC", "SUI"], "1h"), START, TO, model="policy/hold", prompts=True)
    script = prepare(request, lake, Settings()).course()
    run = script.ports.context.prompt(script.ports.observe(first_state(script), at)).user
    shown = VENUE.preview(request, lake, Settings(), at).user
    gone = hours >= 7  # twelve bars of 5m after the last one
    assert ("### SUI\nno longer listed" in run) is gone
    assert ("### SUI\nno longer listed" in shown) is gone


def test_a_range_in_which_no_symbol_is_listed_is_refused(tmp_path: Path, lake: Lake) -> None:
    import_bars(lake, tmp_path, "SUI", START, TO)
    rows = [{"symbol": "SUI", "delisted_at": "2024-12-01T00:00:00Z"}]
    import_paths(lake, [write(tmp_path / "listings.csv", rows)])
    with pytest.raises(UserError, match="SUI is not listed between 2025-01-01T00:00:00Z and 2025-01-02T00:00:00Z"):
        prepare(PerpRequest(plain_skill(["SUI"], "1h"), START, TO, model="policy/hold"), lake, Settings())
