"""What gets in, from which formats, names and time columns, and what a second import does."""

import gzip
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from import_files import HOUR, MIN5, START, bar_rows, write

from pitboss.core.errors import UserError
from pitboss.core.instant import parse_instant
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.path_inference import FileHints, hints_of


def bars_text(lake: Lake, venue: str = "hyperliquid", symbol: str = "BTC", interval: str = "5m") -> list[tuple]:
    bars = lake.bars(venue, symbol, interval)
    assert bars is not None
    return list(
        zip(*(c.tolist() for c in (bars.open_at, bars.open, bars.high, bars.low, bars.close, bars.volume)), strict=True)
    )


@pytest.mark.parametrize("ext", ["parquet", "csv", "csv.gz", "feather", "jsonl", "ndjson", "json"])
def test_every_format_gives_the_same_bars(tmp_path: Path, lake: Lake, ext: str) -> None:
    rows = bar_rows()
    (done,) = import_paths(lake, [write(tmp_path / "candles" / "5m" / f"BTC.{ext}", rows)])
    assert (done.kind, done.symbol, done.interval, done.rows, done.added) == ("bars", "BTC", "5m", 24, 24)
    assert (done.first_at, done.last_at) == (START, START + 23 * MIN5)
    assert bars_text(lake) == [tuple(row.values()) for row in rows]


@pytest.mark.parametrize(
    ("path", "clue"),
    [
        ("candles/5m/BTC.parquet", FileHints("bars", "BTC", "5m")),
        ("x/1h/kBONK.csv.gz", FileHints("bars", "kBONK", "1h")),
        ("funding/ETH.parquet", FileHints("funding", "ETH")),
        ("funding_8h/ETH.csv", FileHints("funding", "ETH")),
        ("mark_8h/BTC.parquet", FileHints("mark", "BTC")),
        ("mark/8h/BTC.parquet", FileHints("mark", "BTC")),
        ("oracle/BTC.parquet", FileHints("oracle", "BTC")),
        ("open_interest/BTC.parquet", FileHints("open_interest", "BTC")),
        ("news/btc_2021_2024.parquet", FileHints("news")),
        ("x/news_2024.jsonl", FileHints("news")),
        ("events/fomc_releases.csv", FileHints("events")),
        ("x/meta.json", FileHints("meta")),
        ("5m/META.csv", FileHints("bars", "META", "5m")),
        ("market/BTC.csv", FileHints(None, "BTC")),
        ("x/BTC-5m.csv", FileHints("bars", "BTC", "5m")),
        ("x/weird name.csv", FileHints()),
        ("x/BTC_USDC_USDC-1h-futures.feather", FileHints("bars", "BTC", "1h")),
        ("x/BTC_USDC_USDC-1h-funding_rate.feather", FileHints("funding", "BTC")),
        ("news/candles/5m/BTC.parquet", FileHints("bars", "BTC", "5m")),
    ],
)
def test_the_path_gives_kind_symbol_and_interval(path: str, clue: FileHints) -> None:
    assert hints_of(Path("/data") / path) == clue


