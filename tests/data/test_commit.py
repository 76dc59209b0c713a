"""A write that is cut short at any moment: the lake opens, and is as before or as after."""

import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest
from import_files import HOUR, MIN5, START, bar_rows, write

from pitboss.core.errors import UserError
from pitboss.data import commit as landing
from pitboss.data.commit import MOVES
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.manifest import load_manifest
from pitboss.data.quality import check_lake
from pitboss.data.staging import read_parquet
from simulated_kill import Killed


def contents(lake: Lake) -> dict[str, str]:
    """Every file and the digest of its rows, by the manifest, which the check has held against the files."""
    assert [finding for finding in check_lake(lake) if finding.problem not in ("leftover", "outliers")] == []
    manifest = load_manifest(lake.root)
    assert manifest is not None
    there = {path.relative_to(lake.root).as_posix() for path in lake.root.rglob("part.parquet")}
    assert there == set(manifest.files)
    return {name: stored.digest for name, stored in manifest.files.items()}


def kill_after_calls(monkeypatch: pytest.MonkeyPatch, after: int) -> list[str]:
    """Kill the process after this many calls that change the disk durably; the list has the calls."""
    calls: list[str] = []

    def dying(name: str, real):
        def call(*arguments, **named):
            if len(calls) >= after:
                raise Killed(name)
            calls.append(name)
            return real(*arguments, **named)

        return call

    monkeypatch.setattr(os, "replace", dying("replace", os.replace))
    monkeypatch.setattr(os, "fsync", dying("fsync", os.fsync))
    monkeypatch.setattr(Path, "unlink", dying("unlink", Path.unlink))
    monkeypatch.setattr(shutil, "rmtree", lambda *arguments, **named: None)  # the dead tidy nothing
    return calls


def test_killed_at_any_step_the_lake_opens_and_is_before_or_after(tmp_path: Path) -> None:
    rows = bar_rows(40, start=START - 10 * MIN5)
    rates = [{"date": START + HOUR * hour, "rate": 0.0} for hour in range(5)]
    old = [write(tmp_path / "old" / "5m" / f"{name}.csv", rows[10:30]) for name in ("AAA", "BBB")]
    new = [write(tmp_path / "new" / "5m" / f"{name}.csv", rows) for name in ("AAA", "BBB")]
    new.append(write(tmp_path / "new" / "funding" / "AAA.csv", rates))
    expected = Lake(tmp_path / "whole")
    import_paths(expected, old)
    before = contents(expected)
    earlier = shutil.copytree(expected.root, tmp_path / "earlier")
    import_paths(expected, new)
    after = contents(expected)
    assert len(after) > len(before)
    seen: list[bool] = []
    for step in range(100):
        lake = Lake(shutil.copytree(earlier, tmp_path / f"lake{step}"))
        with pytest.MonkeyPatch.context() as patched:
            kill_after_calls(patched, step)
            try:
                import_paths(lake, new)
                break
            except Killed:
                pass
        files = contents(Lake(lake.root))
        assert files in (before, after), f"killed at step {step}"
        seen.append(files == after)
        assert not (lake.root / MOVES).exists()
        import_paths(Lake(lake.root), new)
        assert contents(Lake(lake.root)) == after
    else:
        pytest.fail("the import never came to its end")
    assert seen == sorted(seen), "once it has happened it stays so"
    assert True in seen
    assert False in seen


def test_a_reader_finishes_what_a_killed_writer_left(
    tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        calls = kill_after_calls(patched, 5)  # two files and the manifest synced, the list of moves synced and in place
        with pytest.raises(Killed):
            import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows(10, start=START - 5 * MIN5))])
    assert calls == ["fsync", "fsync", "fsync", "fsync", "replace"]
    assert (lake.root / MOVES).exists()
    assert list(lake.root.glob("bars/**/part.parquet")) == []
    bars = Lake(lake.root).bars("hyperliquid", "BTC", "5m")
    assert bars is not None
    assert len(bars) == 10
    assert sorted(path.name for path in lake.root.iterdir()) == [".lock", "bars", "manifest.json"]


def test_a_landing_that_cannot_be_read_is_one_clear_line(lake: Lake) -> None:
    lake.root.mkdir()
    (lake.root / MOVES).write_text("{")
    with pytest.raises(UserError, match="cannot be read"):
        lake.list()
    landing.finish_moves(lake.root.parent)  # nothing to finish there


def test_a_landing_that_an_earlier_version_left_in_a_folder_is_finished(tmp_path: Path, lake: Lake) -> None:
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows(10))])
    (there,) = lake.root.glob("bars/**/part.parquet")
    staging = lake.root / ".staging-abc"
    staging.mkdir()
    there.rename(staging / "0.parquet")
    target = there.relative_to(lake.root).as_posix()
    (lake.root / MOVES).write_text(json.dumps({"moves": [["0.parquet", target]], "staging": ".staging-abc"}))
    bars = Lake(lake.root).bars("hyperliquid", "BTC", "5m")
    assert bars is not None
    assert len(bars) == 10
    assert not staging.exists()


def test_a_landing_that_names_the_lake_itself_as_its_staging_removes_nothing(tmp_path: Path, lake: Lake) -> None:
    import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows(10))])
    for name in (".", "", "bars"):
        (lake.root / MOVES).write_text(json.dumps({"moves": [], "staging": name}))
        assert Lake(lake.root).bars("hyperliquid", "BTC", "5m") is not None


@pytest.mark.parametrize("name", ["part.parquet", "manifest.json"])
def test_a_folder_in_place_of_a_file_stops_an_import_before_it_is_committed(tmp_path: Path, name: str) -> None:
    lake = Lake(tmp_path / "lake")
    import_paths(lake, [write(tmp_path / "5m" / "AAA.csv", bar_rows(10))])
    import_paths(lake, [write(tmp_path / "5m" / "BBB.csv", bar_rows(10))])
    place = next(path for path in sorted(lake.root.rglob(name)) if "AAA" in str(path) or name == "manifest.json")
    place.unlink()
    place.mkdir()
    with pytest.raises(UserError, match="Is a directory"):
        import_paths(lake, [write(tmp_path / "new" / "5m" / "AAA.csv", bar_rows(20))])
    assert not (lake.root / MOVES).exists()
    bars = lake.bars("hyperliquid", "BBB", "5m")
    assert bars is not None
    assert len(bars) == 10


@pytest.mark.parametrize("move", [["{part}", "../outside"], ["{part}", "{outside}"], ["../secret", "bars/x"]])
def test_a_list_of_moves_that_lead_out_of_the_lake_is_refused(tmp_path: Path, move: list[str]) -> None:
    lake = Lake(tmp_path / "lake")
    import_paths(lake, [write(tmp_path / "5m" / "AAA.csv", bar_rows(10))])
    (tmp_path / "secret").write_text("a file beside the lake")
    places = {"part": "manifest.json", "outside": str(tmp_path / "outside")}
    (lake.root / MOVES).write_text(json.dumps({"moves": [[name.format(**places) for name in move]]}))
    with pytest.raises(UserError, match="cannot be read"):
        lake.list()
    assert not (tmp_path / "outside").exists()
    assert (tmp_path / "secret").exists()


def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*arguments: object, **named: object) -> None:
        raise PermissionError("Permission denied (os error 13)")

    monkeypatch.setattr(pl, "read_parquet", denied)
    with pytest.raises(UserError, match="cannot be read") as error:
        read_parquet(tmp_path / "part.parquet", None)
    assert "damaged" not in error.value.message
    assert error.value.hint == "check its permissions"
