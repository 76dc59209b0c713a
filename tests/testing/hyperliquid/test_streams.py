"""Streams of the fake exchange: subscriptions, snapshots, messages in their order, the idle limit."""

import json
from decimal import Decimal
from typing import Any

import pytest

from pitboss.testing.hyperliquid.streams import StreamHub, StreamSession
from testing.hyperliquid.client import PlainClient, cloid, still_exchange


class RecordingClient:
    """A client of one session that records its messages."""

    def __init__(self, client: PlainClient) -> None:
        self.hub = StreamHub(client.gateway)
        self.messages: list[Any] = []
        self.closes: list[bool] = []
        self.session: StreamSession = self.hub.connect(
            lambda text: self.messages.append(json.loads(text)), self.closes.append
        )

    def send(self, message: Any) -> None:
        self.hub.receive(self.session, json.dumps(message))

    def subscribe(self, kind: str, method: str = "subscribe", **fields: Any) -> None:
        self.send({"method": method, "subscription": {"type": kind, **fields}})

    def of(self, channel: str) -> list[Any]:
        return [message["data"] for message in self.messages if message["channel"] == channel]


@pytest.mark.parametrize(
    ("kind", "fields", "key"),
    [
        ("allMids", {}, "mids"),
        ("l2Book", {"coin": "BTC"}, "levels"),
        ("bbo", {"coin": "BTC"}, "bbo"),
        ("candle", {"coin": "BTC", "interval": "1m"}, "o"),
        ("activeAssetCtx", {"coin": "BTC"}, "ctx"),
    ],
)
def test_prices_are_sent_at_once_and_at_every_step_until_unsubscribed(
    kind: str, fields: dict[str, Any], key: str
) -> None:
    client = PlainClient()
    listener = RecordingClient(client)
    listener.subscribe(kind, **fields)
    response = {"method": "subscribe", "subscription": {"type": kind, **fields}}
    assert listener.messages[0] == {"channel": "subscriptionResponse", "data": response}
    assert key in listener.of(kind)[0]
    client.wait(3)
    assert len(listener.of(kind)) == 4
    listener.subscribe(kind, "unsubscribe", **fields)
    client.wait(3)
    assert len(listener.of(kind)) == 4


def test_a_candle_grows_and_gives_way_to_the_next() -> None:
    client = PlainClient()
    listener = RecordingClient(client)
    listener.subscribe("candle", coin="BTC", interval="1m")
    client.exchange.set_price("BTC", Decimal(69_000))
    client.wait(61)
    candles = listener.of("candle")
    assert candles[-1]["t"] == candles[0]["t"] + 60_000
    last_of_first = [one for one in candles if one["t"] == candles[0]["t"]][-1]
    assert (last_of_first["o"], last_of_first["h"], last_of_first["c"]) == ("68000.0", "69000.0", "69000.0")


def test_an_account_gets_a_snapshot_first_and_then_its_events_before_the_answer_of_the_request() -> None:
    client = PlainClient(still_exchange(step_ms=60_000))
    client.order("BTC", True, "69000", "0.01", "Ioc")
    listener = RecordingClient(client)
    for kind in ("userFills", "orderUpdates", "userEvents", "userFundings"):
        listener.subscribe(kind, user=client.user)
    listener.subscribe("allMids")  # keeps the connection from being closed as idle
    assert [one["isSnapshot"] for one in listener.of("userFills")] == [True]
    assert len(listener.of("userFills")[0]["fills"]) == 1
    client.order("BTC", False, "67000", "0.01", "Ioc", reduce_only=True, cloid=cloid(3))
    assert len(listener.of("userFills")) == 2
    assert "isSnapshot" not in listener.of("userFills")[1]
    assert listener.of("orderUpdates")[0][0]["status"] == "filled"
    assert listener.of("orderUpdates")[0][0]["order"]["cloid"] == cloid(3)
    assert listener.of("user")[0]["fills"][0]["dir"] == "Close Long"
    client.order("ETH", True, "2600", "0.1", "Ioc")
    client.wait(3_700)
    assert listener.of("userFundings")[-1]["fundings"][0]["coin"] == "ETH"
    assert "funding" in listener.of("user")[-1]


def test_trades_and_cancels_by_the_exchange_are_told() -> None:
    client = PlainClient()
    listener = RecordingClient(client)
    listener.subscribe("trades", coin="BTC")
    listener.subscribe("userEvents", user=client.user)
    client.order("BTC", True, "69000", "0.01", "Ioc")
    assert listener.of("trades")[0][0]["sz"] == "0.01"
    oid = client.order("BTC", False, "70000", "0.01", reduce_only=True)["resting"]["oid"]
    client.order("BTC", False, "67000", "0.01", "Ioc", reduce_only=True)
    assert {"nonUserCancel": [{"coin": "BTC", "oid": oid}]} in listener.of("user")


def test_what_cannot_be_read_is_answered_with_an_error_and_pings_with_pongs() -> None:
    client = PlainClient()
    listener = RecordingClient(client)
    for message in ({"method": "ping"}, {"method": "sing"}, [], {"method": "subscribe", "subscription": {"type": "x"}}):
        listener.send(message)
    listener.subscribe("l2Book", coin="NOPE")
    listener.subscribe("allMids")
    listener.subscribe("allMids")
    channels = [message["channel"] for message in listener.messages]
    assert channels == ["pong", *["error"] * 4, "subscriptionResponse", "allMids", "error"]


def test_a_connection_that_is_sent_nothing_for_a_minute_is_closed_and_pings_keep_it() -> None:
    client = PlainClient()
    quiet, lively = RecordingClient(client), RecordingClient(client)
    for _ in range(3):
        client.wait(40)
        lively.send({"method": "ping"})
    assert quiet.closes == [False]
    assert lively.closes == []


def test_requests_can_be_posted_over_a_stream() -> None:
    client = PlainClient()
    listener = RecordingClient(client)
    listener.send({"method": "post", "id": 7, "request": {"type": "info", "payload": {"type": "allMids"}}})
    action = {"type": "action", "payload": client.body({"type": "noop"})}
    listener.send({"method": "post", "id": 8, "request": action})
    first, second = listener.of("post")
    assert (first["id"], first["response"]["payload"]["type"]) == (7, "allMids")
    assert second["response"] == {"type": "action", "payload": {"status": "ok", "response": {"type": "default"}}}
