"""Alarms of a live deployment: what raises one, who is notified, and no opens after a minute without acknowledgement."""

import asyncio
from pathlib import Path

from pitboss.core.instant import MINUTE_MS
from pitboss.core.snapshot import seal
from pitboss.jobs.live_host import HostSettings, LiveHost
from pitboss.live.board import Entry
from pitboss.runs.deployment_run import DeploymentRun
from pitboss.runs.deployments import command, deployment_details
from pitboss.runs.notifications import of_entry
from pitboss.store.deployment_alarms import newest_alarm, raise_alarm
from pitboss.store.deployments import Deployment
from venues.perp.hyperliquid.guarded_scene import GuardedScene, run_in_scene

AT = 1_790_000_000_000


def test_an_alarm_that_a_person_acknowledges_in_time_halts_nothing_and_another_does(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        database, deployment_id = scene.workspace.database, scene.deployment.id
        host = LiveHost(scene.workspace, HostSettings())
        epoch = scene.workspace.runs.claim(scene.deployment.run_id, into="running")
        host.begin(scene.deployment, epoch)
        hosted = host.hosted[deployment_id]
        hosted.task.cancel()
        await asyncio.gather(hosted.task, return_exceptions=True)
        host.hosted[deployment_id] = hosted  # its work is not part of this
        clock, database.clock = database.clock, lambda: AT
        raise_alarm(database, deployment_id, "the first")
        database.clock = lambda: AT + MINUTE_MS
        raise_alarm(database, deployment_id, "a second one does not give more time")
        host.deliver()
        assert scene.stored().state == "running"
        await command(scene.workspace, deployment_id, "acknowledge", "seen", "kim", wait_s=0)
        alarm = newest_alarm(database, deployment_id)
        assert alarm is not None
        assert (alarm.text, alarm.raised_at, alarm.read_by) == ("the first", AT, "kim")
        database.clock = lambda: AT + 60 * MINUTE_MS
        host.deliver()
        assert scene.stored().state == "running"

        raise_alarm(database, deployment_id, "the third")
        database.clock = lambda: AT + 61 * MINUTE_MS + 1
        host.deliver()
        halted = scene.stored()
        assert (halted.state, halted.code) == ("halted", "unread_alarm")
        assert halted.reason == "nobody has acknowledged within a minute: the third"
        await command(scene.workspace, deployment_id, "acknowledge", "", "kim", wait_s=0)
        assert scene.stored().state == "halted"  # it is read, and only `resume` lifts the halt
        shown = deployment_details(scene.workspace, scene.stored())["alarm"]
        assert (shown["text"], shown["read_by"]) == ("the third", "kim")
        database.clock = clock

    run_in_scene(tmp_path, story)


def test_a_liquidation_raises_an_alarm_that_is_told_and_only_a_live_deployment_stores_it(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        entries: list[Entry] = []

        def process(deployment: Deployment) -> DeploymentRun:
            return DeploymentRun(scene.workspace, deployment, 1, lambda deployment, entry: entries.append(entry))

        receipt = {"kind": "liquidated", "at": AT, "symbol": "", "order_id": "", "facts": {}}
        record = seal(0, "span", AT, "", {"flags": {}, "receipts": [receipt], "equity": ()}, {})
        paper = scene.workspace.deployments.create("a" * 12, "trend", 1, "perp", "paper")
        for deployment in (paper, scene.deployment):
            one = process(deployment)
            one._entered(one.board.add(record))  # pyright: ignore[reportPrivateUsage]
        assert newest_alarm(scene.workspace.database, paper.id) is None
        alarm = newest_alarm(scene.workspace.database, scene.deployment.id)
        assert alarm is not None
        assert "liquidated" in alarm.text
        told = [notice for entry in entries[2:] for notice in of_entry(scene.deployment, entry, AT)]
        assert [notice.event for notice in told] == ["fills", "alarms"]
        assert f"pitboss deployments acknowledge {scene.deployment.id}" in told[1].text

    run_in_scene(tmp_path, story)
