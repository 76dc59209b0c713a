"""What rows say about their feed: stale stretches, outliers, changes of pace, silence of a whole venue."""

import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from import_files import HOUR, MIN5, START, bar_rows, write

from pitboss.core.instant import DAY_MS
from pitboss.data.feed_checks import STILL, PaceChange, changes, outliers, returns, silences
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.quality import QualityFinding, check_lake


def findings(lake: Lake, problem: str) -> list[QualityFinding]:
    return [finding for finding in check_lake(lake) if finding.problem == problem]


def flat(rows: list[dict[str, Any]], first: int, count: int) -> list[dict[str, Any]]:
    for row in rows[first : first + count]:
        row |= {"close": rows[first]["open"], "volume": 3.0, "open": rows[first]["open"], "high": 200.0, "low": 50.0}
    return rows


@pytest.mark.parametrize(("repeats", "count"), [(STILL, 0), (STILL + 1, 1), (40, 1)])
def test_a_close_and_volume_that_stand_still_too_long_are_a_stale_feed(
    tmp_path: Path, lake: Lake, repeats: int, count: int
) -> None:
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", flat(bar_rows(100), 20, repeats))])
    stale = findings(lake, "stale")
    assert len(stale) == count
    if stale:
        assert (stale[0].first_at, stale[0].severity, stale[0].usable) == (START + 20 * MIN5, "warning", True)
        assert f"the longest of {repeats} from" in stale[0].detail


def test_the_same_price_with_changing_volume_is_a_calm_market_not_a_stale_feed(tmp_path: Path, lake: Lake) -> None:
    rows = flat(bar_rows(100), 20, 40)
    for number, row in enumerate(rows):
        row["volume"] = float(number)
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", rows)])
    assert findings(lake, "stale") == []


def test_a_mark_that_stands_still_is_stale_and_a_funding_rate_that_does_is_not(tmp_path: Path, lake: Lake) -> None:
    rows = [{"date": START + HOUR * hour, "value": 5.0} for hour in range(40)]
    import_paths(lake, [write(tmp_path / "mark" / "BTC.csv", rows), write(tmp_path / "funding" / "BTC.csv", rows)])
    assert [(finding.kind, finding.count) for finding in findings(lake, "stale")] == [("mark", 1)]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-0.5, 0.5, allow_nan=False), min_size=1, max_size=60), st.integers(0, 23), st.integers(1, 20))
def test_an_outlier_is_a_return_above_ten_times_the_median_of_its_utc_day(
    moves: list[float], hour: int, step: int
) -> None:
    at = [START + hour * HOUR + number * step * HOUR for number in range(len(moves))]
    days: dict[int, list[float]] = {}
    for moment, move in zip(at, moves, strict=True):
        days.setdefault(moment // DAY_MS, []).append(abs(move))
    expected = [abs(move) > 10 * median(days[moment // DAY_MS]) for moment, move in zip(at, moves, strict=True)]
    assert outliers(np.array(at), np.array(moves))[0].tolist() == expected


def test_a_wild_bar_is_named_with_its_return_and_the_median_of_its_day(tmp_path: Path, lake: Lake) -> None:
    rows = [
        {
            "date": START + MIN5 * n,
            "open": 100.0,
            "high": 200.0,
            "low": 50.0,
            "close": 100.0 + n % 2,
            "volume": float(n),
        }
        for n in range(48)
    ]
    rows[30]["close"] = 150.0
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", rows)])
    (finding,) = findings(lake, "outliers")
    assert (finding.count, finding.first_at, finding.severity) == (2, START + 30 * MIN5, "note")
    assert "+48.51 % at 2025-01-01T02:30:00Z" in finding.detail


def test_a_change_of_the_funding_interval_is_reported_with_its_instant(tmp_path: Path, lake: Lake) -> None:
    hours = [*range(0, 80, 8), *range(80, 100), *range(102, 120), *range(120, 200, 4)]
    rows = [{"date": START + HOUR * hour + 48, "rate": 0.0} for hour in hours]
    import_paths(lake, [write(tmp_path / "funding" / "BTC.csv", rows)])
    result = [(finding.first_at, finding.detail[:14]) for finding in findings(lake, "funding_interval")]
    assert result == [(START + 80 * HOUR + 48, "paid every 8h "), (START + 120 * HOUR + 48, "paid every 1h ")]


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([1, 4, 8]), st.sampled_from([1, 4, 8]), st.integers(3, 30), st.integers(3, 30),
    st.integers(-900, 900),
)  # fmt: skip
def test_jittered_times_change_pace_exactly_where_the_pace_changes(
    before: int, after: int, first: int, second: int, jitter: int
) -> None:
    at = [START + HOUR * before * number for number in range(first + 1)]
    at += [at[-1] + HOUR * after * number for number in range(1, second + 1)]
    noisy = np.array(at) + np.where(np.arange(len(at)) % 2, jitter, 0)
    expected = [] if before == after else [PaceChange(first, before * HOUR, after * HOUR)]
    assert changes(noisy) == expected


def test_all_symbols_silent_at_once_is_an_outage_and_one_of_them_is_not(tmp_path: Path, lake: Lake) -> None:
    rows = bar_rows(60)
    paths = [
        write(tmp_path / "5m" / "AAA.csv", rows[:20] + rows[30:]),
        write(tmp_path / "5m" / "BBB.csv", rows[:25] + rows[28:]),
        write(tmp_path / "5m" / "NEW.csv", rows[40:]),
    ]
    import_paths(lake, paths)
    (finding,) = findings(lake, "outage")
    assert (finding.count, finding.first_at, finding.symbol) == (3, START + 25 * MIN5, None)
    assert finding.detail.startswith("all 2 symbols silent for 3 bars of 5m, 2025-01-01T02:05:00Z to")
    import_paths(lake, [write(tmp_path / "5m" / "OLD.csv", rows[:40])])
    assert findings(lake, "outage") == []


def test_a_venue_of_one_symbol_has_holes_but_no_outage() -> None:
    assert silences([np.array([0, 5 * MIN5])], MIN5) == []


def test_a_return_beyond_all_numbers_is_infinite_without_a_warning() -> None:
    joined = np.zeros(1, dtype=np.bool_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (move,) = returns(np.array([1e-320]), np.array([0.3]), joined)
        wild, _ = outliers(np.array([0]), np.array([move]))
    assert move == np.inf
    assert not wild[0]
