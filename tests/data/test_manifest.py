"""The manifest: what it says, that it moves with the data, and that it finds out what someone else changed."""

import hashlib
import json
from pathlib import Path

import polars as pl
import pytest
from import_files import HOUR, MIN5, START, bar_rows, write

from pitboss.core.errors import UserError
from pitboss.data.demo import write_demo
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.manifest import MANIFEST
from pitboss.data.quality import check_lake


def manifest_document(lake: Lake) -> dict:
    return json.loads((lake.root / MANIFEST).read_bytes())


def problems(lake: Lake) -> list[tuple[str, str, bool]]:
    return [(each.problem, each.severity, each.usable) for each in check_lake(lake) if each.problem != "outliers"]


def test_it_names_rows_extent_digest_and_the_files_they_came_from(tmp_path: Path, lake: Lake) -> None:
    path = write(tmp_path / "5m" / "BTC.csv", bar_rows(20, start=START - 10 * MIN5))
    import_paths(lake, [path], imported_at=77)
    (held,) = manifest_document(lake)["series"]
    assert (held["kind"], held["venue"], held["symbol"], held["interval"]) == ("bars", "hyperliquid", "BTC", "5m")
    assert (held["rows"], held["first_at"], held["last_at"]) == (20, START - 10 * MIN5, START + 9 * MIN5)
    assert [Path(name).parent.name for name in held["files"]] == ["year=2024", "year=2025"]
    assert held["imported_at"] == 77
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert held["sources"] == [{"name": "BTC.csv", "sha256": sha256, "imported_at": 77}]
    assert len(held["digest"]) == len(manifest_document(lake)["digest"]) == 64


def test_the_same_file_again_changes_nothing_and_other_rows_change_the_digest(tmp_path: Path, lake: Lake) -> None:
    path = write(tmp_path / "5m" / "BTC.csv", bar_rows(20))
    import_paths(lake, [path], imported_at=1)
    before = (lake.root / MANIFEST).read_bytes()
    import_paths(lake, [path], imported_at=2)
    assert (lake.root / MANIFEST).read_bytes() == before
    import_paths(lake, [write(path, bar_rows(21))], imported_at=3)
    after = manifest_document(lake)
    assert after["digest"] != json.loads(before)["digest"]
    assert [source["imported_at"] for source in after["series"][0]["sources"]] == [1, 3]


def test_the_same_rows_from_other_files_and_formats_have_the_same_digest(tmp_path: Path) -> None:
    one, other = Lake(tmp_path / "one"), Lake(tmp_path / "other")
    rows = bar_rows(30)
    import_paths(one, [write(tmp_path / "a" / "5m" / "BTC.csv", rows)])
    import_paths(other, [write(tmp_path / "b" / "5m" / "BTC.parquet", rows[15:])])
    import_paths(other, [write(tmp_path / "c" / "5m" / "BTC.jsonl", rows[:20])])
    assert manifest_document(one)["digest"] == manifest_document(other)["digest"]


def test_a_changed_number_is_an_error_although_every_row_is_sound(tmp_path: Path, lake: Lake) -> None:
    path = write(tmp_path / "5m" / "BTC.csv", bar_rows(20))
    import_paths(lake, [path])
    (file,) = lake.root.rglob("part.parquet")
    pl.read_parquet(file, hive_partitioning=False).with_columns(pl.col("volume") + 1).write_parquet(file)
    assert problems(lake) == [("changed", "error", False)]
    with pytest.raises(UserError, match="has been changed since it was imported"):
        import_paths(lake, [path])
    import_paths(lake, [path], replace=True)
    assert problems(lake) == []


def test_the_same_rows_packed_otherwise_are_the_same_rows(tmp_path: Path, lake: Lake) -> None:
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows(20))])
    (file,) = lake.root.rglob("part.parquet")
    pl.read_parquet(file, hive_partitioning=False).write_parquet(file, compression="uncompressed")
    assert problems(lake) == []


def test_a_file_that_is_gone_and_one_that_no_import_brought_are_errors(tmp_path: Path, lake: Lake) -> None:
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows(20))])
    (file,) = lake.root.rglob("part.parquet")
    elsewhere = Path(str(file).replace("symbol=BTC", "symbol=ETH"))
    elsewhere.parent.mkdir(parents=True)
    file.rename(elsewhere)
    assert problems(lake) == [("missing", "error", False), ("changed", "error", False)]


def test_a_missing_manifest_is_made_from_the_files_and_says_so_once(tmp_path: Path, lake: Lake) -> None:
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows(20))])
    import_paths(lake, [write(tmp_path / "funding" / "BTC.csv", [{"date": START + HOUR, "rate": 0.0}])])
    digest = manifest_document(lake)["digest"]
    for spoil in (lambda path: path.unlink(), lambda path: path.write_text("{}")):
        spoil(lake.root / MANIFEST)
        assert problems(lake) == [("manifest", "note", True)]
        assert manifest_document(lake)["digest"] == digest
        assert problems(lake) == []


def test_an_import_into_a_lake_without_manifest_lists_what_was_there_before(tmp_path: Path, lake: Lake) -> None:
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows(20))])
    (lake.root / MANIFEST).unlink()
    import_paths(lake, [write(tmp_path / "5m" / "ETH.csv", bar_rows(20))])
    assert [entry["symbol"] for entry in manifest_document(lake)["series"]] == ["BTC", "ETH"]
    assert problems(lake) == []


def test_a_generated_venue_that_is_made_anew_leaves_nothing_behind_in_it(lake: Lake) -> None:
    write_demo(lake)
    first = manifest_document(lake)["digest"]
    write_demo(lake)
    assert manifest_document(lake)["digest"] == first
    lake.drop_synthetic("demo")
    assert manifest_document(lake)["series"] == []
    assert check_lake(lake) == []
