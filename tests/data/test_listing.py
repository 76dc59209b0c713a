"""Files that say when symbols were listed: a table, or an exchange's own reply."""

import json
from pathlib import Path
from typing import Any

import pytest
from import_files import START, write

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS
from pitboss.core.market import Listing
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake

DAY = START


def test_a_table_is_known_by_its_columns_and_stored_by_symbol(tmp_path: Path, lake: Lake) -> None:
    rows = [
        {"symbol": "SUI", "listed_at": "2023-05-03T16:00:00Z", "delisted_at": None, "known_at": None},
        {"symbol": "LUNA", "listed_at": None, "delisted_at": "2022-05-13", "known_at": "2022-05-12"},
    ]
    (done,) = import_paths(lake, [write(tmp_path / "when.csv", rows)])
    assert (done.kind, done.rows, done.notes) == ("listings", 2, ())
    listings = lake.listings("hyperliquid")
    assert listings["SUI"] == Listing("SUI", 1683129600000)
    assert listings["LUNA"] == Listing("LUNA", None, 1652400000000, 1652313600000)
    assert import_paths(lake, [tmp_path / "when.csv"])[0].unchanged == 2


def test_a_delisting_without_an_announcement_is_said_to_be_known_only_when_it_happens(
    tmp_path: Path, lake: Lake
) -> None:
    (done,) = import_paths(lake, [write(tmp_path / "listings.csv", [{"symbol": "X", "delisted_at": DAY}])])
    assert done.notes == ("1 delisting without known_at: known only from the moment it happens",)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"symbol": "", "listed_at": DAY}, "row 1: there is no symbol"),
        ({"symbol": ["X"], "listed_at": DAY}, "row 1: symbol is not plain text"),
        ({"symbol": "X", "listed_at": "soon"}, "row 1: listed_at 'soon' is not a time"),
        ({"symbol": "X", "listed_at": None, "delisted_at": None}, "neither listed_at nor delisted_at"),
        ({"symbol": "X", "listed_at": DAY, "delisted_at": DAY}, "delisted before it is listed"),
        ({"symbol": "X", "listed_at": DAY, "known_at": DAY}, "known_at of X is not before a delisting"),
        ({"symbol": "X", "delisted_at": DAY, "known_at": DAY + 1}, "known_at of X is not before a delisting"),
    ],
)
def test_what_cannot_be_is_refused_by_row(tmp_path: Path, lake: Lake, row: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError, match=why):
        import_paths(lake, [write(tmp_path / "listings.jsonl", [row])])


def test_a_symbol_twice_is_refused_unless_both_say_the_same(tmp_path: Path, lake: Lake) -> None:
    same = [{"symbol": "X", "listed_at": DAY}] * 2
    assert import_paths(lake, [write(tmp_path / "listings.csv", same)])[0].rows == 1
    other = [{"symbol": "Y", "listed_at": DAY}, {"symbol": "Y", "listed_at": DAY + DAY_MS}]
    with pytest.raises(UserError, match="row 2: Y is listed twice"):
        import_paths(lake, [write(tmp_path / "listings.csv", other)])


def info(*symbols: dict[str, Any]) -> str:
    return json.dumps({"timezone": "UTC", "symbols": list(symbols)})


def contract(pair: str, begins: int, ends: int, kind: str = "PERPETUAL") -> dict[str, Any]:
    return {"symbol": pair, "contractType": kind, "onboardDate": begins, "deliveryDate": ends}


def test_an_exchange_info_reply_lists_perpetuals_without_their_quote(tmp_path: Path, lake: Lake) -> None:
    path = tmp_path / "exchangeInfo.json"
    path.write_text(
        info(
            contract("BTCUSDT", DAY, 4133404800000),
            contract("BTCUSDC", DAY + 1, 4133404800000),
            contract("GONEUSDT", DAY, DAY + 9 * DAY_MS),
            contract("BTCUSDT_250328", DAY, DAY + DAY_MS, "CURRENT_QUARTER"),
        )
    )
    (done,) = import_paths(lake, [path], venue="binance")
    assert (done.kind, done.rows) == ("listings", 3)
    assert done.notes == ("1 contract with a delivery date left out",)
    assert lake.listings("binance") == {
        "BTC": Listing("BTC", DAY),
        "BTCUSDC": Listing("BTCUSDC", DAY + 1),
        "GONE": Listing("GONE", DAY, DAY + 9 * DAY_MS),
    }


@pytest.mark.parametrize("begins", ["soon", True, None, -5])
def test_an_exchange_info_reply_with_times_that_are_none_is_refused(tmp_path: Path, lake: Lake, begins: Any) -> None:
    path = tmp_path / "exchangeInfo.json"
    path.write_text(info(contract("BTCUSDT", begins, 4133404800000)))
    with pytest.raises(UserError, match="no usable symbol, onboardDate"):
        import_paths(lake, [path])
