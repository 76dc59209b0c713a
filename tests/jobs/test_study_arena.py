"""The arena on a real store: entries, pairs and tiers that agree with each other and with the runs; its page."""

import asyncio
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from study_market import market, request

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.errors import TransientError, UserError
from pitboss.jobs import study as studying
from pitboss.jobs.arena import arena, entrants
from pitboss.jobs.study import study
from pitboss.jobs.study_page import result_document, write_page
from pitboss.jobs.study_plans import BuiltPlan, arena_plan, sweep_plan
from pitboss.jobs.study_queue import StudySettings
from pitboss.report.arena import compose
from pitboss.report.shell import html_document
from pitboss.runs.report import write_report
from pitboss.sim.study.axis import parse_axes
from pitboss.venues.perp.venue import VENUE
from pitboss.venues.predict.venue import VENUE as PREDICT

MODELS = ("policy/sma_cross", "policy/momentum", "policy/random")
MEAN = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("arena")
    (folder / "lake").symlink_to(market(), target_is_directory=True)
    with open_workspace(load_settings(folder)) as opened:
        yield opened


def run_study(workspace: Workspace, made: BuiltPlan) -> str:
    return asyncio.run(study(workspace, made.plan, made.method, StudySettings())).id


@pytest.fixture(scope="module")
def document(workspace: Workspace) -> dict[str, Any]:
    return arena(workspace, run_study(workspace, arena_plan(request(), MODELS)))


def test_models_and_the_baselines_of_the_venue_take_part_each_once() -> None:
    axis = entrants(["groq/a", "policy/random"], None, VENUE.baseline_models())
    assert axis.grid_values() == ("groq/a", "policy/random", "policy/hold", "policy/buy_and_hold")
    assert entrants(["groq/a", "groq/b"], [], VENUE.baseline_models()).grid_values() == ("groq/a", "groq/b")
    assert all(name.startswith("policy/") for name in entrants([], None, PREDICT.baseline_models()).grid_values())
    with pytest.raises(UserError, match="at least two"):
        entrants(["groq/a"], [], VENUE.baseline_models())


def test_only_what_depends_on_the_seed_is_repeated(document: dict[str, Any]) -> None:
    repeats = {entry["model"]: entry["repeats"] for entry in document["entries"]}
    assert repeats == {
        "policy/sma_cross": 1,
        "policy/momentum": 1,
        "policy/random": 3,
        "policy/hold": 1,
        "policy/buy_and_hold": 1,
    }
    assert (document["runs"], document["complete"], document["trials"]) == (7, 7, 7)


def test_entries_stand_in_the_order_of_what_they_ended_with_and_tiers_never_fall(document: dict[str, Any]) -> None:
    tiers = [entry["tier"] for entry in document["entries"]]
    assert tiers == sorted(tiers)
    assert tiers[0] == 1
    assert document["tiers"] == tiers[-1]
    order = [entry["model"] for entry in document["entries"]]
    percent = {(pair["first"], pair["second"]): pair["percent"] for pair in document["pairs"]}
    for first, second in combinations(order, 2):
        ahead = percent.get((first, second))
        assert ahead >= 0 if ahead is not None else percent[second, first] <= 0


def test_every_pair_is_compared_and_the_wider_interval_holds_for_all(document: dict[str, Any]) -> None:
    assert len(document["pairs"]) == 10
    for pair in document["pairs"]:
        assert pair["together"][0] <= pair["alone"][0] <= pair["percent"] <= pair["alone"][1] <= pair["together"][1]
        assert pair["told_apart"] == (pair["together"][0] > 0 or pair["together"][1] < 0)
        assert pair["told_apart"] == (pair["p"] < 0.05 + 1e-9)


def test_holding_cash_returns_nothing_and_has_no_ratio(document: dict[str, Any]) -> None:
    (cash,) = [entry for entry in document["entries"] if entry["model"] == "policy/hold"]
    assert (cash["total_return_pct"], cash["sharpe"], cash["deflated_sharpe"], cash["cost_usd"]) == (0, None, None, 0)
    assert cash["baseline"]


def test_the_same_runs_give_the_same_document_again(workspace: Workspace, document: dict[str, Any]) -> None:
    assert arena(workspace, document["study_id"]) == document


def test_a_short_arena_has_one_tier_and_states_the_reason(workspace: Workspace) -> None:
    short = arena(workspace, run_study(workspace, arena_plan(request(days=5), MODELS[:2])))
    assert {entry["tier"] for entry in short["entries"]} == {1}
    assert all(pair["together"] is None for pair in short["pairs"])
    assert short["overfitting"] is None
    assert "intervals need 20" in short["warnings"][0]
    assert "too few days" in html_document(compose(short))


