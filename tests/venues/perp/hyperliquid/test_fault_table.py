"""Every row of the table of faults: what the exchange does, and what must happen. The rows are named as in the table."""

from decimal import Decimal
from typing import Any

import pytest

from pitboss.core.errors import TransientError
from pitboss.engine.execute import Placed
from pitboss.testing.hyperliquid.faults import FaultRule
from pitboss.venues.perp.hyperliquid.account_reader import agent_problem
from pitboss.venues.perp.state import ReportedWorld
from venues.perp.hyperliquid.faulted_run import Tally, check_orders, settle_orders
from venues.perp.hyperliquid.live_scene import Scene, close_request, open_request, proposal_of, run_in_context

ORDER = ("order",)


async def pass_updates(scene: Scene, world: ReportedWorld, count: int = 10, pause_s: float = 2.0) -> ReportedWorld:
    """Let the source update the world a few times."""
    for _ in range(count):
        await scene.clock.sleep(pause_s)
        try:
            world = (await scene.broker.resolve(world)).world
        except TransientError:
            continue
    return world


async def open_position(scene: Scene, **fields: Any) -> ReportedWorld:
    """A world with one position of 1 ETH and its stop."""
    world = await scene.world()
    placed = await scene.broker.submit(world, open_request(**fields), scene.now())
    assert not placed.refusal
    assert scene.position("ETH") == 1
    return placed.world


def order_count(scene: Scene) -> int:
    """How many entries the exchange has accepted."""
    return sum(not order.reduce_only for order in scene.exchange.truth().orders)


# timeout, never received / received and executed / lands late ---------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "fields", "size"),
    [
        ("never_received", {}, 0),
        ("executed_no_answer", {}, 1),
        ("lands_late", {"low_ms": 3_000, "high_ms": 3_000}, 1),
        ("lands_late", {"low_ms": 60_000, "high_ms": 60_000}, 0),
        ("slow_answer", {"low_ms": 5_000, "high_ms": 5_000}, 1),
    ],
)
def test_timeouts_freeze_the_symbol_until_the_exchange_or_its_time_has_answered(
    kind: str, fields: dict[str, int], size: int
):
    async def work() -> None:
        scene = Scene(5, faults=(FaultRule(kind, on=ORDER, times=1, **fields),))
        world = await scene.world()
        placed = await scene.broker.submit(world, open_request(), scene.now())
        assert [order.id for order in placed.world.orders] == [placed.order_id]  # the rules count it
        assert placed.receipts[0].facts["state"] == "unresolved"
        assert "no known outcome" in scene.broker.open_problem("ETH")
        assert not scene.broker.open_problem("BTC")
        second = await scene.broker.submit(placed.world, open_request(key="k2"), scene.now())
        assert "no known outcome" in second.refusal
        world = await pass_updates(scene, placed.world, 12)
        assert scene.position("ETH") == size
        assert {symbol: one.size for symbol, one in world.positions.items()} == scene.exchange.truth().positions
        assert scene.broker.open_problem("ETH") == ""
        assert world.orders == ()
        assert order_count(scene) == size

    run_in_context(work())


def test_an_order_is_called_expired_only_by_the_exchanges_time_after_its_expiry():
    async def work() -> None:
        scene = Scene(5, faults=(FaultRule("never_received", on=ORDER, times=1),))
        world = (await scene.broker.submit(await scene.world(), open_request(), scene.now())).world
        (entry, *_) = scene.store.recent(0)
        while scene.store.get(entry.cloid).state == "unresolved":  # type: ignore[union-attr]
            assert scene.exchange.now < entry.fence.expires_at + 60_000
            world = await pass_updates(scene, world, 1)
        assert scene.store.get(entry.cloid).state == "expired"  # type: ignore[union-attr]
        stored = scene.store.get(entry.cloid)
        assert stored is not None
        assert scene.exchange.now > stored.fence.expires_at + 5_000

    run_in_context(work())


# 5xx, HTML, empty body, truncated JSON, status err, statuses[i].error --------------------------------------------------


