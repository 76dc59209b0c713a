"""A workspace with a generated market, and paper deployments that are fed with its recorded bars through the live path."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pitboss.bootstrap.machine import new_id
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.instant import HOUR_MS, Instant, parse_instant
from pitboss.core.snapshot import Record
from pitboss.data.demo import END, write_demo
from pitboss.live.board import Board
from pitboss.live.control import Control
from pitboss.runs.deployments import deploy
from pitboss.runs.live_deployment import DeployRequest, LiveDeployment, read_deployment
from pitboss.runs.live_session import Driving, StoredLiveRun, work_live
from pitboss.runs.run import prepare, start
from pitboss.runs.stored import journal_of
from pitboss.runs.venues import venue_named
from pitboss.skill.document import to_plain
from pitboss.skill.load import load_skill
from pitboss.store.deployments import Deployments
from pitboss.store.runs import Runs
from pitboss.venues.perp.assembly import PerpRun
from pitboss.venues.perp.live import paper_side
from pitboss.venues.perp.recorded_feed import RecordedFeed
from pitboss.venues.perp.request import PerpRequest
from stored_records import records_of

PERP = venue_named("perp")
HOURS = 7
SYMBOLS = ["BTC", "ETH"]


class StoppingClock:
    """A clock that only waiting moves. It stops the run at an instant."""

    def __init__(self, at: Instant, until: Instant) -> None:
        self.at = at
        self.until = until
        self.interrupted_at: set[Instant] = set()

    def now(self) -> Instant:
        return self.at

    async def advance(self, at: Instant) -> None:
        self.at = max(self.at, at)

    @property
    def requested(self) -> bool:
        return self.at >= self.until

    @property
    def cause(self) -> Any:
        return "terminated" if self.requested else None

    async def pause(self, wait_ms: int) -> None:
        self.at += wait_ms


@dataclass
class PaperScene:
    """A workspace with the generated market, a backtest, and the means to deploy the same skill over its bars."""

    workspace: Workspace
    prepared: PerpRun
    skill: Any
    simulated: list[Record]

    @property
    def first_at(self) -> Instant:
        return int(self.prepared.tick_at[0])

    @property
    def end_at(self) -> Instant:
        return self.prepared.request.to_at

    def deploy(self, clock: StoppingClock) -> LiveDeployment:
        workspace = replace(
            self.workspace,
            now=clock.now,
            runs=Runs(self.workspace.database, clock.now, new_id),
            deployments=Deployments(self.workspace.database, clock.now, new_id),
        )
        deployment = deploy(workspace, DeployRequest(skill=self.skill, mode="paper"))
        run = workspace.runs.get(deployment.run_id)
        return read_deployment(workspace, deployment, PERP.skill_type(), PERP.request_of(run.params))

    async def work(self, live: LiveDeployment, clock: StoppingClock, control: Control | None = None) -> list[Record]:
        """One process at work on the deployment, until its clock says so; returns all records so far."""
        workspace, run_id = live.workspace, live.deployment.run_id
        prepared = self.prepared
        feed = RecordedFeed(prepared.market, SYMBOLS, prepared.base_interval, prepared.assets, clock.now, clock.advance)
        epoch = workspace.runs.claim(run_id, into="running")
        stored_run = StoredLiveRun(workspace, run_id, epoch, "", Board(), clock)
        await work_live(stored_run, paper_side(live, feed), Driving(clock, lambda: False, control or Control()))
        return records_of(workspace, workspace.runs.get(run_id))


@contextmanager
def paper_scene(home: Path) -> Iterator[PaperScene]:
    """The scene in a new workspace."""
    file = home / "skill.yaml"
    file.write_text(PERP.examples()["breakout-hybrid.yaml"].replace("[BTC, ETH, SOL]", "[BTC, ETH]"), "utf-8")
    skill = load_skill(file, PERP.skill_type())
    with open_workspace(load_settings(home)) as workspace:
        write_demo(workspace.lake, days=4)
        end = parse_instant(END)
        backtest = PerpRequest(to_plain(skill), end - HOURS * HOUR_MS, end, speculate="0")
        run = asyncio.run(start(workspace, backtest))
        records = [each for each in journal_of(workspace, run).records() if each.kind == "tick"]
        yield PaperScene(workspace, prepare(workspace, backtest), skill, records)


def ticks(records: list[Record]) -> list[Record]:
    return [each for each in records if each.kind == "tick"]
