"""Orders at the fake exchange: refusals with their texts, matching, reduce-only rules, triggers, modification, cancels."""

from decimal import Decimal

import pytest

from pitboss.testing.hyperliquid import refusals
from pitboss.testing.hyperliquid.exchange import make_ready_account
from pitboss.testing.hyperliquid.universe import LISTED
from testing.hyperliquid.client import PlainClient, cloid, still_exchange, wire_order


def error(status: object) -> str:
    assert isinstance(status, dict), status
    return status["error"]


@pytest.mark.parametrize(
    ("price", "size", "text"),
    [
        ("67999.5", "0.001", refusals.TICK + " asset=0"),
        ("68000.1", "0.001", refusals.TICK + " asset=0"),
        ("68000", "0.000001", refusals.LOT),
        ("68000", "0", refusals.LOT),
        ("68000", "0.0001", refusals.MIN_NOTIONAL + " asset=0"),
        ("68000", "50", refusals.MARGIN + " asset=0"),
        ("10000", "0.01", refusals.ORACLE_DISTANCE + " asset=0"),
        ("500000", "0.01", refusals.ORACLE_DISTANCE + " asset=0"),
    ],
)
def test_an_order_that_breaks_a_rule_is_refused_with_the_text_of_the_exchange(price: str, size: str, text: str) -> None:
    client = PlainClient()
    assert error(client.order("BTC", True, price, size)) == text
    assert client.info("openOrders") == []
    assert client.exchange.truth().orders == ()


def test_the_texts_are_those_of_the_documentation() -> None:
    assert refusals.TICK == "Price must be divisible by tick size."
    assert refusals.MIN_NOTIONAL == "Order must have minimum value of $10."
    assert refusals.MARGIN == "Insufficient margin to place order."
    assert refusals.REDUCE_ONLY == "Reduce only order would increase position."
    assert refusals.POST_ONLY.startswith("Post only order would have immediately matched, bbo was ")
    assert refusals.NO_MATCH == "Order could not immediately match against any resting orders."
    assert refusals.TRIGGER_PRICE == "Invalid TP/SL price."


@pytest.mark.parametrize(
    ("coin", "price", "is_valid"),
    [
        ("SOL", "1234.5", True),
        ("SOL", "1234.56", False),
        ("ARB", "0.001234", False),
        ("XRP", "0.001234", True),
        ("XRP", "0.0012345", False),
        ("BTC", "123456", True),
        ("BTC", "123456.7", False),
        ("BTC", "68000.0", True),
        ("ETH", "2500.12", False),
        ("ETH", "99.99", True),
    ],
)
def test_prices_have_five_figures_and_the_decimals_that_sizes_leave_or_are_integers(
    coin: str, price: str, is_valid: bool
) -> None:
    perp = next(one for one in LISTED if one.name == coin)
    assert perp.valid_price(Decimal(price)) == is_valid


def test_a_market_order_is_filled_from_the_book_and_a_limit_order_rests() -> None:
    client = PlainClient()
    status = client.order("BTC", True, "69000", "0.01", "Ioc", cloid=cloid(1))
    assert status["filled"]["totalSz"] == "0.01"
    assert status["filled"]["cloid"] == cloid(1)
    assert Decimal(68_000) < Decimal(status["filled"]["avgPx"]) < Decimal(68_100)
    rests = client.order("BTC", True, "67000", "0.01", cloid=cloid(2))
    assert [one["oid"] for one in client.info("openOrders")] == [rests["resting"]["oid"]]
    assert client.info("orderStatus", oid=cloid(2))["order"]["status"] == "open"
    assert client.info("orderStatus", oid=cloid(1))["order"]["status"] == "filled"
    assert client.info("orderStatus", oid=cloid(3)) == {"status": "unknownOid"}


def test_an_order_larger_than_the_book_is_filled_in_part_and_the_rest_of_an_ioc_is_cancelled() -> None:
    client = PlainClient(still_exchange(deposit=10_000_000))
    status = client.order("BTC", True, "68020", "50", "Ioc")
    filled = Decimal(status["filled"]["totalSz"])
    assert 0 < filled < 50
    assert client.position("BTC") == filled
    assert client.info("openOrders") == []


def test_an_ioc_without_a_counterparty_is_refused_and_stays_in_the_history() -> None:
    client = PlainClient()
    assert error(client.order("BTC", True, "60000", "0.01", "Ioc", cloid=cloid(1))) == refusals.NO_MATCH + " asset=0"
    assert client.info("historicalOrders")[0]["status"] == "iocCancelRejected"
    assert client.info("orderStatus", oid=cloid(1))["order"]["status"] == "iocCancelRejected"