@pytest.mark.parametrize("executed", [0.0, 1.0])
@pytest.mark.parametrize(
    "kind",
    [
        "http_500",
        "http_502_html",
        "empty_body",
        "truncated_json",
        "status_err",
        "connection_refused",
        "connection_reset",
        "captive_portal",
    ],
)
def test_a_broken_answer_is_no_answer_whether_the_order_was_executed_or_not(kind: str, executed: float):
    async def work() -> None:
        scene = Scene(6, faults=(FaultRule(kind, on=ORDER, times=1, executed=executed),))
        placed = await scene.broker.submit(await scene.world(), open_request(), scene.now())
        assert placed.receipts[0].facts["state"] == "unresolved"
        world = await pass_updates(scene, placed.world, 12)
        assert {symbol: one.size for symbol, one in world.positions.items()} == scene.exchange.truth().positions
        assert order_count(scene) <= 1
        tally = Tally()
        check_orders(scene, tally)
        assert tally.is_clean

    run_in_context(work())


def test_an_error_of_one_order_is_a_refusal_only_if_its_text_is_listed():
    async def work() -> None:
        for seed in range(8):
            scene = Scene(seed, faults=(FaultRule("order_error", on=ORDER, times=1),))
            placed = await scene.broker.submit(await scene.world(), open_request(), scene.now())
            if placed.refusal:
                assert placed.refusal.startswith("Insufficient margin")
                assert order_count(scene) == 0
            else:
                assert placed.receipts[0].facts["state"] == "unresolved"
                await pass_updates(scene, placed.world, 12)
            tally = Tally()
            check_orders(scene, tally)
            assert tally.is_clean

    run_in_context(work())


# partial batch --------------------------------------------------------------------------------------------------------


def test_a_batch_with_a_missing_status_leaves_every_order_ambiguous_until_it_is_asked_for():
    async def work() -> None:
        scene = Scene(7, faults=(FaultRule("missing_status", on=ORDER, times=1),))
        world = await scene.world()
        placed = await scene.broker.submit(world, open_request(take_profit=Decimal(2700)), scene.now())
        assert {order.state for order in scene.store.recent(0)} == {"unresolved"}
        world = await pass_updates(scene, placed.world, 6)
        assert [order.state for order in scene.store.recent(0)][:1] == ["filled"]
        assert scene.stops("ETH") == [Decimal(1)]
        assert world.positions["ETH"].stop is not None

    run_in_context(work())


# 429; address budget gone ---------------------------------------------------------------------------------------------


def test_after_a_429_opens_stop_and_exits_leave():
    async def work() -> None:
        scene = Scene(8)
        world = await open_position(scene)
        scene.plan.add(FaultRule("rate_limited", on=("info", "exchange"), times=4))
        with pytest.raises(TransientError):
            await scene.broker.resolve(world)
        assert scene.broker.open_problem("BTC")
        placed = await scene.broker.submit(world, close_request(world), scene.now())
        assert not placed.refusal
        await pass_updates(scene, placed.world, 12)
        assert scene.position("ETH") == 0

    run_in_context(work())


def test_without_actions_left_opens_stop_and_exits_leave():
    async def work() -> None:
        scene = Scene(8)
        world = await open_position(scene)
        scene.sender.actions.on_read(100, scene.now())
        placed = await scene.broker.submit(world, open_request("BTC", size="0.01"), scene.now())
        assert "kept for exits" in placed.refusal
        placed = await scene.broker.submit(world, close_request(world), scene.now())
        assert scene.position("ETH") == 0

    run_in_context(work())


def test_a_refusal_for_the_address_budget_is_ambiguous_and_stops_opens():
    async def work() -> None:
        scene = Scene(8, faults=(FaultRule("address_budget_gone", on=ORDER, times=1),))
        placed = await scene.broker.submit(await scene.world(), open_request(), scene.now())
        assert placed.receipts[0].facts["state"] == "unresolved"
        assert scene.broker.open_problem("BTC")

    run_in_context(work())


# fills: doubled, out of order, late, after a cancel, overfill -----------------------------------------------------------


@pytest.mark.parametrize("kind", ["doubled_fills", "fills_out_of_order", "late_fills"])
def test_fills_are_counted_once_however_they_are_reported(kind: str):
    async def work() -> None:
        scene = Scene(9, faults=(FaultRule(kind, high_ms=4_000),))
        world = await scene.world()
        receipts = []
        for number in range(4):
            request = open_request(key=f"k{number}") if number % 2 == 0 else close_request(world, key=f"k{number}")
            placed = await scene.broker.submit(world, request, scene.now())
            world = placed.world
            receipts += placed.receipts
            for _ in range(20):
                await scene.clock.sleep(2.0)
                try:
                    reconciled = await scene.broker.resolve(world)
                except TransientError:
                    continue
                world = reconciled.world
                receipts += reconciled.receipts
        ids = [receipt.facts["trade_id"] for receipt in receipts if receipt.kind == "filled"]
        assert len(ids) == len(set(ids)) == scene.exchange.truth().fills

    run_in_context(work())


