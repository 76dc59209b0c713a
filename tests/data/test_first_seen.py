"""Two times of a headline: when it says it was published and when it was first met. Older lakes have the first only."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from import_files import write

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, parse_instant
from pitboss.data.downloaded_news import DownloadedItem, SeenItems, new_items
from pitboss.data.feed import load_market
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.news_latency import parse_latency
from pitboss.data.news_rows import events_of
from pitboss.data.quality import check_lake
from pitboss.data.source import StoredState
from pitboss.data.table import Table

NOON = parse_instant("2025-01-01T12:00:00Z")
MIDNIGHT = parse_instant("2025-01-02")


def news(lake: Lake, tmp_path: Path, *rows: dict) -> list[tuple[int, int]]:
    import_paths(lake, [write(tmp_path / "news.jsonl", list(rows))])
    return [(item.published_at, item.available_at) for item in lake.news("hyperliquid")]


def test_news_counts_from_the_later_of_publication_and_first_sight(tmp_path: Path, lake: Lake) -> None:
    rows = [
        {"published": NOON, "text": "late", "first_seen_at": NOON + HOUR_MS},
        {"published": NOON + 1, "text": "early", "first_seen_at": NOON - HOUR_MS},
        {"published": NOON + 2, "text": "unseen", "first_seen_at": None},
    ]
    assert sorted(news(lake, tmp_path, *rows)) == [(NOON, NOON + HOUR_MS), (NOON + 1, NOON + 1), (NOON + 2, NOON + 2)]
    assert [finding for finding in check_lake(lake) if finding.problem == "bad_rows"] == []


@settings(max_examples=30)
@given(st.integers(-2 * DAY_MS, 2 * DAY_MS), st.integers(0, 120))
def test_no_latency_brings_an_item_before_it_was_first_met_nor_before_its_midnight(seen: int, minutes: int) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        lake = Lake(Path(folder) / "lake")
        bars = [{"date": NOON, "open": 1.0, "high": 1.0, "low": 1.0, "close": 1.0, "volume": 1.0}]
        import_paths(lake, [write(Path(folder) / "5m" / "BTC.csv", bars)])
        rows = [
            {"published": NOON, "text": "timed", "first_seen_at": NOON + seen},
            {"published": MIDNIGHT, "text": "dated", "first_seen_at": MIDNIGHT + seen},
        ]
        import_paths(lake, [write(Path(folder) / "news.jsonl", rows)])
        latency = parse_latency(f"{minutes}m")
        market = load_market(lake, "hyperliquid", ["BTC"], ["5m"], NOON + 9 * DAY_MS, news_latency=latency)
        items = {item.text: item.available_at for item in market.news}
        assert items["timed"] == max(NOON + minutes * MINUTE_MS, NOON + seen)
        assert items["dated"] == max(MIDNIGHT + DAY_MS, MIDNIGHT + seen)


def test_a_first_sight_that_is_no_time_is_refused(tmp_path: Path, lake: Lake) -> None:
    with pytest.raises(UserError, match="first_seen_at 'soon' is not a time"):
        news(lake, tmp_path, {"published": NOON, "text": "x", "first_seen_at": "soon"})


def old_lake(lake: Lake, tmp_path: Path) -> Path:
    """A lake as it was before there was a column for the first sight: same manifest, files without it."""
    news(lake, tmp_path, {"published": NOON, "text": "old"}, {"published": NOON + 1, "text": "older", "sentiment": 0.5})
    (path,) = lake.root.glob("news/**/part.parquet")
    pl.read_parquet(path, hive_partitioning=False).drop("first_seen_at").write_parquet(path)
    return path


def test_a_lake_of_an_earlier_version_is_read_as_ever_and_is_not_taken_for_changed(tmp_path: Path, lake: Lake) -> None:
    old_lake(lake, tmp_path)
    assert [item.available_at for item in lake.news("hyperliquid")] == [NOON, NOON + 1]
    assert check_lake(lake) == []
    assert import_paths(lake, [tmp_path / "news.jsonl"])[0].unchanged == 2


def test_rows_with_a_first_sight_are_put_to_a_file_of_an_earlier_version(tmp_path: Path, lake: Lake) -> None:
    path = old_lake(lake, tmp_path)
    rows = [{"published": NOON + 2, "text": "new", "first_seen_at": NOON + HOUR_MS}]
    import_paths(lake, [write(tmp_path / "more" / "news.jsonl", rows)])
    assert "first_seen_at" in pl.read_parquet_schema(path)
    assert [item.available_at for item in lake.news("hyperliquid")] == [NOON, NOON + 1, NOON + HOUR_MS]
    assert check_lake(lake) == []


def test_a_downloaded_item_keeps_the_date_it_carries_next_to_its_first_sight(tmp_path: Path) -> None:
    items = [
        DownloadedItem(NOON, NOON + HOUR_MS, "wire", "an old story", ("a",)),
        DownloadedItem(None, NOON + HOUR_MS, "wire", "no date", ("b",)),
        DownloadedItem(NOON + DAY_MS, NOON + HOUR_MS, "wire", "dated tomorrow", ("c",)),
    ]
    lake = Lake(tmp_path / "lake")
    brought = new_items(items, StoredState(None, SeenItems(lake.root, "news")), (), "host")
    lake.put("news", "news", None, None, brought.frame)
    found = {item.text: (item.published_at, item.available_at) for item in lake.news("news")}
    assert found == {
        "an old story": (NOON, NOON + HOUR_MS),
        "no date": (NOON + HOUR_MS, NOON + HOUR_MS),
        "dated tomorrow": (NOON + DAY_MS, NOON + DAY_MS),
    }


def events(tmp_path: Path, lake: Lake, row: dict, **more: float | int | None) -> int:
    import_paths(lake, [write(tmp_path / "events.csv", [row])], **more)  # type: ignore[arg-type]
    (event,) = lake.events("hyperliquid")
    return event.known_at


RELEASE = {"release_utc": "2025-01-29T19:00:00Z", "kind": "FOMC statement"}
AT = parse_instant("2025-01-29T19:00:00Z")


def test_a_file_that_does_not_say_since_when_claims_nothing(tmp_path: Path, lake: Lake) -> None:
    assert events(tmp_path, lake, RELEASE) == AT


def test_days_before_each_event_date_what_a_file_does_not(tmp_path: Path, lake: Lake) -> None:
    assert events(tmp_path, lake, RELEASE, known_days=90) == AT - 90 * DAY_MS


def test_a_column_goes_before_the_days(tmp_path: Path, lake: Lake) -> None:
    said = {**RELEASE, "known_at": "2025-01-01"}
    assert events(tmp_path, lake, said, known_days=90) == parse_instant("2025-01-01")


@pytest.mark.parametrize("more", [{"known_days": -1}, {"known_days": 1e9}, {"known_days": 9, "known_at": NOON}])
def test_days_that_cannot_be_are_refused(tmp_path: Path, lake: Lake, more: dict) -> None:
    with pytest.raises(UserError, match="either since one instant or for some days"):
        events(tmp_path, lake, RELEASE, **more)


def test_the_note_of_a_silent_file_names_both_options() -> None:
    table = Table("x", pl.DataFrame({"release_utc": ["2025-01-29T19:00:00Z"], "kind": ["FOMC"]}))
    events_of(table, None, None)
    assert "--known-days-before" in table.notes[0]
