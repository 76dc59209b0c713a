"""Order books: what is read, which errors are reported, what the lake keeps, what `data check` finds."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from import_files import write

from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS, parse_instant
from pitboss.data.books import load_books
from pitboss.data.feed import data_digest
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.quality import check_lake
from pitboss.venues.perp.testing import make_books, make_market

START = parse_instant("2025-01-01")
DAY = 86_400_000


def reply(at: int = START, bids: Any = None, asks: Any = None, coin: str = "BTC") -> dict[str, Any]:
    """One answer of the exchange to `l2Book`."""
    sides = (
        [("100.5", "2.0"), ("100.4", "3.50")] if bids is None else bids,
        [("100.60", "1"), ("100.7", "4")] if asks is None else asks,
    )
    levels = [[{"px": price, "sz": size, "n": 3} for price, size in side] for side in sides]
    return {"coin": coin, "time": at, "levels": levels}


def level_rows(at: int = START) -> list[dict[str, Any]]:
    """The same book, a row for each level, in no order."""
    sides = {"ask": [("100.7", "4"), ("100.6", "1")], "bid": [("100.4", "3.5"), ("100.5", "2")]}
    return [
        {"at": at, "side": side, "price": price, "size": size} for side, rows in sides.items() for price, size in rows
    ]


def stored_books(lake: Lake, symbol: str = "BTC") -> list[tuple[int, str, str]]:
    books = load_books(lake, "hyperliquid", [symbol], START - DAY, START + DAY)[symbol]
    return [(int(at), bids, asks) for at, bids, asks in zip(books.at, books.bids, books.asks, strict=True)]


BOOK = (START, "100.5:2 100.4:3.5", "100.6:1 100.7:4")


# What is read ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["l2", "book", None])
def test_replies_of_the_exchange_are_read_whatever_the_kind_is_called(tmp_path: Path, lake: Lake, kind: Any) -> None:
    file = write(tmp_path / "recorded.jsonl", [reply(), reply(START + MINUTE_MS)])
    (done,) = import_paths(lake, [file], kind=kind)
    assert (done.kind, done.symbol, done.rows, done.added) == ("l2", "BTC", 2, 2)
    assert stored_books(lake) == [BOOK, (START + MINUTE_MS, *BOOK[1:])]


@pytest.mark.parametrize(
    "content",
    [
        {"channel": "l2Book", "data": reply()},
        {"time": "2025-01-01T00:00:03", "ver_num": 1, "raw": {"channel": "l2Book", "data": reply()}},
        {"time": START, "coin": "BTC", "bids": [[100.5, 2], [100.4, 3.5]], "asks": [[100.6, 1], [100.7, 4]]},
        {"timestamp": START / 1000, "symbol": "BTC", "levels": json.dumps(reply()["levels"])},
    ],
    ids=["websocket", "archive", "pairs", "text"],
)
def test_other_forms_of_whole_books_are_read_too(tmp_path: Path, lake: Lake, content: dict[str, Any]) -> None:
    import_paths(lake, [write(tmp_path / "recorded.jsonl", [content])])
    assert stored_books(lake) == [BOOK]


def test_a_file_with_one_reply_alone_is_read(tmp_path: Path, lake: Lake) -> None:
    file = tmp_path / "BTC.json"
    file.write_text(json.dumps(reply()))
    import_paths(lake, [file])
    assert stored_books(lake) == [BOOK]


@pytest.mark.parametrize("name", ["l2/BTC.csv", "l2/BTC.csv.gz", "orderbook/BTC.parquet", "book/BTC.feather"])
def test_rows_of_levels_are_put_together_into_books(tmp_path: Path, lake: Lake, name: str) -> None:
    rows = level_rows() + level_rows(START + MINUTE_MS)
    (done,) = import_paths(lake, [write(tmp_path / name, rows)])
    assert (done.kind, done.rows) == ("l2", 2)
    assert stored_books(lake)[0] == BOOK


def test_the_level_orders_rows_where_there_is_one(tmp_path: Path, lake: Lake) -> None:
    rows = [{**row, "level": level} for row, level in zip(level_rows(), (2, 1, 2, 1), strict=True)]
    import_paths(lake, [write(tmp_path / "x.csv", rows)], symbol="BTC")
    assert stored_books(lake) == [BOOK]


def test_a_file_of_several_coins_becomes_several_series(tmp_path: Path, lake: Lake) -> None:
    file = write(tmp_path / "recorded.jsonl", [reply(), reply(coin="ETH"), reply(START + 1)])
    results = import_paths(lake, [file])
    assert [(result.symbol, result.rows) for result in results] == [("BTC", 2), ("ETH", 1)]
    assert stored_books(lake, "ETH") == [BOOK]


def test_the_same_again_changes_nothing_and_another_book_only_with_replace(tmp_path: Path, lake: Lake) -> None:
    file = write(tmp_path / "recorded.jsonl", [reply()])
    import_paths(lake, [file])
    (again,) = import_paths(lake, [file])
    assert (again.added, again.unchanged) == (0, 1)
    write(file, [reply(asks=[("100.6", "9")])])
    with pytest.raises(UserError, match="already stored with other values"):
        import_paths(lake, [file])
    import_paths(lake, [file], replace=True)
    assert stored_books(lake) == [(START, "100.5:2 100.4:3.5", "100.6:9")]  # no level of the old one is left behind


def test_one_sided_and_repeated_books_are_reported_and_left_out(tmp_path: Path, lake: Lake) -> None:
    rows = [reply(), reply(), reply(START + 1, bids=[]), reply(START + 2)]
    (done,) = import_paths(lake, [write(tmp_path / "recorded.jsonl", rows)])
    assert done.rows == 2
    assert done.notes == ("1 book with an empty side left out", "1 repeated book counted once")


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            [reply(bids=[("100.6", "1")])],
            r"row 1 \(2025-01-01T00:00:00Z\): the best bid 100.6 is not below the best ask",
        ),
        ([reply(), reply(START + 1, bids=[("101", "1")])], r"row 2 .*crossed book"),
        ([reply(asks=[("100.7", "1"), ("100.6", "1")])], "row 1 .*the ask 100.6 is out of order"),
        ([reply(bids=[("100.5", "1"), ("100.5", "2")])], "row 1 .*the bid 100.5 is out of order"),
        ([reply(bids=[("100.5", "0.0")])], "row 1 .*the size at 100.5 is 0: a snapshot has only sizes above zero"),
        ([reply(bids=[("100.5", "-1")])], "row 1 .*the size at 100.5 is -1"),
        ([reply(bids=[("0", "1")])], "row 1 .*the bid price 0 is not a price"),
        ([reply(bids=[("nan", "1")])], "row 1 .*price is nan, not a finite number"),
        ([reply(bids=[("dear", "1")])], "row 1 .*price is 'dear'"),
        ([reply(bids=[(None, "1")])], "row 1 .*price is missing"),
        ([reply(START + 1), reply()], "row 2 .*earlier than the book before .unordered."),
        ([reply(), reply(asks=[("100.6", "9")])], "row 2 .*another book of the same time differs"),
        ([reply(bids=[]), reply(START + 1, asks=[])], "no book has both bids and asks"),
        ([{**reply(), "levels": [[]]}], "row 1 .*the levels are not two lists"),
        ([{**reply(), "levels": None}], "row 1 .*the levels are not two lists"),
        ([{**reply(), "levels": [["100"], ["101"]]}], "row 1 .*a level has no price and size"),
        ([{**reply(), "levels": "[["}], "row 1 .*the levels are not valid JSON"),
        ([{**reply(), "time": "noon"}], "row 1: 'noon' is not a time"),
        ([{"coin": "BTC", "levels": reply()["levels"]}], "no column for time"),
    ],
)
def test_a_bad_book_is_refused_in_one_line_and_nothing_is_stored(
    tmp_path: Path, lake: Lake, rows: list[Any], says: str
) -> None:
    with pytest.raises(UserError, match=says) as refused:
        import_paths(lake, [write(tmp_path / "recorded.jsonl", rows)], kind="l2", symbol="BTC")
    assert "\n" not in refused.value.message
    assert lake.list() == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"side": "middle"}, "row 1 .*side 'middle' is neither bid nor ask"),
        ({"price": ""}, "row 1 .*price is"),
        ({"size": 0}, "row 1 .*the size at 100.7 is 0"),
    ],
)
def test_a_bad_row_of_a_level_is_refused(tmp_path: Path, lake: Lake, change: dict[str, Any], says: str) -> None:
    rows = level_rows()
    rows[0] |= change
    with pytest.raises(UserError, match=says):
        import_paths(lake, [write(tmp_path / "l2" / "BTC.csv", rows)])


def test_rows_with_a_side_and_a_price_alone_could_be_trades_and_are_asked_about(tmp_path: Path, lake: Lake) -> None:
    with pytest.raises(UserError, match="cannot tell the kind of data"):
        import_paths(lake, [write(tmp_path / "what.csv", level_rows())])


@settings(max_examples=30, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=4), st.lists, max_leaves=8))
def test_whatever_the_levels_are_the_answer_is_a_book_or_a_refusal(tmp_path_factory: Any, levels: Any) -> None:
    folder = tmp_path_factory.mktemp("any")
    file = folder / "recorded.jsonl"
    file.write_text(json.dumps({**reply(), "levels": levels}).replace("NaN", "null").replace("Infinity", "1e999"))
    with pytest.raises(UserError):
        import_paths(Lake(folder / "lake"), [file], kind="l2", symbol="BTC")


# The lake -------------------------------------------------------------------------------------------------------------


def test_only_the_books_of_the_span_are_read_and_none_at_all_is_said(tmp_path: Path, lake: Lake) -> None:
    rows = [reply(START + shift) for shift in (0, 10, 20)]
    import_paths(lake, [write(tmp_path / "recorded.jsonl", rows)])
    books = load_books(lake, "hyperliquid", ["BTC", "ETH"], START + 10, START + 20)
    assert {symbol: found.at.tolist() for symbol, found in books.items()} == {"BTC": [START + 10]}
    with pytest.raises(UserError, match="no order books of ETH between"):
        load_books(lake, "hyperliquid", ["ETH"], START, START + 20)


def test_the_digest_of_a_run_covers_its_books_and_only_if_it_uses_them() -> None:
    market = make_market({"BTC": [(START, 1.0, 1.0, 1.0, 1.0)]})
    one, other = (
        {"BTC": make_books("BTC", [(START, [(1, size)], [(2, 1)])])}  # type: ignore[list-item]
        for size in (pl.Series([1, 2]).to_list())
    )
    without = data_digest(market, ["BTC"], ["5m"])
    assert data_digest(market, ["BTC"], ["5m"], books=None) == without
    digests = {data_digest(market, ["BTC"], ["5m"], books=books) for books in (one, other)}
    assert len({without, *digests}) == 3


def test_a_check_of_sound_books_finds_nothing_but_holes_and_books_that_stand_still(tmp_path: Path, lake: Lake) -> None:
    still = [reply(START + index * MINUTE_MS) for index in range(20)]
    rows = [*still, reply(START + DAY, asks=[("100.6", "9")])]
    import_paths(lake, [write(tmp_path / "recorded.jsonl", rows)])
    assert [(finding.problem, finding.count, finding.usable) for finding in check_lake(lake)] == [
        ("gaps", 1, True),
        ("stale", 1, True),
    ]
    (holding,) = lake.list()
    assert (holding.kind, holding.symbol, holding.rows, holding.gaps) == ("l2", "BTC", 21, 1)


@pytest.mark.parametrize(
    ("bids", "asks", "detail"),
    [
        ("100:1", "99:1", "best bid is not below the best ask"),
        ("", "99:1", "a side that is empty"),
        ("98:0", "99:1", "not above zero"),
        ("97:1 98:1", "99:1", "unordered"),
        ("ninety", "99:1", "empty, unordered"),
        ("98:NaN", "99:1", "not above zero"),
        ("98:1", "99:1 Infinity:1", "not above zero"),
    ],
)
def test_an_edited_book_is_found_and_never_read_by_a_run(
    tmp_path: Path, lake: Lake, bids: str, asks: str, detail: str
) -> None:
    import_paths(lake, [write(tmp_path / "recorded.jsonl", [reply()])])
    (path,) = lake.root.glob("l2/**/part.parquet")
    frame = pl.read_parquet(path).with_columns(bids=pl.lit(bids), asks=pl.lit(asks))
    frame.write_parquet(path)
    findings = check_lake(lake)
    assert any(
        detail in finding.detail and not finding.usable for finding in findings if finding.problem == "bad_rows"
    ), findings
    with pytest.raises(UserError, match="is not valid"):
        load_books(lake, "hyperliquid", ["BTC"], START, START + 1)["BTC"].newest(START, 0)
