"""Sweeps, walk-forwards and arenas on the predict venue: the same machinery, its own metrics, hours instead of days."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from study_market import request as perp_request

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, MINUTE_MS, iso, parse_instant
from pitboss.data.importing import import_paths
from pitboss.jobs.arena import arena
from pitboss.jobs.plan import planned_runs
from pitboss.jobs.study import study
from pitboss.jobs.study_page import result_document, write_page
from pitboss.jobs.study_plans import BuiltPlan, arena_plan, sweep_plan
from pitboss.jobs.study_queue import StudySettings
from pitboss.jobs.study_status import chained, runs_of, trials_of
from pitboss.report.arena import compose as compose_arena
from pitboss.report.metric import checked_metric, metrics_of
from pitboss.report.shell import html_document
from pitboss.report.study import compose
from pitboss.runs.run import verify
from pitboss.runs.venues import venue_named, venues
from pitboss.sim.study.axis import parse_axes
from pitboss.sim.study.choice import PATHS, SMALLER_IS_BETTER
from pitboss.venues.predict.assembly import PredictRequest

FROM = parse_instant("2026-02-22T12:00:00Z")
HOURS = 6
MODELS = "model=policy/alternate,policy/yes_only,standin/analyst"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("predict")
    rng, price = Random(3), 65_000.0
    lines = ["date,open,high,low,close,volume"]
    for index in range(-6 * 60, HOURS * 60 + 5):
        before, price = price, price * (1 + rng.gauss(0, 0.0006))
        row = (before, max(before, price), min(before, price), price)
        lines.append(f"{iso(FROM + index * MINUTE_MS)},{','.join(f'{one:.2f}' for one in row)},1")
    (folder / "bars.csv").write_text("\n".join(lines))
    end = FROM + HOURS * HOUR_MS
    with open_workspace(load_settings(folder / "home")) as opened:
        import_paths(opened.lake, [folder / "bars.csv"], "bars", "BTC", "1m", "generated", False, None, end, None)
        yield opened


def request(hours: int = 2, **more: Any) -> PredictRequest:
    skill = {
        "pitboss": 1,
        "name": "bets",
        "venue": "predict",
        "model": "policy/alternate",
        "schedule": {"every": "60s"},
        "strategy": {"mandate": "momentum"},
        "context": {"tiers": ["15m", "1h"]},
    }
    return PredictRequest(skill, FROM, FROM + hours * HOUR_MS, **more)


def run_plan(workspace: Workspace, asked: BuiltPlan) -> dict[str, Any]:
    result = asyncio.run(study(workspace, asked.plan, asked.method, StudySettings("here", 2)))
    assert result.failed == []
    return result_document(workspace, asked.plan.id)


@pytest.fixture(scope="module")
def sweep_result(workspace: Workspace) -> dict[str, Any]:
    return run_plan(workspace, sweep_plan(request(), parse_axes([MODELS]), by="brier"))


def test_a_sweep_is_judged_by_brier_and_who_states_no_confidence_comes_last(
    workspace: Workspace, sweep_result: dict[str, Any]
) -> None:
    assert (sweep_result["by"], sweep_result["better"], sweep_result["venue"]) == ("brier", "less", "predict")
    first, *others = sweep_result["trials"]
    assert first["model"] == "standin/analyst"
    assert 0 < first["metrics"]["brier"] < 1
    assert first["score"] == -first["metrics"]["brier"]
    assert [one["score"] for one in others] == [None, None], "heuristics say no probability"
    assert {"log_loss", "hit_rate", "calls"} < set(first["metrics"])
    assert verify(workspace, first["runs"][0]["run_id"]) == []
    page = html_document(compose(sweep_result))
    assert "Best Brier score" in page
    assert f"{first['metrics']['brier']:.4f}" in page


def test_every_metric_that_can_be_asked_for_is_one_that_runs_of_the_venue_have(
    workspace: Workspace, sweep_result: dict[str, Any]
) -> None:
    metrics = workspace.runs.get(sweep_result["trials"][0]["runs"][0]["run_id"]).metrics
    for name in metrics_of(venue_named("predict").metrics()):
        assert has_figure(metrics, name), name
    assert set(SMALLER_IS_BETTER) <= {name for venue in venues() for name in metrics_of(venue.metrics())}


def has_figure(found: Any, name: str) -> bool:
    """Whether a run has the figure, be it as unknown."""
    for part in PATHS.get(name, (name,)):
        if part not in found:
            return False
        found = found[part]
    return found is None or isinstance(found, int | float)


def test_trials_can_be_put_into_the_order_of_any_of_the_metrics(
    workspace: Workspace, sweep_result: dict[str, Any]
) -> None:
    runs = runs_of(workspace, sweep_result["study_id"])
    for by in ("brier", "log_loss", "total_return_pct", "hit_rate", "brier_skill", "max_drawdown_pct"):
        values = [trial["metrics"][by] for trial in trials_of(runs, by, ()) if trial["score"] is not None]
        assert values, by
        assert values == sorted(values, reverse=by not in SMALLER_IS_BETTER), by


def test_without_a_metric_the_return_is_taken_as_hours_have_no_sharpe() -> None:
    assert sweep_plan(request(), parse_axes([MODELS])).plan.by == "total_return_pct"
    assert sweep_plan(perp_request(), parse_axes([MODELS])).plan.by == "sharpe"


@pytest.mark.parametrize(
    ("by", "venue", "message", "hint"),
    [
        ("win_rate", "predict", "runs of the predict venue have no metric 'win_rate'", "did you mean hit_rate?"),
        ("brier", "perp", "runs of the perp venue have no metric 'brier'", "for example total_return_pct, sharpe"),
        ("Brier-Score", "predict", "have no metric 'Brier-Score'", "did you mean brier?"),
        ("sharp", "perp", "have no metric 'sharp'", "did you mean sharpe?"),
        ("rejections_by_rule", "perp", "have no metric", "for example total_return_pct"),
        ("deflated_sharpe", "perp", "no single run has a deflated_sharpe", "choose by sharpe"),
        ("zzz", "predict", "have no metric", "for example total_return_pct, brier or calls"),
    ],
)
def test_a_metric_that_no_run_will_have_is_refused_with_one_that_they_have(
    by: str, venue: str, message: str, hint: str
) -> None:
    with pytest.raises(UserError) as refusal:
        known = venue_named(venue)
        checked_metric(by, known.metrics(), known.study_metrics(), venue)
    assert message in refusal.value.message
    assert hint in (refusal.value.hint or "")


def test_a_walk_forward_over_hours_counts_days_as_days(workspace: Workspace) -> None:
    document = run_plan(
        workspace, sweep_plan(request(HOURS), parse_axes(["model=policy/alternate,policy/yes_only"]), walk="2h/1h")
    )
    forward = document["forward"]
    windows = forward["windows"]
    assert len(windows) == 4
    assert [window["from"] for window in windows] == [iso(FROM + hour * HOUR_MS) for hour in (2, 3, 4, 5)]
    whole = 1.0
    for window in windows:
        whole *= 1 + window["total_return_pct"] / 100
    assert forward["total_return_pct"] == pytest.approx(100 * (whole - 1))
    assert (forward["days"], forward["sharpe"]) == (1, None), "four hours of one day are no four days"
    assert "2026-02-22 14:00 to 15:00" in html_document(compose(document))


def test_a_walk_forward_that_can_choose_nothing_says_so(workspace: Workspace) -> None:
    axes = parse_axes(["model=policy/alternate,policy/yes_only"])
    document = run_plan(workspace, sweep_plan(request(4), axes, walk="2h/1h", by="log_loss"))
    assert document["forward"]["windows"] == []
    assert document["forward"]["not_judged"] == 2
    page = html_document(compose(document))
    assert "No window could be tested" in page
    assert "Choose another metric with --by" in page


def test_stretches_become_one_history_of_days() -> None:
    noon = FROM
    assert chained([]) == []
    assert chained([(noon, [0.1]), (noon + HOUR_MS, [-0.5])]) == [pytest.approx(1.1 * 0.5 - 1)]
    night = FROM + 12 * HOUR_MS
    assert chained([(noon, [0.1, 0.2]), (night + HOUR_MS, [0.5])]) == [pytest.approx(0.1), pytest.approx(0.8)]
    assert chained([(night, [0.1, 0.2]), (night + 48 * HOUR_MS, [0.3])]) == pytest.approx([0.1, 0.2, 0.3])


def test_an_arena_holds_models_against_the_heuristics_and_shows_their_brier(workspace: Workspace) -> None:
    plan = arena_plan(request(), ["standin/analyst"], repeats=2)
    asyncio.run(study(workspace, plan.plan, plan.method, StudySettings("here", 2)))
    document = arena(workspace, plan.plan.id)
    assert [entry["model"] for entry in document["entries"] if entry["baseline"]]
    assert {entry["model"] for entry in document["entries"]} == {
        "standin/analyst",
        "policy/alternate",
        "policy/no_only",
        "policy/yes_only",
    }
    briers = {entry["model"]: entry["brier"] for entry in document["entries"]}
    assert briers["policy/alternate"] is None
    assert 0 < briers["standin/analyst"] < 1
    assert document["warnings"][0].startswith("Only 1 day:")
    page = html_document(compose_arena(document))
    assert "Brier" in page
    assert f"{briers['standin/analyst']:.4f}" in page


def test_what_a_point_may_vary_is_that_of_the_venue() -> None:
    for invalid, message in (("risk.max_leverage=1,2", "max_leverage"), ("run.taker_bps=1", "no such field")):
        with pytest.raises(UserError, match=message):
            plan = sweep_plan(request(), parse_axes([invalid]))
            planned_runs(plan.plan, plan.expected_trials)


def test_the_page_is_written_where_the_others_are(
    workspace: Workspace, sweep_result: dict[str, Any], tmp_path: Path
) -> None:
    assert write_page(workspace, sweep_result, tmp_path / "bets.html").read_text("utf-8") == html_document(
        compose(sweep_result)
    )