def test_a_fill_that_is_told_after_its_cancel_is_counted():
    async def work() -> None:
        scene = Scene(10, faults=(FaultRule("fill_after_cancel", times=1),))
        world = await scene.world()
        limit = world.marks["ETH"] * Decimal("0.99")
        request = open_request()
        placed = await scene.broker.submit(
            world, type(request)("limit", "ETH", 1, Decimal(1), 3, limit, proposal=proposal_of("k")), scene.now()
        )
        assert placed.order_id is not None
        cancelled = await scene.broker.cancel(placed.world, placed.order_id, scene.now())
        world = await pass_updates(scene, cancelled.world, 6)
        assert world.positions["ETH"].size == scene.position("ETH") != 0
        assert scene.stops("ETH") == [scene.position("ETH")]

    run_in_context(work())


def test_an_overfill_raises_an_alarm_and_stops_opens():
    async def work() -> None:
        scene = Scene(11, faults=(FaultRule("overfill", on=ORDER, times=1),))
        placed = await scene.broker.submit(await scene.world(), open_request(), scene.now())
        world = await pass_updates(scene, placed.world, 3)
        assert "more was filled than ordered" in scene.broker.alarm()
        assert (await scene.broker.submit(world, open_request("BTC", size="0.01", key="k2"), scene.now())).refusal
        assert world.positions["ETH"].size == scene.position("ETH")
        assert sum(scene.stops("ETH")) == scene.position("ETH")

    run_in_context(work())


# WebSocket gaps: the source says so, and everything is read again -------------------------------------------------------


def test_a_size_that_no_fill_explains_is_taken_over_after_a_minute_with_an_alarm():
    async def work() -> None:
        scene = Scene(32)
        world = await open_position(scene)
        scene.plan.add(FaultRule("late_fills", high_ms=10_000_000))
        world = (await scene.broker.submit(world, close_request(world), scene.now())).world
        after = await pass_updates(scene, world, 20)
        assert "ETH" in after.positions  # nothing is taken over before
        after = await pass_updates(scene, after, 25)
        assert after.positions == {}
        assert "no fill explains" in scene.broker.alarm()
        assert scene.broker.open_problem("BTC")

    run_in_context(work())


def test_after_a_gap_everything_is_read_before_anything_opens():
    async def work() -> None:
        scene = Scene(12)
        world = await open_position(scene)
        scene.reconciler.look_closely()
        before = scene.transport.gateway.requests
        await scene.broker.resolve(world)
        assert scene.transport.gateway.requests - before >= 4

    run_in_context(work())


def test_nothing_opens_after_a_start_before_orders_and_fills_were_read():
    async def work() -> None:
        scene = Scene(33)
        world = await open_position(scene)
        scene.start()
        scene.plan.add(FaultRule("http_500", on=("userFillsByTime",), times=6))
        for _ in range(3):
            with pytest.raises(TransientError):
                await scene.broker.resolve(world)
            assert "cannot be read" in scene.broker.open_problem("BTC")
        await pass_updates(scene, world, 10)
        assert not scene.broker.open_problem("BTC")

    run_in_context(work())


# openOrders fails or is empty by error; the account is reported empty ---------------------------------------------------


@pytest.mark.parametrize("kind", ["open_orders_fail", "open_orders_empty", "account_empty"])
def test_an_absent_report_is_unknown_and_never_flat(kind: str):
    async def work() -> None:
        scene = Scene(13)
        world = await open_position(scene)
        stops = scene.stops("ETH")
        scene.plan.add(FaultRule(kind, times=2))
        scene.reconciler.look_closely()
        world = await pass_updates(scene, world, 2)
        assert world.positions["ETH"].size == 1
        assert world.last_equity > 0
        assert not world.halts
        world = await pass_updates(scene, world, 6)
        assert scene.stops("ETH") == stops
        assert not scene.broker.alarm()

    run_in_context(work())