def test_a_sweep_is_no_arena(workspace: Workspace) -> None:
    study_id = run_study(workspace, sweep_plan(request(days=2), parse_axes(["risk.max_position_pct=10"])))
    with pytest.raises(UserError, match="is no arena"):
        arena(workspace, study_id)


def test_the_page_names_all_entrants_opens_offline_and_is_the_same_each_time(document: dict[str, Any]) -> None:
    page = html_document(compose(document))
    assert page == html_document(compose(document))
    assert all(entry["model"] in page for entry in document["entries"])
    assert f"pitboss study show {document['study_id']} --json" in page
    outside = re.findall(r'(?:src|href)="(?!#|data:)[^"]*"|url\((?!#)[^)]*\)|https?://[^\s"<]+', page)
    assert outside == []
    assert "Synthetic market" in page


def test_what_strangers_named_is_only_text_on_the_page(document: dict[str, Any]) -> None:
    mean = "<script>alert(1)</script>"
    entries = [{**document["entries"][0], "model": mean}, *document["entries"][1:]]
    pairs = [
        {**pair, **{side: mean for side in ("first", "second") if pair[side] == document["entries"][0]["model"]}}
        for pair in document["pairs"]
    ]
    curves = {
        mean if name == document["entries"][0]["model"] else name: curve for name, curve in document["curves"].items()
    }
    page = html_document(compose({**document, "entries": entries, "pairs": pairs, "curves": curves, "skill": mean}))
    assert mean not in page
    assert "&lt;script&gt;alert(1)" in page


def test_tiers_and_runs_without_a_result_have_their_place_on_the_page(document: dict[str, Any]) -> None:
    broken = {**document["entries"][-1], "tier": None, "rank": None, "returns_pct": [], "total_return_pct": None}
    apart = [{**pair, "told_apart": True, "together": [1.0, 2.0], "percent": 1.5} for pair in document["pairs"]]
    entries = [
        *({**entry, "tier": tier} for tier, entry in enumerate(document["entries"][:-1], 1)),
        {**broken, "total_return_ci": None, "sharpe": None},
    ]
    page = html_document(compose({**document, "entries": entries, "pairs": apart, "tiers": 4, "cost_usd": None}))
    assert "Tier 4" in page
    assert "no result" in page
    assert html_document(compose({**document, "entries": [], "pairs": [], "curves": {}, "overfitting": None}))


def rows_of(page: str, caption: str) -> list[str]:
    """The rows of the table with this caption."""
    (document,) = re.findall(rf"<caption>{caption}</caption>.*?<tbody>(.*?)</tbody>", page, re.DOTALL)
    return re.findall(r"<tr>.*?</tr>", document, re.DOTALL)


def entry_with_failed_runs(entry: dict[str, Any], *states: tuple[str, str | None]) -> dict[str, Any]:
    """An entrant with more runs in the given states, none of which has a result."""
    more = [
        {**entry["runs"][0], "run_id": f"bad{index}", "status": status, "error": error, "total_return_pct": None}
        for index, (status, error) in enumerate(states)
    ]
    return {**entry, "runs": [*entry["runs"], *more]}


def test_every_run_is_listed_with_what_it_came_to_and_what_to_type(document: dict[str, Any]) -> None:
    page = html_document(compose(document))
    rows = rows_of(page, "Runs")
    every = [(entry, run) for entry in document["entries"] for run in entry["runs"]]
    assert len(rows) == len(every) == document["runs"]
    for row, (entry, run) in zip(rows, every, strict=True):
        assert entry["model"] in row
        assert f"<code>pitboss report {run['run_id']}</code> <code>pitboss runs show {run['run_id']}</code>" in row
        assert f"{abs(run['total_return_pct']):.2f}%" in row
        assert "$0.00" in row
    returns = {entry["model"]: [run["total_return_pct"] for run in entry["runs"]] for entry in document["entries"]}
    for entry in document["entries"]:
        assert returns[entry["model"]] == pytest.approx(entry["returns_pct"]), "what the board is made of"
    assert [run["repeat"] for entry, run in every if entry["model"] == "policy/random"] == [0, 1, 2]
    assert "None: every run has a result." in page
    assert "incomplete" not in page


