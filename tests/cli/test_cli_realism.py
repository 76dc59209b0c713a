"""How real fills are: order books imported and walked, a share of the volume, latencies; each named in what a run leaves."""

import html
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from market_files import FROM, TO
from run_command import pitboss_ok, pitboss_refused

from pitboss.core.receipt import Receipt
from pitboss.venues.perp.realism import slippage_text
from pitboss.venues.perp.request import PerpRequest

RANGE = ("--from", FROM, "--to", TO)
BUY = "2025-06-02T01:00:00Z"
SELL = "2025-06-02T03:00:00Z"
OPENS = 1_748_826_000_000
"""The bar that opens at BUY."""


def decisions(tmp_path: Path, size: float = 1_000) -> Path:
    """Buy at one tick, close at another."""
    buy = {"action": "open_long", "symbol": "BTC", "size_usd": size, "reason": "up"}
    sell = {"action": "close", "symbol": "BTC", "reason": "enough"}
    file = tmp_path / "decisions.jsonl"
    lines = [{"tick_at": BUY, "proposal": buy}, {"tick_at": SELL, "proposal": sell}]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return file


def books(tmp_path: Path, *times: int, spread: int = 100) -> Path:
    """Recorded replies of the exchange at these instants: a wide book around 50,000."""
    file = tmp_path / "recorded.jsonl"
    half = spread / 2
    levels = [[{"px": str(50_000 + way * half), "sz": "5", "n": 1}] for way in (-1, 1)]
    file.write_text("".join(json.dumps({"coin": "BTC", "time": at, "levels": levels}) + "\n" for at in times))
    return file


def run(home: Path, skill: Path, file: Path, *words: object) -> dict[str, Any]:
    return pitboss_ok("backtest", skill, *RANGE, "--decisions", file, *words, "--json", "--home", home).json


def fills(home: Path, found: dict[str, Any]) -> list[dict[str, Any]]:
    return pitboss_ok("runs", "export", found["run_id"], "--what", "fills", "--home", home).lines


def receipts(home: Path, found: dict[str, Any]) -> list[dict[str, Any]]:
    return pitboss_ok("runs", "export", found["run_id"], "--what", "receipts", "--home", home).lines


def page(found: dict[str, Any]) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", Path(found["report"]).read_text()))


def test_a_fill_walks_the_imported_book_and_the_report_says_how_many_did(
    home: Path, skill: Path, tmp_path: Path
) -> None:
    file = decisions(tmp_path)
    plain = run(home, skill, file)
    pitboss_ok("data", "import", books(tmp_path, OPENS - 1_000), "--kind", "l2", "--symbol", "BTC", "--home", home)
    assert run(home, skill, file)["digest"] == plain["digest"], "an imported book changes nothing unless asked for"
    walked = run(home, skill, file, "--slippage", "book")
    assert walked["data_digest"] != plain["data_digest"]
    (bought, sold), (before, same) = fills(home, walked), fills(home, plain)
    opened = Decimal(before["price"]) / (1 + 10 * Decimal(before["size"]) * 50_000 / 10**10)
    assert abs(Decimal(bought["price"]) / opened - Decimal("1.001")) < Decimal("1e-6")
    assert sold["price"] == same["price"], "no book at the close: the linear model"
    said = page(walked)
    assert "walks the newest imported order book that is not older than 5m" in said
    assert "1 of 2 fills of market orders and stops walked a book, 1 found none" in said
    pitboss_ok("runs", "verify", walked["run_id"], "--home", home)


def test_only_the_newest_book_known_when_the_bar_opens_counts(home: Path, skill: Path, tmp_path: Path) -> None:
    """Metamorphic: a book one millisecond after the open of the bar has no effect on the fill."""
    file = decisions(tmp_path)
    pitboss_ok("data", "import", books(tmp_path, OPENS), "--kind", "l2", "--symbol", "BTC", "--home", home)
    one = fills(home, run(home, skill, file, "--slippage", "book"))
    pitboss_ok(
        "data", "import", books(tmp_path, OPENS + 1, spread=9_000), "--kind", "l2", "--symbol", "BTC", "--home", home
    )
    assert fills(home, run(home, skill, file, "--slippage", "book")) == one


def test_an_old_book_is_not_used_unless_the_bound_allows_it(home: Path, skill: Path, tmp_path: Path) -> None:
    file = decisions(tmp_path)
    recorded = books(tmp_path, OPENS - 600_000)
    pitboss_ok("data", "import", recorded, "--kind", "l2", "--symbol", "BTC", "--home", home)
    young, old = (run(home, skill, file, "--slippage", "book", "--book-max-age", age) for age in ("599s", "600s"))
    assert [fill["price"] for fill in fills(home, young)] == [
        fill["price"] for fill in fills(home, run(home, skill, file))
    ]
    assert Decimal(fills(home, old)[0]["price"]) > Decimal(fills(home, young)[0]["price"])


def test_walking_books_where_none_were_imported_is_refused_before_anything_runs(
    home: Path, skill: Path, tmp_path: Path
) -> None:
    said = pitboss_refused("backtest", skill, *RANGE, "--slippage", "book", "--home", home)
    assert "no order books of BTC, ETH" in said
    assert "--slippage linear" in said
    assert "neither linear nor book" in pitboss_refused("backtest", skill, *RANGE, "--slippage", "bok", "--home", home)


