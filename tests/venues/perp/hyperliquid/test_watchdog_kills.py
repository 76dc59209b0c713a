"""Hosts that are killed by SIGKILL while orders rest: the watchdog halts, cancels, keeps stops or closes, every time."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from forked_process import ForkedProcess
from pitboss.core.instant import HOUR_MS
from pitboss.jobs.watchdog import Watchdog, WatchdogSettings
from pitboss.store.queue import HEARTBEAT_MS
from pitboss.testing.hyperliquid.rules import VenueRules
from saved_figures import save_figures
from venues.perp.hyperliquid.guarded_scene import GuardedScene, guarded_scene
from venues.perp.hyperliquid.killed_scene import deployed_skill

PROCESS = Path(__file__).with_name("resting_process.py")
KILLS, AT_ONCE = 500, 5
"""How many hosts are killed, and how many scenes run at the same time: each waits for most of its time."""
LIMIT_S = 600
LOOK_S = 0.02


@dataclass(frozen=True)
class KillOutcome:
    """How long after the kill the resting order was gone, and where the account was to be closed, when it was."""

    cancelled_s: float
    closed_s: float | None


async def wait_until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - the watchdog is looked at from outside
        await asyncio.sleep(LOOK_S)


async def kill_one(home: Path, seed: int) -> KillOutcome:
    """Kill a host at any moment between two heartbeats, and wait until the watchdog has acted."""
    flatten = seed % 2 == 1
    rules = VenueRules(history_ms=HOUR_MS, verify_every=50)
    async with asyncio.timeout(LIMIT_S), guarded_scene(home, seed, deployed=deployed_skill, rules=rules) as scene:
        dog = Watchdog(scene.workspace, WatchdogSettings(flatten=flatten))
        watching = asyncio.create_task(dog.run())
        with ForkedProcess(PROCESS, home) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            if not await asyncio.to_thread(process.stdout.readline):
                pytest.fail(await asyncio.to_thread(process.stderr.read))
            assert scene.open_orders() == {("BTC", "limit"), ("ETH", "stop")}
            await asyncio.sleep(Random(seed).random() * HEARTBEAT_MS / 1_000)
            assert scene.stored().state == "running"
            process.send_signal(signal.SIGKILL)
            killed_s = time.monotonic()
            assert await asyncio.to_thread(process.wait) == -signal.SIGKILL
        await wait_until(lambda: ("BTC", "limit") not in scene.open_orders())
        cancelled_s = time.monotonic() - killed_s
        closed_s = None
        if flatten:
            await wait_until(lambda: scene.position("ETH") == 0)
            closed_s = time.monotonic() - killed_s
        dog.stop()
        await watching
        check(scene, flatten)
    return KillOutcome(cancelled_s, closed_s)


def check(scene: GuardedScene, flatten: bool) -> None:
    stored = scene.stored()
    assert (stored.state, stored.code) == ("halted", "watchdog")
    assert scene.open_orders() == {("ETH", "stop")}
    assert scene.position("ETH") == (0 if flatten else Decimal("0.5"))
    assert scene.exchange.truth().duplicates() == {}


async def kill_all(folder: Path, count: int) -> list[KillOutcome]:
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(seed: int) -> KillOutcome:
        async with turns:
            return await kill_one(folder / str(seed), seed)

    for seed in range(count):
        os.mkdir(folder / str(seed))
    return list(await asyncio.gather(*(one(seed) for seed in range(count))))


@pytest.mark.proof
@pytest.mark.timeout(7_200)
def test_the_watchdog_acts_for_every_host_that_is_killed(tmp_path: Path) -> None:
    guarded = asyncio.run(kill_all(tmp_path, KILLS))
    cancelled = sorted(each.cancelled_s for each in guarded)
    closed = sorted(each.closed_s for each in guarded if each.closed_s is not None)
    assert len(closed) == KILLS // 2
    save_figures(
        "watchdog kills",
        {
            "kills": len(guarded),
            **{
                name: {"p50": times[len(times) // 2], "p99": times[len(times) * 99 // 100], "max": times[-1]}
                for name, times in (("cancelled_s", cancelled), ("closed_s", closed))
            },
        },
    )
