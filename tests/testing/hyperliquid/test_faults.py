"""Every fault of the table is produced, one test each; and the plan itself: files, chance, schedule, counts."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest

from pitboss.core.errors import UserError
from pitboss.testing.hyperliquid import refusals
from pitboss.testing.hyperliquid.fault_file import read_faults
from pitboss.testing.hyperliquid.faults import (
    CONDITIONS,
    REQUEST_FAULTS,
    STREAM_FAULTS,
    TABLE,
    FaultPlan,
    FaultRule,
    mixed_faults,
)
from pitboss.testing.hyperliquid.streams import StreamHub, StreamSession
from testing.hyperliquid.client import PlainClient, cloid, still_exchange, wire_order

BUY = {"type": "order", "orders": [wire_order("BTC", True, "69000", "0.01", "Ioc", cloid=cloid(1))], "grouping": "na"}
REST = {"type": "order", "orders": [wire_order("BTC", True, "67000", "0.01", cloid=cloid(1))], "grouping": "na"}


def with_fault(kind: str, **options: Any) -> PlainClient:
    return PlainClient(still_exchange(), FaultRule(kind, **options))


def is_live(client: PlainClient) -> bool:
    return cloid(1) in client.exchange.truth().live_cloids()


def never_received() -> None:
    client = with_fault("never_received", on=("order",))
    assert client.deliver(BUY).lost == "timeout"
    client.wait(120)
    assert not is_live(client)


def executed_no_answer() -> None:
    client = with_fault("executed_no_answer")
    assert client.deliver(BUY).lost == "timeout"
    assert is_live(client)


def lands_late() -> None:
    client = with_fault("lands_late", low_ms=2_000, high_ms=9_000)
    assert client.deliver(BUY).lost == "timeout"
    client.wait(1.9)
    assert not is_live(client)
    client.wait(8)
    assert is_live(client)
    client = with_fault("lands_late", low_ms=10_001, high_ms=60_000)
    client.deliver(BUY)
    client.wait(120)
    assert not is_live(client)
    assert [one.outcome for one in client.exchange.truth().actions] == ["Action already expired"]


def slow_answer() -> None:
    delivery = with_fault("slow_answer", low_ms=700, high_ms=700).deliver(BUY)
    assert (delivery.status, delivery.delay_ms) == (200, 700)


def executed_or_not(kind: str, is_answer: Callable[[Any], bool]) -> None:
    """An answer that says nothing about whether the order lives."""
    for executed in (0.0, 1.0):
        client = with_fault(kind, executed=executed)
        assert is_answer(client.deliver(BUY))
        assert is_live(client) == bool(executed)


def no_json(text: str) -> bool:
    try:
        return not json.loads(text) and False
    except ValueError:
        return True


def status_err() -> None:
    executed_or_not("status_err", lambda one: orjson.loads(one.text)["status"] == "err")


def order_error() -> None:
    texts: set[str] = set()
    for seed in range(12):
        client = PlainClient(still_exchange(), FaultRule("order_error", executed=1.0), seed=seed)
        text = client.act(BUY)["response"]["data"]["statuses"][0]["error"].split(" asset=")[0]
        texts.add(text)
        assert is_live(client) == (text != refusals.MARGIN)  # a listed refusal is one
    assert refusals.MARGIN in texts
    assert len(texts) > 1


def missing_status() -> None:
    client = with_fault("missing_status")
    orders = [
        wire_order("BTC", True, "67000", "0.01"),
        wire_order("BTC", True, "67000.5", "0.01"),
        wire_order("BTC", True, "66000", "0.01", cloid=cloid(1)),
    ]
    statuses = client.orders(*orders)
    assert [next(iter(one)) for one in statuses] == ["resting", "error"]
    assert is_live(client)


def rate_limited() -> None:
    client = with_fault("rate_limited")
    assert client.deliver(BUY).status == 429
    assert not is_live(client)


def refused_as(kind: str, start: str, action: dict[str, Any] = BUY) -> None:
    client = with_fault(kind)
    reply = client.act(action)
    assert reply["status"] == "err"
    assert reply["response"].startswith(start)
    assert not is_live(client)


def stop_refused() -> None:
    client = with_fault("stop_refused")
    assert "filled" in client.order("BTC", True, "69000", "0.01", "Ioc")
    status = client.order("BTC", False, "60000", "0.01", reduce_only=True, trigger=("sl", "66000"))
    assert status == {"error": "Invalid TP/SL price. asset=0"}
    assert client.info("openOrders") == []


def reduce_only_auto_cancel() -> None:
    client = with_fault("reduce_only_auto_cancel", after=1)
    client.order("BTC", True, "69000", "0.01", "Ioc")
    stop = client.order("BTC", False, "60000", "0.01", reduce_only=True, trigger=("sl", "66000"))["resting"]["oid"]
    client.order("BTC", False, "60000", "0.01", reduce_only=True, trigger=("sl", "65000"))
    assert len(client.info("openOrders")) == 1
    assert client.info("orderStatus", oid=stop)["order"]["status"] == "reduceOnlyCanceled"


LEVERAGE = {"type": "updateLeverage", "asset": 0, "isCross": True, "leverage": 3}


def leverage_answer_lost() -> None:
    client = with_fault("leverage_answer_lost")
    assert client.deliver(LEVERAGE).lost == "timeout"
    assert client.exchange.account().leverage["BTC"] == (True, 3)


def overfill() -> None:
    client = with_fault("overfill")
    assert client.act(BUY)["response"]["data"]["statuses"][0]["filled"]["totalSz"] == "0.02"
    assert client.position("BTC") == Decimal("0.02")


def fill_after_cancel() -> None:
    client = with_fault("fill_after_cancel")
    oid = client.act(REST)["response"]["data"]["statuses"][0]["resting"]["oid"]
    assert client.cancel(0, oid) == "success"
    assert client.position("BTC") == Decimal("0.005")
    assert client.info("orderStatus", oid=oid)["order"]["status"] == "canceled"


def open_orders_fail() -> None:
    client = with_fault("open_orders_fail")
    for kind in ("openOrders", "frontendOpenOrders"):
        assert client.gateway.handle("/info", {"type": kind, "user": client.user}).status == 500


def open_orders_empty() -> None:
    client = with_fault("open_orders_empty")
    client.act(REST)
    assert client.info("frontendOpenOrders") == []
    assert is_live(client)


def account_empty() -> None:
    client = with_fault("account_empty")
    client.act(BUY)
    assert client.info("clearinghouseState")["assetPositions"] == []
    assert client.position("BTC") != 0


def unknown_oid() -> None:
    client = with_fault("unknown_oid", high_ms=3_000)
    client.act(REST)
    assert client.info("orderStatus", oid=cloid(1)) == {"status": "unknownOid"}
    client.wait(4)
    assert client.info("orderStatus", oid=cloid(1))["status"] == "order"


def three_fills(kind: str, **options: Any) -> tuple[PlainClient, list[int]]:
    client = with_fault(kind, **options)
    for _ in range(3):
        client.act(BUY)
        client.wait(1)
    return client, [fill["tid"] for fill in client.info("userFills")]


def doubled_fills() -> None:
    _, tids = three_fills("doubled_fills")
    assert len(tids) == 6
    assert len(set(tids)) == 3


def fills_out_of_order() -> None:
    _, tids = three_fills("fills_out_of_order")
    assert tids != sorted(tids, reverse=True)
    assert len(set(tids)) == 3


def late_fills() -> None:
    client, tids = three_fills("late_fills", high_ms=2_500)
    assert len(tids) == 1
    client.wait(3)
    assert len(client.info("userFills")) == 3


# Streams --------------------------------------------------------------------------------------------------------------


def stream(kind: str, **options: Any) -> tuple[PlainClient, StreamHub, StreamSession, list[Any], list[bool]]:
    client = with_fault(kind, **options)
    hub = StreamHub(client.gateway)
    messages: list[Any] = []
    closes: list[bool] = []
    session = hub.connect(lambda text: messages.append(json.loads(text)), closes.append)
    for wanted in ({"type": "userFills", "user": client.user}, {"type": "allMids"}):
        hub.receive(session, json.dumps({"method": "subscribe", "subscription": wanted}))
    return client, hub, session, messages, closes


def fills_of(messages: list[Any]) -> list[Any]:
    return [
        (message["data"]["user"], fill["tid"])
        for message in messages
        if message["channel"] == "userFills" and not message["data"].get("isSnapshot")
        for fill in message["data"]["fills"]
    ]


def ws_drop() -> None:
    client, *_, closes = stream("ws_drop", after=2)
    client.wait(10)
    assert closes == [True]


def ws_silent_close() -> None:
    client, *_, closes = stream("ws_silent_close", after=2)
    client.wait(10)
    assert closes == [False]


def ws_half_open() -> None:
    client, hub, session, messages, closes = stream("ws_half_open", after=2)
    client.wait(3)
    count = len(messages)
    client.wait(300)
    hub.receive(session, '{"method":"ping"}')
    assert (len(messages), closes) == (count, [])


def ws_duplicate_snapshot() -> None:
    *_, messages, _ = stream("ws_duplicate_snapshot")
    assert sum(bool(message["data"].get("isSnapshot")) for message in messages if "data" in message) == 2


def ws_gap() -> None:
    client, _, _, messages, closes = stream("ws_gap", times=1)
    for _ in range(3):
        client.act(BUY)
    assert len(fills_of(messages)) == 2
    assert closes == []


def ws_wrong_user() -> None:
    client, _, _, messages, _ = stream("ws_wrong_user", times=1)
    client.act(BUY)
    client.act(BUY)
    users = [user for user, _ in fills_of(messages)]
    assert users[0] != client.user
    assert users[1] == client.user


def ws_doubled_fill() -> None:
    client, _, _, messages, _ = stream("ws_doubled_fill")
    client.act(BUY)
    fills = fills_of(messages)
    assert len(fills) == 2
    assert len(set(fills)) == 1


def ws_fills_out_of_order() -> None:
    client, _, _, messages, _ = stream("ws_fills_out_of_order", times=1)
    client.act(BUY)
    client.act(BUY)
    tids = [tid for _, tid in fills_of(messages)]
    assert tids == sorted(tids, reverse=True)
    assert len(tids) == 2


def ws_late_fill() -> None:
    client, _, _, messages, _ = stream("ws_late_fill", low_ms=3_000, high_ms=3_000)
    client.act(BUY)
    client.wait(2.9)
    assert fills_of(messages) == []
    client.wait(0.2)
    assert len(fills_of(messages)) == 1


# Conditions -----------------------------------------------------------------------------------------------------------


def outage() -> None:
    client = with_fault("outage", at_ms=5_000, executed=1.0)
    assert client.act({"type": "noop"})["status"] == "ok"
    client.wait(5)
    answers = [client.deliver(BUY) for _ in range(20)]
    assert {(one.status, one.lost) for one in answers} == {(502, ""), (0, "timeout"), (0, "connection")}
    assert is_live(client)
    client.wait(36 * 60)
    assert client.deliver(BUY).status != 200
    client.wait(61)
    assert client.deliver(BUY).status == 200


def flapping() -> None:
    client = with_fault("flapping", duration_ms=10_000)
    client.wait(0.1)
    states: list[bool] = []
    for _ in range(12):
        states.append(client.gateway.handle("/info", {"type": "exchangeStatus"}).status == 200)
        client.wait(1)
    assert states == [False, True] * 5 + [True, True]


def wrong_price(kind: str, factor: int) -> None:
    client = with_fault(kind, coin="BTC", at_ms=1_000, duration_ms=5_000)
    client.wait(1)
    shown = [
        client.info("allMids")["BTC"],
        client.info("metaAndAssetCtxs")[1][0]["markPx"],
        client.info("metaAndAssetCtxs")[1][0]["midPx"],
    ]
    assert {Decimal(one) for one in shown} == {Decimal(68_000) * factor}
    assert Decimal(client.info("allMids")["ETH"]) == 2_500
    book = client.info("l2Book", coin="BTC")["levels"]
    assert abs(Decimal(book[0][0]["px"])) == abs(Decimal(67_993) * factor)
    client.wait(6)
    assert Decimal(client.info("allMids")["BTC"]) == 68_000


def price_frozen() -> None:
    client = with_fault("price_frozen", at_ms=1_000, duration_ms=5_000)
    client.wait(1)
    client.exchange.set_price("BTC", Decimal(70_000))
    client.wait(3)
    assert client.info("allMids")["BTC"] == "68000.0"
    client.wait(3)
    assert client.info("allMids")["BTC"] == "70000.0"


def mark_far_from_oracle() -> None:
    client = with_fault("mark_far_from_oracle", duration_ms=10_000)
    client.wait(1)
    context = client.info("metaAndAssetCtxs")[1][0]
    assert (context["markPx"], context["oraclePx"]) == ("68000.0", "81600.0")


def crossed_book() -> None:
    client = with_fault("crossed_book", duration_ms=10_000)
    client.wait(1)
    bids, asks = client.info("l2Book", coin="BTC")["levels"]
    assert Decimal(bids[0]["px"]) > Decimal(asks[0]["px"])


def trading_halt() -> None:
    client = with_fault("trading_halt", duration_ms=10_000)
    client.wait(1)
    assert client.order("BTC", True, "69000", "0.01", "Ioc") == {"error": "Trading is halted. asset=0"}
    client.wait(10)
    assert "filled" in client.order("BTC", True, "69000", "0.01", "Ioc")


def post_only_phase() -> None:
    client = with_fault("post_only_phase", duration_ms=10_000)
    client.wait(1)
    assert client.order("BTC", True, "69000", "0.01", "Ioc")["error"].startswith("Only post-only orders allowed")
    assert "resting" in client.order("BTC", True, "67000", "0.01", "Alo")


def delisting() -> None:
    client = with_fault("delisting", coin="BTC", at_ms=5_000)
    client.act(BUY)
    client.act(REST)
    client.wait(6)
    assert client.position("BTC") == 0
    assert client.info("openOrders") == []
    assert client.info("userFills")[0]["dir"] == "Settlement"
    assert client.info("meta")["universe"][0]["isDelisted"] is True
    assert "BTC" not in client.info("allMids")


def funding_spike() -> None:
    client = with_fault("funding_spike")
    client.act(BUY)
    client.wait(3_601)
    assert client.info("userFunding", startTime=0)[0]["delta"]["usdc"] == "-3.4"


def liquidation() -> None:
    client = with_fault("liquidation", at_ms=5_000)
    client.act(BUY)
    client.wait(6)
    assert client.position("BTC") == 0
    assert "liquidation" in client.info("userFills")[0]


def deleveraging() -> None:
    client = with_fault("deleveraging", at_ms=5_000, share=Decimal("0.4"))
    client.act(BUY)
    client.wait(6)
    assert client.position("BTC") == Decimal("0.006")
    assert client.info("userFills")[0]["dir"] == "Auto-Deleveraging"


def agent_gone(kind: str) -> None:
    client = with_fault(kind, at_ms=5_000)
    assert client.act({"type": "noop"})["status"] == "ok"
    client.wait(6)
    assert client.act(BUY)["response"].endswith("does not exist.")


PROOFS: dict[str, Callable[[], None]] = {
    **{
        proof.__name__: proof
        for proof in (
            never_received,
            executed_no_answer,
            lands_late,
            slow_answer,
            status_err,
            order_error,
            missing_status,
            rate_limited,
            stop_refused,
            reduce_only_auto_cancel,
            leverage_answer_lost,
            overfill,
            fill_after_cancel,
            open_orders_fail,
            open_orders_empty,
            account_empty,
            unknown_oid,
            doubled_fills,
            fills_out_of_order,
            late_fills,
            ws_drop,
            ws_silent_close,
            ws_half_open,
            ws_duplicate_snapshot,
            ws_gap,
            ws_wrong_user,
            ws_doubled_fill,
            ws_fills_out_of_order,
            ws_late_fill,
            outage,
            flapping,
            price_frozen,
            mark_far_from_oracle,
            crossed_book,
            trading_halt,
            post_only_phase,
            delisting,
            funding_spike,
            liquidation,
            deleveraging,
        )
    },
    "connection_reset": lambda: executed_or_not("connection_reset", lambda one: one.lost == "connection"),
    "http_500": lambda: executed_or_not("http_500", lambda one: one.status == 500),
    "http_502_html": lambda: executed_or_not(
        "http_502_html", lambda one: one.status == 502 and one.text.startswith("<html")
    ),
    "empty_body": lambda: executed_or_not("empty_body", lambda one: (one.status, one.text) == (200, "")),
    "truncated_json": lambda: executed_or_not("truncated_json", lambda one: one.status == 200 and no_json(one.text)),
    "connection_refused": lambda: unreachable("connection_refused"),
    "dns_failure": lambda: unreachable("dns_failure"),
    "tls_failure": lambda: unreachable("tls_failure"),
    "captive_portal": lambda: portal(),
    "address_budget_gone": lambda: refused_as("address_budget_gone", "Too many cumulative requests sent"),
    "nonce_refused": lambda: refused_as("nonce_refused", "Invalid nonce: duplicate nonce"),
    "agent_refused": lambda: refused_as("agent_refused", "User or API Wallet 0x"),
    "leverage_refused": lambda: refused_as("leverage_refused", refusals.LEVERAGE, LEVERAGE),
    "price_10x": lambda: wrong_price("price_10x", 10),
    "price_zero": lambda: wrong_price("price_zero", 0),
    "price_negative": lambda: wrong_price("price_negative", -1),
    "agent_revoked": lambda: agent_gone("agent_revoked"),
    "agent_expired": lambda: agent_gone("agent_expired"),
}


def unreachable(kind: str) -> None:
    client = with_fault(kind)
    assert client.deliver(BUY).lost == "connection"
    assert not is_live(client)


def portal() -> None:
    client = with_fault("captive_portal")
    delivery = client.deliver(BUY)
    assert delivery.status == 200
    assert delivery.text.startswith("<!DOCTYPE html>")
    assert not is_live(client)


@pytest.mark.parametrize("kind", sorted(PROOFS))
def test_the_fault_is_produced(kind: str) -> None:
    PROOFS[kind]()


def test_every_fault_has_a_row_of_the_table_and_a_test() -> None:
    kinds = {*REQUEST_FAULTS, *STREAM_FAULTS, *CONDITIONS}
    assert {kind for row in TABLE.values() for kind in row} == kinds
    assert set(PROOFS) == kinds


# The plan -------------------------------------------------------------------------------------------------------------


def test_a_plan_is_read_from_toml_and_json_and_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    toml = tmp_path / "faults.toml"
    toml.write_text('[[fault]]\nkind = "lands_late"\nprobability = 0.1\non = ["order"]\nhigh_ms = 5000\n')
    as_json = tmp_path / "faults.json"
    as_json.write_text('{"fault": [{"kind": "lands_late", "probability": 0.1, "on": ["order"], "high_ms": 5000}]}')
    rule = FaultRule("lands_late", 0.1, ("order",), high_ms=5_000)
    assert read_faults(toml) == read_faults(as_json) == (rule,)
    for text in ('[[fault]]\nkind = "rain"', "[[fault]]\nprobability = 1", "x", '[[fault]]\nkind="ws_gap"\nhow=1'):
        toml.write_text(text)
        with pytest.raises(UserError):
            read_faults(toml)


def test_a_rule_begins_after_some_requests_and_ends_after_some_faults_or_in_time() -> None:
    client = with_fault("rate_limited", on=("allMids",), after=2, times=3)
    statuses = [client.gateway.handle("/info", {"type": "allMids"}).status for _ in range(8)]
    assert statuses == [200, 200, 429, 429, 429, 200, 200, 200]
    assert client.gateway.plan.counts == {"rate_limited": 3}
    client = with_fault("rate_limited", at_ms=5_000, duration_ms=2_000)
    statuses = []
    for _ in range(9):
        statuses.append(client.gateway.handle("/info", {"type": "allMids"}).status)
        client.wait(1)
    assert statuses == [200] * 5 + [429] * 2 + [200] * 2


def test_the_same_seed_gives_the_same_faults() -> None:
    def faults(seed: int) -> list[str]:
        plan = FaultPlan(mixed_faults(0.5), seed)
        rules = [plan.pick(("exchange", "order"), 0) for _ in range(300)]
        return [rule.kind if rule else "" for rule in rules]

    assert faults(1) == faults(1) != faults(2)
    share = sum(bool(kind) for kind in faults(1)) / 300
    assert 0.3 < share < 0.55
