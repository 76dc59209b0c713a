"""Listing, crashes and damaged files."""

import contextlib
import math
import os
import resource
from pathlib import Path
from threading import Event, Thread

import numpy as np
import polars as pl
import pytest
from import_files import HOUR, MIN5, START, bar_rows, write

from pitboss.core.errors import UserError
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.quality import check_lake
from pitboss.data.series import series
from pitboss.data.series_info import SeriesInfo
from pitboss.data.staging import silent_stderr


def test_the_list_is_sorted_and_counts_holes(tmp_path: Path, lake: Lake) -> None:
    rows = bar_rows(30)
    del rows[10:12], rows[20]
    import_paths(lake, [write(tmp_path / "5m" / "ETH.csv", rows), write(tmp_path / "5m" / "BTC.csv", bar_rows())])
    import_paths(lake, [write(tmp_path / "1h" / "BTC.csv", bar_rows(3, step=HOUR))])
    rates = [
        {"date": START + HOUR * hour, "rate": 0.0} for hour in (*range(0, 200, 8), *range(200, 230), *range(231, 260))
    ]
    import_paths(lake, [write(tmp_path / "funding" / "BTC.csv", rates)])
    assert lake.list() == [
        SeriesInfo("hyperliquid", "bars", "BTC", "5m", 24, START, START + 23 * MIN5, 0),
        SeriesInfo("hyperliquid", "bars", "BTC", "1h", 3, START, START + 2 * HOUR, 0),
        SeriesInfo("hyperliquid", "bars", "ETH", "5m", 27, START, START + 29 * MIN5, 2),
        SeriesInfo("hyperliquid", "funding", "BTC", None, 84, START, START + 259 * HOUR, 1),
    ]


def test_what_is_known_of_a_series_follows_each_change_of_its_files(tmp_path: Path, lake: Lake) -> None:
    for count in (10, 24):
        import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows(count))])
        for _ in range(2):
            assert lake.extent("hyperliquid", "BTC", "5m") == (START, START + (count - 1) * MIN5)
            assert [(info.rows, info.last_at) for info in lake.list()] == [(count, START + (count - 1) * MIN5)]
    (path,) = lake.root.rglob("part.parquet")
    path.write_bytes(path.read_bytes()[:-8])
    for ask in (lake.list, lambda: lake.extent("hyperliquid", "BTC", "5m")):
        with pytest.raises(UserError, match="is damaged"):
            ask()


def test_an_empty_lake_lists_nothing_and_writes_nothing(lake: Lake) -> None:
    assert lake.list() == []
    assert check_lake(lake) == []
    assert not lake.root.exists()


def test_a_put_that_fails_leaves_no_file(lake: Lake) -> None:
    frame = pl.DataFrame({"at": [START], "value": [1.0]}).with_columns(
        pl.from_epoch("at", "ms").dt.replace_time_zone("UTC")
    )
    with pytest.raises(RuntimeError), lake.writing() as batch:
        batch.put(series("mark"), lake.root / "mark", frame)
        raise RuntimeError("the power went out")
    assert [path.name for path in lake.root.rglob("*")] == [".lock"]


def test_what_a_killed_import_left_is_reported_and_removed_by_the_next(tmp_path: Path, lake: Lake) -> None:
    left = lake.root / ".staging-dead"
    left.mkdir(parents=True)
    (left / "0-year=2025.parquet").write_bytes(b"half")
    assert [(finding.problem, finding.usable) for finding in check_lake(lake)] == [("leftover", True)]
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows())])
    assert not left.exists()
    assert check_lake(lake) == []


def test_a_lake_that_cannot_be_written_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(UserError, match="cannot write to"):
        import_paths(Lake(tmp_path / "file"), [write(tmp_path / "5m" / "BTC.csv", bar_rows())])


def test_a_full_disk_is_one_clear_line_and_leaves_nothing(tmp_path: Path, lake: Lake) -> None:
    path = write(tmp_path / "5m" / "BTC.csv", bar_rows(5_000))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))  # no file may grow beyond this
    try:
        with pytest.raises(UserError, match="cannot write to"):
            import_paths(lake, [path])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in lake.root.rglob("*")] == [".lock"]


def test_a_place_that_cannot_be_made_keeps_the_whole_import_out(tmp_path: Path, lake: Lake) -> None:
    (lake.root / "funding").mkdir(parents=True)
    (lake.root / "funding" / "venue=hyperliquid").write_text("in the way")
    rates = write(tmp_path / "funding" / "BTC.csv", [{"date": START, "rate": 0.0}])
    with pytest.raises(UserError, match="cannot write to"):
        import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows()), rates])
    assert list(lake.root.rglob("*.parquet")) == []


@pytest.mark.parametrize("damage", [b"", b"PAR1 nothing PAR1", None])
def test_a_damaged_file_is_a_finding_and_a_clear_line_not_a_traceback(tmp_path: Path, lake: Lake, damage) -> None:
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows())])
    (file,) = lake.root.rglob("part.parquet")
    file.write_bytes(file.read_bytes()[:-40] if damage is None else damage)
    (finding,) = check_lake(lake)
    assert (finding.problem, finding.usable, finding.symbol) == ("unreadable", False, "BTC")
    for reading in (lambda: lake.bars("hyperliquid", "BTC", "5m"), lake.list):
        with pytest.raises(UserError, match="is damaged and cannot be read"):
            reading()


