"""A live deployment whose process is killed again and again at labelled steps; the next one continues on the same account."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from forked_process import ForkedProcess
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import HOUR_MS, SECOND_MS
from pitboss.jobs.heartbeat import HeartbeatSettings
from pitboss.runs.deployments import command, deploy
from pitboss.runs.live_deployment import DeployRequest
from pitboss.skill.load import read_skill
from pitboss.store.deployments import Deployment
from pitboss.testing.hyperliquid.faults import mixed_faults
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.testing import plain_skill
from venues.perp.hyperliquid.faulted_run import Tally, check_orders
from venues.perp.hyperliquid.guarded_scene import GuardedScene, guarded_scene
from venues.perp.hyperliquid.shared_clock import SharedClock
from venues.perp.hyperliquid.trading_process import Job

PROCESS = Path(__file__).with_name("trading_process.py")
LIMIT_S = 240
FAULT_SHARE = 0.1
SETTLING_TICKS = 3
SLOW = ("no reply in time", "no connection")
STALE_MS = round(HeartbeatSettings().stale_s * SECOND_MS)
SYMBOLS = ("BTC", "ETH")
CAPS: dict[str, Any] = {
    "order_notional_usd": 100_000,
    "opened_notional_per_day_usd": 100_000_000,
    "orders_per_minute": 1_000,
    "orders_per_day": 100_000,
}
SKILL = read_skill(
    plain_skill(
        SYMBOLS,
        "5m",
        context={"symbols": list(SYMBOLS), "bars_interval": "5m", "bars_lookback": 20, "higher_timeframes": []},
        risk={
            "max_position_pct": 100,
            "max_total_exposure_pct": 200,
            "max_leverage": 3,
            "max_orders_per_hour": 60,
            "daily_loss_halt_pct": 50,
            "drawdown_halt_pct": 50,
        },
    ),
    PerpSkill,
)


def deployed_skill(workspace: Workspace) -> Deployment:
    return deploy(workspace, DeployRequest(skill=SKILL, mode="live", account="main"))


@dataclass
class KillStatistics:
    """What the processes of a scene did."""

    kills: dict[str, int] = field(default_factory=dict[str, int])
    recovered_ms: list[int] = field(default_factory=list[int])
    wrong: list[str] = field(default_factory=list[str])
    slow: list[str] = field(default_factory=list[str])
    """First passes that failed because this machine was too busy to answer."""
    unreached: int = 0
    halts: list[str] = field(default_factory=list[str])
    tally: Tally = field(default_factory=Tally)


@asynccontextmanager
async def killed_scene(home: Path, seed: int) -> AsyncIterator[tuple[GuardedScene, SharedClock]]:
    clock = SharedClock(home / "clock")
    rules = VenueRules(step_ms=5_000, history_ms=HOUR_MS, verify_every=50, ip_weight=0)
    async with guarded_scene(
        home,
        seed,
        trading_caps=CAPS,
        deployed=deployed_skill,
        now=clock.now,
        rules=rules,
        deposit=Decimal(1_000_000),
    ) as scene:
        yield scene, clock


async def run_process(scene: GuardedScene, clock: SharedClock, job: Job, killed: KillStatistics) -> bool:
    """One process from its start to its end; returns whether it was killed. Faults begin when it has recovered."""
    scene.server.gateway.plan.clear()
    clock.put_forward(STALE_MS + SECOND_MS)  # the lease of a process that was killed has expired
    with ForkedProcess(PROCESS, scene.home, scene.home / "clock", json.dumps(asdict(job))) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        async with asyncio.timeout(LIMIT_S):
            while line := await asyncio.to_thread(process.stdout.readline):
                said = json.loads(line)
                if "failed" in said:
                    slow = any(text in said["failed"] for text in SLOW)
                    (killed.slow if slow else killed.wrong).append(f"{job}: {said}")
                if "recovered" not in said:
                    continue
                killed.recovered_ms.append(said["ms"])
                if said["ours"] != said["theirs"]:
                    killed.wrong.append(f"{job}: {said}")
                if job.label:
                    for rule in mixed_faults(FAULT_SHARE):
                        scene.server.gateway.plan.add(rule)
            errors = await asyncio.to_thread(process.stderr.read)
            code = await asyncio.to_thread(process.wait)
    assert code in (0, -9), errors
    return code == -9


async def resume(scene: GuardedScene, killed: KillStatistics) -> None:
    """Let a deployment that is halted go on, as a person does."""
    stored = scene.stored()
    if stored.state == "halted":
        killed.halts.append(f"{stored.code}: {stored.reason}")
        await command(scene.workspace, stored.id, "resume", "the test goes on", "kim", wait_s=1)


async def kill_often(home: Path, seed: int, labels: list[str]) -> KillStatistics:
    """Kill one process after the other, each at the next label; let the last settle, and judge every order."""
    killed, rng = KillStatistics(), Random(seed)
    async with killed_scene(home, seed) as (scene, clock):
        for number, label in enumerate(labels):
            job = Job(seed * 1_000 + number, label, rng.randrange(3), at_once=number % 4 == 3)
            while not await run_process(scene, clock, job, killed):
                killed.unreached += 1
                assert killed.unreached < len(labels), killed
                await resume(scene, killed)
            killed.kills[label] = killed.kills.get(label, 0) + 1
            await resume(scene, killed)
        await run_process(scene, clock, Job(seed, ticks=SETTLING_TICKS), killed)
        truth = scene.exchange.truth()
        check_orders(scene, killed.tally)
        if any(order.fence.is_in_doubt for order in scene.store.open_orders()):
            killed.tally.unsettled += 1
        for symbol in SYMBOLS:
            stops = [
                order.remaining
                for order in scene.exchange.account().open_orders.values()
                if order.coin == symbol and order.is_trigger and order.request.tpsl == "sl"
            ]
            size = abs(truth.positions.get(symbol, Decimal(0)))
            if stops != ([size] if size else []):
                killed.wrong.append(f"{symbol}: position {size}, stops {stops}")
    return killed
