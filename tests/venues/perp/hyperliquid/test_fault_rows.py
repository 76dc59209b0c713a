"""The table of faults, row by row: which test shows what must happen, and the tests that are in no other file.

`ROWS` names for every fault of the fake exchange a test of the broker or of the feed. A fault without one fails here.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from pitboss.core.errors import TransientError
from pitboss.core.receipt import Receipt
from pitboss.testing.hyperliquid.faults import TABLE, FaultRule
from pitboss.venues.perp.state import ReportedWorld
from venues.perp.hyperliquid import test_account_limits, test_account_stream, test_fault_table, test_feed_faults
from venues.perp.hyperliquid.live_scene import Scene, open_request, run_in_context
from venues.perp.hyperliquid.test_account_stream import drop_price, world_with_resting_order
from venues.perp.hyperliquid.test_fault_table import ORDER, open_position, order_count, pass_updates

STREAM_KINDS = (*TABLE["streams"], "ws_doubled_fill", "ws_fills_out_of_order", "ws_late_fill")


async def updated_world(scene: Scene, world: ReportedWorld, count: int = 10) -> tuple[ReportedWorld, list[Receipt]]:
    """Let the source update the world a few times; the world after it, and all that happened."""
    receipts: list[Receipt] = []
    for _ in range(count):
        await scene.pause(1.0)
        try:
            reconciled = await scene.broker.resolve(world)
        except TransientError:
            continue
        world = reconciled.world
        receipts += reconciled.receipts
    return world, receipts


# fills before the answer of their order; streams ------------------------------------------------------------------------


def test_a_fill_that_a_stream_tells_before_the_answer_of_its_order_is_counted_once():
    async def work() -> None:
        world = await scene.world()
        placed = await scene.broker.submit(world, open_request(), scene.now())
        _, receipts = await updated_world(scene, placed.world)
        filled = [receipt for receipt in (*placed.receipts, *receipts) if receipt.kind == "filled"]
        assert len(filled) == scene.exchange.truth().fills == scene.reconciler.news.fills
        assert scene.stops("ETH") == [Decimal(1)]
        assert order_count(scene) == 1

    scene = Scene(50, faults=(FaultRule("slow_answer", on=ORDER, times=1, low_ms=1_000, high_ms=1_000),))
    scene.run(work())


@pytest.mark.parametrize("kind", STREAM_KINDS)
def test_whatever_a_stream_does_a_fill_is_counted_once_and_has_its_stop_within_three_seconds(kind: str):
    async def work() -> None:
        world = await world_with_resting_order(scene)
        world, _ = await updated_world(scene, world, 2)
        rate = 0.2 if kind in ("ws_drop", "ws_silent_close", "ws_half_open") else 1.0
        scene.plan.add(FaultRule(kind, rate, low_ms=5_000, high_ms=5_000))
        if kind == "ws_duplicate_snapshot":
            scene.sockets[-1].session.close()
            await scene.reconnected.wait()
        drop_price(scene)
        world, receipts = await updated_world(scene, world, 3)
        assert scene.stops("ETH") == [Decimal(1)]
        world, more = await updated_world(scene, world, 20)
        ids = [receipt.facts["trade_id"] for receipt in (*receipts, *more) if receipt.kind == "filled"]
        assert len(ids) == len(set(ids)) == scene.exchange.truth().fills
        assert world.positions["ETH"].size == scene.position("ETH")
        assert scene.plan.counts[kind]
        assert not scene.broker.alarm()

    scene = Scene(51)
    scene.run(work())


# reduce-only auto-cancel --------------------------------------------------------------------------------------------------


def test_of_two_reduce_only_orders_the_exchange_cancels_one_and_the_stop_is_there_with_the_size_of_the_position():
    async def work() -> None:
        scene = Scene(52, faults=(FaultRule("reduce_only_auto_cancel", times=2),))
        world = await open_position(scene, take_profit=Decimal(2_700))
        assert scene.plan.counts["reduce_only_auto_cancel"]
        world = await pass_updates(scene, world, 6)
        assert scene.stops("ETH") == [Decimal(1)]
        assert world.positions["ETH"].stop is not None

    run_in_context(work())


# liquidation, delisting, post-only phase, funding ---------------------------------------------------------------------------


def test_a_liquidation_is_taken_from_the_fills_of_the_exchange():
    async def work() -> None:
        scene = Scene(53)
        world = await open_position(scene)
        scene.transport.gateway.conditions.begin(FaultRule("liquidation", coin="ETH"))
        world, receipts = await updated_world(scene, world)
        (fill,) = [fill for fill in scene.exchange.account().fills if fill.liquidation is not None]
        (filled,) = [receipt for receipt in receipts if receipt.kind == "filled"]
        assert (filled.facts["reason"], filled.facts["trade_id"]) == ("liquidation", fill.tid)
        assert (filled.facts["price"], filled.facts["size"], filled.facts["fee_usd"]) == (fill.price, 1, fill.fee)
        assert [receipt.kind for receipt in receipts if receipt.kind == "liquidated"] == ["liquidated"]
        assert (world.positions, scene.stops("ETH")) == ({}, [])

    run_in_context(work())


def test_an_asset_that_is_delisted_is_closed_by_the_exchange_and_opens_no_more():
    async def work() -> None:
        scene = Scene(54)
        world = await open_position(scene)
        scene.transport.gateway.conditions.begin(FaultRule("delisting", coin="ETH"))
        world, _ = await updated_world(scene, world)
        assert world.positions == {} == scene.exchange.truth().positions
        placed = await scene.broker.submit(world, open_request(key="k2"), scene.now())
        assert placed.refusal
        assert not (await scene.broker.submit(world, open_request("BTC", size="0.01", key="k3"), scene.now())).refusal

    run_in_context(work())


def test_while_only_resting_orders_are_taken_an_open_is_refused_and_the_stop_stays():
    async def work() -> None:
        scene = Scene(55)
        world = await open_position(scene)
        scene.transport.gateway.conditions.begin(FaultRule("post_only_phase", duration_ms=60_000))
        placed = await scene.broker.submit(world, open_request("BTC", size="0.01", key="k2"), scene.now())
        assert "post-only" in placed.refusal
        world, _ = await updated_world(scene, world)
        assert scene.stops("ETH") == [Decimal(1)]

    run_in_context(work())


def test_an_extreme_funding_payment_is_taken_as_it_was_paid():
    async def work() -> None:
        scene = Scene(56, faults=(FaultRule("funding_spike"),))
        world = await open_position(scene)
        await scene.clock.sleep(3_600 + 60)
        _, receipts = await updated_world(scene, world, 2)
        (payment,) = scene.exchange.account().fundings
        (paid,) = [receipt for receipt in receipts if receipt.kind in ("funded", "settled")]
        assert (paid.facts["amount_usd"], paid.facts["rate"]) == (-payment.usdc, payment.rate)
        assert abs(payment.rate) > Decimal("0.001")

    run_in_context(work())


# agents ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["agent_revoked", "agent_expired"])
def test_an_agent_that_is_revoked_or_expired_stops_opens_with_an_alarm_and_no_other_key_is_used(kind: str):
    async def work() -> None:
        scene = Scene(57)
        world = await open_position(scene)
        scene.transport.gateway.conditions.begin(FaultRule(kind))
        await scene.broker.submit(world, open_request("BTC", size="0.01", key="k2"), scene.now())
        assert "does not accept this process" in scene.broker.alarm()
        world, _ = await updated_world(scene, world, 3)
        assert (await scene.broker.submit(world, open_request("SOL", key="k3"), scene.now())).refusal
        assert scene.stops("ETH") == [Decimal(1)]  # it rests at the exchange
        assert order_count(scene) == 1

    run_in_context(work())


# the table --------------------------------------------------------------------------------------------------------------------

HERE, FAULTS, FEED, STREAM, LIMITS = "rows", "faults", "feed", "stream", "limits"
MODULES: Mapping[str, Mapping[str, Any]] = {
    HERE: globals(),
    FAULTS: vars(test_fault_table),
    FEED: vars(test_feed_faults),
    STREAM: vars(test_account_stream),
    LIMITS: vars(test_account_limits),
}
BROKEN = (FAULTS, "test_a_broken_answer_is_no_answer_whether_the_order_was_executed_or_not")
TIMEOUTS = (FAULTS, "test_timeouts_freeze_the_symbol_until_the_exchange_or_its_time_has_answered")
FILLS = (FAULTS, "test_fills_are_counted_once_however_they_are_reported")
STREAMS = (HERE, "test_whatever_a_stream_does_a_fill_is_counted_once_and_has_its_stop_within_three_seconds")
ABSENT = (FAULTS, "test_an_absent_report_is_unknown_and_never_flat")
LEVERAGE = (FAULTS, "test_leverage_is_what_is_read_back_and_not_what_was_answered")
BY_EXCHANGE = (FAULTS, "test_what_the_exchange_does_to_a_position_is_accepted_and_told")
KEYS = (FAULTS, "test_an_exchange_that_does_not_accept_the_key_or_its_nonces_stops_opens")
AGENTS = (HERE, "test_an_agent_that_is_revoked_or_expired_stops_opens_with_an_alarm_and_no_other_key_is_used")
PRICES = (FAULTS, "test_an_impossible_price_opens_nothing_and_exits_leave")
WRONG_PRICES = (FEED, "test_a_wrong_price_is_no_mark_and_is_told_until_it_ends")
OUTAGES = (FAULTS, "test_after_an_outage_nothing_opens_before_a_whole_pass_and_there_is_no_busy_loop")
ROWS: Mapping[str, Mapping[Any, tuple[str, str]]] = {
    "timeouts": dict.fromkeys(TABLE["timeouts"], TIMEOUTS),
    "broken answers": dict.fromkeys(TABLE["broken answers"], BROKEN)
    | {"order_error": (FAULTS, "test_an_error_of_one_order_is_a_refusal_only_if_its_text_is_listed")},
    "partial batch": {
        "missing_status": (
            FAULTS,
            "test_a_batch_with_a_missing_status_leaves_every_order_ambiguous_until_it_is_asked_for",
        )
    },
    "limits": {
        "rate_limited": (FAULTS, "test_after_a_429_opens_stop_and_exits_leave"),
        "address_budget_gone": (
            LIMITS,
            "test_without_actions_left_stops_are_sent_every_ten_seconds_and_cancels_at_once",
        ),
    },
    "fills": dict.fromkeys(("doubled_fills", "fills_out_of_order", "late_fills"), FILLS)
    | dict.fromkeys(("ws_doubled_fill", "ws_fills_out_of_order", "ws_late_fill"), STREAMS)
    | {
        "fill_after_cancel": (FAULTS, "test_a_fill_that_is_told_after_its_cancel_is_counted"),
        "overfill": (FAULTS, "test_an_overfill_raises_an_alarm_and_stops_opens"),
    },
    "streams": dict.fromkeys(TABLE["streams"], STREAMS)
    | {
        "ws_gap": (STREAM, "test_after_a_gap_orders_and_fills_are_read_before_a_decision"),
        "ws_half_open": (
            STREAM,
            "test_a_connection_that_carries_nothing_is_replaced_within_fifteen_seconds_and_a_quiet_one_is_not",
        ),
        "ws_wrong_user": (STREAM, "test_a_message_about_another_account_is_not_news"),
    },
    "open orders": dict.fromkeys(TABLE["open orders"], ABSENT),
    "order status": {"unknown_oid": (FAULTS, "test_unknown_oid_is_no_proof_before_the_expiry")},
    "stops": {
        "stop_refused": (FAULTS, "test_a_position_whose_stop_is_refused_three_times_is_closed_with_an_alarm"),
        "reduce_only_auto_cancel": (
            HERE,
            "test_of_two_reduce_only_orders_the_exchange_cancels_one_and_the_stop_is_there_with_the_size_of_the_position",
        ),
    },
    "leverage": dict.fromkeys(TABLE["leverage"], LEVERAGE),
    "venue events": {
        "funding_spike": (HERE, "test_an_extreme_funding_payment_is_taken_as_it_was_paid"),
        "liquidation": (HERE, "test_a_liquidation_is_taken_from_the_fills_of_the_exchange"),
        "deleveraging": BY_EXCHANGE,
        "delisting": (HERE, "test_an_asset_that_is_delisted_is_closed_by_the_exchange_and_opens_no_more"),
        "trading_halt": (FAULTS, "test_a_trading_halt_refuses_orders_and_keeps_the_stop"),
        "post_only_phase": (HERE, "test_while_only_resting_orders_are_taken_an_open_is_refused_and_the_stop_stays"),
    },
    "nonces and agents": dict.fromkeys(("nonce_refused", "agent_refused"), KEYS)
    | dict.fromkeys(("agent_revoked", "agent_expired"), AGENTS),
    "prices": dict.fromkeys(("price_10x", "price_zero", "price_negative", "mark_far_from_oracle"), PRICES)
    | {"price_frozen": (FEED, "test_frozen_prices_are_told_after_two_minutes"), "crossed_book": WRONG_PRICES},
    "network": dict.fromkeys(("outage", "flapping", "dns_failure", "tls_failure", "captive_portal"), OUTAGES)
    | dict.fromkeys(("connection_refused", "connection_reset"), BROKEN),
}


def test_every_fault_of_the_table_has_a_test_that_exists():
    assert {row: set(kinds) for row, kinds in TABLE.items()} == {row: set(kinds) for row, kinds in ROWS.items()}
    named = [place for kinds in ROWS.values() for place in kinds.values()]
    assert [name for module, name in named if name not in MODULES[module]] == []