def time_columns() -> list[tuple[str, list]]:
    moments = [START, START + MIN5, START + 2 * MIN5]
    utc = [datetime.fromtimestamp(at / 1000, UTC) for at in moments]
    east = [moment.astimezone(timezone(timedelta(hours=9))) for moment in utc]
    return [
        ("date", [moment.isoformat() for moment in utc]),
        ("time", [moment.strftime("%Y-%m-%d %H:%M:%S") for moment in utc]),
        ("timestamp", [moment.strftime("%Y-%m-%dT%H:%M:%SZ") for moment in utc]),
        ("ts", [at // 1000 for at in moments]),
        ("open_time", moments),
        ("t", [str(at) for at in moments]),
        ("Date", [moment.isoformat() for moment in east]),
        ("Open Time", [at / 1000 for at in moments]),
        ("timestamp", [at * 1000 for at in moments]),
        ("timestamp", [at * 1_000_000 for at in moments]),
    ]


@pytest.mark.parametrize("ext", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("name", "values"), time_columns())
def test_times_are_read_from_any_column_and_unit(tmp_path: Path, lake: Lake, name: str, values: list, ext: str) -> None:
    rows = [
        {name: at} | {k: v for k, v in row.items() if k != "date"} for at, row in zip(values, bar_rows(3), strict=True)
    ]
    import_paths(lake, [write(tmp_path / "5m" / f"BTC.{ext}", rows)])
    assert [row[0] for row in bars_text(lake)] == [START, START + MIN5, START + 2 * MIN5]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_datetime_columns_of_any_unit_and_zone_are_instants(tmp_path: Path, lake: Lake, unit, zone) -> None:
    frame = pl.DataFrame(bar_rows(3)).with_columns(pl.from_epoch("date", "ms").cast(pl.Datetime(unit)))
    if zone:
        frame = frame.with_columns(pl.col("date").dt.replace_time_zone("UTC").dt.convert_time_zone(zone))
    path = tmp_path / "5m" / "BTC.parquet"
    path.parent.mkdir()
    frame.write_parquet(path)
    import_paths(lake, [path])
    assert [row[0] for row in bars_text(lake)] == [START, START + MIN5, START + 2 * MIN5]


def test_an_exchange_reply_is_read_with_symbol_and_interval_from_its_columns(tmp_path: Path, lake: Lake) -> None:
    candles = [
        {"T": START + MIN5 * (i + 1) - 1, "t": START + MIN5 * i, "s": "kPEPE", "i": "5m", "n": 3}
        | {"o": "0.001604", "c": "0.0016", "h": "0.001616", "l": "0.001601", "v": "520665683.0"}
        for i in range(3)
    ]
    (done,) = import_paths(lake, [write(tmp_path / "reply.json", candles)])
    assert (done.kind, done.symbol, done.interval) == ("bars", "kPEPE", "5m")
    assert bars_text(lake, symbol="kPEPE")[0] == (START, 0.001604, 0.001616, 0.001601, 0.0016, 520665683.0)


def test_a_file_of_several_coins_becomes_several_series(tmp_path: Path, lake: Lake) -> None:
    rows = [
        {"coin": coin, "fundingRate": rate, "premium": "0", "time": START + HOUR * hour + 48}
        for coin, rate in (("BTC", "0.0000125"), ("ETH", "-0.00002"))
        for hour in range(3)
    ]
    results = import_paths(lake, [write(tmp_path / "history.jsonl", rows)])
    assert [(each.kind, each.symbol, each.rows) for each in results] == [("funding", "BTC", 3), ("funding", "ETH", 3)]
    points = lake.points("funding", "hyperliquid", "ETH")
    assert points is not None
    assert points.value.tolist() == [-0.00002] * 3
    assert points.at.tolist() == [START + 48, START + HOUR + 48, START + 2 * HOUR + 48]


@pytest.mark.parametrize("name", ["funding_rate", "rate", "fundingRate", "value"])
def test_funding_is_found_under_its_usual_names(tmp_path: Path, lake: Lake, name: str) -> None:
    path = write(tmp_path / "funding" / "BTC.csv", [{"date": "2025-01-01T00:00:00Z", name: 0.0001}])
    import_paths(lake, [path])
    points = lake.points("funding", "hyperliquid", "BTC")
    assert points is not None
    assert points.value.tolist() == [0.0001]


def test_mark_prices_given_as_bars_count_by_their_open(tmp_path: Path, lake: Lake) -> None:
    rows = bar_rows(3, step=8 * HOUR)
    import_paths(lake, [write(tmp_path / "mark_8h" / "BTC.parquet", rows)])
    points = lake.points("mark", "hyperliquid", "BTC")
    assert points is not None
    assert points.value.tolist() == [row["open"] for row in rows]


def test_news_with_a_date_only_arrives_the_next_midnight(tmp_path: Path, lake: Lake) -> None:
    rows = [
        {"published": "2025-01-01T10:00:00Z", "text": "with a time", "sentiment": 0.5},
        {"published": "2025-01-02", "text": "date only", "sentiment": None},
    ]
    import_paths(lake, [write(tmp_path / "news.jsonl", rows)], symbol="BTC")
    timed, dated = lake.news("hyperliquid")
    assert (timed.available_at - timed.published_at, timed.symbols) == (0, ("BTC",))
    assert (dated.published_at, dated.available_at) == (parse_instant("2025-01-02"), parse_instant("2025-01-03"))
    assert dated.sentiment is None


def test_news_are_sorted_and_repeated_rows_count_once(tmp_path: Path, lake: Lake) -> None:
    rows = [
        {"published_at": f"2025-01-0{day}T01:00:00Z", "title": f"day {day}", "tickers": "ETH;BTC"} for day in (3, 1, 3)
    ]
    (done,) = import_paths(lake, [write(tmp_path / "news" / "x.csv", rows)])
    assert done.notes == ("1 repeated row counted once",)
    assert [(item.text, item.symbols) for item in lake.news("hyperliquid")] == [
        ("day 1", ("BTC", "ETH")),
        ("day 3", ("BTC", "ETH")),
    ]


def test_an_event_without_known_at_is_never_known_early_and_the_result_says_so(tmp_path: Path, lake: Lake) -> None:
    rows = [{"release_utc": "2025-01-29T19:00:00Z", "kind": "FOMC statement"}]
    (done,) = import_paths(lake, [write(tmp_path / "events" / "fomc.csv", rows)])
    (event,) = lake.events("hyperliquid")
    assert event.known_at == event.scheduled_at == parse_instant("2025-01-29T19:00:00Z")
    assert event.title == "FOMC statement"
    assert "known_at" in done.notes[0]


def test_an_event_is_known_from_its_column_or_from_the_argument(tmp_path: Path, lake: Lake) -> None:
    rows = [{"scheduled_at": "2025-01-29T19:00:00Z", "title": "A", "known_at": "2024-06-01", "importance": "high"}]
    import_paths(lake, [write(tmp_path / "events" / "a.csv", rows)])
    rows = [{"scheduled_at": "2025-02-01", "title": "B"}, {"scheduled_at": "2024-01-01", "title": "old"}]
    import_paths(lake, [write(tmp_path / "events" / "b.csv", rows)], known_at=parse_instant("2024-07-01"))
    known = {event.title: event.known_at for event in lake.events("hyperliquid")}
    assert known == {
        "A": parse_instant("2024-06-01"),
        "B": parse_instant("2024-07-01"),
        "old": parse_instant("2024-01-01"),
    }
    assert [event.title for event in lake.events("hyperliquid", parse_instant("2024-06-15"))] == ["old", "A"]


def test_a_folder_is_walked_in_order_and_other_files_are_passed_over(tmp_path: Path, lake: Lake) -> None:
    for symbol in ("SOL", "BTC"):
        write(tmp_path / "in" / "candles" / "5m" / f"{symbol}.csv", bar_rows())
    (tmp_path / "in" / "README.md").write_text("about")
    (tmp_path / "in" / ".hidden.csv").write_text("x")
    assert [result.symbol for result in import_paths(lake, [tmp_path / "in"])] == ["BTC", "SOL"]


def test_a_folder_is_walked_through_links_and_a_link_to_itself_is_walked_once(tmp_path: Path, lake: Lake) -> None:
    write(tmp_path / "elsewhere" / "5m" / "BTC.csv", bar_rows())
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "candles").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in" / "again").symlink_to(tmp_path / "in")
    assert [result.symbol for result in import_paths(lake, [tmp_path / "in"])] == ["BTC"]


def test_what_is_said_about_one_symbol_of_a_file_is_not_said_of_the_next(tmp_path: Path, lake: Lake) -> None:
    rows = [row | {"symbol": symbol} for row in bar_rows(2) for symbol in ("BTC", "ETH")]
    rows[0]["open"] = 200.0
    first, second = import_paths(lake, [write(tmp_path / "5m" / "all.csv", rows)])
    assert (len(first.notes), first.notes[0][:5], second.notes) == (1, "1 bar", ())


def test_importing_the_same_rows_again_changes_no_byte(tmp_path: Path, lake: Lake) -> None:
    path = write(tmp_path / "5m" / "BTC.csv", bar_rows(600, start=START - 300 * MIN5))
    import_paths(lake, [path])
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in lake.root.rglob("*.parquet")}
    (again,) = import_paths(lake, [path])
    assert (again.added, again.replaced, again.unchanged) == (0, 0, 600)
    assert before == {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in lake.root.rglob("*.parquet")}
    assert sorted(file.parent.name for file in before) == ["year=2024", "year=2025"]


