"""A host at work on one live deployment whose agent trades at random at every tick; killed by SIGKILL at a labelled step.

    python trading_process.py HOME CLOCK JOB

`JOB` is JSON: `label` and `times` say at which step it is killed (no label: never), `at_once` whether also before it has
recovered, `seed` what it trades, `ticks` after how many it ends by itself. The clock is shared with the exchange and put
forward between ticks. `is_steady` replaces the random agent by one that opens the same position again and again. It prints JSON lines: how its first pass over the stored account ended, and its end.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from urllib.request import Request, urlopen

from shared_clock import SharedClock

from pitboss.agent.decider import Judge
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core.errors import TransientError
from pitboss.core.instant import MINUTE_MS, SECOND_MS
from pitboss.core.intent import Decision
from pitboss.jobs.live_host import HostSettings, LiveHost
from pitboss.live.runner import Runner
from pitboss.runs.deployment_run import DeploymentStop
from pitboss.sim.connections import Connections
from pitboss.tick import Ports
from pitboss.venues.perp import live as perp_live
from pitboss.venues.perp.hyperliquid.broker import HyperliquidBroker
from pitboss.venues.perp.hyperliquid.order_sender import StepLabel
from pitboss.venues.perp.hyperliquid.reconcile import Reconciled, Reconciler
from pitboss.venues.perp.live_market import MarketFeed
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.policy import close_intent
from pitboss.venues.perp.state import ReportedWorld

PERIOD_MS = 5 * MINUTE_MS
STEP_MS, STEPS_MS = 4 * SECOND_MS, 20 * SECOND_MS
"""How far the clock is put forward at once while what the last tick ordered is being resolved."""
EARLY_MS, LATE_MS = SECOND_MS, 4 * SECOND_MS
"""How long before the next slot it is not put forward any more, and how long after it a tick may wait for its bars."""
TURN_S = 0.02
BAND = Decimal("0.0005")


@dataclass(frozen=True)
class Job:
    """The arguments of a process."""

    seed: int
    label: str = ""
    times: int = 0
    at_once: bool = False
    ticks: int = 30
    is_steady: bool = False
    """Whether it only opens a long in BTC whenever it has none."""


def print_line(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


class RandomTrader:
    """Opens, adds, reduces, closes and cancels at random, with different leverage, limits and stops."""

    name = "random trader"

    def __init__(self, seed: int) -> None:
        self._dice = Random(seed)

    async def decide(self, observation: Observation, judge: Judge) -> Decision:
        del judge
        rng, world = self._dice, observation.world
        symbol = rng.choice(observation.skill.context.sorted_symbols)
        mark, position = world.marks.get(symbol), world.positions.get(symbol)
        if mark is None:
            return Decision()
        for order in world.orders:
            if order.symbol == symbol and rng.random() < 0.7:
                fields = {"action": "cancel", "symbol": symbol, "order_id": order.id, "reason": "again"}
                return Decision((fields,))
        if position is not None and rng.random() < 0.5:
            if rng.random() < 0.3:
                return Decision(({"action": "reduce", "symbol": symbol, "reduce_pct": 50, "reason": "less"},))
            return Decision((close_intent(symbol, "enough"),))
        side = rng.choice((1, -1)) if position is None else position.side
        fields: dict[str, Any] = {
            "action": "open_long" if side > 0 else "open_short",
            "symbol": symbol,
            "size_usd": rng.randint(200, 1_500),
            "leverage": rng.randint(1, 3),
            "stop_loss": mark * (1 - side * Decimal(rng.randint(10, 60)) / 1_000),
            "reason": "by chance",
        }
        if rng.random() < 0.3:
            limit = mark * (1 - side * rng.randint(0, 4) * BAND)
            fields |= {"order_type": "limit", "limit_price": limit}
        return Decision((fields,))


class SteadyTrader:
    """Opens a long in BTC with a stop whenever it has none."""

    name = "steady trader"

    async def decide(self, observation: Observation, judge: Judge) -> Decision:
        del judge
        world = observation.world
        if world.positions or world.orders:
            return Decision()
        fields = {
            "action": "open_long",
            "symbol": "BTC",
            "size_usd": 9_000,
            "stop_loss": world.marks["BTC"] * Decimal("0.98"),
            "reason": "none is open",
        }
        return Decision((fields,))


class KillSwitch:
    """Kills this process when a label has been reached the given number of times."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._left = job.times
        self.is_armed = job.at_once

    def reached(self, label: StepLabel) -> None:
        if self.is_armed and label == self._job.label:
            self._left -= 1
            if self._left < 0:
                os.kill(os.getpid(), signal.SIGKILL)