# order status: unknownOid although live ---------------------------------------------------------------------------------


def test_unknown_oid_is_no_proof_before_the_expiry():
    async def work() -> None:
        rules = (FaultRule("executed_no_answer", on=ORDER, times=1), FaultRule("unknown_oid", high_ms=5_000))
        scene = Scene(14, faults=(*rules, FaultRule("open_orders_empty"), FaultRule("late_fills", high_ms=4_000)))
        placed = await scene.broker.submit(await scene.world(), open_request(), scene.now())
        world = await pass_updates(scene, placed.world, 12)
        assert world.positions["ETH"].size == 1
        tally = Tally()
        check_orders(scene, tally)
        assert tally.is_clean

    run_in_context(work())


# stop refused; reduce-only auto-cancel ------------------------------------------------------------------------------------


def test_a_position_whose_stop_is_refused_three_times_is_closed_with_an_alarm():
    async def work() -> None:
        scene = Scene(15, faults=(FaultRule("stop_refused", after=0),))
        world = await scene.world()
        asset = scene.setup.universe["ETH"].asset
        limit = asset.round_price(world.marks["ETH"] * Decimal("1.001"), up=True)
        request = type(open_request())("limit", "ETH", 1, Decimal(1), 3, limit, proposal=proposal_of("k"))
        placed = await scene.broker.submit(world, request, scene.now())
        before = scene.clock.now()
        await pass_updates(scene, placed.world, 2)
        assert scene.position("ETH") == 0
        assert scene.clock.now() - before < 10_000
        assert scene.plan.counts["stop_refused"] == 3
        assert scene.alarms == ["no stop could be placed for the position in ETH, so it was closed"]

    run_in_context(work())


def test_a_stop_that_the_exchange_takes_away_is_placed_again():
    async def work() -> None:
        scene = Scene(16)
        world = await open_position(scene)
        (stop,) = [order for order in scene.exchange.account().open_orders.values() if order.is_trigger]
        scene.exchange.state.set_status(stop, "reduceOnlyCanceled")
        assert scene.stops("ETH") == []
        await pass_updates(scene, world, 5)
        assert scene.stops("ETH") == [Decimal(1)]

    run_in_context(work())


def test_stop_and_position_have_the_same_size_after_adding_and_reducing():
    async def work() -> None:
        scene = Scene(17)
        world = await open_position(scene, stop=Decimal(2400))
        world = (await scene.broker.submit(world, open_request(key="k2", stop=Decimal(2420)), scene.now())).world
        world = await pass_updates(scene, world, 2)
        assert (scene.stops("ETH"), world.positions["ETH"].stop) == ([Decimal(2)], Decimal(2420))
        reduce = type(open_request())("reduce", "ETH", -1, Decimal("0.5"), proposal=proposal_of("k3"))
        world = (await scene.broker.submit(world, reduce, scene.now())).world
        world = await pass_updates(scene, world, 2)
        assert (scene.stops("ETH"), world.positions["ETH"].stop) == ([Decimal("1.5")], Decimal(2420))

    run_in_context(work())


# leverage refused / done but the answer lost ------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "leverage"), [("leverage_refused", None), ("leverage_answer_lost", 3)])
def test_leverage_is_what_is_read_back_and_not_what_was_answered(kind: str, leverage: int | None):
    async def work() -> None:
        scene = Scene(18, faults=(FaultRule(kind, times=1),))
        placed = await scene.broker.submit(await scene.world(), open_request(), scene.now())
        assert bool(placed.refusal) == (leverage is None)
        assert order_count(scene) == (0 if leverage is None else 1)
        if leverage is not None:
            assert placed.world.leverage["ETH"] == leverage

    run_in_context(work())


# funding, liquidation, deleveraging, delisting, trading halt ----------------------------------------------------------------


def test_funding_is_taken_from_the_exchange():
    async def work() -> None:
        scene = Scene(19)
        world = await open_position(scene)
        await scene.clock.sleep(3_600 + 60)
        reconciled = await scene.broker.resolve(world)
        (funded,) = [receipt for receipt in reconciled.receipts if receipt.kind == "funded"]
        (payment,) = scene.exchange.account().fundings
        assert funded.facts["amount_usd"] == -payment.usdc
        again = await pass_updates(scene, reconciled.world, 6)
        assert again.funded_until == reconciled.world.funded_until

    run_in_context(work())


