"""Files gathered in memory give the lake that one write after the other gives."""

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from import_files import MIN5, START, bar_rows, write

from pitboss.core.errors import UserError
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.manifest import load_manifest
from pitboss.data.series import TIME, series
from pitboss.data.staging import Batch, write_lock

Rows = dict[int, float]
EDGE = 17_532  # hours from 2023 to 2025: pieces fall on both sides of a new year

pieces = st.lists(
    st.dictionaries(st.integers(EDGE - 15, EDGE + 15), st.sampled_from([1.0, 2.0]), min_size=1, max_size=10),
    min_size=1,
    max_size=8,
)


def frame(rows: Rows, shuffled: bool) -> pl.DataFrame:
    at = sorted(rows, reverse=shuffled)
    made = pl.DataFrame({"at": [hour * 3_600_000 + 1_672_531_200_000 for hour in at], "value": [rows[h] for h in at]})
    return made.with_columns(pl.from_epoch("at", "ms").dt.replace_time_zone("UTC").cast(TIME))


def put_one_by_one(lake: Lake, parts: list[pl.DataFrame], replace: bool) -> list[tuple[int, int, int]] | str:
    """One write after the other, the reference of the batch; on a refusal nothing counts."""
    did: list[tuple[int, int, int]] = []
    try:
        for part in parts:
            result = lake.put("mark", "x", "BTC", None, part, replace)
            did.append((result.added, result.replaced, result.unchanged))
    except UserError as error:
        return error.message
    return did


def put_in_batch(
    lake: Lake, parts: list[pl.DataFrame], replace: bool, most_bytes: int
) -> list[tuple[int, int, int]] | str:
    did: list[tuple[int, int, int]] = []
    try:
        with write_lock(lake.root):
            batch = Batch(lake.root, most_bytes=most_bytes)
            for part in parts:
                result = batch.put(series("mark"), lake.folder("mark", "x", "BTC", None), part, replace)
                did.append((result.added, result.replaced, result.unchanged))
            batch.commit()
    except UserError as error:
        return error.message
    return did


def stored_content(lake: Lake) -> tuple[dict[str, str], list[tuple[int, float]]]:
    known, points = load_manifest(lake.root), lake.points("mark", "x", "BTC")
    digests = {name: stored.digest for name, stored in known.files.items()} if known else {}
    rows = [] if points is None else list(zip(points.at.tolist(), points.value.tolist(), strict=True))
    return digests, rows


@settings(max_examples=15, deadline=None)
@given(
    stored=st.dictionaries(st.integers(EDGE - 15, EDGE + 15), st.just(1.0), max_size=12),
    given=pieces,
    replace=st.booleans(),
    shuffled=st.booleans(),
    most_bytes=st.sampled_from([0, 200, 10**9]),
)
def test_any_pieces_in_any_order_end_as_if_each_had_been_written_by_itself(
    stored: Rows, given: list[Rows], replace: bool, shuffled: bool, most_bytes: int
) -> None:
    parts = [frame(rows, shuffled) for rows in given]
    with TemporaryDirectory() as folder:
        slow, fast = Lake(Path(folder) / "slow"), Lake(Path(folder) / "fast")
        for lake in (slow, fast):
            if stored:
                lake.put("mark", "x", "BTC", None, frame(stored, False))
        before = stored_content(fast)
        expected = put_one_by_one(slow, parts, replace)
        assert put_in_batch(fast, parts, replace, most_bytes) == expected
        assert stored_content(fast) == (before if isinstance(expected, str) else stored_content(slow))
        if not isinstance(expected, str):
            last: Rows = dict(stored)
            for rows in given:
                last |= rows
            assert stored_content(fast)[1] == [
                (hour * 3_600_000 + 1_672_531_200_000, last[hour]) for hour in sorted(last)
            ]


def test_daily_files_that_overlap_end_as_one_file_would(tmp_path: Path) -> None:
    rows = bar_rows(600, start=START - 300 * MIN5)
    one, many = Lake(tmp_path / "one"), Lake(tmp_path / "many")
    import_paths(one, [write(tmp_path / "whole" / "5m" / "BTC.csv", rows)])
    for number in range(0, 600, 20):
        write(tmp_path / "days" / f"{number:03}" / "5m" / "BTC.csv", rows[max(0, number - 3) : number + 20])
    results = import_paths(many, [tmp_path / "days"])
    assert [each.path for each in results] == sorted(each.path for each in results)
    assert (sum(each.added for each in results), sum(each.unchanged for each in results)) == (600, 29 * 3)
    (first, second) = (load_manifest(lake.root) for lake in (one, many))
    assert first is not None
    assert second is not None
    assert first.files == second.files
    stored = [path.read_bytes() for path in sorted(one.root.rglob("part.parquet"))]
    assert stored == [path.read_bytes() for path in sorted(many.root.rglob("part.parquet"))]


@pytest.mark.parametrize("replace", [True, False])
def test_files_of_two_symbols_in_turn_are_reported_in_the_order_of_the_walk(
    tmp_path: Path, lake: Lake, replace: bool
) -> None:
    for day in range(3):
        for symbol in ("BTC", "ETH"):
            write(tmp_path / "in" / str(day) / "5m" / f"{symbol}.csv", bar_rows(4, start=START + day * 4 * MIN5))
    results = import_paths(lake, [tmp_path / "in"], replace=replace)
    assert [each.symbol for each in results] == ["BTC", "ETH"] * 3
    assert [each.rows for each in lake.list()] == [12, 12]


def test_rows_filed_under_another_exchange_than_their_folder_names_are_mentioned(tmp_path: Path, lake: Lake) -> None:
    path = write(tmp_path / "binance_2023" / "5m" / "BTC.csv", bar_rows())
    (done,) = import_paths(lake, [path])
    assert done.notes == ("the path names binance, stored under hyperliquid; --venue binance keeps the two apart",)
    (done,) = import_paths(lake, [path], venue="binance")
    assert done.notes == ()
    rows = bar_rows()
    rows[2]["volume"] = 9.0
    with pytest.raises(UserError) as refused:
        import_paths(lake, [write(path, rows)])
    assert refused.value.hint.startswith("--venue binance keeps it apart from hyperliquid; --replace")
