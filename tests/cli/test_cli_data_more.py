"""`pitboss data`: options and commands about listings, calendars and headlines."""

import json
from pathlib import Path

from run_command import pitboss_ok, pitboss_refused


def test_the_range_of_a_download_begins_with_since_as_well(tmp_path: Path) -> None:
    asked = ("data", "download", "hyperliquid", "--symbols", "BTC", "--interval", "5m", "--to", "2026-01-01")
    for name in ("--since", "--from"):
        said = pitboss_refused(*asked, name, "2026-01-02", "--home", tmp_path)
        assert "there is nothing between 2026-01-02T00:00:00Z and 2026-01-01T00:00:00Z" in said


def test_days_before_events_are_an_option_of_the_import(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("release_utc,kind\n2025-01-29T19:00:00Z,FOMC statement\n")
    (first,) = pitboss_ok("data", "import", file, "--known-days-before", 30, "--json", "--home", tmp_path / "home").json
    assert first["notes"] == []
    said = pitboss_refused(
        "data", "import", file, "--known-days-before", 30, "--known-at", "2025-01-01", "--home", tmp_path / "home"
    )
    assert "not both" in said


def test_listings_are_imported_and_a_run_says_since_when_a_symbol_is_offered(home: Path, skill: Path) -> None:
    file = home.parent / "listings.csv"
    file.write_text("symbol,listed_at\nETH,2025-06-03T00:00:00Z\n")
    (one,) = pitboss_ok("data", "import", file, "--json", "--home", home).json
    assert (one["kind"], one["rows"]) == ("listings", 1)
    asked = (
        "backtest", skill, "--from", "2025-06-02", "--to", "2025-06-05", "--model", "policy/sma_cross",
        "--set", 'context.symbols=["BTC","ETH"]', "--home", home,
    )  # fmt: skip
    assert "note: ETH is not offered before 2025-06-03T00:00:00Z" in pitboss_ok(*asked).out
    run = pitboss_ok(*asked, "--json").json
    fills = pitboss_ok("runs", "export", run["run_id"], "--what", "fills", "--home", home).out.splitlines()
    eth = [fill for line in fills if (fill := json.loads(line))["symbol"] == "ETH"]
    assert all(fill["at"] >= "2025-06-03" for fill in eth)
    assert "ETH is not offered before" in Path(run["report"]).read_text("utf-8")
    assert pitboss_ok("runs", "verify", run["run_id"], "--home", home).code == 0


def test_events_are_read_out_of_headlines_by_a_command(tmp_path: Path) -> None:
    assert "no news" in pitboss_ok("data", "extract-events", "--home", tmp_path).out
    file = tmp_path / "news.csv"
    file.write_text("published,text\n2025-01-20T10:00:00Z,FOMC decision due on January 29\n")
    pitboss_ok("data", "import", file, "--home", tmp_path)
    (first,) = pitboss_ok("data", "extract-events", "--json", "--home", tmp_path).json
    assert first == {"venue": "hyperliquid", "read": 1, "found": 1, "added": 1, "replaced": 0}
    assert "hyperliquid" in pitboss_ok("data", "extract-events", "--home", tmp_path).out
    assert {one["kind"] for one in pitboss_ok("data", "list", "--json", "--home", tmp_path).json} == {
        "news",
        "extracted",
    }
