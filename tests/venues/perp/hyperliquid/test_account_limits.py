"""What the exchange grants an account: fee rates and a number of actions, both as the exchange counts them."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from pitboss.testing.hyperliquid.faults import FaultRule
from pitboss.venues.perp.hyperliquid.action_budget import ACTION_RESERVE, READ_MS, TRICKLE_MS, ActionBudget
from pitboss.venues.perp.hyperliquid.live_account import with_account_fees
from pitboss.venues.perp.portfolio import portfolio
from pitboss.venues.perp.tools.get_portfolio import _account as account_facts  # pyright: ignore[reportPrivateUsage]
from venues.perp.hyperliquid.live_scene import Scene, close_request, open_request, run_in_context
from venues.perp.hyperliquid.test_fault_table import open_position, pass_updates


def test_the_actions_left_are_read_from_the_exchange_and_counted_in_between():
    async def work() -> None:
        scene = Scene(60)
        account = scene.exchange.account()
        account.requests_used = 1_000
        world = await scene.world()
        assert scene.broker.actions_left == 9_000
        await scene.broker.submit(world, open_request(), scene.now())
        assert scene.broker.actions_left == 9_000 - 1 - 2  # the leverage, and the entry with its stop
        await scene.clock.sleep(READ_MS / 1_000)
        await pass_updates(scene, world, 2)
        assert scene.broker.actions_left == 10_000 + int(account.volume) - account.requests_used

    run_in_context(work())


def test_an_account_with_few_actions_left_opens_nothing_and_still_closes():
    async def work() -> None:
        scene = Scene(61)
        world = await open_position(scene)
        scene.exchange.account().requests_used = 10_000 + int(scene.exchange.account().volume) - ACTION_RESERVE + 1
        scene.start()
        world = await pass_updates(scene, world, 2)
        placed = await scene.broker.submit(world, open_request("BTC", size="0.01", key="k2"), scene.now())
        assert "kept for exits" in placed.refusal
        await scene.broker.submit(world, close_request(world), scene.now())
        assert scene.position("ETH") == 0

    run_in_context(work())


def test_without_actions_left_stops_are_sent_every_ten_seconds_and_cancels_at_once():
    async def work() -> None:
        scene = Scene(62)
        world = await open_position(scene)
        account = scene.exchange.account()
        account.requests_cap_base = account.requests_used - int(account.volume)
        account.last_trickle = scene.exchange.now
        (stop,) = [order for order in account.open_orders.values() if order.is_trigger]
        scene.exchange.state.set_status(stop, "reduceOnlyCanceled")
        before, start = scene.transport.sent["order"], scene.clock.now()
        while not scene.stops("ETH") and scene.position("ETH"):
            assert scene.clock.now() - start < 40_000
            world = await pass_updates(scene, world, 1, 1.0)
        assert scene.transport.sent["order"] - before <= 6
        assert "kept for exits" in scene.broker.open_problem("BTC")

    run_in_context(work())


def test_an_action_budget_that_is_used_up_delays_all_but_cancels():
    budget = ActionBudget()
    budget.on_read(1, 1_000)
    assert budget.open_problem()
    budget.spend("reduce", 1, 2_000)
    assert (budget.wait_ms("reduce", 1, 3_000), budget.wait_ms("cancel", 5, 3_000)) == (TRICKLE_MS - 1_000, 0)
    budget.spend("cancel", 5, 4_000)
    assert budget.wait_ms("reduce", 1, 2_000 + TRICKLE_MS) == 0
    budget.on_read(5_000, 5_000)
    assert (budget.wait_ms("reduce", 1, 5_000), budget.open_problem()) == (0, "")
    assert [budget.is_read_due(at) for at in (5_000, 5_000 + READ_MS, -READ_MS)] == [False, True, True]
    budget.on_refusal(6_000)
    assert (budget.left, budget.is_read_due(6_000)) == (0, True)


def test_a_failure_to_read_the_limits_keeps_them_and_blocks_nothing():
    async def work() -> None:
        scene = Scene(63, faults=(FaultRule("http_500", on=("userRateLimit",)),))
        world = await scene.world()
        assert scene.broker.actions_left == 10_000
        assert not (await scene.broker.submit(world, open_request(), scene.now())).refusal
        assert scene.transport.sent["userRateLimit"] == 2  # one request and its repetition; the next after a minute

    run_in_context(work())


@pytest.mark.parametrize(("volume", "rates"), [(0, ("1.5", "4.5")), (6_000_000, ("1.2", "4"))])
def test_fee_rates_are_those_of_the_account_and_are_shown(volume: int, rates: tuple[str, str]):
    async def work() -> None:
        scene = Scene(64)
        scene.exchange.account().volume_by_day[scene.exchange.now // 86_400_000 - 1] = Decimal(volume)
        terms = await with_account_fees(scene.line, replace(scene.setup.terms, taker_bps=Decimal(9)))
        assert (terms.maker_bps, terms.taker_bps) == tuple(map(Decimal, rates))
        facts: dict[str, Any] = account_facts(portfolio(await scene.world(), terms))
        assert (facts["maker_fee"], facts["taker_fee"]) == tuple(f"{rate} bps" for rate in rates)

    run_in_context(work())
