"""What the fake exchange writes has the keys and types that the exchange itself was recorded with."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pitboss.testing.hyperliquid.streams import StreamHub
from testing.hyperliquid.client import PlainClient, cloid, still_exchange

WIRE = Path(__file__).parents[3].parent / "shared" / "data" / "wire" / "hyperliquid"
pytestmark = pytest.mark.skipif(not WIRE.exists(), reason="../shared/data/wire/hyperliquid is not here")
NUMBER = "a number in a string"


def shape(value: Any) -> Any:
    """The form of a JSON value: keys and types; numbers in strings are a type of their own."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    if isinstance(value, str):
        return NUMBER if value.lstrip("-").replace(".", "", 1).isdigit() else "a string"
    return type(value).__name__


def rows_shape(rows: list[dict[str, Any]]) -> dict[str, set[str]]:
    """The types of each key over all rows."""
    types: dict[str, set[str]] = {}
    for row in rows:
        for key, item in row.items():
            types.setdefault(key, set()).add(str(shape(item)))
    return types


@pytest.fixture(scope="module")
def client() -> PlainClient:
    """An account that has traded, rests orders, and was paid or has paid funding."""
    client = PlainClient(still_exchange(step_ms=60_000, history_ms=24 * 3_600_000))
    client.order("BTC", True, "69000", "0.02", "Ioc", cloid=cloid(1))
    client.order("BTC", False, "67000", "0.005", "Ioc", reduce_only=True)
    client.order("ETH", False, "2400", "0.1", "Ioc")
    client.order("BTC", False, "60000", "0.015", reduce_only=True, trigger=("sl", "66000"), cloid=cloid(2))
    client.order("BTC", False, "63000", "0.015", reduce_only=True, trigger=("tp", "70000"))
    client.order("BTC", True, "66000", "0.001")
    client.order("BTC", True, "60000", "0.01", "Ioc")
    client.wait(2 * 3_600)
    return client


def recorded_messages(name: str) -> Any:
    return json.loads((WIRE / "nautilus_hyperliquid.json").read_text())[name]


def recorded_reply(kind: str) -> Any:
    every = json.loads((WIRE / "sdk_info_shared.json").read_text())
    return next(one["response"] for one in every if one["request"]["type"] == kind)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("candleSnapshot", {"req": {"coin": "BTC", "interval": "1h", "startTime": 0}}),
        ("fundingHistory", {"coin": "BTC", "startTime": 0}),
        ("openOrders", {}),
        ("frontendOpenOrders", {}),
        ("historicalOrders", {}),
        ("extraAgents", {}),
    ],
)
def test_rows_have_the_recorded_keys_and_types(client: PlainClient, kind: str, fields: dict[str, Any]) -> None:
    ours, theirs = rows_shape(client.info(kind, **fields)), rows_shape(recorded_reply(kind))
    newer = {"cloid"}  # was added to these rows after they were recorded
    assert set(ours) - newer == set(theirs) - newer
    for key in set(ours) & set(theirs) - {"order"}:
        assert ours[key] & theirs[key], key
        assert {one for one in ours[key] if one != "NoneType"} <= theirs[key] | {NUMBER} | {"list"}, key


def test_orders_of_the_history_have_the_recorded_form(client: PlainClient) -> None:
    ours = [row["order"] for row in client.info("historicalOrders")]
    theirs = [row["order"] for row in recorded_reply("historicalOrders")]
    assert set(rows_shape(ours)) == set(rows_shape(theirs))
    ioc = next(row for row in client.info("historicalOrders") if row["status"] == "iocCancelRejected")
    assert shape(ioc) == shape(recorded_reply("historicalOrders")[0])


@pytest.mark.parametrize("kind", ["allMids", "userRateLimit"])
def test_objects_have_the_recorded_types(client: PlainClient, kind: str) -> None:
    ours, theirs = client.info(kind), recorded_reply(kind)
    assert {str(shape(item)) for item in ours.values()} == {str(shape(item)) for item in theirs.values()}


