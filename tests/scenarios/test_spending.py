"""What a backtest in the foreground may spend: estimated, agreed to, held to the day, and the same in every account of it."""

import os
import signal
import sqlite3
from decimal import Decimal
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pitboss_process import PATIENCE_S, provider_environment, run_in_process, start_pitboss

from pitboss.testing import provider
from pitboss.testing.provider import decide
from provider_thread import fake_provider

SIX_HOURS = ("--from", "2025-03-20", "--to", "2025-03-20T06:00:00Z")
TICKS = 24
CHEAP = ("--price-in", "1", "--price-out", "2", "--speculate", "0")
DEAR = ("--price-in", "1000", "--price-out", "1000", "--speculate", "0")


def backtest(home: Path, skill: Path, *more: object) -> tuple[object, ...]:
    return ("backtest", skill, *SIX_HOURS, "--model", "llm/fake", *more, "--home", home)


def spent(home: Path) -> Decimal:
    """What `runs spend` says in all."""
    rows = run_in_process("runs", "spend", "--json", "--home", home).json
    return sum((Decimal(row["cost_usd"]) for row in rows), Decimal(0))


def reserved_and_spent(home: Path) -> tuple[Decimal, Decimal]:
    """What is reserved and what is spent of today's budget."""
    with sqlite3.connect(f"file:{home / 'pitboss.db'}?mode=ro", uri=True) as base:
        ((reserved, used),) = base.execute("SELECT reserved_usd, spent_usd FROM budgets").fetchall()
    return Decimal(reserved), Decimal(used)


def exact_decimal(amount: float) -> Decimal:
    return Decimal(repr(amount))


@pytest.mark.parametrize("json_", [(), ("--json",)])
def test_above_five_dollars_a_backtest_needs_yes_and_nothing_is_called_or_stored(
    json_: tuple[str, ...], home: Path, skill: Path, lend_credentials: Any
) -> None:
    with fake_provider(decide) as server:
        lend_credentials(server)
        refused = run_in_process(*backtest(home, skill, *DEAR, *json_), code=2)
        (line,) = [line for line in refused.err.splitlines() if line.startswith("error:")]
        assert "this may cost $" in line
        assert "--yes" in line
        assert refused.out == ""
        over = run_in_process(*backtest(home, skill, *DEAR, *json_, "--yes"), code=2)
        assert "local may spend $5 a day: $0 is spent, $0 is reserved, $5 is left" in over.err
        assert "daily_usd" in over.err
        assert server.calls == 0
    assert run_in_process("runs", "list", "--json", "--home", home).json == []