def test_conflicting_rows_are_refused_by_time_unless_they_replace(tmp_path: Path, lake: Lake) -> None:
    rows = bar_rows()
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", rows)])
    before = bars_text(lake)
    rows[5] |= {"volume": 77.0}
    changed = write(tmp_path / "5m" / "BTC.csv", rows + bar_rows(3, start=START + 24 * MIN5))
    with pytest.raises(UserError, match="2025-01-01T00:25:00Z is already stored with other values") as refused:
        import_paths(lake, [changed])
    assert "--replace" in refused.value.hint
    assert bars_text(lake) == before
    (done,) = import_paths(lake, [changed], replace=True)
    assert (done.added, done.replaced, done.unchanged) == (3, 1, 23)
    assert bars_text(lake)[5][5] == 77.0
    assert len(bars_text(lake)) == 27


def test_two_halves_in_one_import_make_one_series(tmp_path: Path, lake: Lake) -> None:
    late = write(tmp_path / "a" / "5m" / "BTC.csv", bar_rows(10, start=START + 10 * MIN5))
    early = write(tmp_path / "b" / "5m" / "BTC.csv", bar_rows(10))
    import_paths(lake, [late, early])
    assert [row[0] for row in bars_text(lake)] == [START + i * MIN5 for i in range(20)]


