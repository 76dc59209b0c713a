"""A new agent of the account raises an alarm, once; the agents that were there before raise none."""

import asyncio
from pathlib import Path

import pytest

from pitboss.core.errors import TransientError
from pitboss.runs.deployment_run import DeploymentRun
from pitboss.store.deployment_alarms import newest_alarm
from pitboss.testing.hyperliquid.faults import FaultRule
from pitboss.venues.perp.hyperliquid import agent_monitor
from pitboss.venues.perp.hyperliquid.agent_monitor import AgentMonitor
from venues.perp.hyperliquid.guarded_scene import guarded_scene
from venues.perp.hyperliquid.live_scene import Scene

STRANGER = "0x" + "57" * 20
LIMIT_S, LOOK_S = 60, 0.1


def test_a_new_agent_is_told_once_and_a_failure_to_read_tells_nothing():
    async def work() -> None:
        scene = Scene(50)
        ready = scene.exchange.ready
        monitor = AgentMonitor(scene.reader, scene.alarms.append)
        await monitor.look()
        scene.exchange.approve_agent(ready.master_address, STRANGER, "stranger")
        scene.plan.add(FaultRule("http_500", times=2))
        with pytest.raises(TransientError):
            await monitor.look()
        assert scene.alarms == []
        for _ in range(2):
            await monitor.look()
        scene.exchange.revoke_agent(ready.master_address, STRANGER)
        await monitor.look()
        assert scene.alarms == [f"the account has a new agent, {STRANGER}, which can trade it"]

    asyncio.run(work())


def test_a_live_deployment_stores_the_alarm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with asyncio.timeout(LIMIT_S), guarded_scene(tmp_path) as scene:
            epoch = scene.workspace.runs.claim(scene.deployment.run_id, into="running")
            process = DeploymentRun(scene.workspace, scene.deployment, epoch)
            work = asyncio.create_task(process.work())
            try:
                while "ticks" not in process.status():  # noqa: ASYNC110 - it sends no event
                    await asyncio.sleep(LOOK_S)
                scene.exchange.approve_agent(scene.account.address, STRANGER, "stranger")
                while (alarm := newest_alarm(scene.workspace.database, scene.deployment.id)) is None:  # noqa: ASYNC110 - stored
                    await asyncio.sleep(LOOK_S)
            finally:
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
            assert STRANGER in alarm.text

    monkeypatch.setattr(agent_monitor, "LOOK_S", LOOK_S)
    asyncio.run(main())
