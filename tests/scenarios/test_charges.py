"""The spending limit holds over attempts, resumes and kills, under the provider's worst-case count."""

import os
import re
import signal
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pitboss_process import PATIENCE_S, CommandResult, provider_environment, run_in_process, start_pitboss

from pitboss.testing import provider
from pitboss.testing.provider import FakeProvider, decide
from provider_thread import fake_provider

SIX_HOURS = ("--from", "2025-03-20", "--to", "2025-03-20T06:00:00Z")
BROKEN = provider.half
"""A reply that breaks off: it is charged, and the budget treats it like a time-out, without waiting for one."""


def backtest_command(home: Path, skill: Path, cap: float) -> tuple[Any, ...]:
    prices = ("--price-in", "1", "--price-out", "2", "--speculate", "0")
    cap_ = ("--max-cost-usd", f"{cap:.6f}")
    return ("backtest", skill, *SIX_HOURS, "--model", "llm/fake", *prices, *cap_, "--json", "--home", home)


def stopped_by_its_budget(told: CommandResult) -> tuple[str, str]:
    """The run, and what was said."""
    (said,) = told.json["errors"]
    assert said.startswith("budget: ")
    return told.json["run_id"], said


def worst_case(home: Path, skill: Path, server: FakeProvider) -> float:
    _, said = stopped_by_its_budget(
        run_in_process(*backtest_command(home, skill, 0.000001), code=1, **provider_environment(server))
    )
    found = re.search(r"the next call could cost \$([0-9.]+)", said)
    assert found is not None
    return float(found[1])


@pytest.mark.chaos
def test_tries_that_break_off_use_the_budget_up_and_a_resume_does_not_forget_them(home: Path, skill: Path) -> None:
    answers: list[Any] = [lambda question: BROKEN]
    with fake_provider(lambda question: answers[-1](question)) as server:
        worst = worst_case(home, skill, server)
        assert server.calls == 0
        run_id, said = stopped_by_its_budget(
            run_in_process(*backtest_command(home, skill, 2.5 * worst), code=1, **provider_environment(server))
        )
        assert server.calls == 2, "a third try could not have been paid"
        assert "cut off and may have been charged" in said
        resume = ("runs", "resume", run_id, "--json", "--home", home)
        stopped_by_its_budget(run_in_process(*resume, code=1, **provider_environment(server)))
        assert server.calls == 2
        answers.append(decide)
        done = run_in_process(*resume[:3], "--max-cost-usd", "5", *resume[3:], **provider_environment(server)).json
        assert done["status"] == "complete"


def test_a_try_that_broke_off_is_counted_though_the_next_one_was_answered(home: Path, skill: Path) -> None:
    def script(question: Any) -> Any:
        return decide(question) if server.calls % 2 == 0 else BROKEN

    with fake_provider(script) as server:
        worst = worst_case(home, skill, server)
        _, said = stopped_by_its_budget(
            run_in_process(*backtest_command(home, skill, 4.5 * worst), code=1, **provider_environment(server))
        )
        late = (server.calls + 1) // 2
        assert late * worst <= 4.5 * worst
        assert 2 <= late <= 4
        assert "cut off and may have been charged" in said


@pytest.mark.chaos
def test_a_call_under_way_when_the_process_was_killed_is_counted_when_it_goes_on(home: Path, skill: Path) -> None:
    asked = Event()

    def script(question: Any) -> Any:
        asked.set()
        return provider.hang

    with fake_provider(script) as server:
        worst = worst_case(home, skill, server)
        run = start_pitboss(*backtest_command(home, skill, 1.5 * worst), **provider_environment(server))
        assert asked.wait(PATIENCE_S)
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        run_id = run_in_process("runs", "list", "--json", "--home", home).json[0]["run_id"]
        stopped_by_its_budget(
            run_in_process("runs", "resume", run_id, "--json", "--home", home, code=1, **provider_environment(server))
        )
        assert server.calls == 1, "a second one could have passed the limit"
