"""The exchange's `meta` reply as assets."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from import_files import SHARED, write

from pitboss.core.errors import UserError
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.venues.perp.assets import SHIPPED

META = {
    "universe": [
        {"name": "BTC", "szDecimals": 5, "maxLeverage": 40, "marginTableId": 56},
        {"name": "WIF", "szDecimals": 0, "maxLeverage": 5, "marginTableId": 5},
        {"name": "OLD", "szDecimals": 2, "maxLeverage": 3},
    ],
    "marginTables": [
        [
            56,
            {
                "description": "tiered 40x",
                "marginTiers": [
                    {"lowerBound": "0.0", "maxLeverage": 40},
                    {"lowerBound": "150000000.0", "maxLeverage": 20},
                ],
            },
        ],
    ],
}


def tiers(bound: str, leverage: int) -> list[object]:
    return [56, {"marginTiers": [{"lowerBound": bound, "maxLeverage": leverage}]}]


def import_meta(lake: Lake, tmp_path: Path, value: object, name: str = "meta.json", **arguments):
    path = tmp_path / name
    path.write_text(json.dumps(value))
    return import_paths(lake, [path], **arguments)


def test_tiers_come_from_the_margin_tables_and_low_ids_are_a_single_tier(tmp_path: Path, lake: Lake) -> None:
    (done,) = import_meta(lake, tmp_path, META)
    assert (done.kind, done.added) == ("meta", 3)
    assets = lake.assets("hyperliquid")
    assert assets["BTC"] == SHIPPED["BTC"]
    assert [(tier.from_notional, tier.max_leverage) for tier in assets["WIF"].tiers] == [(Decimal(0), 5)]
    assert (assets["OLD"].max_leverage, assets["OLD"].size_decimals) == (3, 2)
    assert lake.assets("binance") == {}


@pytest.mark.parametrize("wrap", [lambda meta: [meta, [{"markPx": "1.0"}, {}, {}]], lambda meta: [meta]])
def test_a_reply_with_asset_contexts_is_read_too(tmp_path: Path, lake: Lake, wrap) -> None:
    import_meta(lake, tmp_path, wrap(META), name="whatever.json")
    assert sorted(lake.assets("hyperliquid")) == ["BTC", "OLD", "WIF"]


def test_meta_in_one_json_line_is_read_too(tmp_path: Path, lake: Lake) -> None:
    import_meta(lake, tmp_path, META, name="meta.jsonl")
    assert len(lake.assets("hyperliquid")) == 3


@pytest.mark.parametrize("ext", ["csv", "jsonl", "parquet", "json"])
@pytest.mark.parametrize("names", [("name", "szDecimals", "maxLeverage"), ("symbol", "size_decimals", "max_leverage")])
def test_a_table_of_assets_is_read_like_a_universe(
    tmp_path: Path, lake: Lake, ext: str, names: tuple[str, ...]
) -> None:
    rows = [dict(zip(names, row, strict=True)) for row in (("WIF", 0, 5), ("OLD", 2, 3))]
    (done,) = import_paths(lake, [write(tmp_path / f"assets.{ext}", rows)])
    assert (done.kind, done.added) == ("meta", 2)
    assets = lake.assets("hyperliquid")
    assert [(name, assets[name].size_decimals, assets[name].max_leverage) for name in sorted(assets)] == [
        ("OLD", 2, 3),
        ("WIF", 0, 5),
    ]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"name": "A", "maxLeverage": 5}, "no column for size decimals"),
        ({"name": "A", "szDecimals": "few", "maxLeverage": 5}, "asset 1 of the universe lacks"),
        ({"name": None, "szDecimals": 2, "maxLeverage": 5}, "asset 1 of the universe lacks"),
    ],
)
def test_a_table_that_lacks_something_of_an_asset_is_refused(tmp_path: Path, lake: Lake, row: dict, says: str) -> None:
    with pytest.raises(UserError, match=says):
        import_paths(lake, [write(tmp_path / "meta.csv", [row])])
    assert lake.list() == []


def test_a_changed_asset_is_a_conflict_unless_it_replaces_and_new_ones_are_added(tmp_path: Path, lake: Lake) -> None:
    import_meta(lake, tmp_path, META)
    changed = json.loads(json.dumps(META))
    changed["universe"][2]["maxLeverage"] = 10
    changed["universe"].append({"name": "NEW", "szDecimals": 1, "maxLeverage": 3})
    with pytest.raises(UserError, match="OLD is already stored with other values"):
        import_meta(lake, tmp_path, changed)
    (done,) = import_meta(lake, tmp_path, changed, replace=True)
    assert (done.added, done.replaced, done.unchanged) == (1, 1, 2)
    assert lake.assets("hyperliquid")["OLD"].max_leverage == 10


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda meta: {"hello": 1}, "neither a list of rows nor a `meta` reply"),
        (lambda meta: meta | {"tokens": []}, "neither a list of rows nor a `meta` reply"),
        (lambda meta: {"universe": []}, "the universe is empty"),
        (lambda meta: {"universe": [{"name": "BTC"}]}, "asset 1 of the universe lacks"),
        (lambda meta: {"universe": [meta["universe"][2]] * 2}, "OLD is listed twice"),
        (
            lambda meta: {"universe": [{"name": "A", "szDecimals": 0, "maxLeverage": 0}]},
            "has an impossible size precision or leverage",
        ),
        (
            lambda meta: {"universe": [{"name": "A", "szDecimals": 99, "maxLeverage": 5}]},
            "has an impossible size precision or leverage",
        ),
        (
            lambda meta: {"universe": [{"name": "A", "szDecimals": 0, "maxLeverage": "9" * 30}]},
            "has an impossible size precision or leverage",
        ),
        (
            lambda meta: {"universe": [{"name": "A", "szDecimals": 0, "maxLeverage": 5, "marginTableId": "x"}]},
            "asset 1 of the universe",
        ),
        (lambda meta: meta | {"marginTables": [[56, {}]]}, "marginTables cannot be read"),
        (lambda meta: meta | {"marginTables": [tiers("NaN", 40)]}, "marginTables cannot be read"),
        (lambda meta: meta | {"marginTables": [tiers("100", 40)]}, "marginTables cannot be read"),
    ],
)
def test_a_reply_that_is_no_meta_is_refused(tmp_path: Path, lake: Lake, spoil, says: str) -> None:
    with pytest.raises(UserError, match=says):
        import_meta(lake, tmp_path, spoil(META))
    assert lake.list() == []


def test_a_margin_table_that_is_not_in_the_reply_is_mentioned(tmp_path: Path, lake: Lake) -> None:
    (done,) = import_meta(lake, tmp_path, {"universe": META["universe"]})
    assert done.notes == ("BTC: margin table 56 is not in the reply; taken as one tier of 40×",)


@pytest.mark.skipif(not SHARED.exists(), reason="needs the recorded messages in ../shared/data")
def test_recorded_replies_of_the_exchange_are_read(tmp_path: Path, lake: Lake) -> None:
    recorded = json.loads((SHARED / "wire" / "hyperliquid" / "sdk_info_shared.json").read_text())
    replies = [each["response"] for each in recorded if each["request"] == {"type": "meta"}]
    import_meta(lake, tmp_path, replies[0])
    assets = lake.assets("hyperliquid")
    assert len(assets) == len(replies[0]["universe"])
    assert assets["ETH"].size_decimals == 4
    newer = json.loads((SHARED / "wire" / "hyperliquid" / "nautilus_hyperliquid.json").read_text())
    import_meta(lake, tmp_path, newer["http_meta_perp_sample.json"], venue="sample")
    import_meta(lake, tmp_path, newer["http_all_perp_metas_non_usdc_collateral.json"], venue="all")
    assert lake.assets("sample")["ATOM"].max_leverage == 5
    assert sorted(lake.assets("all")) == ["BTC", "hyna:BTC", "km:US500"]


@pytest.mark.parametrize("name", ["szDecimals", "maxLeverage"])
def test_a_number_that_is_not_finite_is_refused(tmp_path: Path, lake: Lake, name: str) -> None:
    row = {"name": "A", "szDecimals": 2.0, "maxLeverage": 5.0} | {name: float("inf")}
    with pytest.raises(UserError, match="asset 1 of the universe lacks"):
        import_paths(lake, [write(tmp_path / "meta.parquet", [row])])
