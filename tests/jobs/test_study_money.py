"""The cost of a study: its estimate, the consent to it, and the daily budget."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from study_market import market, request

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.cli.consent import estimate_line
from pitboss.core.errors import BudgetExceeded, UserError
from pitboss.jobs.estimate import Estimate, estimate, needs_consent, require_consent, worst_case
from pitboss.jobs.plan import planned_runs
from pitboss.jobs.study import StudyResult, study
from pitboss.jobs.study_plans import sweep_plan
from pitboss.jobs.study_queue import NO_OBSERVER, StudyBudget, StudyObserver, StudySettings, ensure_queued
from pitboss.sim.study.axis import parse_axes
from pitboss.store.budgets import Budgets
from pitboss.store.studies import Studies
from pitboss.testing.provider import FakeProvider, decide
from pitboss.venues.perp.assembly import PerpRequest

FIVE = Decimal(5)
TICKS = 6
"""A day, asked every four hours."""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("LLM_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("LLM_API_KEY", "test-key-123456")
    (tmp_path / "lake").symlink_to(market(), target_is_directory=True)
    with open_workspace(load_settings(tmp_path)) as found:
        yield found


def paid_request(days: int = 1, **more: object) -> PerpRequest:
    one = request("llm/fake", days, price_in=Decimal(10), price_out=Decimal(20), speculate="0")
    return replace(one, **more)  # pyright: ignore[reportArgumentType]


def test_programs_cost_nothing_and_need_no_consent(workspace: Workspace) -> None:
    estimated = estimate(workspace, [request(days=1)] * 3)
    assert (estimated.usd, estimated.lo, estimated.hi, estimated.calls, estimated.runs) == (0, 0, 0, 0, 3)
    assert not needs_consent(estimated, FIVE)


def test_an_estimate_is_ticks_times_prompt_times_price_with_a_range_and_what_it_rests_on(workspace: Workspace) -> None:
    estimated = estimate(workspace, [paid_request()])
    assert estimated.lo is not None
    assert estimated.usd is not None
    assert estimated.hi is not None
    assert 0 < estimated.lo < estimated.usd < estimated.hi
    assert estimated.calls == TICKS
    basis = " ".join(estimated.basis)
    assert "1 run, 6 ticks" in basis
    assert "measured on the prompt of the skill" in basis
    assert "has not run here yet" in basis
    twice = estimate(workspace, [paid_request(), paid_request(days=2)])
    assert twice.usd == 3 * estimated.usd
    dear = estimate(workspace, [paid_request(price_in=Decimal(100), price_out=Decimal(200))])
    assert dear.usd == 10 * estimated.usd


def test_asking_ahead_sleeping_tools_and_lessons_move_the_range(workspace: Workspace) -> None:
    plain, one = estimate(workspace, [paid_request()]), paid_request()
    assert plain.hi is not None
    ahead = estimate(workspace, [paid_request(speculate="auto")])
    assert ahead.usd == plain.usd
    assert ahead.hi == plain.hi * Decimal("1.35")
    assert plain.ahead_usd == 0
    assert ahead.ahead_usd == pytest.approx(ahead.hi - plain.hi)
    assert f"up to ${ahead.ahead_usd:.2f} for asking ahead" in estimate_line(ahead)
    assert [estimate_line(replace(ahead, calls=count)).rpartition(", ")[2] for count in (1, 2)] == ["1 call", "2 calls"]
    assert Estimate.from_plain(ahead.plain()).ahead_usd == round(ahead.ahead_usd, 6)
    sleeps = replace(one, skill={**one.skill, "schedule": {"every": "4h", "wake_when": ["position_open"]}})
    assert "sleeps" in " ".join(estimate(workspace, [sleeps]).basis)
    looks = replace(one, skill={**one.skill, "tools": {"built_in": ["get_portfolio"]}})
    assert (estimate(workspace, [looks]).usd or 0) > (plain.usd or 0)


def test_each_of_two_prices_of_a_model_is_covered_by_its_worst_case(workspace: Workspace) -> None:
    cheap, dear = paid_request(), paid_request(price_in=Decimal(100), price_out=Decimal(200))
    alone = worst_case(estimate(workspace, [dear]), dear)
    assert worst_case(estimate(workspace, [dear, cheap]), dear) == alone
    assert worst_case(estimate(workspace, [cheap, dear]), dear) == alone


def test_an_unknown_price_gives_no_sum_and_says_so(workspace: Workspace) -> None:
    estimated = estimate(
        workspace, [replace(paid_request(), price_in=None, price_out=None, any_price=True), request(days=1)]
    )
    assert (estimated.usd, estimated.lo, estimated.hi) == (None, None, None)
    assert "its price is unknown" in " ".join(estimated.basis)


def test_above_five_dollars_consent_is_required() -> None:
    little, much = (Estimate(Decimal(usd), Decimal(1), Decimal(99), ()) for usd in ("5", "5.01"))
    require_consent(little, FIVE, False, None)
    require_consent(much, FIVE, True, None)
    require_consent(much, FIVE, False, lambda: True)
    with pytest.raises(UserError, match=r"this may cost \$5.01") as caught:
        require_consent(much, FIVE, False, None)
    assert "--yes" in caught.value.hint
    with pytest.raises(UserError):
        require_consent(much, FIVE, False, lambda: False)


def test_a_study_that_may_pass_the_days_limit_is_not_queued_at_all(workspace: Workspace) -> None:
    plan = sweep_plan(paid_request(), parse_axes(["seed=0..4"]))
    estimated = estimate(workspace, [member.request for member in planned_runs(plan.plan, plan.expected_trials)])
    worst = worst_case(estimated, plan.plan.request)
    assert worst > 0
    money = StudyBudget(lambda member: worst_case(estimated, member.request), 5 * worst - Decimal("0.01"))
    with pytest.raises(BudgetExceeded):
        asyncio.run(study(workspace, plan.plan, plan.method, StudySettings(budget=money)))
    assert workspace.runs.count() == {}
    assert Budgets(workspace.database).get("local").reserved_usd == 0


def test_what_is_set_aside_is_all_a_run_may_spend_and_comes_back_when_it_is_called_off(workspace: Workspace) -> None:
    plan = sweep_plan(paid_request(), parse_axes(["seed=0..4"]))
    planned = planned_runs(plan.plan, plan.expected_trials)
    estimated = estimate(workspace, [member.request for member in planned])
    worst = worst_case(estimated, plan.plan.request)
    money = StudyBudget(lambda member: worst_case(estimated, member.request), 5 * worst)
    Studies(workspace.database).save(plan.plan.id, plan.plan.document())
    ids = ensure_queued(workspace, plan.plan, planned, StudySettings(budget=money), NO_OBSERVER).ids
    assert Budgets(workspace.database).get("local").reserved_usd == 5 * worst
    assert Decimal(workspace.runs.get(ids[0]).params["max_cost_usd"]) == worst
    for run_id in ids:
        workspace.runs.request_cancel(run_id)
    budget = Budgets(workspace.database).get("local")
    assert (budget.reserved_usd, budget.spent_usd) == (0, 0)
    again = ensure_queued(workspace, plan.plan, planned, StudySettings(budget=money), NO_OBSERVER)
    assert Budgets(workspace.database).get("local").reserved_usd == 5 * worst, "the same command goes on"
    limits = {Decimal(workspace.runs.get(run_id).params["max_cost_usd"]) for run_id in again.ids}
    assert limits == {worst}, "nothing was paid before, so the limit is what is set aside"


def test_a_longer_run_sets_more_aside_and_every_run_has_room_for_its_last_call(workspace: Workspace) -> None:
    estimated = estimate(workspace, [paid_request(days=1), paid_request(days=3)])
    long, short = worst_case(estimated, paid_request(days=3)), worst_case(estimated, paid_request(days=1))
    room = 2 * estimated.call["llm/fake"]
    assert long > short > room > 0
    assert abs((long - room) - 3 * (short - room)) <= Decimal("0.04")


def test_the_runs_of_a_sweep_start_together_and_equal_requests_are_paid_once(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = sweep_plan(paid_request(), parse_axes(["run.slippage_bps_per_million=7,8,9,10"]))
    moves: list[tuple[str, str]] = []
    observer = StudyObserver(moved=lambda run_id, status, progress: moves.append((run_id, status)))

    async def execute() -> tuple[StudyResult, int]:
        async with FakeProvider(decide, latency_s=0.01) as fake:
            monkeypatch.setenv("LLM_BASE_URL", fake.url)
            return await study(workspace, built.plan, built.method, StudySettings("here", 4), observer), fake.calls

    result, calls = asyncio.run(execute())
    assert result.failed == []
    began = moves[: next(place for place, (_, status) in enumerate(moves) if status == "complete")]
    assert len({run_id for run_id, status in began if status == "running"}) == 4, "none waits for another to end"
    assert calls == TICKS, "the four send the same requests"
    costs = [run.cost_usd for runs in result.trials.values() for run in runs]
    saved = [run.saved_usd for runs in result.trials.values() for run in runs]
    assert {cost + other for cost, other in zip(costs, saved, strict=True)} == {sum(costs)}
