"""Stopping a run by Ctrl-C, by a cancel, by kill -9: nothing committed is lost, and the digest stays the same."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pitboss_process import run_in_process, start_pitboss, wait_for_exit, wait_for_records

from example_counts import cases

RANGE = ("--from", "2025-03-20", "--to", "2025-03-21T12:00:00Z")
EACH_TICK = {"PITBOSS_COMMIT_RECORDS": "1"}


def test_ctrl_c_exits_130_keeps_everything_and_says_how_to_go_on(
    home: Path, skill: Path, uninterrupted_digest: str
) -> None:
    process = start_pitboss("backtest", skill, *RANGE, "--json", "--home", home, **EACH_TICK)
    run_id = wait_for_records(process, home, 20)
    process.send_signal(signal.SIGINT)
    result = wait_for_exit(process)
    assert result.code == 130, result.err
    assert (result.json["run_id"], result.json["status"], result.json["digest"]) == (run_id, "cancelled", None)
    assert f"pitboss runs resume {run_id} --home {home}" in result.err
    assert "Traceback" not in result.err
    shown = run_in_process("runs", "show", run_id, "--json", "--home", home).json
    assert 0 < shown["progress_pct"] < 100
    resumed = run_in_process("runs", "resume", run_id, "--json", "--home", home).json
    assert (resumed["status"], resumed["digest"]) == ("complete", uninterrupted_digest)
    assert run_in_process("runs", "verify", run_id, "--home", home).out.strip() == f"OK {uninterrupted_digest}"


def test_ctrl_c_in_code_that_a_library_makes_on_the_fly_exits_130_too(tmp_path: Path) -> None:
    (tmp_path / "program_of_ours.py").write_text("""
import sys
from pitboss.cli.main import run
from pitboss.runs import venues

venues.venues = lambda: exec("raise KeyboardInterrupt")
sys.argv = ["pitboss", "models", "list"]
run()
""")
    command = [sys.executable, "-m", "program_of_ours"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (130, "stopped\n")


SLOW_START = """
import importlib.abc, os, signal, sys

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Slow())
sys.argv = ["pitboss", "runs", "list", "--home", {home!r}]
from pitboss.cli.main import run
run()
"""


@pytest.mark.parametrize(
    "name",
    cases(
        ("cyclopts", "rich.console", "pitboss.cli.runs", "sqlalchemy", "pitboss.store.runs"), ("cyclopts", "sqlalchemy")
    ),
)
def test_ctrl_c_while_the_program_is_still_loading_exits_130_with_one_word(tmp_path: Path, name: str) -> None:
    code = SLOW_START.format(name=name, home=str(tmp_path / "home"))
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "stopped\n")


def test_ctrl_c_twice_outside_of_a_run_is_130_without_a_traceback(tmp_path: Path) -> None:
    code = """
import sys
from pitboss.terminal import screen
from pitboss.cli.main import run
from pitboss.runs import venues

def interrupted(*words):
    raise KeyboardInterrupt

venues.venues = screen.note = interrupted
sys.argv = ["pitboss", "models", "list"]
run()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (130, "")


def test_who_starts_us_deaf_to_ctrl_c_has_it_so(tmp_path: Path) -> None:
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + SLOW_START.format(
        name="cyclopts", home=str(tmp_path / "home")
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0
    assert result.stdout.startswith("there are no runs in the workspace ")


def test_kill_9_at_random_points_then_resume_gives_the_same_digest(
    home: Path, skill: Path, uninterrupted_digest: str
) -> None:
    rng = random.Random(20)
    points = sorted(rng.sample(range(1, 80), 2))
    process = start_pitboss("backtest", skill, *RANGE, "--json", "--home", home, **EACH_TICK)
    run_id = wait_for_records(process, home, points[0])
    process.kill()
    assert wait_for_exit(process).code == -signal.SIGKILL
    process = start_pitboss("runs", "resume", run_id, "--json", "--home", home, PITBOSS_COMMIT_RECORDS="7")
    wait_for_records(process, home, points[1])
    process.kill()
    assert wait_for_exit(process).code == -signal.SIGKILL
    resumed = run_in_process("runs", "resume", run_id, "--json", "--home", home).json
    assert resumed["digest"] == uninterrupted_digest
    assert run_in_process("runs", "verify", run_id, "--home", home).out.strip() == f"OK {uninterrupted_digest}"


def test_a_cancel_from_another_process_stops_the_run_at_a_tick(home: Path, skill: Path) -> None:
    process = start_pitboss(
        "backtest", skill, "--from", "2025-03-13", "--to", "2025-03-31", "--home", home, **EACH_TICK
    )
    run_id = wait_for_records(process, home, 1)
    asked = run_in_process("runs", "cancel", run_id, "--json", "--home", home).json
    assert asked["cancel_requested"] is True
    result = wait_for_exit(process)
    assert result.code == 130, result.err
    assert "cancelled" in result.err
    assert run_in_process("runs", "show", run_id, "--json", "--home", home).json["status"] == "cancelled"
