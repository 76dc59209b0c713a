"""A live deployment opens nothing while its host, its signer and the watchdog are of different builds, until a person resumes it."""

import asyncio
from pathlib import Path

import pytest

from pitboss.build import build
from pitboss.core.deployment import OpenCommand
from pitboss.runs.build_check import BUILD_MISMATCH
from pitboss.runs.deployment_run import DeploymentRun
from pitboss.runs.deployments import deployment_details
from pitboss.store.watchdog_beats import WatchdogBeat, write_beat
from venues.perp.hyperliquid.guarded_scene import GuardedScene, run_in_scene
from venues.perp.hyperliquid.live_scene import close_request, open_request

OLD = "0.1.0+0123456789ab"


def claim_deployment(scene: GuardedScene) -> DeploymentRun:
    """A process of this build takes the deployment up."""
    epoch = scene.workspace.runs.claim(scene.deployment.run_id, into="running")
    return DeploymentRun(scene.workspace, scene.stored(), epoch)


def resume(scene: GuardedScene, process: DeploymentRun) -> None:
    sent = scene.workspace.deployments.send(scene.deployment.id, "resume", "all processes were replaced", "kim")
    command = OpenCommand(sent.id, scene.deployment.id, sent.number, "resume", sent.reason, "kim")
    process.control.deliver(command)
    process.control.acknowledge(command)
    assert scene.stored().state == "running"


def halt_of(scene: GuardedScene) -> tuple[str, str]:
    stored = scene.stored()
    return stored.state, stored.code


def test_a_signer_of_another_build_opens_nothing_and_a_person_resumes_after_its_upgrade(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        process = claim_deployment(scene)
        broker = await scene.broker(process)
        world = (await broker.resolve(None)).world
        scene.signer.build = OLD
        for attempt in ("first", "resumed_beside_the_old_signer"):
            placed = await broker.submit(world, open_request(size="0.5", key=attempt), scene.workspace.now())
            assert placed.refusal == f"the signer is build {OLD}, and the host is {build()}"
            assert halt_of(scene) == ("halted", BUILD_MISMATCH)
            assert scene.exchange.account().orders == []
            restarted = DeploymentRun(scene.workspace, scene.stored(), process.epoch)
            assert restarted.open_refusal() == "the deployment is halted"
            if attempt == "first":
                resume(scene, process)
        assert deployment_details(scene.workspace, scene.stored())["builds"] == {
            "deployed_by": build(),
            "host": build(),
            "signer": OLD,
        }
        scene.signer.build = build()
        resume(scene, process)
        placed = await broker.submit(world, open_request(size="0.5", key="upgraded"), scene.workspace.now())
        assert (placed.refusal, halt_of(scene)) == ("", ("running", ""))
        assert scene.position("ETH")
        scene.signer.build = OLD  # what reduces risk is signed and sent all the same
        placed = await broker.submit(placed.world, close_request(placed.world), scene.workspace.now())
        assert (placed.refusal, scene.position("ETH")) == ("", 0)

    run_in_scene(tmp_path, story)


def test_a_host_that_takes_a_deployment_up_beside_an_old_signer_halts_it(tmp_path: Path) -> None:
    async def story(scene: GuardedScene) -> None:
        scene.signer.build = OLD
        halted = asyncio.Event()
        epoch = scene.workspace.runs.claim(scene.deployment.run_id, into="running")
        process = DeploymentRun(scene.workspace, scene.deployment, epoch, on_state=lambda deployment: halted.set())
        work = asyncio.create_task(process.work())
        async with asyncio.timeout(30):
            await halted.wait()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        assert halt_of(scene) == ("halted", BUILD_MISMATCH)
        assert scene.exchange.account().orders == []

    run_in_scene(tmp_path, story)


@pytest.mark.parametrize(
    ("of_build", "watched", "age_ms", "halts"),
    [(OLD, True, 15_000, True), (OLD, True, 15_001, False), (OLD, False, 0, False), ("", True, 0, True), (None, True, 0, False)],
)  # fmt: skip
def test_a_watchdog_of_another_build_counts_while_it_is_heard(
    tmp_path: Path, of_build: str | None, watched: bool, age_ms: int, halts: bool
) -> None:
    async def story(scene: GuardedScene) -> None:
        process, database = claim_deployment(scene), scene.workspace.database
        names = (scene.deployment.id,) if watched else ()
        clock = database.clock
        assert clock is not None
        database.clock = lambda: 1_000_000_000_000
        write_beat(database, WatchdogBeat("w", names, 15_000, build=build() if of_build is None else of_build))
        database.clock = lambda: 1_000_000_000_000 + age_ms
        assert bool(process.open_refusal()) == halts
        assert halt_of(scene) == (("halted", BUILD_MISMATCH) if halts else ("running", ""))
        database.clock = clock

    run_in_scene(tmp_path, story)