def test_the_setting_moves_the_limit_and_a_limit_of_the_run_makes_the_question_unneeded(
    home: Path, skill: Path, lend_credentials: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fake_provider(decide) as server:
        lend_credentials(server)
        monkeypatch.setenv("PITBOSS_CONFIRM_ABOVE_USD", "0.01")
        assert "more than $0.01" in run_in_process(*backtest(home, skill, *CHEAP), code=2).err
        monkeypatch.delenv("PITBOSS_CONFIRM_ABOVE_USD")
        limited = run_in_process(*backtest(home, skill, *DEAR, "--max-cost-usd", "0.5", "--json"), code=1).json
        assert server.calls == 0, "one call could cost more than that"
    assert limited["errors"][0].startswith("budget: ")
    assert limited["estimate"]["hi"] == 0.5


def test_what_a_cheap_run_cost_does_not_hide_a_higher_price(home: Path, skill: Path, lend_credentials: Any) -> None:
    with fake_provider(decide) as server:
        lend_credentials(server)
        run_in_process(*backtest(home, skill, *CHEAP))
        calls = server.calls
        assert "needs your consent" in run_in_process(*backtest(home, skill, *DEAR), code=2).err
        assert server.calls == calls


def test_one_cost_in_run_spend_budget_and_report(
    home: Path, skill: Path, lend_credentials: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_DAILY_USD", "3")
    seen: list[tuple[Decimal, Decimal]] = []

    def script(question: Any) -> Any:
        seen.append(reserved_and_spent(home))
        return decide(question)

    with fake_provider(script) as server:
        lend_credentials(server)
        first = run_in_process(*backtest(home, skill, *CHEAP, "--json")).json
        again = run_in_process(*backtest(home, skill, *CHEAP, "--repeats", "2", "--json")).json
    reserved = {amounts[0] for amounts in seen[:TICKS]}
    assert len(reserved) == 1, "the whole run is reserved before its first call"
    assert exact_decimal(first["estimate"]["hi"]) <= reserved.pop() <= 3
    cost = exact_decimal(first["cost_usd"])
    assert cost > 0
    assert first["spend"] == {
        "paid_usd": first["cost_usd"],
        "speculative_waste_usd": 0,
        "saved_usd": 0,
        "uncertain_usd": 0,
    }
    assert set(first["estimate"]) >= {"usd", "lo", "hi", "basis"}
    shown = [run_in_process("runs", "show", run["run_id"], "--json", "--home", home).json for run in again["repeats"]]
    assert all(run["estimate"] is not None for run in shown)
    assert shown[0]["spend"]["saved_usd"] == first["cost_usd"], "the first repeat asks what was answered before"
    total = cost + sum((exact_decimal(run["spend"]["paid_usd"]) for run in shown), Decimal(0))
    assert reserved_and_spent(home) == (0, total)
    assert spent(home) == total
    page = Path(first["report"]).read_text()
    assert f"${cost:.4f}" in page or f"${cost:.2f}" in page
    left = 3 - total
    refused = run_in_process(*backtest(home, skill, *CHEAP, "--max-cost-usd", "3"), code=2).err
    assert f"${total} is spent" in refused
    assert f"${left} is left" in refused


def test_repeats_that_do_not_fit_into_the_day_together_are_refused_before_the_first(
    home: Path, skill: Path, lend_credentials: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_DAILY_USD", "3")
    with fake_provider(decide) as server:
        lend_credentials(server)
        refused = run_in_process(*backtest(home, skill, *CHEAP, "--max-cost-usd", "1.6", "--repeats", "2"), code=2)
        assert "may spend $3 a day" in refused.err
        assert server.calls == 0
    assert run_in_process("runs", "list", "--json", "--home", home).json == []


def test_replies_that_broke_off_after_they_were_paid_are_in_every_account(
    home: Path, skill: Path, lend_credentials: Any
) -> None:
    """A provider that reports its tokens and then an error is paid; the reply is not served again."""

    def script(question: Any) -> Any:
        if server.calls % 3:
            return decide(question)
        plain = provider.message(question, "half an ans")
        plain["choices"][0]["finish_reason"] = "error"
        return provider.body(plain)

    with fake_provider(script) as server:
        lend_credentials(server)
        run = run_in_process(*backtest(home, skill, *CHEAP, "--json")).json
    assert exact_decimal(run["cost_usd"]) == spent(home) == reserved_and_spent(home)[1]
    assert run["spend"]["uncertain_usd"] == 0


def test_a_resumed_run_is_held_to_the_day_for_what_it_may_still_cost(
    home: Path, skill: Path, lend_credentials: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_DAILY_USD", "3")
    with fake_provider(decide) as server:
        lend_credentials(server)
        stopped = run_in_process(*backtest(home, skill, *CHEAP, "--max-cost-usd", "0.05", "--json"), code=1).json
        used = reserved_and_spent(home)[1]
        assert used == exact_decimal(stopped["spend"]["paid_usd"])
        resume = ("runs", "resume", stopped["run_id"], "--json", "--home", home)
        refused = run_in_process(*resume, "--max-cost-usd", "4", code=2)
        assert "may spend $3 a day" in refused.err
        assert f"this may cost ${4 - used}" in refused.err, "what is paid is not reserved again"
        assert run_in_process("runs", "show", stopped["run_id"], "--json", "--home", home).json["status"] == "error"
        done = run_in_process(*resume, "--max-cost-usd", "3").json
    assert done["status"] == "complete"
    assert reserved_and_spent(home) == (0, exact_decimal(done["cost_usd"]))


def test_a_fork_to_a_dear_model_needs_yes_and_leaves_no_branch(home: Path, skill: Path, lend_credentials: Any) -> None:
    source = run_in_process("backtest", skill, *SIX_HOURS, "--json", "--home", home).json
    fork = ("runs", "fork", source["run_id"], "--at", "2025-03-20T01:00:00Z", "--model", "llm/fake", *DEAR[:4])
    with fake_provider(decide) as server:
        lend_credentials(server)
        assert "--yes" in run_in_process(*fork, "--home", home, code=2).err
        assert "may spend $5 a day" in run_in_process(*fork, "--yes", "--home", home, code=2).err
        assert server.calls == 0
    assert len(run_in_process("runs", "list", "--json", "--home", home).json) == 1


def test_jobs_again_is_held_to_the_day(
    home: Path, skill: Path, lend_credentials: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_EXECUTOR", "none")
    with fake_provider(decide) as server:
        lend_credentials(server)
        stopped = run_in_process(*backtest(home, skill, *CHEAP, "--max-cost-usd", "0.05", "--json"), code=1).json
        used = exact_decimal(stopped["spend"]["paid_usd"])
        run_in_process("jobs", "again", stopped["run_id"], "--home", home)
        assert reserved_and_spent(home) == (Decimal("0.05") - used, used)
        run_in_process("jobs", "cancel", stopped["run_id"], "--home", home)
        monkeypatch.setenv("PITBOSS_DAILY_USD", "0.04")
        assert "may spend $0.04 a day" in run_in_process("jobs", "again", stopped["run_id"], "--home", home, code=2).err


@pytest.mark.chaos
def test_a_kill_leaves_the_reservation_and_the_call_under_way_is_counted_and_shown(home: Path, skill: Path) -> None:
    asked, calls = Event(), [0]

    def script(question: Any) -> Any:
        calls[0] += 1
        if calls[0] == 3:
            asked.set()
            return provider.hang
        return decide(question)

    with fake_provider(script) as server:
        process = start_pitboss(
            *backtest(home, skill, *CHEAP, "--max-cost-usd", "2", "--json"), **provider_environment(server)
        )
        assert asked.wait(PATIENCE_S)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert reserved_and_spent(home) == (2, 0), "until the run goes on or ends"
        run_id = run_in_process("runs", "list", "--json", "--home", home).json[0]["run_id"]
        killed = run_in_process("runs", "show", run_id, "--json", "--home", home).json
        assert killed["spend"]["uncertain_usd"] > 0
        done = run_in_process("runs", "resume", run_id, "--json", "--home", home, **provider_environment(server)).json
        assert done["status"] == "complete"
        assert server.calls == TICKS + 1, "the call under way was made again"
    doubt = exact_decimal(done["spend"]["uncertain_usd"])
    assert doubt > 0
    assert reserved_and_spent(home) == (0, exact_decimal(done["cost_usd"]) + doubt)
    assert spent(home) == exact_decimal(done["cost_usd"])
    rows = run_in_process("runs", "spend", "--json", "--home", home).json
    assert sum(Decimal(row["uncertain_usd"]) for row in rows) == doubt
    shown = run_in_process("runs", "show", run_id, "--home", home).out
    assert "may have been charged" in shown
    assert "may have been charged" in Path(done["report"]).read_text()
