"""The host of deployments: it claims those without a process, carries out commands, and hands over to the next host.

The deployments are of the perp venue on paper, on the data of a fake exchange over real sockets.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pitboss.bootstrap.machine import SystemClock
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core import codec
from pitboss.core.deployment import OpenCommand
from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS
from pitboss.jobs.heartbeat import HeartbeatSettings
from pitboss.jobs.live_host import HostListener, HostLock, HostSettings, LiveHost
from pitboss.live.control import Control
from pitboss.runs.deployment_caps import change_caps
from pitboss.runs.deployments import command, deploy, deployment_details
from pitboss.runs.live_deployment import DeployRequest
from pitboss.runs.stored import journal_of
from pitboss.runs.venues import venue_named
from pitboss.skill.load import check_text
from pitboss.store.deployments import Deployment
from pitboss.store.retry import Unreachable
from pitboss.testing.hyperliquid.exchange import FakeExchange
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.server import serving
from pitboss.testing.hyperliquid.universe import LISTED

LIMIT_S = 120
PERP = venue_named("perp")
TEXT = (
    PERP.examples()["breakout-hybrid.yaml"]
    .replace("[BTC, ETH, SOL]", "[BTC]")
    .replace("model: standin/analyst", "model: policy/hold")
)
SKILL = check_text(TEXT, ".yaml", PERP.skill_type()).skill


@dataclass
class HostScene:
    """A workspace with the fake exchange, on which tests start and stop hosts."""

    workspace: Workspace
    ended: list[tuple[str, str]] = field(default_factory=list)

    def deploy(self) -> Deployment:
        assert SKILL is not None
        return deploy(self.workspace, DeployRequest(skill=SKILL, mode="paper"))

    def state(self, deployment: Deployment) -> str:
        return self.workspace.deployments.get(deployment.id).state

    @asynccontextmanager
    async def hosting(self, **settings: Any) -> AsyncIterator[LiveHost]:
        terms = HostSettings(heartbeat=HeartbeatSettings(0.2, 2.0, 5.0), **settings)
        listener = HostListener(ended=lambda each, outcome: self.ended.append((each.id, outcome)))
        host = LiveHost(self.workspace, terms, listener)
        task = asyncio.create_task(host.run())
        try:
            yield host
        finally:
            host.stop()
            await task

    async def command(self, deployment: Deployment, name: Any, reason: str = "") -> Any:
        return await command(self.workspace, deployment.id, name, reason, "kim", wait_s=60)

    async def attended(self, host: LiveHost, *deployments: Deployment) -> None:
        await wait_until(lambda: all(each.id in host.hosted for each in deployments))


async def wait_until(holds: Callable[[], object]) -> None:
    """Wait until something holds; the story as a whole has a time limit."""
    while not holds():  # noqa: ASYNC110 - the other side is a database
        await asyncio.sleep(0.01)


def settings_with(home: Path, url: str) -> Any:
    home.mkdir(exist_ok=True)
    (home / "settings.toml").write_text(f'hyperliquid_url = "{url}"\n', "utf-8")
    return load_settings(home)


def run_story(home: Path, tell: Callable[[HostScene], Awaitable[None]]) -> None:
    async def main() -> None:
        now = SystemClock().now
        perps = tuple(perp for perp in LISTED if perp.name == "BTC")
        exchange = FakeExchange(1, perps, now(), VenueRules(step_ms=2_000, history_ms=HOUR_MS, verify_every=0))
        async with asyncio.timeout(LIMIT_S), serving(exchange, now=now) as server:
            with open_workspace(settings_with(home, server.url)) as workspace:
                await tell(HostScene(workspace))

    asyncio.run(main())


def test_commands_reach_a_deployment_and_its_records_tell_them(tmp_path: Path) -> None:
    async def tell(scene: HostScene) -> None:
        deployment = scene.deploy()
        async with scene.hosting() as host:
            await scene.attended(host, deployment)
            for name, state in (
                ("pause", "paused"),
                ("snapshot", "paused"),
                ("flatten", "paused"),
                ("resume", "running"),
            ):
                sent = await scene.command(deployment, name, f"because of {name}")
                assert (sent.acked_at is not None, sent.state) == (True, state)
            assert (await scene.command(deployment, "stop")).state == "stopped"
        run = scene.workspace.runs.get(deployment.run_id)
        receipts = [
            receipt["facts"]["command"]
            for record in journal_of(scene.workspace, run).records()
            for receipt in codec.loads(record.covered)["receipts"]
            if receipt["kind"] == "command"
        ]
        assert receipts == ["pause", "snapshot", "flatten", "resume", "stop"]
        assert run.status == "complete"
        assert scene.ended == [(deployment.id, "stopped")]
        with pytest.raises(UserError, match="is stopped"):
            await scene.command(deployment, "resume", "again")
        document = deployment_details(scene.workspace, scene.workspace.deployments.get(deployment.id))
        assert [each["command"] for each in document["commands"]] == receipts[::-1]

    run_story(tmp_path, tell)


def test_deployments_share_one_feed_go_on_at_another_host_and_a_kill_ends_one_at_once(tmp_path: Path) -> None:
    async def tell(scene: HostScene) -> None:
        first, second = scene.deploy(), scene.deploy()
        async with scene.hosting() as host:
            await scene.attended(host, first, second)
            await scene.command(second, "pause", "not today")
        assert sorted(scene.ended) == sorted([(first.id, "released"), (second.id, "released")])
        assert [scene.state(each) for each in (first, second)] == ["running", "paused"]
        async with scene.hosting() as host:
            await scene.attended(host, first, second)
            assert (await scene.command(first, "kill")).state == "stopped"
            await wait_until(lambda: first.id not in host.hosted)
            assert second.id in host.hosted
        assert (first.id, "stopped") in scene.ended
        assert [scene.state(each) for each in (first, second)] == ["stopped", "paused"]

    run_story(tmp_path, tell)


def test_a_deployment_whose_own_host_met_the_lock_is_taken_by_the_idle_host_that_had_it(tmp_path: Path) -> None:
    class DeployingLock(HostLock):
        """At the moment before it is released someone deploys, and the host that this starts exits at the lock."""

        def release(self) -> None:
            if not deployments:
                deployments.append(scenes[0].deploy())
                assert not HostLock(scenes[0].workspace.home).acquire()
            super().release()

    deployments, scenes = list[Deployment](), list[HostScene]()

    async def tell(scene: HostScene) -> None:
        scenes.append(scene)
        lock = DeployingLock(scene.workspace.home)
        assert lock.acquire()
        host = LiveHost(scene.workspace, HostSettings(idle_exit_s=0.0), lock=lock)
        task = asyncio.create_task(host.run())
        await wait_until(lambda: host.hosted or task.done())
        assert list(host.hosted) == [deployments[0].id]
        other = HostLock(scene.workspace.home)
        assert not other.acquire()
        await scene.command(deployments[0], "stop")
        await task
        assert other.acquire()
        other.release()

    run_story(tmp_path, tell)


def test_a_kill_that_cannot_be_stored_at_first_ends_the_deployment_as_soon_as_it_can() -> None:
    failures, cancelled = ["first"], list[bool]()

    def acknowledge(command: OpenCommand, note: str) -> None:
        if failures:
            raise Unreachable(failures.pop())

    deployments = SimpleNamespace(acknowledge=acknowledge)
    host = LiveHost(SimpleNamespace(deployments=deployments), HostSettings())  # type: ignore[arg-type]
    run = SimpleNamespace(control=Control())
    hosted: Any = SimpleNamespace(run=run, task=SimpleNamespace(cancel=lambda: cancelled.append(True)))
    kill = OpenCommand("c1", "d1", 1, "kill", "", "kim")
    host.metrics.observe_command = lambda sent: None  # type: ignore[method-assign]
    with pytest.raises(Unreachable):
        host._kill(hosted, kill)
    assert run.control.open_refusal() == "kill was commanded"
    host._kill(hosted, kill)
    assert (run.control.stopped, cancelled) == (True, [True])


def test_lower_caps_are_taken_over_by_the_process_and_told_by_its_records(tmp_path: Path) -> None:
    async def tell(scene: HostScene) -> None:
        deployment = scene.deploy()
        async with scene.hosting() as host:
            await scene.attended(host, deployment)
            before = host.hosted[deployment.id].run
            await wait_until(lambda: before.status())  # its account is open
            change_caps(scene.workspace, deployment, ["risk.max_leverage=1"], "news", "kim", lambda raised: None)
            await wait_until(before.open_refusal)
            assert before.open_refusal() == "the caps have changed"

            def told() -> list[Any]:
                records = journal_of(scene.workspace, scene.workspace.runs.get(deployment.run_id)).records()
                receipts = [each for record in records for each in codec.loads(record.covered)["receipts"]]
                return [each["facts"] for each in receipts if each["kind"] == "caps"]

            await wait_until(told)
            (facts,) = told()
            assert (facts["by"], facts["reason"], codec.loads(facts["caps"])["max_leverage"]) == ("kim", "news", 1)
            after = host.hosted[deployment.id].run
            assert (after is before, after.open_refusal(), scene.state(deployment)) == (False, "", "running")

    run_story(tmp_path, tell)


def test_of_two_hosts_one_works_on_a_deployment(tmp_path: Path) -> None:
    async def tell(scene: HostScene) -> None:
        deployments = [scene.deploy() for _ in range(4)]
        async with scene.hosting() as one, scene.hosting() as other:
            await wait_until(lambda: len(one.hosted) + len(other.hosted) == len(deployments))
            await asyncio.sleep(0.5)
            assert not set(one.hosted) & set(other.hosted)
            assert set(one.hosted) | set(other.hosted) == {each.id for each in deployments}

    run_story(tmp_path, tell)


def test_a_fault_halts_a_deployment_with_its_text_until_a_person_resumes_it(tmp_path: Path) -> None:
    async def tell(scene: HostScene) -> None:
        deployment = scene.deploy()
        listed = scene.workspace.deployments
        listed.pause(deployment.id, "test", "")
        listed.halt(deployment.id, "reconcile", "sizes that no fill explains")
        async with scene.hosting() as host:
            await scene.attended(host, deployment)
            assert scene.state(deployment) == "halted"
            with pytest.raises(UserError, match="only with a reason"):
                await scene.command(deployment, "resume")
            sent = await scene.command(deployment, "resume", "positions compared by hand")
            assert sent.state == "running"

    run_story(tmp_path, tell)


def test_a_deployment_that_cannot_be_opened_is_halted_with_the_cause_and_taken_again_after_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def tell(scene: HostScene) -> None:
        deployment = scene.deploy()
        with monkeypatch.context() as patch:
            patch.setattr(type(PERP), "open_live", lambda venue, live: raise_user_error())
            async with scene.hosting() as host:
                await wait_until(lambda: scene.ended)
                halted = scene.workspace.deployments.get(deployment.id)
                assert (halted.state, halted.code, halted.reason) == ("halted", "fault", "the signer is another one")
                await asyncio.sleep(1.5)
                assert not host.hosted
                assert (await scene.command(deployment, "resume", "the right one runs now")).state == "running"
        async with scene.hosting() as host:
            await scene.attended(host, deployment)

    run_story(tmp_path, tell)


def raise_user_error() -> Any:
    raise UserError("the signer is another one")


def test_a_command_without_a_process_is_applied_at_once_and_flatten_waits_for_one(tmp_path: Path) -> None:
    async def tell(scene: HostScene) -> None:
        deployment = scene.deploy()
        paused = await scene.command(deployment, "pause", "before it begins")
        assert (paused.state, paused.acked_at is not None) == ("paused", True)
        assert (await scene.command(deployment, "flatten")).acked_at is None
        async with scene.hosting() as host:
            await scene.attended(host, deployment)
            await wait_until(lambda: not scene.workspace.deployments.open_commands([deployment.id]))
        newest = scene.workspace.deployments.commands(deployment.id)[0]
        assert (newest.command, newest.state, newest.note) == ("flatten", "paused", "nothing was open")
        assert (await scene.command(deployment, "stop")).state == "stopped"
        assert scene.workspace.runs.get(deployment.run_id).status == "cancelled"

    run_story(tmp_path, tell)


def test_commands_are_obeyed_while_the_exchange_does_not_answer(tmp_path: Path) -> None:
    async def tell(scene: HostScene) -> None:
        with open_workspace(settings_with(tmp_path / "away", "http://127.0.0.1:9")) as workspace:
            away = HostScene(workspace)
            deployment = away.deploy()
            async with away.hosting() as host:
                await away.attended(host, deployment)
                assert (await away.command(deployment, "pause", "nothing answers")).state == "paused"
                assert (await away.command(deployment, "stop")).state == "stopped"
                await wait_until(lambda: away.ended)
            assert away.ended == [(deployment.id, "stopped")]

    run_story(tmp_path, tell)
