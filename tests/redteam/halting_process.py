"""A process at work on a deployment with a hostile model until its drawdown limit halts it; killed at a chosen SQL statement.

    python halting_process.py HOME DEPLOYMENT KILL_AT TICKS

In virtual time over a generated market. It prints the state that it begins with, every state after, and at its end the number
of statements, with that of the first statement after the halt.
"""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hostile_days import SYMBOLS, HoldingAttacker
from sqlalchemy import event
from sqlalchemy.engine import Engine

from pitboss.bootstrap.machine import new_id
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.instant import HOUR_MS, MINUTE_MS, Instant
from pitboss.live.runner import POLL_MS
from pitboss.runs.deployment_run import DeploymentRun
from pitboss.runs.deployments import deploy
from pitboss.runs.live_deployment import DeployRequest
from pitboss.runs.stored import journal_of
from pitboss.runs.venues import venue_named
from pitboss.skill.load import read_skill
from pitboss.store.deployments import Deployments
from pitboss.store.runs import Runs
from pitboss.venues.perp import live as perp_live
from pitboss.venues.perp.recorded_feed import RecordedFeed
from pitboss.venues.perp.redteam.market import make_market
from pitboss.venues.perp.testing import plain_skill

PERP = venue_named("perp")
SEED, TICKS = 7, 36
RISK = {"max_position_pct": 100, "max_total_exposure_pct": 200, "daily_loss_halt_pct": 50, "drawdown_halt_pct": 1}
CONTEXT = {"symbols": list(SYMBOLS), "bars_interval": "1h", "bars_lookback": 24, "higher_timeframes": []}
SKILL = read_skill(plain_skill(SYMBOLS, "1h", model="standin/analyst", context=CONTEXT, risk=RISK), PERP.skill_type())


class HourClock:
    """A clock that only waiting moves, from tick to tick. It ends the work at an instant."""

    def __init__(self, at: Instant, until: Instant) -> None:
        self.at = at
        self._until = until

    def now(self) -> Instant:
        return self.at

    async def advance(self, at: Instant) -> None:
        self.at = max(self.at, at)

    @property
    def requested(self) -> bool:
        return self.at >= self._until

    @property
    def cause(self) -> Any:
        return "terminated" if self.requested else None

    async def pause(self, wait_ms: int) -> None:
        before, self.at = self.at, self.at + wait_ms
        if wait_ms == POLL_MS:
            self.at = max(self.at, (before // HOUR_MS + 1) * HOUR_MS + perp_live.SETTLE_MS)


class StatementCounter:
    """Counts the SQL statements of this process, and kills it before one of them."""

    def __init__(self, kill_at: int) -> None:
        self.count = 0
        self._kill_at = kill_at

    def watch(self, connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(self._on_statement)

    def _on_statement(self, text: str) -> None:
        del text
        self.count += 1
        if self.count == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def deploy_skill(home: Path) -> str:
    """Deploy the skill at the beginning of the market; returns the id."""
    start = make_market(SKILL, TICKS, SEED).from_at - MINUTE_MS
    with open_workspace(load_settings(home)) as workspace:
        return deploy(with_clock(workspace, lambda: start), DeployRequest(skill=SKILL, mode="paper")).id


def with_clock(workspace: Workspace, now: Callable[[], Instant]) -> Workspace:
    """The workspace with another clock."""
    return replace(
        workspace,
        now=now,
        runs=Runs(workspace.database, now, new_id),
        deployments=Deployments(workspace.database, now, new_id),
    )


def print_line(*words: object) -> None:
    print(*words, flush=True)


def main(home: str, deployment_id: str, kill_at: str, ticks: str) -> None:
    statements = StatementCounter(int(kill_at))
    event.listen(Engine, "connect", lambda connection, record: statements.watch(connection))
    market = make_market(SKILL, TICKS, SEED)
    with open_workspace(load_settings(Path(home))) as workspace:
        deployment = workspace.deployments.get(deployment_id)
        run = workspace.runs.get(deployment.run_id)
        stored = journal_of(workspace, run).latest_state()
        last = None if stored is None else stored[1]["tick_at"]
        begins = market.from_at - MINUTE_MS if last is None else last + MINUTE_MS
        clock = HourClock(begins, min(market.to_at, begins + int(ticks) * HOUR_MS))
        feed = RecordedFeed(market.market, SYMBOLS, market.base, market.assets, clock.now, clock.advance)

        @asynccontextmanager
        async def recorded(*_: Any) -> AsyncIterator[RecordedFeed]:
            yield feed

        attacker = HoldingAttacker(SEED)  # it wants to open at every tick, halted or not
        ports = perp_live.PerpLive.ports
        perp_live.PerpLive.ports = lambda side, connections: ports(side, replace(connections, model=attacker))
        perp_live.shared_feed = recorded
        epoch = workspace.runs.claim(run.id, 0, into="running")
        print_line("state", deployment.state)

        def changed(changed_deployment: Any) -> None:
            print_line("state", changed_deployment.state)
            print_line("statement", statements.count)

        work = DeploymentRun(
            with_clock(workspace, clock.now), deployment, epoch, on_state=changed, clock=clock, stop=clock
        )
        outcome = asyncio.run(work.work())
        print_line("outcome", outcome, statements.count)


if __name__ == "__main__":
    main(*sys.argv[1:])
