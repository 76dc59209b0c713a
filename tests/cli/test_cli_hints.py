"""Hints that lead on: the command, option or name with which the user gets further."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from market_files import FROM, TO
from run_command import pitboss, pitboss_ok, pitboss_refused

from pitboss.bootstrap.run_lock import executing, is_lost
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.cli import consent
from pitboss.cli.run_work import resume_command
from pitboss.core.errors import TransientError
from pitboss.jobs.enqueue import enqueue_again
from pitboss.jobs.worker_settings import open_queue
from pitboss.venues.perp.standin.analyst import Analyst

HOURS = ("--from", FROM, "--to", "2025-06-02T06:00")


@pytest.fixture
def stopped(home: Path, skill: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a run that ended early and can be resumed."""

    async def unreachable(self: Analyst, request: object) -> None:
        raise TransientError("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(Analyst, "complete", unreachable)
        words = (
            "backtest",
            skill,
            *HOURS,
            "--model",
            "standin/analyst",
            "--max-cost-usd",
            "2",
            "--json",
            "--home",
            home,
        )
        return pitboss(*words).json["run_id"]


def in_workspace(home: Path, act: Callable[[Workspace], Any]) -> Any:
    with open_workspace(load_settings(home)) as workspace:
        return act(workspace)


def test_a_run_that_another_process_executes_is_resumed_only_with_take_over(home: Path, stopped: str) -> None:
    in_workspace(home, lambda workspace: workspace.runs.claim(stopped, into="running"))
    with executing(home, stopped):
        answer = pitboss_refused("runs", "resume", stopped, "--home", home)
        assert "is being executed by another process" in answer
        assert "--take-over" in answer
        pitboss_ok("runs", "resume", stopped, "--take-over", "--home", home)


def test_a_run_whose_process_was_killed_is_resumed_at_once(home: Path, stopped: str) -> None:
    in_workspace(home, lambda workspace: workspace.runs.claim(stopped, into="running"))
    pitboss_ok("runs", "resume", stopped, "--home", home)
    assert not list(home.glob("executing/*"))


def test_a_run_of_a_worker_is_resumed_only_with_take_over(home: Path, stopped: str) -> None:
    def hand_over(workspace: Workspace) -> None:
        enqueue_again(workspace, stopped)
        assert open_queue(workspace).claim("elsewhere:1:abc") is not None

    in_workspace(home, hand_over)
    assert "is being executed by worker elsewhere:1:abc" in pitboss_refused("runs", "resume", stopped, "--home", home)


def test_a_worker_of_this_machine_whose_process_has_ended_is_lost() -> None:
    here, child = socket.gethostname(), os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    assert is_lost(f"{here}:{child}:abc")
    assert not is_lost(f"{here}:{os.getpid()}:abc")
    assert not is_lost(f"elsewhere-{here}:{child}:abc")


def test_a_run_that_its_budget_ended_is_continued_with_a_higher_limit(home: Path, stopped: str) -> None:
    def commands(workspace: Workspace) -> tuple[str, str]:
        run = workspace.runs.get(stopped)
        other = resume_command(run)
        epoch = workspace.runs.claim(stopped, into="running")
        workspace.runs.fail(stopped, epoch, "budget: $2 of $2 spent")
        return other, resume_command(workspace.runs.get(stopped))

    other, budget = in_workspace(home, commands)
    assert (other, budget) == (f"runs resume {stopped}", f"runs resume {stopped} --max-cost-usd 4")


def test_deleting_asks_for_confirmation_and_needs_yes_without_a_terminal(
    home: Path, stopped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--yes" in pitboss_refused("runs", "delete", stopped, "--home", home)
    monkeypatch.setattr(consent, "asker", lambda json: lambda: False)
    assert "nothing is deleted" in pitboss("runs", "delete", stopped, "--home", home).err
    pitboss_ok("runs", "show", stopped, "--home", home)
    monkeypatch.setattr(consent, "asker", lambda json: lambda: True)
    pitboss_ok("runs", "delete", stopped, "--home", home)
    assert "there is no run" in pitboss_refused("runs", "show", stopped, "--home", home)


def test_a_sweep_says_what_changes_nothing(home: Path, skill: Path) -> None:
    words = ("sweep", skill, *HOURS, "--model", "policy/hold", "--home", home)
    assert "nothing is varied" in pitboss_refused(*words)
    err = pitboss_ok(*words, "--vary", "risk.max_leverage=2,2.0", "--vary", "context.bars_lookback=40,50").err
    assert "the values of risk.max_leverage all give the same run" in err
    assert "bars_lookback all" not in err


def test_a_skill_of_another_venue_is_sent_to_the_right_command(home: Path, skill: Path) -> None:
    pitboss_ok("init", "other", "--venue", "predict", "--home", home)
    span = ("--from", FROM, "--to", TO, "--home", home)
    assert "`pitboss predict backtest other/btc-brain.yaml`" in pitboss_refused(
        "perp", "backtest", "other/btc-brain.yaml", *span
    )
    assert f"`pitboss perp backtest {skill}`" in pitboss_refused("predict", "backtest", skill, *span)
    assert "`pitboss deploy`" in pitboss_refused("predict", "run", skill, "--home", home)
