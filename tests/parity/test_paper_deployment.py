"""A paper deployment that is fed with recorded bars through the live path writes the records of the simulator, byte for byte."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from pitboss.bootstrap.machine import new_id
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core import codec
from pitboss.core.curve import length
from pitboss.core.deployment import OpenCommand
from pitboss.core.instant import HOUR_MS, MINUTE_MS, Instant, iso, parse_instant
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

PERP = venue_named("perp")
HOURS = 7
SYMBOLS = ["BTC", "ETH"]


class Clock:
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
class Scene:
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

    def deploy(self, clock: Clock) -> LiveDeployment:
        workspace = replace(
            self.workspace,
            now=clock.now,
            runs=Runs(self.workspace.database, clock.now, new_id),
            deployments=Deployments(self.workspace.database, clock.now, new_id),
        )
        deployment = deploy(workspace, DeployRequest(skill=self.skill, mode="paper"))
        run = workspace.runs.get(deployment.run_id)
        return read_deployment(workspace, deployment, PERP.skill_type(), PERP.request_of(run.params))

    async def work(self, live: LiveDeployment, clock: Clock, control: Control | None = None) -> list[Record]:
        """One process at work on the deployment, until its clock says so; returns all records so far."""
        workspace, run_id = live.workspace, live.deployment.run_id
        prepared = self.prepared
        feed = RecordedFeed(prepared.market, SYMBOLS, prepared.base_interval, prepared.assets, clock.now, clock.advance)
        epoch = workspace.runs.claim(run_id, into="running")
        stored_run = StoredLiveRun(workspace, run_id, epoch, "", Board(), clock)
        await work_live(stored_run, paper_side(live, feed), Driving(clock, lambda: False, control or Control()))
        return list(journal_of(workspace, workspace.runs.get(run_id)).records())


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    home = tmp_path_factory.mktemp("parity")
    file = home / "skill.yaml"
    file.write_text(PERP.examples()["breakout-hybrid.yaml"].replace("[BTC, ETH, SOL]", "[BTC, ETH]"), "utf-8")
    skill = load_skill(file, PERP.skill_type())
    with open_workspace(load_settings(home)) as workspace:
        write_demo(workspace.lake, days=4)
        end = parse_instant(END)
        backtest = PerpRequest(to_plain(skill), end - HOURS * HOUR_MS, end, speculate="0")
        run = asyncio.run(start(workspace, backtest))
        records = [each for each in journal_of(workspace, run).records() if each.kind == "tick"]
        yield Scene(workspace, prepare(workspace, backtest), skill, records)


def ticks(records: list[Record]) -> list[Record]:
    return [each for each in records if each.kind == "tick"]


def differences(lived: list[Record], simulated: list[Record]) -> list[str]:
    """The first field of the first record that differs, to be read in a failure."""
    for ours, theirs in zip(lived, simulated, strict=False):
        if ours.digest != theirs.digest:
            mine, other = codec.loads(ours.covered), codec.loads(theirs.covered)
            return [
                f"{iso(ours.tick_at)} {name}: {mine[name]!r} != {other[name]!r}"
                for name in other
                if mine.get(name) != other[name]
            ] or [f"{iso(ours.tick_at)} chain"]
    return [] if len(lived) == len(simulated) else [f"{len(lived)} records, not {len(simulated)}"]


def test_the_records_of_a_paper_deployment_are_those_of_the_simulator(scene: Scene) -> None:
    clock = Clock(scene.first_at - MINUTE_MS, scene.end_at)
    lived = asyncio.run(scene.work(scene.deploy(clock), clock))

    assert len(scene.simulated) == HOURS * 4
    assert any(codec.loads(each.covered)["receipts"] for each in scene.simulated)
    assert differences(ticks(lived), scene.simulated) == []
    assert {each.kind for each in lived} == {"tick"}


def test_processes_that_are_replaced_lose_nothing_and_change_nothing(scene: Scene) -> None:
    clock = Clock(scene.first_at - MINUTE_MS, scene.first_at + 2 * HOUR_MS)
    live = scene.deploy(clock)
    asyncio.run(scene.work(live, clock))
    for hours in (5, 5.5, HOURS):
        clock.until = scene.first_at + round(hours * HOUR_MS)
        lived = asyncio.run(scene.work(live, clock))

    assert differences(ticks(lived), scene.simulated) == []


def test_a_process_that_was_down_skips_its_ticks_and_catches_up_with_the_bars(scene: Scene) -> None:
    clock = Clock(scene.first_at - MINUTE_MS, scene.first_at + 2 * HOUR_MS)
    live = scene.deploy(clock)
    before = ticks(asyncio.run(scene.work(live, clock)))
    clock.at += 2 * HOUR_MS
    clock.until = scene.end_at
    lived = asyncio.run(scene.work(live, clock))

    assert differences(ticks(lived)[: len(before)], scene.simulated[: len(before)]) == []
    missed = [codec.loads(each.covered)["missed"] for each in lived if each.kind == "span"]
    assert sum(missed) == HOURS * 4 - len(ticks(lived))
    points = sum(curve_length(each) for each in ticks(lived))
    assert points == sum(curve_length(each) for each in scene.simulated)


def curve_length(record: Record) -> int:
    return sum(length(piece) for piece in codec.loads(record.covered)["equity"])


def test_flatten_closes_everything_through_the_same_guard_and_pauses(scene: Scene) -> None:
    clock = Clock(scene.first_at - MINUTE_MS, scene.end_at)
    live = scene.deploy(clock)
    control = Control()
    opened = next(each.tick_at for each in scene.simulated if codec.loads(each.covered)["after"]["positions"])
    clock.until = opened + 7 * MINUTE_MS
    asyncio.run(scene.work(live, clock, control))
    control.deliver(OpenCommand("c1", live.deployment.id, 1, "flatten", "enough for today", "kim"))
    clock.until = opened + 3 * HOUR_MS
    lived = asyncio.run(scene.work(live, clock, control))

    person = next(body for body in map(body_of, lived) if "flatten" in body["flags"])
    assert {verdict["outcome"] for verdict in person["verdicts"]} == {"allowed"}
    assert [receipt["facts"]["by"] for receipt in person["receipts"] if receipt["kind"] == "command"] == ["kim"]
    assert body_of(lived[-1])["after"]["positions"] == {}
    assert body_of(lived[-1])["after"]["orders"] == []


def body_of(record: Record) -> dict[str, Any]:
    return codec.loads(record.covered)
