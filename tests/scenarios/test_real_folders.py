"""Every folder of real market data is imported by one command, and `data check` tells what is odd about it.

Of the folders with a file for each symbol a part: what an import does with two it does with thirty.
"""

import shutil
from pathlib import Path

import pytest
from pitboss_process import run_in_process

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
SYMBOLS = ("BTC", "ETH", "HYPE", "1000PEPE")
pytestmark = pytest.mark.skipif(not SHARED.exists(), reason="needs the market data in ../shared/data")


def other_symbols(folder: str, names: list[str]) -> set[str]:
    """The files of symbols that are left out."""
    del folder
    stems = {name: name.removesuffix(".parquet") for name in names}
    return {name for name, stem in stems.items() if stem.isupper() and stem not in SYMBOLS}


@pytest.mark.parametrize(
    ("folder", "venue", "kinds"),
    [
        ("hyperliquid", "hyperliquid", {"bars", "funding"}),
        ("binance_2023_2024", "binance", {"bars", "funding", "mark"}),
        ("news", "news", {"news"}),
        ("events", "calendar", {"events"}),
    ],
)
def test_one_command_imports_a_folder_and_the_check_reports_its_holes_and_changes(
    home: Path, tmp_path: Path, folder: str, venue: str, kinds: set[str]
) -> None:
    source = tmp_path / folder
    shutil.copytree(SHARED / folder, source, ignore=other_symbols)
    done = run_in_process("data", "import", source, "--venue", venue, "--json", "--home", home).json
    files = sum(path.is_file() for path in source.rglob("*"))
    assert len(done) == files
    assert {one["kind"] for one in done} == kinds
    assert all(one["added"] == one["rows"] > 0 for one in done)
    found = run_in_process("data", "check", "--json", "--home", home).json["findings"]
    assert all(one["usable"] for one in found)
    if folder == "hyperliquid":
        five = [one for one in found if one["problem"] == "gaps" and one["interval"] == "5m"]
        assert {(one["symbol"], one["count"]) for one in five} >= {("BTC", 2), ("ETH", 2)}
        assert all("2026-02-2" in one["detail"] and "2026-03-2" in one["detail"] for one in five)
        assert not [one for one in found if one["problem"] == "gaps" and one["interval"] == "15m"]
        changes = [one for one in found if one["problem"] == "funding_interval" and one["symbol"] == "BTC"]
        assert ["every 8h until 2023-06-08T00:00:00Z, every 1h" in one["detail"] for one in changes] == [True]
    if folder == "events":
        assert "--known-days-before" in done[0]["notes"][0]
