"""The page of a study: every kind, untrusted text, missing data, links, and identical bytes each time."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from study_market import market, request

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.cli.study_result import show_study
from pitboss.core.errors import UserError
from pitboss.jobs.search import is_installed
from pitboss.jobs.study import study
from pitboss.jobs.study_page import linked, result_document, write_page
from pitboss.jobs.study_plans import BuiltPlan, sweep_plan
from pitboss.jobs.study_queue import StudySettings
from pitboss.report.shell import html_document
from pitboss.report.study import compose
from pitboss.runs.report import write_report
from pitboss.sim.study.axis import parse_axes
from pitboss.terminal.workspace_options import WorkspaceOptions

Plain = dict[str, Any]
VARIED = ("risk.max_position_pct=10,20,40", "model=policy/sma_cross,policy/momentum")
MEAN = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    home = tmp_path_factory.mktemp("page") / "home"
    home.mkdir()
    (home / "lake").symlink_to(market(), target_is_directory=True)
    with open_workspace(load_settings(home)) as found:
        yield found


def run_plan(workspace: Workspace, asked: BuiltPlan) -> Plain:
    asyncio.run(study(workspace, asked.plan, asked.method, StudySettings("here", 2)))
    return result_document(workspace, asked.plan.id)


@pytest.fixture(scope="module")
def grid_result(workspace: Workspace) -> Plain:
    return run_plan(workspace, sweep_plan(request(days=14), parse_axes(VARIED)))


@pytest.fixture(scope="module")
def walk_forward_result(workspace: Workspace) -> Plain:
    return run_plan(workspace, sweep_plan(request(days=14), parse_axes(VARIED), walk="6d/4d"))


def external_references(page: str) -> list[str]:
    """Whatever the page would fetch, or lead to, outside of itself."""
    return re.findall(r'(?:src|href)="(?!#|data:)[^"]*"|url\((?!#)[^)]*\)|https?://[^\s"<]+', page)


def rows_of(page: str, caption: str) -> list[str]:
    """The rows of the table with this caption."""
    (found,) = re.findall(rf"<caption>{caption}</caption>.*?<tbody>(.*?)</tbody>", page, re.DOTALL)
    return re.findall(r"<tr>.*?</tr>", found, re.DOTALL)


def test_a_sweep_shows_its_fields_trials_and_luck_and_is_the_same_each_time(grid_result: Plain) -> None:
    page = html_document(compose(grid_result))
    assert page == html_document(compose(grid_result))
    assert external_references(page) == []
    trials = rows_of(page, "Trials")
    assert len(trials) == 6
    order = [re.findall(r"<code>(\w+)</code>", row)[0] for row in trials]
    assert order == [trial["runs"][0]["run_id"] for trial in grid_result["trials"]], "the best first"
    assert page.count("<title>Sharpe by ") == 2, "a picture for each field"
    assert len(rows_of(page, "Both fields")) == 2
    assert "Deflated Sharpe" in page
    assert f"best of {grid_result['luck']['runs']} runs" in page
    assert "Synthetic market" in page
    assert "None: every run has a result." in page
    assert "<code>pitboss report RUN</code>" in page


def test_a_walk_forward_shows_what_was_chosen_and_what_came_of_it(walk_forward_result: Plain) -> None:
    page = html_document(compose(walk_forward_result))
    assert external_references(page) == []
    windows = walk_forward_result["forward"]["windows"]
    assert len(windows) == 2
    assert len(rows_of(page, "Windows of the walk-forward")) == 2
    assert page.count('class="dot before" cx') - 1 == 2, "and one in the legend"
    assert page.count('class="dot after" cx') - 1 == 2
    assert all(window["tried"] == 6 and window["tried_between"][1] == window["inside"] for window in windows)
    assert walk_forward_result["forward"]["curve"][-1] == pytest.approx(
        1 + walk_forward_result["forward"]["total_return_pct"] / 100
    )
    assert "Out-of-sample days" in page


def test_a_sharpe_ratio_of_few_days_is_flagged_wherever_a_study_shows_it(
    grid_result: Plain, walk_forward_result: Plain, capsys: pytest.CaptureFixture[str]
) -> None:
    flagged = re.compile(r"\d\.\d\d \(&lt;20 days\)")
    page, windows = html_document(compose(grid_result)), html_document(compose(walk_forward_result))
    assert all(
        flagged.search(row) for row in (*rows_of(page, "Trials"), *rows_of(page, "Significance of the best trial")[1:2])
    )
    assert all(len(flagged.findall(row)) == 2 for row in rows_of(windows, "Windows of the walk-forward"))
    for label, text in (("Best Sharpe", page), ("Sharpe: in sample → out of sample", windows), ("Sharpe", windows)):
        (tile,) = re.findall(rf"<h2>{label}</h2>.*?</div>", text)
        assert "<strong>&lt;20 days</strong>" in tile
    show_study(grid_result, WorkspaceOptions())
    assert capsys.readouterr().out.count("(<20 days)") == len(grid_result["trials"])
    show_study(walk_forward_result, WorkspaceOptions())
    assert capsys.readouterr().out.count("(<20 days)") == 2 + 2 * 2 + 1, (
        "trials out of sample, windows, all of them joined"
    )
    long = {**grid_result, "trials": [{**trial, "few_days": False} for trial in grid_result["trials"]]}
    assert "20 days" not in html_document(compose(long))


@pytest.mark.skipif(not is_installed(), reason="optuna is not installed")
def test_a_search_shows_how_it_went_on_and_a_draw_from_where(workspace: Workspace) -> None:
    document = run_plan(workspace, sweep_plan(request(days=4), parse_axes(["risk.max_position_pct=5..60"]), search=6))
    page = html_document(compose(document))
    assert "Progress of the search" in page
    assert "optuna, seed 0" in page
    drawn = run_plan(workspace, sweep_plan(request(days=4), parse_axes(["risk.max_position_pct=5..60"]), random=3))
    assert "3 points, drawn at random (seed 0)" in html_document(compose(drawn))
    assert "requested: 5..60" in html_document(compose(drawn))


def test_what_strangers_wrote_is_only_text(grid_result: Plain, walk_forward_result: Plain) -> None:
    for plain in (grid_result, walk_forward_result):
        broken = [{"run_id": MEAN, "status": "error", "error": MEAN, "report": None}]
        point = {f"context.{MEAN}": MEAN, "model": "x"}
        trials = [
            {**trial, "point": point, "model": MEAN, "runs": [*trial["runs"], *broken]} for trial in plain["trials"]
        ]
        page = html_document(
            compose({**plain, "trials": trials, "skill": MEAN, "name": MEAN, "vary": [f"{MEAN}={MEAN}"]})
        )
        assert MEAN not in page
        assert page.count("<script>") == 1, "our own"
        assert "&lt;script&gt;alert(" in page


def test_runs_without_a_result_are_reported_with_their_cause(grid_result: Plain) -> None:
    states = ("error", "cancelled", "queued", "running", "complete", "complete")
    trials = [
        {
            **trial,
            "score": None,
            "metrics": dict.fromkeys(trial["metrics"]),
            "runs": [{**trial["runs"][0], "status": state}],
        }
        for trial, state in zip(grid_result["trials"], states, strict=True)
    ]
    trials[0]["runs"][0]["error"] = "bars of BTC are missing"
    page = html_document(compose({**grid_result, "trials": trials}))
    rows = rows_of(page, "Runs without a result")
    assert len(rows) == 4
    for cause in ("bars of BTC are missing", "it was cancelled", "it has not started", "it is running"):
        assert sum(cause in row for row in rows) == 1
    assert "partial" in page
    assert "4 runs have no result" in page


def test_a_metric_that_no_run_has_is_said_with_what_to_do(grid_result: Plain) -> None:
    bare = [{**trial, "score": None, "metrics": {**trial["metrics"], "brier": None}} for trial in grid_result["trials"]]
    luck = {**grid_result["luck"], "deflated_sharpe": None, "best_sharpe": None, "overfitting": None}
    page = html_document(compose({**grid_result, "by": "brier", "better": "less", "trials": bare, "luck": luck}))
    assert "No metric to compare" in page
    assert "--by, for example total_return_pct" in page


def test_a_best_sharpe_below_zero_is_called_a_loss_and_not_chance(
    grid_result: Plain, capsys: pytest.CaptureFixture[str]
) -> None:
    luck = {**grid_result["luck"], "deflated_sharpe": 0.0312, "best_sharpe": -1.204, "lucky_sharpe": 0.9}
    losing = {**grid_result, "luck": luck}
    sentence = (
        "The best trial has a Sharpe of −1.20: its days lost on average, so there is no gain to tell from chance."
    )
    page = html_document(compose(losing))
    assert page.count(sentence) == 1
    assert "chance may explain it" not in page
    assert "probability that it exceeds the best of" not in page
    show_study(losing, WorkspaceOptions())
    printed = " ".join(capsys.readouterr().out.split())
    assert sentence in printed
    assert "deflated Sharpe" not in printed
    assert "−1.20" not in html_document(compose(grid_result)), "the best of the other one is above zero"


def test_less_is_better_turns_the_shades_and_the_words_round(workspace: Workspace) -> None:
    document = run_plan(workspace, sweep_plan(request(days=14), parse_axes(VARIED), by="max_drawdown_pct"))
    assert document["better"] == "less"
    page = html_document(compose(document))
    assert "lower is better" in page
    values = {trial["metrics"]["max_drawdown_pct"]: trial["score"] for trial in document["trials"]}
    least = min(values)
    assert values[least] == max(values.values())
    (peak,) = re.findall(r'class="shade q6 peak">([^<]+)<', page)
    assert peak == f"{least:.2f}%"


def test_a_study_without_runs_and_one_of_a_single_point_have_a_page(grid_result: Plain) -> None:
    empty = {**grid_result, "trials": [], "runs": 0, "counts": {}, "luck": {**grid_result["luck"], "runs": 0}}
    assert "No run has a result yet." in html_document(compose(empty))
    one = {**grid_result, "trials": grid_result["trials"][:1]}
    assert "Only one point was run" in html_document(compose(one))


def test_a_thousand_trials_are_cut_to_what_can_be_read(grid_result: Plain) -> None:
    first = grid_result["trials"][0]
    trials = [
        {
            **first,
            "trial": number,
            "point": {"risk.x": f"{number / 10:.1f}"},
            "metrics": {**first["metrics"], "sharpe": number},
        }
        for number in range(1_000)
    ]
    page = html_document(compose({**grid_result, "trials": trials}))
    assert len(rows_of(page, "Trials")) == 500
    assert "… and 500 more" in page
    assert len(page) < 600_000


def test_the_page_links_the_reports_that_are_there_and_no_others(
    workspace: Workspace, grid_result: Plain, tmp_path: Path
) -> None:
    best, second = (trial["runs"][0]["run_id"] for trial in grid_result["trials"][:2])
    write_report(workspace, best)
    removed = write_report(workspace, second, tmp_path / "gone & <away>.html")
    document = result_document(workspace, grid_result["study_id"])
    there = write_page(workspace, document)
    assert there == workspace.home / "reports" / f"study-{grid_result['study_id']}.html"
    links = re.findall(r'<a href="([^"#]+)"', there.read_text("utf-8"))
    assert links[0] == workspace.report_path(best).name
    assert links[1].endswith("gone%20%26%20%3Caway%3E.html")
    removed.unlink()
    page = write_page(workspace, result_document(workspace, grid_result["study_id"]), tmp_path / "elsewhere.html")
    (link,) = re.findall(r'<a href="([^"#]+)"', page.read_text("utf-8"))
    assert (tmp_path / link).resolve() == workspace.report_path(best).resolve()
    assert linked(grid_result, tmp_path)["trials"][0]["point"] == grid_result["trials"][0]["point"]


def test_a_page_that_cannot_be_written_is_one_line_and_leaves_nothing(
    workspace: Workspace, grid_result: Plain, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="cannot write"):
        write_page(workspace, grid_result, tmp_path / "missing" / "page.html")
    assert list(tmp_path.iterdir()) == []