def exchange_truth(url: str) -> dict[str, Any]:
    """The actual state of the account at the exchange."""
    request = Request(f"{url}/control", b'{"do": "truth"}', {"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as reply:
        return json.loads(reply.read())


def sizes(rows: dict[str, Any]) -> dict[str, str]:
    return {symbol: str(Decimal(size).normalize()) for symbol, size in sorted(rows.items()) if Decimal(size)}


def compare_first_pass(url: str, began_s: float, recovered: Callable[[], None]) -> None:
    """Have the first pass over the stored account compared with the truth; one during which something was filled does not count."""
    run, is_told = Reconciler.run, False

    async def compared(reconciler: Reconciler, world: ReportedWorld | None) -> Reconciled:
        nonlocal is_told
        if world is None or is_told:
            return await run(reconciler, world)
        before = exchange_truth(url)
        try:
            reconciled = await run(reconciler, world)
        except TransientError as error:
            print_line(failed=str(error))
            raise
        after = exchange_truth(url)
        if before["fills"] == after["fills"]:
            is_told = True
            ours = sizes({symbol: each.size for symbol, each in reconciled.world.positions.items()})
            elapsed_ms = round((time.monotonic() - began_s) * SECOND_MS)
            print_line(recovered=True, ours=ours, theirs=sizes(after["positions"]), ms=elapsed_ms)
            recovered()
        return reconciled

    Reconciler.run = compared


def replace_agent(job: Job, on_step: Callable[[StepLabel], None], feeds: list[MarketFeed]) -> None:
    """Replace the agent, report the broker's steps to `on_step`, and put the feed into `feeds`."""
    ports, make_broker = perp_live.PerpLive.ports, perp_live.make_broker

    def traded(side: perp_live.PerpLive, connections: Connections) -> Ports:
        feeds[:] = [side._feed]
        decider = SteadyTrader() if job.is_steady else RandomTrader(job.seed)
        return ports(side, replace(connections, decider=decider))

    async def heard(*arguments: Any) -> HyperliquidBroker:
        broker = await make_broker(*arguments)
        for part in (broker._sender, broker.reconciler, broker.reconciler._protector):  # pyright: ignore[reportPrivateUsage]
            part._on_step = on_step  # pyright: ignore[reportPrivateUsage]
        return broker

    perp_live.PerpLive.ports = traded
    perp_live.make_broker = heard


def skip_waits(clock: SharedClock, feeds: list[MarketFeed]) -> None:
    """Put the clock forward where a runner waits for its next tick, and wait there for the bars as long as the tick may."""

    async def pause(stop: DeploymentStop, wait_ms: int) -> None:
        del stop
        now = clock.now()
        slot = ((now - perp_live.SETTLE_MS) // PERIOD_MS + 1) * PERIOD_MS
        latest = slot + perp_live.SETTLE_MS + LATE_MS
        ahead = slot - EARLY_MS - now
        if now % PERIOD_MS < STEPS_MS:
            ahead = min(ahead, STEP_MS)
        if ahead > 0:
            clock.put_forward(ahead)
            await asyncio.sleep(TURN_S)
        else:
            await asyncio.sleep(wait_ms / SECOND_MS)
            while slot <= clock.now() < latest and any(feed.complete_until() < slot for feed in feeds):  # noqa: ASYNC110
                await asyncio.sleep(TURN_S)

    DeploymentStop.pause = pause


def end_after(host: LiveHost, ticks: int) -> None:
    """Stop the host after this many ticks."""
    tick, done = Runner._tick, 0  # pyright: ignore[reportPrivateUsage]

    async def counted(runner: Runner, at: int) -> None:
        nonlocal done
        await tick(runner, at)
        done += 1
        if done == ticks:
            host.stop()

    Runner._tick = counted  # pyright: ignore[reportPrivateUsage]


def main(home: str, clock_path: str, job_text: str) -> None:
    began_s = time.monotonic()
    job = Job(**json.loads(job_text))
    clock = SharedClock(Path(clock_path))
    clock.install()
    killer = KillSwitch(job)
    settings = load_settings(Path(home))

    def recovered() -> None:
        killer.is_armed = True

    compare_first_pass(settings.hyperliquid_url, began_s, recovered)
    feeds: list[MarketFeed] = []
    replace_agent(job, killer.reached, feeds)
    skip_waits(clock, feeds)

    async def host() -> None:
        live_host = LiveHost(workspace, HostSettings())
        end_after(live_host, job.ticks)
        await live_host.run()

    with open_workspace(settings) as workspace:
        asyncio.run(host())
    print_line(ended=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