def test_the_row_of_an_entrant_leads_to_its_runs_also_where_they_are_folded(document: dict[str, Any]) -> None:
    many = [{**entry, "runs": entry["runs"][:1] * 120} for entry in document["entries"]]
    for entries, folded in ((document["entries"], 0), (many, 1)):
        page = html_document(compose({**document, "entries": entries}))
        assert page.count('<details class="folded">') == folded
        names = re.findall(r' id="([^"]+)"', page)
        assert len(names) == len(set(names))
        assert set(re.findall(r'href="#([^"]+)"', page)) <= {*names}
        for index, (row, entry) in enumerate(zip(rows_of(page, "Leaderboard"), entries, strict=True)):
            assert f'href="#runs-{index}"' in row
            (first,) = [line for line in rows_of(page, "Runs") if f'id="runs-{index}"' in line]
            assert entry["runs"][0]["run_id"] in first
    assert "… and 100 more" in page


def test_causes_are_counted_cut_and_only_text(document: dict[str, Any]) -> None:
    long = f"{MEAN}\n{'far too much ' * 100}"
    states = (("error", long), ("error", long), ("cancelled", None), ("queued", None))
    entries = [
        entry_with_failed_runs(entry, *states) if entry["model"] == "policy/hold" else entry
        for entry in document["entries"]
    ]
    page = html_document(compose({**document, "entries": entries, "runs": 11}))
    (row,) = [row for row in rows_of(page, "Leaderboard") if "incomplete" in row]
    assert "policy/hold" in row
    assert "incomplete, 4 of 5 runs without a result" in row
    assert re.search(r"&lt;script&gt;.{,75}… \(2 runs\); other causes \(2 runs\)", row)
    assert ">1 of 5<" in row
    failed = rows_of(page, "Runs without a result")
    assert [re.findall(r"<code>(\w+)</code>", line)[0] for line in failed] == ["bad0", "bad1", "bad2", "bad3"]
    assert max(map(len, failed)) < 600
    assert "it was cancelled (1 run)" in page
    assert "it has not started (1 run)" in page
    assert "4 runs have no result; the causes are listed below." in page
    assert MEAN not in page


def test_an_entrant_that_fails_is_incomplete_where_it_is_ranked_and_the_others_are_compared(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = arena_plan(request(days=4), ["policy/random"], ["policy/hold", "policy/momentum"], repeats=2)
    real = studying.resume

    async def fails(place: Workspace, run_id: str, watch: Any) -> Any:
        run = place.runs.get(run_id)
        if run.model == "policy/momentum" or (run.model, run.params["study"]["repeat"]) == ("policy/random", 1):
            place.runs.fail(run_id, place.runs.claim(run_id), f"{run.model}: the line went dead")
            raise TransientError("the line went dead")
        return await real(place, run_id, watch)

    monkeypatch.setattr(studying, "resume", fails)
    study_id = asyncio.run(study(workspace, plan.plan, plan.method, StudySettings("here", 2))).id
    page = write_page(workspace, result_document(workspace, study_id)).read_text("utf-8")
    board = {model: row for row in rows_of(page, "Leaderboard") for model in re.findall(r"policy/\w+", row)[:1]}
    assert "incomplete" not in board["policy/hold"]
    assert "1 of 2 runs without a result" in board["policy/random"]
    assert "Tier 1" in board["policy/random"], "by the repeat that has a result"
    assert "1 of 1 run without a result" in board["policy/momentum"]
    assert "no result" in board["policy/momentum"]
    assert all(">the line went dead (1 run)<" in board[f"policy/{name}"] for name in ("random", "momentum"))
    assert len(rows_of(page, "Runs")) == 4
    assert len(rows_of(page, "Runs without a result")) == 2


def test_a_single_entrant_with_a_result_is_not_called_ahead(document: dict[str, Any]) -> None:
    none = {"tier": None, "rank": None, "returns_pct": [], "total_return_pct": None, "total_return_ci": None}
    entries = [document["entries"][0], *({**entry, **none} for entry in document["entries"][1:])]
    page = html_document(compose({**document, "entries": entries, "pairs": [], "curves": {}}))
    assert "it is the only entrant with a result" in page
    assert "No other entrant has a result to compare it with." in page
    assert "significantly" not in page.partition("Method and limits")[0]


def test_only_reports_that_are_there_are_linked(workspace: Workspace, document: dict[str, Any], tmp_path: Path) -> None:
    first, second = (document["entries"][index]["runs"][0]["run_id"] for index in (0, 1))
    write_report(workspace, first)
    write_report(workspace, second, tmp_path / "gone.html").unlink()
    document = result_document(workspace, document["study_id"])
    page = write_page(workspace, document).read_text("utf-8")
    assert re.findall(r'<a href="([^"#]+)"', page) == [workspace.report_path(first).name]
    away = write_page(workspace, document, tmp_path / "arena.html").read_text("utf-8")
    (link,) = re.findall(r'<a href="([^"#]+)"', away)
    assert (tmp_path / link).resolve() == workspace.report_path(first).resolve()