@pytest.mark.parametrize("kind", ["deleveraging", "liquidation"])
def test_what_the_exchange_does_to_a_position_is_accepted_and_told(kind: str):
    async def work() -> None:
        scene = Scene(20, faults=(FaultRule(kind, at_ms=30_000, duration_ms=60_000, coin="ETH"),))
        world = await open_position(scene)
        receipts = []
        for _ in range(40):
            await scene.clock.sleep(2.0)
            try:
                reconciled = await scene.broker.resolve(world)
            except TransientError:
                continue
            world = reconciled.world
            receipts += reconciled.receipts
        assert {symbol: one.size for symbol, one in world.positions.items()} == scene.exchange.truth().positions
        assert [receipt for receipt in receipts if receipt.kind in ("filled", "liquidated")]
        assert sum(scene.stops("ETH")) == abs(scene.position("ETH"))

    run_in_context(work())


def test_a_trading_halt_refuses_orders_and_keeps_the_stop():
    async def work() -> None:
        scene = Scene(21)
        world = await open_position(scene)
        scene.exchange.market("ETH").is_halted = True
        placed = await scene.broker.submit(world, close_request(world), scene.now())
        assert placed.refusal.startswith("Trading is halted")
        await pass_updates(scene, world, 3)
        assert scene.stops("ETH") == [Decimal(1)]

    run_in_context(work())


# nonces and agents --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nonce_refused", "agent_refused"])
def test_an_exchange_that_does_not_accept_the_key_or_its_nonces_stops_opens(kind: str):
    async def work() -> None:
        scene = Scene(22, faults=(FaultRule(kind, on=ORDER, times=1),))
        placed = await scene.broker.submit(await scene.world(), open_request(), scene.now())
        world = await pass_updates(scene, placed.world, 12)
        assert "does not accept this process" in scene.broker.alarm()
        assert (await scene.broker.submit(world, open_request(key="k2"), scene.now())).refusal
        assert order_count(scene) == 0

    run_in_context(work())


# prices ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["price_10x", "price_zero", "price_negative", "mark_far_from_oracle"])
def test_an_impossible_price_opens_nothing_and_exits_leave(kind: str):
    async def work() -> None:
        scene = Scene(23, faults=(FaultRule(kind, at_ms=20_000, duration_ms=600_000),))
        world = await open_position(scene)
        await scene.clock.sleep(25)
        placed = await scene.broker.submit(world, open_request("BTC", size="0.01", key="k2"), scene.now())
        assert placed.refusal
        placed = await scene.broker.submit(world, close_request(world), scene.now())
        await pass_updates(scene, placed.world, 3)
        assert scene.position("ETH") == 0

    run_in_context(work())


def test_no_open_leaves_on_a_mark_older_than_five_seconds():
    async def work() -> None:
        scene = Scene(24)
        world = await scene.world()
        slow = scene.signer.sign

        async def sign(request_id: str, payload: dict[str, Any]) -> Any:
            await scene.clock.sleep(5.5)  # the signer takes its time after the price was read
            return await slow(request_id, payload)

        scene.signer.sign = sign  # type: ignore[method-assign]
        await scene.reader.leverage("ETH")
        scene.exchange.account().leverage["ETH"] = (True, 3)
        placed = await scene.broker.submit(world, open_request(), scene.now())
        assert "s old" in placed.refusal
        assert scene.exchange.truth().actions == ()

    run_in_context(work())


@pytest.mark.parametrize("error_ms", [-86_400_000, -60_000, -1_500, 1_500, 60_000, 86_400_000])
def test_a_clock_that_is_more_than_a_second_off_opens_nothing_and_exits_leave(error_ms: int):
    async def work() -> None:
        scene = Scene(25)
        world = await open_position(scene)
        scene.clock_error_ms = error_ms
        scene.start()
        world = await pass_updates(scene, world, 1)
        placed = await scene.broker.submit(world, open_request("BTC", size="0.01", key="k2"), scene.now())
        assert "clock" in placed.refusal
        placed = await scene.broker.submit(world, close_request(world), scene.now())
        assert scene.position("ETH") == 0

    run_in_context(work())


