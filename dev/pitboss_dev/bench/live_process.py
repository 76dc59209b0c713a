"""A host of deployments on paper: prints how late their ticks began, and the memory of the process.

    python -m pitboss_dev.bench.live_process HOME EXCHANGE_URL COUNT SHIFT_MS

The clock of the process is set forward, as the exchange's is. It deploys one skill `COUNT` times, hosts them all, and ends after
the first tick of each. Late is what lies between the instant at which a tick is due and the one at which it begins; a second figure is
when its decider was asked and when the decision was there, the time of the model included; a third how many calls were made.
"""

import asyncio
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

from pitboss_dev.bench.shifted_program import shift_clock

if __name__ == "__main__":
    shift_clock(int(sys.argv[4]))

from pitboss.bootstrap.machine import SystemClock
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.instant import Instant
from pitboss.jobs.live_host import HostSettings, LiveHost
from pitboss.live.deadline import DeadlineDecider
from pitboss.live.runner import Runner
from pitboss.runs.deployments import deploy
from pitboss.runs.live_deployment import DeployRequest
from pitboss.runs.venues import venue_named
from pitboss.skill.load import read_skill
from pitboss.venues.perp.testing import plain_skill

NOW = SystemClock().now
LIMIT_S = 240
PRICE = Decimal(1)


def resident_mb() -> float:
    """The resident memory of this process."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("this system does not tell the memory of a process")


class Lateness:
    """Milliseconds from the instant at which each tick was due."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.asked: list[int] = []
        self.decided: list[int] = []
        self.calls = 0
        self.done = 0
        self._due: Instant = 0

    def watch(self) -> None:
        """Have every runner of this process tell when its ticks begin."""
        tick, decide = Runner._tick, DeadlineDecider.decide

        async def timed_tick(runner: Runner, at: Instant) -> None:
            self._due = at + runner.pace.settle_ms
            self.begun.append(NOW() - self._due)
            await tick(runner, at)
            self.done += 1

        async def timed_decide(decider: DeadlineDecider, observation: Any, judge: Any) -> Any:
            self.asked.append(NOW() - self._due)
            decision = await decide(decider, observation, judge)
            self.decided.append(NOW() - self._due)
            self.calls += len(decision.steps)
            return decision

        Runner._tick = timed_tick  # pyright: ignore[reportAttributeAccessIssue]
        DeadlineDecider.decide = timed_decide  # pyright: ignore[reportAttributeAccessIssue]


def deploy_all(workspace: Workspace, count: int) -> None:
    """Deploy the same skill several times on paper."""
    venue = venue_named("perp")
    skill = read_skill(plain_skill(("BTC",), "5m", model="llm/canned"), venue.skill_type())
    for _ in range(count):
        deploy(workspace, DeployRequest(skill=skill, mode="paper", price_in=PRICE, price_out=PRICE))


async def host(workspace: Workspace, count: int, lateness: Lateness) -> dict[str, Any]:
    """Host all deployments until each has ticked once."""
    live_host = LiveHost(workspace, HostSettings())
    hosting = asyncio.create_task(live_host.run())
    async with asyncio.timeout(LIMIT_S):
        while lateness.done < count:  # noqa: ASYNC110 - a loop that looks is no part of what is measured
            await asyncio.sleep(0.1)
    result = {
        "begun": lateness.begun,
        "asked": lateness.asked,
        "decided": lateness.decided,
        "calls": lateness.calls,
        "resident_mb": resident_mb(),
    }
    live_host.stop()
    await hosting
    return result


def main(home: str, url: str, count: str) -> None:
    """Deploy, host, and print one JSON document."""
    (Path(home) / "settings.toml").write_text(f'hyperliquid_url = "{url}"\nexecutor = "none"\n', "utf-8")
    lateness = Lateness()
    lateness.watch()
    with open_workspace(load_settings(Path(home))) as workspace:
        before = resident_mb()
        deploy_all(workspace, int(count))
        result = asyncio.run(host(workspace, int(count), lateness))
    print(json.dumps({**result, "before_mb": before}))


if __name__ == "__main__":
    main(*sys.argv[1:4])
