"""A process that is killed around a halt: the next one begins halted, or halts before anything is opened. A person resumes it."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from halting_process import SEED, SKILL, TICKS, deploy_skill
from hostile_days import RecordedDays, opens_while_halted

from forked_process import ForkedProcess
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core.snapshot import GENESIS, check
from pitboss.venues.perp.redteam.market import make_market
from stored_records import records_of

PROCESS = Path(__file__).with_name("halting_process.py")
BEFORE, AFTER = 45, 45
"""How many statements before and after the one that stores the halt a process may be killed."""
LIMIT_S = 120


@dataclass(frozen=True)
class ProcessOutput:
    """The parsed output of a process and its exit code."""

    states: tuple[str, ...]
    halted_at: int
    code: int


def run_process(home: Path, deployment: str, kill_at: int, ticks: int) -> ProcessOutput:
    with ForkedProcess(PROCESS, home, deployment, kill_at, ticks) as process:
        out, err = process.communicate(timeout=LIMIT_S)
        rows = [line.split() for line in out.splitlines()]
        assert process.returncode in (0, -9), err
    states = tuple(row[1] for row in rows if row[0] == "state")
    return ProcessOutput(states, next((int(row[1]) for row in rows if row[0] == "statement"), 0), process.returncode)


@cache
def halting_statement() -> int:
    """The statement that stores the halt, in a process that is not killed."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        worked = run_process(home, deploy_skill(home), 0, 12)
    assert worked.states == ("running", "halted")
    return worked.halted_at


def kill_and_go_on(home: Path, kill_at: int) -> str:
    """Kill a process at a statement, let another go on, and return the state that it found."""
    deployment_id = deploy_skill(home)
    killed = run_process(home, deployment_id, kill_at, 14)
    assert killed.code == -9
    with open_workspace(load_settings(home)) as workspace:
        stored = workspace.deployments.get(deployment_id).state
    if "halted" in killed.states:
        assert stored == "halted"
    after = run_process(home, deployment_id, 0, 10)
    assert after.states[0] == stored
    assert after.states in (("halted",), ("running", "halted"))
    if stored == "halted":
        assert after.states == ("halted",)
    with open_workspace(load_settings(home)) as workspace:
        deployment = workspace.deployments.get(deployment_id)
        records = records_of(workspace, workspace.runs.get(deployment.run_id))
    previous = GENESIS
    for number, record in enumerate(records):
        check(record, number, previous)
        previous = record.digest
    assert (deployment.state, deployment.code) == ("halted", "drawdown")
    assert opens_while_halted(RecordedDays(make_market(SKILL, TICKS, SEED), records)) == []
    return stored


def kill_around_the_halt(folder: Path, count: int) -> set[str]:
    rng = Random(count)
    at = [halting_statement() + rng.randint(-BEFORE, AFTER) for _ in range(count)]
    at[:2] = [halting_statement() - 4, halting_statement() + 1]
    found: set[str] = set()
    for number, kill_at in enumerate(at):
        home = folder / str(number)
        home.mkdir()
        found.add(kill_and_go_on(home, kill_at))
    return found


def test_a_process_killed_around_a_halt_is_never_followed_by_one_that_goes_on_trading(tmp_path: Path) -> None:
    assert kill_around_the_halt(tmp_path, 2) == {"running", "halted"}  # killed before and after it was stored


@pytest.mark.proof
def test_two_hundred_processes_killed_around_a_halt_are_never_followed_by_one_that_goes_on_trading(
    tmp_path: Path,
) -> None:
    assert kill_around_the_halt(tmp_path, 200) == {"running", "halted"}