@pytest.mark.parametrize("error_ms", [-800, 0, 800])
def test_a_clock_that_is_less_than_a_second_off_opens(error_ms: int):
    async def work() -> None:
        scene = Scene(26, clock_error_ms=error_ms)
        placed = await scene.broker.submit(await scene.world(), open_request(), scene.now())
        assert not placed.refusal

    run_in_context(work())


# outage, flapping, DNS, TLS, captive portal ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule",
    [
        FaultRule("outage", at_ms=10_000, duration_ms=37 * 60_000),
        FaultRule("flapping", at_ms=10_000, duration_ms=10 * 60_000),
        FaultRule("dns_failure", at_ms=10_000, duration_ms=120_000),
        FaultRule("tls_failure", at_ms=10_000, duration_ms=120_000),
        FaultRule("captive_portal", at_ms=10_000, duration_ms=120_000),
    ],
    ids=lambda rule: rule.kind,
)
def test_after_an_outage_nothing_opens_before_a_whole_pass_and_there_is_no_busy_loop(rule: FaultRule):
    async def work() -> None:
        scene = Scene(27, faults=(rule,))
        world = await open_position(scene)
        await scene.clock.sleep(12)
        before, start = scene.transport.gateway.requests, scene.clock.now()
        assert rule.duration_ms is not None
        is_refused = 0
        while scene.clock.now() - start < rule.duration_ms:
            await scene.clock.sleep(5.0)
            try:
                world = (await scene.broker.resolve(world)).world
            except TransientError:
                placed: Placed = await scene.broker.submit(
                    world, open_request("BTC", size="0.01", key="k2"), scene.now()
                )
                assert placed.refusal
                is_refused += 1
        seconds = (scene.clock.now() - start) / 1_000
        assert (scene.transport.gateway.requests - before) / seconds < 4
        assert is_refused
        tally = Tally()
        world = await settle_orders(scene, world, tally)
        check_orders(scene, tally)
        assert tally.is_clean
        assert not scene.broker.open_problem("BTC")

    run_in_context(work())


# testnet key on mainnet ----------------------------------------------------------------------------------------------------


def test_a_key_that_is_no_agent_of_the_account_on_this_network_is_named():
    async def work() -> None:
        scene = Scene(28)
        ready = scene.exchange.ready
        assert await agent_problem(scene.info, ready.agent_address, ready.master_address) == ""
        assert "itself" in await agent_problem(scene.info, ready.master_address, ready.master_address)
        assert "another network" in await agent_problem(scene.info, "0x" + "12" * 20, ready.master_address)

    run_in_context(work())


# Foreign orders -------------------------------------------------------------------------------------------------------------


def test_orders_of_others_are_named_and_never_touched():
    async def work() -> None:
        scene = Scene(29)
        world = await open_position(scene)
        wire = {"a": 1, "b": True, "p": "2000", "s": "1", "r": False, "t": {"limit": {"tif": "Gtc"}}}
        scene.exchange.exchange(
            {"action": {"type": "order", "orders": [wire], "grouping": "na"}, "nonce": scene.now() + 5, "signature": {}}
        )
        scene.reconciler.look_closely()
        world = await pass_updates(scene, world, 2)
        assert [order.price for order in scene.reconciler.foreign] == [Decimal(2000)]
        world = (await scene.broker.submit(world, close_request(world), scene.now())).world
        await pass_updates(scene, world, 6)
        assert len(scene.exchange.account().open_orders) == 1

    run_in_context(work())


def test_the_same_decision_of_the_same_tick_is_one_order():
    async def work() -> None:
        scene = Scene(30)
        world, at = await scene.world(), scene.now()
        first = await scene.broker.submit(world, open_request(), at)
        second = await scene.broker.submit(world, open_request(), at)
        assert (second.refusal, second.order_id) == ("", first.order_id)
        assert order_count(scene) == 1

    run_in_context(work())


def test_the_gate_refuses_opens_and_lets_exits_pass():
    async def work() -> None:
        scene = Scene(31)
        world = await open_position(scene)
        scene.gate_reason = "paused"
        assert (
            await scene.broker.submit(world, open_request("BTC", size="0.01", key="k2"), scene.now())
        ).refusal == "paused"
        await scene.broker.submit(world, close_request(world), scene.now())
        assert scene.position("ETH") == 0

    run_in_context(work())
