"""A1: a backtest killed with SIGKILL at any moment and resumed ends in the same digest, no record missing or doubled.

The process is killed after a random part of the time that the whole work takes, so the kills fall into loading, between
and inside transactions, and into the metrics at the end. The seed is printed; set CRASH_SEED to play it again.
"""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core import codec
from pitboss.core.instant import parse_instant
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.runs.run import journal_of, verify
from pitboss.venues.perp.testing import plain_skill

WORKER = Path(__file__).with_name("worker.py")
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
class Work:
    """One backtest in a workspace, worked on by processes that come and go."""

    home: Path
    skill: str
    run_id: str = ""
    kills: int = 0
    took_s: float = 0.0
    words: list[str] = field(default_factory=list)

    def process(self) -> subprocess.Popen[str]:
        if self.run_id:
            words = ["resume", self.run_id]
        else:
            document, from_day, to_day = SKILLS[self.skill]
            file = self.home / "skill.json"
            file.write_bytes(codec.dumps(document))
            words = ["start", str(file), str(parse_instant(from_day)), str(parse_instant(to_day))]
        return subprocess.Popen(
            [sys.executable, str(WORKER), str(self.home), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PITBOSS_COMMIT_RECORDS": "2"},
        )

    def go_on(self, kill_after_s: float | None = None) -> bool:
        """Let a process work, to its end or until it is killed. True when the work is complete."""
        process = self.process()
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.stderr and process.stderr.read()
        began = time.perf_counter()
        timer = threading.Timer(PATIENCE_S if kill_after_s is None else kill_after_s, process.kill)
        timer.start()
        out, err = process.communicate(timeout=2 * PATIENCE_S)
        timer.cancel()
        self.took_s = time.perf_counter() - began
        lines = out.split()
        if not self.run_id and lines and lines[0] != "done":
            self.run_id = lines[0]
        if process.returncode != 0:
            assert process.returncode == -9, err
            assert kill_after_s is not None, "it took too long"
            self.kills += 1
            self.check_database()
        return "done" in lines

    def check_database(self) -> None:
        """What a killed process leaves behind is a sound database with whole transactions."""
        file = self.home / "pitboss.db"
        if file.exists():
            connection = sqlite3.connect(file)
            try:
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            finally:
                connection.close()

    def records(self) -> list[tuple[int, str, bytes]]:
        with open_workspace(load_settings(self.home)) as workspace:
            assert verify(workspace, self.run_id) == []
            run = workspace.runs.get(self.run_id)
            assert run.status == "complete"
            found = [(record.seq, record.digest, record.covered) for record in journal_of(workspace, run).records()]
            assert run.digest == found[-1][1]
            return found


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("market") / "lake"
    write_demo(Lake(root), days=20, end=END)
    return root


def workspace_with(lake: Path, folder: Path, skill: str) -> Work:
    shutil.copytree(lake, folder / "lake")
    return Work(folder, skill)


@pytest.fixture(scope="module")
def undisturbed(lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[float, list[Any]]]:
    """How long a backtest takes when nobody disturbs it, and its records."""

    @cache
    def work_through(skill: str) -> tuple[float, list[Any]]:
        work = workspace_with(lake, tmp_path_factory.mktemp(skill), skill)
        assert work.go_on()
        return work.took_s, work.records()

    return work_through


def kill_and_resume(
    lake: Path, folder: Path, skill: str, kills: int, dice: random.Random, expected: tuple[float, Any]
) -> None:
    took_s, records = expected
    rounds = 0
    done = 0
    while done < kills:
        rounds += 1
        work = workspace_with(lake, folder / f"{skill}-{rounds}", skill)
        # Kills so early that several fit into one run; a process that came to its end just counts as none.
        while done + work.kills < kills and not work.go_on(dice.uniform(0, took_s * 0.7)):
            pass
        done += work.kills
        work.go_on()
        assert [record[:2] for record in work.records()] == [record[:2] for record in records], f"seed {SEED}"
        assert work.records() == records
        shutil.rmtree(work.home)
        assert rounds <= 3 * kills + 3, "nothing was killed"


@pytest.mark.parametrize("skill", ["standin"])  # all of them, many more times, below
def test_a1_killed_three_times_and_resumed_the_run_is_the_same(
    skill: str, lake: Path, tmp_path: Path, undisturbed: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print(f"\ncrash seed {SEED}", end=" ")
    kill_and_resume(lake, tmp_path, skill, 3, random.Random(SEED), undisturbed(skill))


@pytest.mark.chaos
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("skill", SKILLS)
@pytest.mark.parametrize("block", range(10))
def test_a1_killed_two_hundred_times_and_resumed_the_run_is_the_same(
    skill: str, block: int, lake: Path, tmp_path: Path, undisturbed: Callable[[str], Any]
) -> None:
    kill_and_resume(lake, tmp_path, skill, 10, random.Random(SEED + block), undisturbed(skill))