def test_one_bad_file_keeps_the_whole_import_out(tmp_path: Path, lake: Lake) -> None:
    write(tmp_path / "in" / "5m" / "AAA.csv", bar_rows())
    bad = bar_rows()
    bad[3]["high"] = 1.0
    write(tmp_path / "in" / "5m" / "BBB.csv", bad)
    with pytest.raises(UserError, match=r"BBB\.csv: row 4"):
        import_paths(lake, [tmp_path / "in"])
    assert lake.list() == []
    assert [path.name for path in lake.root.iterdir()] == [".lock"]


def test_symbols_with_strange_characters_keep_to_their_own_folder(tmp_path: Path, lake: Lake) -> None:
    for symbol in ("km:US500", "../../up", "A/B", "50%"):
        import_paths(lake, [write(tmp_path / "x.csv", bar_rows(2))], kind="bars", symbol=symbol, interval="5m")
    assert lake.symbols("hyperliquid") == ["../../up", "50%", "A/B", "km:US500"]
    assert all(path.is_relative_to(lake.root) for path in tmp_path.rglob("part.parquet"))


def test_bars_that_open_outside_their_range_are_kept_and_mentioned(tmp_path: Path, lake: Lake) -> None:
    rows = bar_rows(3)
    rows[1]["open"] = rows[1]["high"] + 1
    (done,) = import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", rows)])
    assert "outside" in done.notes[0]


prices = st.floats(min_value=1e-9, max_value=1e9, allow_nan=False)


@st.composite
def random_bars(draw: st.DrawFn) -> list[dict]:
    steps = draw(st.lists(st.integers(1, 40), min_size=1, max_size=12))
    at, rows = START + draw(st.integers(-200_000, 200_000)) * MIN5, []
    for step in steps:
        at += step * MIN5
        low, opening, closing, high = sorted(draw(st.tuples(prices, prices, prices, prices)))
        volume = draw(st.floats(min_value=0, max_value=1e12))
        rows.append({"date": at, "open": opening, "high": high, "low": low, "close": closing, "volume": volume})
    return rows


@settings(max_examples=20, deadline=None)
@given(
    rows=random_bars(), ext=st.sampled_from(["parquet", "csv", "csv.gz", "feather", "jsonl"]), cut=st.integers(0, 12)
)
def test_any_valid_bars_come_back_bit_for_bit_in_whatever_pieces(rows: list[dict], ext: str, cut: int) -> None:
    with TemporaryDirectory() as folder:
        lake = Lake(Path(folder) / "lake")
        for number, part in enumerate((rows[cut:], rows[: cut + 2])):
            if part:
                import_paths(lake, [write(Path(folder) / str(number) / "5m" / f"BTC.{ext}", part)])
        assert bars_text(lake) == [tuple(row.values()) for row in rows]
        bars = lake.bars("hyperliquid", "BTC", "5m")
        assert bars is not None
        assert not bars.close.flags.writeable
        assert bars.open_at.dtype == np.int64


def test_a_truncated_archive_is_one_clear_line(tmp_path: Path, lake: Lake) -> None:
    path = tmp_path / "5m" / "BTC.csv.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress(json.dumps(bar_rows()).encode())[:-9])
    with pytest.raises(UserError, match=r"BTC\.csv\.gz cannot be read as csv"):
        import_paths(lake, [path])


@pytest.mark.parametrize("date", ["2025-03-01", "20250301"])
def test_an_event_with_only_a_date_is_scheduled_for_its_midnight(tmp_path: Path, lake: Lake, date: str) -> None:
    import_paths(lake, [write(tmp_path / "events.csv", [{"date": date, "title": "x", "known_at": None}])])
    (event,) = lake.events("hyperliquid")
    assert event.scheduled_at == event.known_at == parse_instant("2025-03-01")
