"""Live runs of the predict venue on local price services, in this process or in one of their own."""

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
from pitboss_process import ENVIRONMENT, run_in_process, start_pitboss

from data.sources.source_servers import serving_app
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
class PredictLive:
    """A workspace with a skill and local price services."""

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

    def start(self, *words: object) -> subprocess.Popen[str]:
        """Start the run in a process of its own."""
        return start_pitboss("predict", "run", self.skill, *QUICK, *words, "--home", self.home)

    def read_until(self, process: subprocess.Popen[str], wanted: str, count: int = 1) -> list[dict[str, Any]]:
        """The lines of a process until `count` of the wanted kind."""
        assert process.stdout is not None
        lines: list[dict[str, Any]] = []
        for line in process.stdout:
            lines.append(json.loads(line))
            self.lines.append(lines[-1])
            if sum(one["kind"] == wanted for one in lines) >= count:
                return lines
        raise AssertionError(f"it ended before {wanted}: {process.communicate()}")

    def run_in_process(self, until: Callable[[list[Entry]], bool], **options: Any) -> "InProcessRun":
        """Execute the run in this process until `until` holds for its entries; then read its status and stop it."""
        run = InProcessRun()

        def entry(one: Entry, board: Board) -> None:
            del board
            run.entries.append(one)
            if run.status_request is None and until(run.entries):
                run.status_request = asyncio.ensure_future(run.read_status())

        async def work() -> LiveRunResult:
            terms = deployment(
                self.skill, LiveOptions(**{"every_ms": 1_000, "port": 0, **self.options, **options}), os.environ.get
            )
            with open_workspace(load_settings(self.home)) as workspace:
                result = await run_live(workspace, terms, Listener(run.on_start, entry))
            if run.status_request is not None:
                await run.status_request
            return result

        run.result = asyncio.run(work())
        return run

    def runs(self) -> int:
        """The number of stored runs."""
        file = self.home / "pitboss.db"
        if not file.exists():
            return 0
        with closing(sqlite3.connect(file)) as connection:
            return connection.execute("SELECT count(*) FROM runs").fetchone()[0]

    def verified_records(self, run_id: str) -> list[dict[str, Any]]:
        """The records of a run, after it was verified."""
        database = open_database(self.home / "pitboss.db", "several")
        try:
            assert verify_run(database, run_id) == []
        finally:
            database.close()
        result = run_in_process("runs", "export", run_id, "--what", "snapshots", "--home", self.home)
        return [json.loads(line) for line in result.out.splitlines()]


@dataclass
class InProcessRun:
    """Entries, status and result of a run in this process."""

    run_start: RunStart | None = None
    entries: list[Entry] = field(default_factory=list)
    status: dict[str, Any] = field(default_factory=dict)
    health: dict[str, Any] = field(default_factory=dict)
    status_request: "asyncio.Future[None] | None" = None
    result: LiveRunResult | None = None

    def on_start(self, begun: RunStart) -> None:
        self.run_start = begun

    async def read_status(self) -> None:
        assert self.run_start is not None
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{self.run_start.address}/status") as reply:
                assert reply.content_type == "application/json"
                self.status = await reply.json()
            async with session.get(f"{self.run_start.address}/health") as reply:
                self.health = await reply.json()
        os.kill(os.getpid(), signal.SIGTERM)

    @property
    def ticks(self) -> list[Entry]:
        return [one for one in self.entries if one["kind"] == "tick"]

    @property
    def run_id(self) -> str:
        assert self.run_start is not None
        return self.run_start.run_id


def after_ticks(count: int) -> Callable[[list[Entry]], bool]:
    return lambda entries: sum(one["kind"] == "tick" for one in entries) >= count


@contextmanager
def killed_at_exit(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Kills the process at the end of the block if it still runs."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


@contextmanager
def live_on_indexer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, services: PredictionServices
) -> Iterator[PredictLive]:
    """A folder with a skill, and an indexer with a price feed that `run_in_process` names."""
    ((name, text),) = VENUE.examples().items()
    (tmp_path / name).write_text(text)
    for variable in UNSET:
        monkeypatch.delenv(variable)
    with serving_app(services.app()) as url:
        polls = {"PITBOSS_LIVE_POLL_S": "0.2"}
        monkeypatch.setenv("PITBOSS_LIVE_POLL_S", "0.2")
        monkeypatch.setattr("pitboss_process.ENVIRONMENT", {**ENVIRONMENT, **polls, **dict.fromkeys(UNSET, "")})
        yield PredictLive(tmp_path, url, services, {"indexer_url": url, "prices_url": url})


@contextmanager
def live_on_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PredictLive]:
    """A folder with a skill, and a price service that the settings name."""
    ((name, text),) = VENUE.examples().items()
    # With a market that expires within the minute the results would depend on the time of day.
    (tmp_path / name).write_text(text.replace("tiers: [15m, 1h, 1d, 1w]", "tiers: [1w]"))
    services = PredictionServices()
    for variable in UNSET:
        monkeypatch.delenv(variable)
    with serving_app(services.app()) as url:
        prices = {"PITBOSS_HERMES_URL": url, "PITBOSS_PYTH_URL": url, "PITBOSS_LIVE_POLL_S": "0.2"}
        for variable, value in prices.items():
            monkeypatch.setenv(variable, value)
        monkeypatch.setattr("pitboss_process.ENVIRONMENT", {**ENVIRONMENT, **prices, **dict.fromkeys(UNSET, "")})
        yield PredictLive(tmp_path, url, services)