def test_a_post_only_order_that_would_match_is_refused_with_the_best_prices() -> None:
    client = PlainClient()
    text = error(client.order("BTC", True, "69000", "0.01", "Alo"))
    assert text == "Post only order would have immediately matched, bbo was 67993.0@68007.0. asset=0"
    assert "resting" in client.order("BTC", True, "67000", "0.01", "Alo")


def test_a_batch_is_answered_order_by_order() -> None:
    client = PlainClient()
    statuses = client.orders(
        wire_order("BTC", True, "67000", "0.01"),
        wire_order("BTC", True, "67000.5", "0.01"),
        wire_order("ETH", True, "2600", "0.1", "Ioc"),
    )
    assert [next(iter(one)) for one in statuses] == ["resting", "error", "filled"]


def test_resting_orders_are_filled_at_their_own_price_when_the_market_comes_to_them() -> None:
    client = PlainClient(still_exchange(partial_fill=0))
    oid = client.order("BTC", True, "67000", "0.01")["resting"]["oid"]
    client.exchange.set_price("BTC", Decimal(66_900))
    fill = client.info("userFills")[0]
    assert (fill["px"], fill["sz"], fill["crossed"], fill["oid"]) == ("67000.0", "0.01", False, oid)
    assert fill["fee"] == "0.1005"
    assert client.info("openOrders") == []


def test_a_resting_order_may_be_filled_in_several_parts() -> None:
    client = PlainClient(still_exchange(partial_fill=1))
    client.order("BTC", True, "67000", "0.1")
    client.exchange.set_price("BTC", Decimal(66_900))
    first = client.position("BTC")
    assert 0 < first < Decimal("0.1")
    assert Decimal(client.info("openOrders")[0]["sz"]) == Decimal("0.1") - first
    client.wait(60)
    assert client.position("BTC") == Decimal("0.1")
    assert len(client.info("userFills")) > 1


def test_two_accounts_trade_with_each_other_and_own_orders_are_cancelled_instead() -> None:
    client = PlainClient()
    other_keys = make_ready_account(9)
    client.exchange.open_account(other_keys, Decimal(10_000))
    other = PlainClient(client.exchange)
    other.user, other.secret = other_keys.master_address, other_keys.agent_private_key
    other.order("BTC", False, "68003", "0.01")
    assert client.order("BTC", True, "68005", "0.01", "Ioc")["filled"]["avgPx"] == "68003.0"
    assert client.exchange.state.accounts[other.user].position("BTC") == Decimal("-0.01")
    own = client.order("ETH", False, "2500", "0.1")
    assert "resting" in own or "filled" in own
    sell = client.order("ETH", False, "2500.2", "0.1")["resting"]["oid"]
    client.order("ETH", True, "2500.3", "0.1")
    assert client.info("orderStatus", oid=sell)["order"]["status"] == "selfTradeCanceled"


# Reduce only ----------------------------------------------------------------------------------------------------------


def test_a_reduce_only_order_never_opens_never_increases_and_never_flips() -> None:
    client = PlainClient()
    refused = refusals.REDUCE_ONLY + " asset=0"
    assert error(client.order("BTC", False, "60000", "0.01", "Ioc", reduce_only=True)) == refused
    client.order("BTC", True, "69000", "0.01", "Ioc")
    assert error(client.order("BTC", True, "69000", "0.01", "Ioc", reduce_only=True)) == refused
    status = client.order("BTC", False, "60000", "0.5", "Ioc", reduce_only=True)
    assert status["filled"]["totalSz"] == "0.01"
    assert client.position("BTC") == 0


def test_of_two_resting_reduce_only_orders_above_the_position_the_first_is_cancelled() -> None:
    client = PlainClient()
    client.order("BTC", True, "69000", "0.01", "Ioc")
    first = client.order("BTC", False, "70000", "0.008", reduce_only=True)["resting"]["oid"]
    second = client.order("BTC", False, "71000", "0.008", reduce_only=True)["resting"]["oid"]
    assert client.info("orderStatus", oid=first)["order"]["status"] == "reduceOnlyCanceled"
    assert [one["oid"] for one in client.info("openOrders")] == [second]
    client.order("BTC", False, "60000", "0.01", "Ioc", reduce_only=True)
    assert client.info("openOrders") == []


def test_the_last_dollars_of_a_position_may_be_closed_below_the_minimum() -> None:
    client = PlainClient()
    client.order("BTC", True, "69000", "0.0002", "Ioc")
    assert error(client.order("BTC", False, "60000", "0.0001", "Ioc", reduce_only=True)).startswith("Order must have")
    client.exchange.set_price("BTC", Decimal(45_000))
    assert "filled" in client.order("BTC", False, "40000", "0.0002", "Ioc", reduce_only=True)