def test_an_order_larger_than_its_share_of_the_volume_fills_in_part(home: Path, skill: Path, tmp_path: Path) -> None:
    file = decisions(tmp_path, 2_400)
    whole = fills(home, run(home, skill, file))
    thin = run(home, skill, file, "--max-volume-pct", "1")
    parts = fills(home, thin)
    assert Decimal(parts[0]["size"]) < Decimal(whole[0]["size"])
    rests = [one for one in receipts(home, thin) if one["kind"] == "cancelled"]
    assert rests[0]["facts"]["reason"] == "volume"
    assert Decimal(rests[0]["facts"]["left"]) + Decimal(parts[0]["size"]) == Decimal(whole[0]["size"])
    assert "at most 1 % of a bar's volume" in page(thin)
    pitboss_ok("runs", "verify", thin["run_id"], "--home", home)


@pytest.mark.parametrize("share", ["0", "100.1", "-3", "some"])
def test_a_share_that_is_none_is_refused(home: Path, skill: Path, share: str) -> None:
    assert "--max-volume-pct" in pitboss_refused("backtest", skill, *RANGE, "--max-volume-pct", share, "--home", home)


def test_bars_without_volume_have_no_share_to_take(home: Path, skill: Path, tmp_path: Path) -> None:
    from market_files import rows, write_bars

    still = [line.rsplit(",", 1)[0] + ",0" for line in rows("BTC")]
    pitboss_ok("data", "import", write_bars(tmp_path, "BTC", still), "--replace", "--home", home)
    said = pitboss_refused("backtest", skill, *RANGE, "--max-volume-pct", "10", "--home", home)
    assert "the bars of BTC have no volume" in said


# Latency --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("latency", "bars"), [("0s", 0), ("1ms", 1), ("30s", 1), ("5m", 1), ("301s", 2), ("10m", 2)])
def test_an_order_fills_on_the_first_bar_that_opens_once_it_has_arrived(
    home: Path, skill: Path, tmp_path: Path, latency: str, bars: int
) -> None:
    from pitboss.core.instant import iso

    found = fills(home, run(home, skill, decisions(tmp_path), "--decision-latency", latency))
    assert [fill["at"] for fill in found] == [iso(OPENS + bars * 300_000), iso(OPENS + 7_200_000 + bars * 300_000)]


def test_a_late_order_changes_nothing_of_what_was_seen_when_it_was_decided(
    home: Path, skill: Path, tmp_path: Path
) -> None:
    """Up to and with the tick of the first decision both runs were shown the same prompt, byte for byte."""

    def prompts(*words: object) -> list[str]:
        found = run(home, skill, decisions(tmp_path), "--prompts", *words)
        result = pitboss_ok("runs", "export", found["run_id"], "--what", "snapshots", "--home", home).lines
        return [one["prompt_sha256"] for one in result if one.get("prompt_sha256") and one["tick_at"] <= BUY]

    at_once, late = prompts(), prompts("--decision-latency", "10m")
    assert at_once == late
    assert len(at_once) > 1


# What a run says about itself -----------------------------------------------------------------------------------------


def test_every_setting_is_named_with_its_value_and_whether_it_is_off(home: Path, skill: Path, tmp_path: Path) -> None:
    plain = run(home, skill, decisions(tmp_path))["realism"]
    assert {name: result["state"] for name, result in plain.items()} == {
        "fill_price": "conservative",
        "slippage": "default",
        "volume_share": "off",
        "decision_latency": "off",
        "news_latency": "off",
        "path": "conservative",
        "resting": "conservative",
        "fees": "default",
        "liquidation": "default",
    }
    words = ("--decision-latency", "90s", "--news-latency", "1m", "--max-volume-pct", "10", "--fees-taker-bps", "5")
    found = run(home, skill, decisions(tmp_path), *words, "--slippage-bps-per-million", "25")
    shown = pitboss_ok("runs", "show", found["run_id"], "--json", "--home", home).json
    assert shown["realism"] == found["realism"]
    asked = {name: result["value"] for name, result in shown["realism"].items() if result["state"] == "as asked"}
    assert asked == {
        "slippage": "25 bps for each million USD",
        "volume_share": "at most 10 % of a bar's volume",
        "decision_latency": "90s",
        "news_latency": "1m",
        "fees": "5 bps taking, 1.5 bps making",
    }
    said = page(found)
    assert "Realism of the fills" in said
    for result in shown["realism"].values():
        assert {word for word in result.values() if word not in said} == set()


def test_asking_ahead_in_a_thin_market_changes_no_digest(home: Path, skill: Path, tmp_path: Path) -> None:
    pitboss_ok(
        "data", "import", books(tmp_path, *range(OPENS, OPENS + 86_400_000, 60_000)), "--kind", "l2", "--home", home
    )
    words = ("--model", "standin/analyst", "--slippage", "book", "--max-volume-pct", "1", "--json", "--home", home)
    found = [
        pitboss_ok("backtest", skill, "--from", FROM, "--to", "2025-06-03", *words, "--speculate", ahead).json
        for ahead in ("0", "8")
    ]
    assert found[0]["digest"] == found[1]["digest"]
    facts = [one["facts"] for one in receipts(home, found[0])]
    assert {"book", "linear"} & {fact.get("slippage") for fact in facts}
    assert "volume" in {fact.get("reason") for fact in facts}


def test_limits_that_took_are_not_counted_among_the_fills_of_market_orders_and_stops() -> None:
    result = [("market", "book"), ("stop", "linear"), ("limit", "beyond_book"), ("take_profit", "")]
    some = [
        Receipt("filled", 0, "BTC", "", {"reason": why, **({"slippage": how} if how else {})}) for why, how in result
    ]
    said = slippage_text(PerpRequest({}, 0, 1, slippage="book"), some)
    assert "1 of 2 fills of market orders and stops walked a book, 1 found none." in said
