"""The generated market: the same for the same seed, valid, labelled, and with something to trade."""

import hashlib
import os
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from import_files import bar_rows, write

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, HOUR_MS, parse_instant
from pitboss.data.demo import write_demo
from pitboss.data.feed import check_gaps, load_market
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.quality import check_lake
from pitboss.venues.perp.assets import SHIPPED

FROM, TO = parse_instant("2025-01-01"), parse_instant("2025-04-01")
SYMBOLS = ("BTC", "ETH", "SOL")
_CHILD = "import sys; from pathlib import Path; from pitboss.data.lake import Lake; from pitboss.data.demo import write_demo; write_demo(Lake(Path(sys.argv[1])), days=5)"


def bytes_of(root: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        total.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    lake = Lake(tmp_path_factory.mktemp("demo") / "lake")
    write_demo(lake)
    return lake


def test_the_same_seed_gives_the_same_bytes_in_processes_with_different_hash_seeds(tmp_path: Path) -> None:
    found = set()
    for seed in ("1", "2"):
        root = tmp_path / seed
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", _CHILD, str(root)], check=True, env=environment)
        found.add(bytes_of(root))
    assert len(found) == 1
    write_demo(Lake(tmp_path / "3"), days=5, seed=8)
    assert bytes_of(tmp_path / "3") not in found


def test_writing_it_again_changes_nothing_and_another_seed_takes_its_place(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    first = write_demo(lake, days=5)
    before = bytes_of(tmp_path)
    assert write_demo(lake, days=5) == first
    assert bytes_of(tmp_path) == before
    smaller = write_demo(lake, days=3, seed=1)
    assert {holding.rows for holding in smaller if holding.interval == "5m"} == {3 * 288}


def test_it_is_labelled_synthetic_and_other_venues_are_not(demo: Lake) -> None:
    assert demo.is_synthetic("demo")
    assert not demo.is_synthetic("hyperliquid")
    assert "No price, trade, headline or event in this venue is real." in (demo.synthetic_note("demo") or "")
    assert {item.source for item in demo.news("demo")} == {"synthetic"}
    assert all("ynthetic" in event.title for event in demo.events("demo"))


def test_it_never_takes_the_place_of_imported_data(tmp_path: Path, lake: Lake) -> None:
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows())], venue="demo")
    with pytest.raises(UserError, match="holds imported data"):
        write_demo(lake)
    with pytest.raises(UserError, match="was imported"):
        lake.drop_synthetic("demo")


def test_a_lake_that_cannot_be_written_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(UserError, match="cannot write to"):
        write_demo(Lake(tmp_path / "file"))


def test_it_has_ninety_days_of_whole_bars_funding_interest_news_and_events(demo: Lake) -> None:
    assert {finding.problem for finding in check_lake(demo)} == {"outliers", "ends_early"}  # its jumps; its minutes
    market = load_market(demo, "demo", SYMBOLS, ["5m"], TO)
    for symbol in SYMBOLS:
        bars = market.bars[symbol, "5m"]
        assert (len(bars), bars.open_at[0], bars.open_at[-1]) == (90 * 288, FROM, TO - 300_000)
        check_gaps(bars, FROM, TO, max_gap=0)
        assert np.all(bars.high >= np.maximum(bars.open, bars.close))
        assert np.all(bars.low <= np.minimum(bars.open, bars.close))
        assert np.all(bars.low > 0)
        assert np.all(bars.volume > 0)
        assert len(market.points["funding", symbol]) == len(market.points["open_interest", symbol]) == 90 * 24
        assert np.all(market.points["funding", symbol].at % HOUR_MS == 0)
    assert len(market.news) > 300
    assert len(market.events) > 10
    assert all(event.known_at == event.scheduled_at - 14 * DAY_MS for event in market.events)


def test_its_minutes_end_where_its_other_bars_begin(demo: Lake) -> None:
    minutes, fives = demo.bars("demo", "BTC", "1m"), demo.bars("demo", "BTC", "5m")
    assert minutes is not None
    assert fives is not None
    check_gaps(minutes, FROM - 3 * DAY_MS, FROM, max_gap=0)
    assert minutes.open_at[-1] + 60_000 == fives.open_at[0]
    assert minutes.close[-1] == fives.open[0]
    assert np.all(minutes.high >= np.maximum(minutes.open, minutes.close))
    assert np.all(minutes.low <= np.minimum(minutes.open, minutes.close))
    assert 50_000 < minutes.low.min() < minutes.high.max() < 150_000
    assert 0.2 < np.std(np.diff(np.log(minutes.close))) * np.sqrt(525_600) < 0.8  # a year's volatility
    for price in minutes.close[::97].tolist():
        exact = Decimal(repr(price))
        assert SHIPPED["BTC"].round_price(exact, up=True) == exact


def test_its_prices_have_the_precision_of_the_venue(demo: Lake) -> None:
    for symbol in SYMBOLS:
        bars = demo.bars("demo", symbol, "5m")
        assert bars is not None
        for column in (bars.open, bars.high, bars.low, bars.close):
            for price in column[::97].tolist():
                exact = Decimal(repr(price))
                assert SHIPPED[symbol].round_price(exact, up=True) == exact


def test_it_has_a_crash_day_and_trends_and_related_symbols(demo: Lake) -> None:
    market = load_market(demo, "demo", SYMBOLS, ["1h", "1d"], TO)
    for symbol in SYMBOLS:
        days = market.bars[symbol, "1d"]
        assert (days.low / days.open - 1).min() < -0.08
        assert (days.close / days.open - 1).max() > 0.03
    steps = [np.diff(np.log(market.bars[symbol, "1h"].close)) for symbol in SYMBOLS]
    assert np.corrcoef(steps).min() > 0.6


def test_its_funding_follows_the_trend(demo: Lake) -> None:
    market = load_market(demo, "demo", ["BTC"], ["1h"], TO)
    prices, rates = market.bars["BTC", "1h"].open, market.points["funding", "BTC"].value
    trend = np.log(prices[24:] / prices[:-24])
    assert np.corrcoef(trend, rates[24:])[0, 1] > 0.8


@pytest.mark.parametrize(("arguments", "says"), [({"days": 1}, "at least 2 days"), ({"end": FROM + 1}, "midnight")])
def test_a_span_that_makes_no_sense_is_refused(lake: Lake, arguments: dict, says: str) -> None:
    with pytest.raises(UserError, match=says):
        write_demo(lake, **arguments)


def test_any_seed_has_its_crash(tmp_path: Path) -> None:
    for seed in range(5):
        lake = Lake(tmp_path / str(seed))
        write_demo(lake, seed=seed, days=20)
        days = load_market(lake, "demo", ["BTC"], ["1d"], TO).bars["BTC", "1d"]
        assert (days.low / days.high - 1).min() < -0.08


def test_a_removal_that_is_interrupted_leaves_the_rest_marked_as_generated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    write_demo(lake, days=2)
    remove = shutil.rmtree

    def remove_until_meta(path: Path, **options: bool) -> None:
        if path.parent.name == "meta":
            raise KeyboardInterrupt
        remove(path, **options)

    monkeypatch.setattr(shutil, "rmtree", remove_until_meta)
    with pytest.raises(KeyboardInterrupt):
        lake.drop_synthetic("demo")
    assert lake.is_synthetic("demo")
    assert lake.venues() == []