# Triggers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("is_long", "tpsl", "trigger", "limit", "moves_to", "name"),
    [
        (True, "sl", "66000", "60000", 65_900, "Stop Market"),
        (True, "tp", "70000", "63000", 70_100, "Take Profit Market"),
        (False, "sl", "70000", "77000", 70_100, "Stop Market"),
        (False, "tp", "66000", "72000", 65_900, "Take Profit Market"),
    ],
)
def test_stops_and_take_profits_rest_and_fire_on_the_mark(
    is_long: bool, tpsl: str, trigger: str, limit: str, moves_to: int, name: str
) -> None:
    client = PlainClient()
    client.order("BTC", is_long, "69000" if is_long else "67000", "0.01", "Ioc")
    status = client.order("BTC", not is_long, limit, "0.01", reduce_only=True, trigger=(tpsl, trigger), cloid=cloid(7))
    assert "resting" in status
    shown = client.info("frontendOpenOrders")[0]
    assert (shown["orderType"], shown["isTrigger"], shown["reduceOnly"]) == (name, True, True)
    client.wait(5)
    assert client.position("BTC") != 0
    client.exchange.set_price("BTC", Decimal(moves_to))
    assert client.position("BTC") == 0
    assert client.info("orderStatus", oid=cloid(7))["order"]["status"] == "filled"


def test_a_trigger_that_would_fire_at_once_is_refused() -> None:
    client = PlainClient()
    client.order("BTC", True, "69000", "0.01", "Ioc")
    status = client.order("BTC", False, "60000", "0.01", reduce_only=True, trigger=("sl", "68500"))
    assert error(status) == "Invalid TP/SL price. asset=0"


@pytest.mark.parametrize("are_cancelled", [False, True])
def test_stops_of_a_position_that_is_gone_stay_unless_the_rules_say_otherwise(are_cancelled: bool) -> None:
    client = PlainClient(still_exchange(cancels_triggers_when_flat=are_cancelled))
    client.order("BTC", True, "69000", "0.01", "Ioc")
    client.order("BTC", False, "60000", "0.01", reduce_only=True, trigger=("sl", "66000"), cloid=cloid(7))
    client.order("BTC", False, "60000", "0.01", "Ioc", reduce_only=True)
    assert len(client.info("openOrders")) == (0 if are_cancelled else 1)
    client.exchange.set_price("BTC", Decimal(65_000))
    status = client.info("orderStatus", oid=cloid(7))["order"]["status"]
    assert status == ("reduceOnlyCanceled" if are_cancelled else "reduceOnlyRejected")
    assert client.position("BTC") == 0


def test_children_of_an_entry_wait_for_its_fill_and_end_with_it() -> None:
    client = PlainClient(still_exchange(partial_fill=0))
    group = [
        wire_order("BTC", True, "67000", "0.01"),
        wire_order("BTC", False, "60000", "0.01", reduce_only=True, trigger=("sl", "66000")),
    ]
    statuses = client.orders(*group, grouping="normalTpsl")
    assert statuses[1] == "waitingForFill"
    assert len(client.info("frontendOpenOrders")[0]["children"]) == 1
    client.cancel(0, statuses[0]["resting"]["oid"])
    assert client.info("frontendOpenOrders") == []
    client.orders(*group, grouping="normalTpsl")
    client.exchange.set_price("BTC", Decimal(66_900))
    assert [one["orderType"] for one in client.info("frontendOpenOrders")] == ["Stop Market"]
    client.exchange.set_price("BTC", Decimal(65_900))
    assert client.position("BTC") == 0


# Cancel, modify, leverage ---------------------------------------------------------------------------------------------


def test_an_order_is_cancelled_once_by_id_or_by_cloid() -> None:
    client = PlainClient()
    oid = client.order("BTC", True, "67000", "0.01", cloid=cloid(1))["resting"]["oid"]
    assert client.cancel(0, oid) == "success"
    assert client.cancel(0, oid) == {"error": "Order was never placed, already canceled, or filled."}
    client.order("BTC", True, "67000", "0.01", cloid=cloid(2))
    by_cloid = {"type": "cancelByCloid", "cancels": [{"asset": 0, "cloid": cloid(2)}]}
    assert client.act(by_cloid)["response"] == {"type": "cancel", "data": {"statuses": ["success"]}}
    assert "error" in client.act(by_cloid)["response"]["data"]["statuses"][0]


