"""What is left on an account when a process begins or ends: orders, positions, payments of the time between."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from pitboss.bootstrap.trading_accounts import add_account
from pitboss.core.errors import UserError
from pitboss.runs.deployments import deploy
from pitboss.runs.live_deployment import DeployRequest
from venues.perp.hyperliquid.guarded_scene import guarded_scene
from venues.perp.hyperliquid.live_scene import Scene, open_request, run_in_context


def sent_actions(scene: Scene) -> list[str]:
    return [each.action for each in scene.exchange.state.received]


def test_a_restart_leaves_the_stop_and_the_take_profit_of_a_position_alone():
    async def work() -> None:
        scene = Scene(40)
        world = (
            await scene.broker.submit(
                await scene.world(), open_request(stop=Decimal(2400), take_profit=Decimal(9000)), scene.now()
            )
        ).world
        for _ in range(4):
            await scene.clock.sleep(30)
            world = (await scene.broker.resolve(world)).world
        before, orders = sent_actions(scene), set(scene.exchange.account().open_orders)
        assert len(orders) == 2
        scene.start()
        await scene.broker.resolve(None)
        await scene.broker.resolve(world)
        assert sent_actions(scene) == before
        assert set(scene.exchange.account().open_orders) == orders

    run_in_context(work())


def test_the_funding_of_a_long_absence_is_read_whole():
    async def work() -> None:
        scene = Scene(41)
        world = await scene.world()
        for symbol, size in (("BTC", "0.01"), ("ETH", "0.1"), ("SOL", "2")):
            placed = await scene.broker.submit(
                world, open_request(symbol, size=size, key=symbol, stop=Decimal(1)), scene.now()
            )
            assert not placed.refusal, placed.refusal
            world = placed.world
        receipts = []
        await scene.clock.sleep(8 * 24 * 3600)
        scene.start()
        for _ in range(20):
            reconciled = await scene.broker.resolve(world)
            world = reconciled.world
            receipts += [r for r in reconciled.receipts if r.kind in ("funded", "settled")]
            await scene.clock.sleep(30)
        paid = scene.exchange.account().fundings
        assert len(paid) > 500
        assert len(receipts) == len(paid)
        assert sum(r.facts["amount_usd"] for r in receipts) == -sum(p.usdc for p in paid)

    run_in_context(work())


def test_an_account_with_two_names_has_one_deployment_that_sends_orders(tmp_path: Path) -> None:
    async def main() -> None:
        async with guarded_scene(tmp_path) as scene:
            other = scene.account.model_copy(update={"address": scene.account.address.upper().replace("0X", "0x")})
            add_account(tmp_path, "second", other)
            add_account(tmp_path, "elsewhere", other.model_copy(update={"network": "mainnet"}))
            skill = scene.live().skill
            request = DeployRequest(skill=skill, mode="live", account="second", model="policy/momentum")
            with pytest.raises(UserError, match=f"{scene.deployment.id} already trades on account 'second'"):
                deploy(scene.workspace, request)
            assert deploy(scene.workspace, replace(request, mode="shadow")).account == "second"
            scene.workspace.deployments.stop(scene.deployment.id, "stop", "")
            assert deploy(scene.workspace, request).account == "second"
            assert deploy(scene.workspace, replace(request, account="elsewhere")).account == "elsewhere"

    asyncio.run(main())