@pytest.mark.parametrize(
    ("row", "values", "problem", "usable"),
    [
        (3, {"close": None}, "bad_rows", False),
        (3, {"close": float("nan")}, "bad_rows", False),
        (3, {"high": 1.0, "close": 1.0, "open": 1.0}, "bad_rows", False),
        (3, {"low": -1.0}, "bad_rows", False),
        (3, {"date": START + 3 * MIN5 + 1}, "bad_rows", False),
        (3, {"date": START + 2 * MIN5}, "duplicates", False),
        (3, {"date": START + MIN5}, "unordered", False),
        (3, {"open": 1e6}, "outside", True),
    ],
)
def test_an_edited_file_is_found_out(tmp_path: Path, lake: Lake, row: int, values: dict, problem: str, usable) -> None:
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows())])
    (file,) = lake.root.rglob("part.parquet")
    rows = bar_rows()
    rows[row] |= values
    frame = pl.DataFrame(rows).rename({"date": "open_at"})
    frame.with_columns(pl.from_epoch("open_at", "ms").dt.replace_time_zone("UTC")).write_parquet(file)
    changed, *findings = [finding for finding in check_lake(lake) if finding.problem not in ("gaps", "outliers")]
    assert (changed.problem, changed.severity, changed.usable) == ("changed", "error", False)
    assert [(finding.problem, finding.usable, finding.count) for finding in findings] == [(problem, usable, 1)]
    if problem in ("duplicates", "unordered"):
        with pytest.raises(UserError, match="out of order"):
            lake.bars("hyperliquid", "BTC", "5m")
    if not math.isfinite(values.get("close") or math.nan) and "close" in values:
        with pytest.raises(UserError, match="not finite"):
            lake.bars("hyperliquid", "BTC", "5m")


def test_flipped_bytes_never_end_in_a_traceback(tmp_path: Path, lake: Lake, capfd: pytest.CaptureFixture[str]) -> None:
    brought = write(tmp_path / "5m" / "BTC.parquet", bar_rows(300))
    import_paths(lake, [brought])
    (file,) = lake.root.rglob("part.parquet")
    random, sound = np.random.default_rng(1), [file.read_bytes(), brought.read_bytes()]
    for _ in range(60):
        for path, content in zip((file, brought), sound, strict=True):
            damaged = bytearray(content)
            for position in random.integers(0, len(content), 3):
                damaged[position] ^= int(random.integers(1, 256))
            path.write_bytes(bytes(damaged))
        check_lake(lake)
        with contextlib.suppress(UserError):
            lake.bars("hyperliquid", "BTC", "5m")
        with contextlib.suppress(UserError):
            import_paths(Lake(tmp_path / "other"), [brought], replace=True)
    assert capfd.readouterr().err == ""


def test_holes_and_series_that_end_early_are_mentioned_but_usable(tmp_path: Path, lake: Lake) -> None:
    rows = bar_rows(30)
    del rows[10:15]
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", rows)])
    import_paths(lake, [write(tmp_path / "5m" / "ETH.csv", bar_rows(5, start=START + 10 * 24 * HOUR))])
    gaps, early = check_lake(lake)
    assert (gaps.problem, gaps.count, gaps.usable) == ("gaps", 1, True)
    assert "5 bars missing" in gaps.detail
    assert (early.problem, early.symbol, early.usable) == ("ends_early", "BTC", True)


def test_a_stray_parquet_file_is_mentioned(lake: Lake) -> None:
    stray = lake.root / "bars" / "mine.parquet"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"x")
    assert [(finding.problem, finding.file) for finding in check_lake(lake)] == [("unknown", "bars/mine.parquet")]


@pytest.mark.parametrize("name", ["year=abc", "year=25", "year=2025b", "year=٢٠٢٥"])
def test_a_folder_whose_name_is_not_a_year_is_no_part_of_a_series(tmp_path: Path, lake: Lake, name: str) -> None:
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows())])
    listed = lake.list()
    (part,) = lake.root.rglob("part.parquet")
    stray = part.parent.with_name(name) / part.name
    stray.parent.mkdir()
    stray.write_bytes(part.read_bytes())
    assert lake.list() == listed
    assert len(lake.bars("hyperliquid", "BTC", "5m", START + HOUR)) == len(lake.bars("hyperliquid", "BTC", "5m")) // 2
    assert ("unknown", stray.relative_to(lake.root).as_posix()) in [
        (each.problem, each.file) for each in check_lake(lake)
    ]


def test_overlapping_reads_of_two_threads_leave_stderr_as_it_was() -> None:
    before, first_is_in, second_is_in = os.fstat(2), Event(), Event()

    def read_first() -> None:
        with silent_stderr():
            first_is_in.set()
            second_is_in.wait(10)

    first = Thread(target=read_first)
    first.start()
    first_is_in.wait(10)
    with silent_stderr():
        second_is_in.set()
        first.join()  # the first to come leaves first
        assert not os.path.samestat(os.fstat(2), before)
    assert os.path.samestat(os.fstat(2), before)
