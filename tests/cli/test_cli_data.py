"""`pitboss data`: imports, refusals and lists."""

from pathlib import Path

import pytest
from market_files import START, STEP, rows, write_bars
from run_command import pitboss, pitboss_ok, pitboss_refused

HEAD = rows("BTC", 1)[:40]


def changed(index: int, column: int, value: str) -> list[str]:
    """The bars with one cell replaced."""
    lines = list(HEAD)
    cells = lines[index].split(",")
    cells[column] = value
    lines[index] = ",".join(cells)
    return lines


def test_the_list_has_exactly_the_promised_keys_and_iso_times(home: Path) -> None:
    found = pitboss_ok("data", "list", "--json", "--home", home).json
    bars = next(one for one in found if one["kind"] == "bars" and one["symbol"] == "BTC")
    assert set(bars) == {"venue", "kind", "symbol", "interval", "rows", "first_at", "last_at", "gaps", "synthetic"}
    assert (bars["venue"], bars["interval"], bars["rows"], bars["gaps"]) == ("hyperliquid", "5m", 1440, 0)
    assert (bars["first_at"], bars["last_at"]) == ("2025-06-01T00:00:00Z", "2025-06-05T23:55:00Z")
    assert bars["synthetic"] is False
    funding = next(one for one in found if one["kind"] == "funding")
    assert funding["interval"] is None
    assert "hyperliquid" in pitboss_ok("data", "list", "--home", home).out


def test_an_empty_workspace_lists_nothing_and_says_how_to_fill_it(tmp_path: Path) -> None:
    assert pitboss_ok("data", "list", "--json", "--home", tmp_path).json == []
    assert "data demo" in pitboss_ok("data", "list", "--home", tmp_path).err


def test_the_same_rows_again_change_nothing_and_others_only_with_replace(tmp_path: Path) -> None:
    home, file = tmp_path / "home", write_bars(tmp_path, "BTC", HEAD)
    (first,) = pitboss_ok("data", "import", file, "--json", "--home", home).json
    assert (first["rows"], first["added"]) == (40, 40)
    (again,) = pitboss_ok("data", "import", file, "--json", "--home", home).json
    assert (again["added"], again["unchanged"]) == (0, 40)
    write_bars(tmp_path, "BTC", changed(3, 5, "77"))
    assert "BTC" in pitboss_refused("data", "import", file, "--home", home)
    (replaced,) = pitboss_ok("data", "import", file, "--replace", "--json", "--home", home).json
    assert replaced["replaced"] == 1
    assert "BTC.csv" in pitboss_ok("data", "import", file, "--home", home).out


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(changed(5, 4, "NaN"), id="not a number"),
        pytest.param(changed(5, 2, "inf"), id="infinite"),
        pytest.param(changed(5, 2, "1.0"), id="high below low"),
        pytest.param(changed(5, 3, "-1"), id="negative"),
        pytest.param([*HEAD[:5], HEAD[6], HEAD[5], *HEAD[7:]], id="unordered"),
        pytest.param([*HEAD[:6], HEAD[5], *HEAD[6:]], id="duplicated"),
        pytest.param([*HEAD, f"{START + 40 * STEP},1"], id="short line"),
        pytest.param(["9999-12-31T23:55:00Z,1,1,1,1,1"], id="ends after the year 9999"),
    ],
)
def test_a_bad_bar_is_refused_and_nothing_of_the_call_is_stored(tmp_path: Path, lines: list[str]) -> None:
    home = tmp_path / "home"
    good, bad = write_bars(tmp_path, "BTC", HEAD), write_bars(tmp_path, "ETH", lines)
    assert "ETH.csv" in pitboss_refused("data", "import", good, bad, "--home", home)
    assert pitboss_ok("data", "list", "--json", "--home", home).json == []


def test_what_cannot_be_inferred_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "things.csv"
    file.write_text("\n".join(["time,open,high,low,close,volume", *HEAD, ""]))
    assert "--symbol" in pitboss_refused("data", "import", file, "--home", tmp_path / "home")
    assert "--interval" in pitboss_refused("data", "import", file, "--symbol", "BTC", "--home", tmp_path / "home")
    pitboss_ok("data", "import", file, "--symbol", "BTC", "--interval", "5m", "--home", tmp_path / "home")
    assert "no such file" in pitboss_refused("data", "import", tmp_path / "absent.csv", "--home", tmp_path / "home")
    pitboss_refused("data", "import", "--home", tmp_path / "home")


def test_check_finds_nothing_in_good_data_and_exits_1_over_a_damaged_file(home: Path) -> None:
    good = pitboss_ok("data", "check", "--json", "--home", home).json
    assert (good["ok"], {one["severity"] for one in good["findings"]} <= {"note"}) == (True, True)
    file = next((home / "lake" / "bars").glob("**/part.parquet"))
    file.write_bytes(file.read_bytes()[:200])
    answer = pitboss("data", "check", "--json", "--home", home)
    assert (answer.code, answer.json["ok"]) == (1, False)
    (finding,) = (one for one in answer.json["findings"] if one["severity"] == "error")
    assert (finding["problem"], finding["usable"]) == ("unreadable", False)
    shown = pitboss("data", "check", "--home", home)
    assert shown.code == 1
    assert "UNUSABLE" in shown.out


def test_the_demo_market_is_labelled_wherever_it_is_listed(tmp_path: Path) -> None:
    held = pitboss_ok("data", "demo", "--json", "--home", tmp_path).json
    assert {one["symbol"] for one in held if one["kind"] == "bars"} == {"BTC", "ETH", "SOL"}
    assert all(one["synthetic"] for one in pitboss_ok("data", "list", "--json", "--home", tmp_path).json)
    assert "SYNTHETIC" in pitboss_ok("data", "list", "--home", tmp_path).out
    assert "SYNTHETIC" in pitboss_ok("data", "demo", "--home", tmp_path).out


def test_problems_are_grouped_by_kind_with_examples(home: Path) -> None:
    for file in (home / "lake").rglob("*.parquet"):
        file.write_bytes(b"no parquet")
    shown = pitboss("data", "check", "--home", home)
    lines = shown.out.splitlines()
    assert shown.code == 1
    assert lines[0] == "UNUSABLE: unreadable, 4 files"
    assert len(lines) == 5
    assert lines[-1] == "  … and 1 more"
    assert "data check --all" in shown.err
    every = pitboss("data", "check", "--all", "--home", home)
    assert len(every.out.splitlines()) == 5
    assert "more" not in every.out
    assert "--all" not in every.err