def test_the_book_has_the_recorded_form(client: PlainClient) -> None:
    book = client.info("l2Book", coin="BTC")
    assert {key: shape(book[key]) for key in ("coin", "time")} == {"coin": "a string", "time": "int"}
    for theirs in (recorded_reply("l2Book"), recorded_messages("ws_book_data.json")):
        assert set(book) == set(theirs)
        assert shape(book["levels"][0][0]) == shape(theirs["levels"][0][0])
        assert len(book["levels"]) == 2
    assert all(len(side) <= 20 for side in book["levels"])


def test_meta_and_contexts_have_the_recorded_form(client: PlainClient) -> None:
    meta, contexts = client.info("metaAndAssetCtxs")
    assert len(meta["universe"]) == len(contexts)
    theirs = recorded_messages("http_meta_perp_sample.json")["universe"][0]
    assert {key for key in theirs if theirs[key] is not None} <= set(meta["universe"][0])
    context = recorded_messages("ws_all_dexs_asset_ctxs.json")["data"]["ctxs"][0][1][0]
    assert shape(contexts[0]) == shape(context)


def test_the_account_has_the_recorded_form(client: PlainClient) -> None:
    ours = client.info("clearinghouseState")
    theirs = recorded_messages("http_clearinghouse_state_negative_total_raw_usd.json")
    assert set(theirs) <= set(ours)
    assert shape(ours["crossMarginSummary"]) == shape(theirs["crossMarginSummary"])
    figures = {key: Decimal(value) for key, value in theirs["crossMarginSummary"].items()}
    assert figures["accountValue"] == figures["totalRawUsd"] + figures["totalNtlPos"]  # longs alone
    summary = {key: Decimal(value) for key, value in ours["crossMarginSummary"].items()}
    signed = sum(
        Decimal(one["position"]["positionValue"]) * (1 if Decimal(one["position"]["szi"]) > 0 else -1)
        for one in ours["assetPositions"]
    )
    assert summary["accountValue"] == summary["totalRawUsd"] + signed


def test_fills_have_the_recorded_form(client: PlainClient) -> None:
    ours, theirs = client.info("userFills"), recorded_messages("http_user_fills_dust_conversion.json")
    plain = next(fill for fill in ours if "cloid" not in fill)
    assert shape(plain) == shape(theirs[0])
    assert [fill["time"] for fill in ours] == sorted((fill["time"] for fill in ours), reverse=True)


def test_streams_have_the_recorded_form(client: PlainClient) -> None:
    client = PlainClient(still_exchange(deposit=1_000))
    hub, messages = StreamHub(client.gateway), []
    session = hub.connect(lambda text: messages.append(json.loads(text)), lambda is_abrupt: None)
    for wanted in ({"type": "allMids"}, {"type": "userEvents", "user": client.user}):
        hub.receive(session, json.dumps({"method": "subscribe", "subscription": wanted}))
    mids = next(one for one in messages if one["channel"] == "allMids")
    theirs = recorded_messages("ws_allmids.json")
    assert set(mids) == set(theirs)
    assert {str(shape(item)) for item in mids["data"]["mids"].values()} == {NUMBER}
    client.order("BTC", True, "69000", "0.2", "Ioc", cloid=cloid(1))
    client.exchange.set_price("BTC", Decimal(63_700))
    events = [one for one in messages if one["channel"] == "user" and "fills" in one["data"]]
    ours, liquidated = events[-1]["data"]["fills"][0], recorded_messages("ws_user_fill_liquidation.json")
    assert set(events[-1]) == set(liquidated)
    fill = liquidated["data"]["fills"][0]
    assert set(fill) - {"cloid"} == set(ours)
    assert shape({**ours, "cloid": fill["cloid"]})["liquidation"] == shape(fill["liquidation"])