def test_a_modified_order_is_another_order_with_the_same_cloid() -> None:
    client = PlainClient()
    oid = client.order("BTC", True, "67000", "0.01", cloid=cloid(1))["resting"]["oid"]
    change = {"oid": oid, "order": wire_order("BTC", True, "66000", "0.02", cloid=cloid(1))}
    statuses = client.act({"type": "batchModify", "modifies": [change]})["response"]["data"]["statuses"]
    assert statuses[0]["resting"]["oid"] != oid
    assert len(client.exchange.truth().by_cloid()[cloid(1)]) == 2
    again = client.act({"type": "batchModify", "modifies": [change]})["response"]["data"]["statuses"]
    assert again == [{"error": refusals.MODIFY_MISSING}]


def test_leverage_is_set_within_the_limits_of_the_asset_and_the_position() -> None:
    client = PlainClient(still_exchange(deposit=1_000))

    def leverage(value: int, asset: int = 0, is_cross: bool = True) -> object:
        reply = client.act({"type": "updateLeverage", "asset": asset, "isCross": is_cross, "leverage": value})
        return reply["response"]

    assert leverage(41) == refusals.LEVERAGE
    assert leverage(0) == refusals.LEVERAGE
    assert leverage(2, asset=2) == refusals.CROSS_NOT_ALLOWED
    assert leverage(40) == {"type": "default"}
    client.order("BTC", True, "69000", "0.3", "Ioc")
    assert client.info("clearinghouseState")["assetPositions"][0]["position"]["leverage"] == {
        "type": "cross",
        "value": 40,
    }
    assert leverage(3) == refusals.LEVERAGE_CROSS
    assert leverage(5, is_cross=False) == refusals.SWITCH_MARGIN_MODE
    assert leverage(30) == {"type": "default"}


def test_isolated_margin_is_ringfenced_added_and_taken_back() -> None:
    client = PlainClient()
    client.act({"type": "updateLeverage", "asset": 1, "isCross": False, "leverage": 5})
    client.order("ETH", True, "2600", "1", "Ioc")
    position = client.info("clearinghouseState")["assetPositions"][0]["position"]
    assert position["leverage"]["type"] == "isolated"
    assert "rawUsd" in position["leverage"]
    before = client.exchange.account().positions["ETH"].isolated_margin
    add = {"type": "updateIsolatedMargin", "asset": 1, "isBuy": True, "ntli": 100_000_000}
    assert client.act(add)["status"] == "ok"
    assert client.exchange.account().positions["ETH"].isolated_margin == before + 100
    assert client.act(add | {"ntli": -90_000_000})["status"] == "ok"
    assert client.act(add | {"ntli": -500_000_000})["response"] == refusals.ISOLATED_MARGIN
    client.order("ETH", False, "2000", "1", "Ioc", reduce_only=True)
    assert client.exchange.account().identity_gap() == 0


def test_scheduled_cancel_needs_a_volume_and_then_cancels_everything_once() -> None:
    client = PlainClient()
    later = {"type": "scheduleCancel", "time": client.exchange.now + 10_000}
    text = "Cannot set scheduled cancel time until enough volume traded. Required: $1000000. Traded: $0."
    assert client.act(later) == {"status": "err", "response": text}
    client = PlainClient(still_exchange(schedule_cancel_volume=Decimal(0)))
    client.order("BTC", True, "67000", "0.01")
    soon = {"type": "scheduleCancel", "time": client.exchange.now + 4_000}
    assert client.act(soon)["response"] == refusals.SCHEDULE_TOO_SOON
    assert client.act({"type": "scheduleCancel", "time": client.exchange.now + 6_000})["status"] == "ok"
    client.wait(5)
    assert len(client.info("openOrders")) == 1
    client.wait(2)
    assert client.info("openOrders") == []
    assert client.info("historicalOrders")[0]["status"] == "scheduledCancel"
    assert client.act({"type": "noop"})["response"] == {"type": "default"}


def test_bodies_that_cannot_be_read_are_answered_with_422() -> None:
    client = PlainClient()
    signed = client.body({"type": "noop"})
    for action in ({"type": "order", "orders": [{"a": 0}], "grouping": "na"}, {"type": "order"}, {}, []):
        assert client.gateway.handle("/exchange", signed | {"action": action}).status == 422
    assert client.deliver({"type": "withdraw3"}).status == 422
    for body in ([], {"type": "nothing"}, {"type": "orderStatus"}, {"type": "l2Book", "coin": "NOPE"}):
        assert client.gateway.handle("/info", body).status == 422
    assert client.gateway.handle("/exchange", {"action": {"type": "noop"}, "nonce": 1}).status == 422
    assert client.exchange.truth().actions == ()
