"""An order that would open does not rest at the exchange while nothing may open, or while nothing would look after its fill."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pitboss.core.deployment import Command, OpenCommand
from pitboss.core.errors import InvariantError
from pitboss.core.money import ZERO
from pitboss.runs.deployment_run import DeploymentRun
from venues.perp.hyperliquid.guarded_scene import GuardedScene, guarded_scene

LIMIT_S, LOOK_S = 60, 0.1
KEPT = {("ETH", "stop")}


class DeploymentProcess:
    """A process that works on the deployment, which an earlier one has left with a position and an order that rests."""

    def __init__(self, scene: GuardedScene) -> None:
        self.scene = scene
        self.begun = asyncio.Event()
        epoch = scene.workspace.runs.claim(scene.deployment.run_id, into="running")
        self.run = DeploymentRun(scene.workspace, scene.stored(), epoch)
        self.work = asyncio.create_task(self.run.work())

    async def is_begun(self) -> None:
        while "ticks" not in self.run.status():  # noqa: ASYNC110 - it sends no event
            await asyncio.sleep(LOOK_S)

    def send(self, name: Command) -> OpenCommand:
        sent = self.scene.workspace.deployments.send(self.scene.deployment.id, name, "", "kim")
        return OpenCommand(sent.id, self.scene.deployment.id, sent.number, name, "", "kim")

    async def withdrawn(self) -> None:
        """Wait until nothing that opens rests."""
        while self.scene.open_orders() != KEPT:  # noqa: ASYNC110 - of the exchange
            await asyncio.sleep(LOOK_S)


async def halt(process: DeploymentProcess) -> None:
    process.run.control.halt("reject_rate", "the venue refused 5 of the last 10 orders")
    await process.withdrawn()
    assert not process.work.done()


async def stop(process: DeploymentProcess) -> None:
    process.run.control.deliver(process.send("stop"))
    assert await process.work == "stopped"


async def kill(process: DeploymentProcess) -> None:
    command = process.send("kill")
    process.run.control.deliver(command)
    process.scene.workspace.deployments.acknowledge(command)
    process.run.control.state = "stopped"
    process.work.cancel()
    assert await process.work == "stopped"


async def fault(process: DeploymentProcess) -> None:
    async def wait(inner: Any, wait_ms: int) -> None:
        raise InvariantError("the world contradicts itself")

    process.run.control.wait = wait  # type: ignore[method-assign]
    assert await process.work == "halted"
    assert process.scene.stored().code == "fault"


@pytest.mark.parametrize("end", [halt, stop, kill, fault])
def test_what_halts_or_ends_a_deployment_withdraws_its_orders_that_open(
    tmp_path: Path, end: Callable[[DeploymentProcess], Awaitable[None]]
) -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), guarded_scene(tmp_path) as scene:
            await scene.trade()
            process = DeploymentProcess(scene)
            try:
                await process.is_begun()
                assert scene.open_orders() == {("BTC", "limit"), *KEPT}
                await end(process)
            finally:
                process.work.cancel()
                await asyncio.gather(process.work, return_exceptions=True)
            assert scene.open_orders() == KEPT
            assert not [order for order in scene.store.open_orders() if order.opens]
            assert scene.position("ETH") > ZERO

    asyncio.run(main())


def test_a_pause_leaves_orders_that_rest(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), guarded_scene(tmp_path) as scene:
            await scene.trade()
            process = DeploymentProcess(scene)
            try:
                await process.is_begun()
                process.run.control.deliver(process.send("pause"))
                while scene.stored().state != "paused":  # noqa: ASYNC110 - of the database
                    await asyncio.sleep(LOOK_S)
                await asyncio.sleep(2)
            finally:
                process.work.cancel()
                await asyncio.gather(process.work, return_exceptions=True)
            assert scene.open_orders() == {("BTC", "limit"), *KEPT}

    asyncio.run(main())
