"""A live run of the predict venue for stories: its prices, its process or this one, and what it left behind."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from program import ENVIRONMENT, begin, here

from data.sources.playing import serving
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.live.board import Board, Entry
from pitboss.runs.live_run import LiveRunResult
from pitboss.runs.live_session import Listener, RunStart
from pitboss.store.database import open_database
from pitboss.store.verify import verify_run
from pitboss.testing.prediction_services import PredictionServices
from pitboss.venues.predict.deployment import LiveOptions, deployment
from pitboss.venues.predict.live import run_live
from pitboss.venues.predict.venue import VENUE

QUICK = ("--every", "1s", "--port", "0", "--json", "--scheduled")
UNSET = [name for name in ENVIRONMENT if name.startswith(("LLM_", "AGENT_")) or name.endswith("_API_KEY")]


@dataclass
class Live:
    """A workspace, a skill, prices of this moment, and whoever is at work in it."""

    folder: Path
    url: str
    services: PredictionServices
    options: dict[str, Any] = field(default_factory=lambda: {"scheduled": True})
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def skill(self) -> Path:
        return self.folder / "btc-brain.yaml"

    def begin(self, *words: object) -> subprocess.Popen[str]:
        """Start it and do not wait."""
        return begin("predict", "run", self.skill, *QUICK, *words, "--home", self.home)

    def read(self, process: subprocess.Popen[str], wanted: str, count: int = 1) -> list[dict[str, Any]]:
        """The lines of a process until there are so many of a kind."""
        assert process.stdout is not None
        found: list[dict[str, Any]] = []
        for line in process.stdout:
            found.append(json.loads(line))
            self.lines.append(found[-1])
            if sum(one["kind"] == wanted for one in found) >= count:
                return found
        raise AssertionError(f"it ended before {wanted}: {process.communicate()}")

    def here(self, until: Callable[[list[Entry]], bool], **options: Any) -> "Story":
        """Run it in this process until its entries say that it is enough; then ask for its status, and for a stop."""
        story = Story()

        def entry(one: Entry, board: Board) -> None:
            del board
            story.entries.append(one)
            if story.asking is None and until(story.entries):
                story.asking = asyncio.ensure_future(story.ask())

        async def work() -> LiveRunResult:
            asked = deployment(
                self.skill, LiveOptions(**{"every_ms": 1_000, "port": 0, **self.options, **options}), os.environ.get
            )
            with open_workspace(load_settings(self.home)) as workspace:
                ended = await run_live(workspace, asked, Listener(story.began, entry))
            if story.asking is not None:
                await story.asking
            return ended

        story.ended = asyncio.run(work())
        return story

    def runs(self) -> int:
        """How many there are."""
        file = self.home / "pitboss.db"
        if not file.exists():
            return 0
        with closing(sqlite3.connect(file)) as connection:
            return connection.execute("SELECT count(*) FROM runs").fetchone()[0]

    def sound(self, run_id: str) -> list[dict[str, Any]]:
        """The run's records, after everything about them was checked."""
        with_it = open_database(self.home / "pitboss.db", "several")
        try:
            assert verify_run(with_it, run_id) == []
        finally:
            with_it.close()
        result = here("runs", "export", run_id, "--what", "snapshots", "--home", self.home)
        return [json.loads(line) for line in result.out.splitlines()]


@dataclass
class Story:
    """What came of a run in this process."""

    begun: RunStart | None = None
    entries: list[Entry] = field(default_factory=list)
    status: dict[str, Any] = field(default_factory=dict)
    health: dict[str, Any] = field(default_factory=dict)
    asking: "asyncio.Future[None] | None" = None
    ended: LiveRunResult | None = None

    def began(self, begun: RunStart) -> None:
        self.begun = begun

    async def ask(self) -> None:
        assert self.begun is not None
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{self.begun.address}/status") as reply:
                assert reply.content_type == "application/json"
                self.status = await reply.json()
            async with session.get(f"{self.begun.address}/health") as reply:
                self.health = await reply.json()
        os.kill(os.getpid(), signal.SIGTERM)

    @property
    def ticks(self) -> list[Entry]:
        return [one for one in self.entries if one["kind"] == "tick"]

    @property
    def run_id(self) -> str:
        assert self.begun is not None
        return self.begun.run_id


def ticked(count: int) -> Callable[[list[Entry]], bool]:
    return lambda entries: sum(one["kind"] == "tick" for one in entries) >= count


@contextmanager
def at_work(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Nothing is left behind, whatever a test finds."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


@contextmanager
def markets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, services: PredictionServices) -> Iterator[Live]:
    """A folder with a skill, and an indexer with a price feed that `here` names."""
    ((name, text),) = VENUE.examples().items()
    (tmp_path / name).write_text(text)
    for variable in UNSET:
        monkeypatch.delenv(variable)
    with serving(services.app()) as url:
        polls = {"PITBOSS_LIVE_POLL_S": "0.2"}
        monkeypatch.setenv("PITBOSS_LIVE_POLL_S", "0.2")
        monkeypatch.setattr("program.ENVIRONMENT", {**ENVIRONMENT, **polls, **dict.fromkeys(UNSET, "")})
        yield Live(tmp_path, url, services, {"indexer_url": url, "prices_url": url})


@contextmanager
def prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """A folder with a skill, and a service of prices that the settings name."""
    ((name, text),) = VENUE.examples().items()
    # A market that expires within the minute would make what is seen here depend on when it is looked at.
    (tmp_path / name).write_text(text.replace("tiers: [15m, 1h, 1d, 1w]", "tiers: [1w]"))
    services = PredictionServices()
    for variable in UNSET:
        monkeypatch.delenv(variable)
    with serving(services.app()) as url:
        prices = {"PITBOSS_HERMES_URL": url, "PITBOSS_PYTH_URL": url, "PITBOSS_LIVE_POLL_S": "0.2"}
        for variable, value in prices.items():
            monkeypatch.setenv(variable, value)
        monkeypatch.setattr("program.ENVIRONMENT", {**ENVIRONMENT, **prices, **dict.fromkeys(UNSET, "")})
        yield Live(tmp_path, url, services)
