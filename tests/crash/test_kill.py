"""A1: a backtest that is killed with SIGKILL at any moment and resumed ends with the same records and digest.

The process is killed after a random part of the time that the backtest takes, so kills fall into loading, between and inside
transactions, and into the computation of metrics. At least one kill of each test leaves a part of the records behind, so that
a resumed process continues from them. The seed is printed; set CRASH_SEED to repeat it.
"""

import os
import random
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from forked_process import ForkedProcess
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core import codec
from pitboss.core.instant import parse_instant
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.runs.run import journal_of, verify
from pitboss.venues.perp.testing import plain_skill

BACKTEST_PROCESS = Path(__file__).with_name("backtest_process.py")
END = parse_instant("2025-03-31")
PATIENCE_S = 120
SEED = int(os.environ.get("CRASH_SEED", random.SystemRandom().randrange(2**32)))

SKILLS: dict[str, tuple[dict[str, Any], str, str]] = {
    # decides at every bar in leaps: large transactions, spans, many fills
    "policy": (plain_skill(["BTC", "ETH", "SOL"], "5m", model="policy/momentum"), "2025-03-21", "2025-03-30"),
    # asked at every tick with prompts and tools: a record a tick
    "standin": (
        plain_skill(
            ["BTC", "SOL"],
            "15m",
            model="standin/analyst",
            tools={"built_in": ["fetch_recent_bars", "get_portfolio"]},
            context={"symbols": ["BTC", "SOL"], "bars_interval": "15m", "bars_lookback": 30},
        ),
        "2025-03-27",
        "2025-03-29",
    ),
}


@dataclass
class Backtest:
    """One backtest in a workspace of its own, executed by one process after another."""

    home: Path
    skill: str
    run_id: str = ""
    kills: int = 0
    took_s: float = 0.0
    records_left: list[int] = field(default_factory=list)
    """The number of committed records after each kill."""

    def start_process(self) -> ForkedProcess:
        if self.run_id:
            arguments = ["resume", self.run_id]
        else:
            document, from_day, to_day = SKILLS[self.skill]
            file = self.home / "skill.json"
            file.write_bytes(codec.dumps(document))
            arguments = ["start", str(file), str(parse_instant(from_day)), str(parse_instant(to_day))]
        return ForkedProcess(BACKTEST_PROCESS, self.home, *arguments, env={**os.environ, "PITBOSS_COMMIT_RECORDS": "2"})

    def execute(self, kill_after_s: float | None = None) -> bool:
        """Start a process and wait until it ends or is killed. Returns whether the backtest is complete."""
        process = self.start_process()
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.stderr and process.stderr.read()
        started_s = time.perf_counter()
        timer = threading.Timer(PATIENCE_S if kill_after_s is None else kill_after_s, process.kill)
        timer.start()
        out, err = process.communicate(timeout=2 * PATIENCE_S)
        timer.cancel()
        self.took_s = time.perf_counter() - started_s
        lines = out.split()
        if not self.run_id and lines and lines[0] != "done":
            self.run_id = lines[0]
        if process.returncode != 0:
            assert process.returncode == -9, err
            assert kill_after_s is not None, "the process hangs"
            self.kills += 1
            self.records_left.append(self.count_records())
        return "done" in lines

    def count_records(self) -> int:
        """The committed records. Asserts that the killed process left an undamaged database."""
        with closing(sqlite3.connect(self.home / "pitboss.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            return connection.execute("SELECT count(*) FROM records").fetchone()[0]

    def records(self) -> list[tuple[int, str, bytes]]:
        """The records of the complete run, verified."""
        with open_workspace(load_settings(self.home)) as workspace:
            assert verify(workspace, self.run_id) == []
            run = workspace.runs.get(self.run_id)
            assert run.status == "complete"
            records = [(record.seq, record.digest, record.covered) for record in journal_of(workspace, run).records()]
            assert run.digest == records[-1][1]
            return records


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("market") / "lake"
    write_demo(Lake(root), days=20, end=END)
    return root


def new_backtest(lake: Path, folder: Path, skill: str) -> Backtest:
    shutil.copytree(lake, folder / "lake")
    return Backtest(folder, skill)


@pytest.fixture(scope="module")
def uninterrupted_backtest(
    lake: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], tuple[float, list[Any]]]:
    """Executes a backtest without a kill; returns how long it took and its records."""

    @cache
    def execute(skill: str) -> tuple[float, list[Any]]:
        backtest = new_backtest(lake, tmp_path_factory.mktemp(skill), skill)
        assert backtest.execute()
        return backtest.took_s, backtest.records()

    return execute


def check_kills(
    lake: Path, folder: Path, skill: str, kills: int, rng: random.Random, expected: tuple[float, Any]
) -> None:
    """Kill and resume backtests until there were enough kills, one of them in the middle of the records; compare each."""
    took_s, records = expected
    kill_count, backtests, was_resumed = 0, 0, False
    while kill_count < kills or not was_resumed:
        backtests += 1
        assert backtests <= 3 * kills + 3, "nothing was killed in the middle"
        backtest = new_backtest(lake, folder / f"{skill}-{backtests}", skill)
        # Kills so early that several fit into one backtest; a process that completes it before its kill counts as none.
        while backtest.kills < max(1, kills - kill_count) and not backtest.execute(rng.uniform(0, took_s * 0.7)):
            pass
        backtest.execute()
        kill_count += backtest.kills
        was_resumed |= any(0 < count < len(records) for count in backtest.records_left)
        assert [record[:2] for record in backtest.records()] == [record[:2] for record in records], f"seed {SEED}"
        assert backtest.records() == records
        shutil.rmtree(backtest.home)


@pytest.mark.parametrize("skill", ["standin"])  # every skill, with many more kills, below
def test_a1_killed_three_times_and_resumed_the_run_is_the_same(
    skill: str,
    lake: Path,
    tmp_path: Path,
    uninterrupted_backtest: Callable[[str], Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with capsys.disabled():
        print(f"\ncrash seed {SEED}", end=" ")
    check_kills(lake, tmp_path, skill, 3, random.Random(SEED), uninterrupted_backtest(skill))


@pytest.mark.chaos
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("skill", SKILLS)
@pytest.mark.parametrize("block", range(10))
def test_a1_killed_two_hundred_times_and_resumed_the_run_is_the_same(
    skill: str, block: int, lake: Path, tmp_path: Path, uninterrupted_backtest: Callable[[str], Any]
) -> None:
    check_kills(lake, tmp_path, skill, 10, random.Random(SEED + block), uninterrupted_backtest(skill))
