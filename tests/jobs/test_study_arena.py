"""The arena on a real store: entries, pairs and tiers that agree with each other and with the runs; its page."""

import asyncio
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
from studied import market, request

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.errors import UserError
from pitboss.jobs.arena import arena, entrants
from pitboss.jobs.make import Made, contest, sweep
from pitboss.jobs.study import Terms, study
from pitboss.sim.report.arena import render
from pitboss.sim.study.axis import parse_axes

MODELS = ("policy/sma_cross", "policy/momentum", "policy/random")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("arena")
    (folder / "lake").symlink_to(market(), target_is_directory=True)
    with open_workspace(load_settings(folder)) as found:
        yield found


def done(workspace: Workspace, made: Made) -> str:
    return asyncio.run(study(workspace, made.plan, made.method, Terms())).id


@pytest.fixture(scope="module")
def found(workspace: Workspace) -> dict[str, Any]:
    return arena(workspace, done(workspace, contest(request(), MODELS)))


def test_models_and_the_baselines_of_the_venue_take_part_each_once() -> None:
    axis = entrants(["groq/a", "policy/random"], None, "perp")
    assert axis.every() == ("groq/a", "policy/random", "policy/hold", "policy/buy_and_hold")
    assert entrants(["groq/a", "groq/b"], [], "perp").every() == ("groq/a", "groq/b")
    assert all(name.startswith("policy/") for name in entrants([], None, "predict").every())
    with pytest.raises(UserError, match="at least two"):
        entrants(["groq/a"], [], "perp")


def test_only_what_depends_on_the_seed_is_repeated(found: dict[str, Any]) -> None:
    repeats = {entry["model"]: entry["repeats"] for entry in found["entries"]}
    assert repeats == {
        "policy/sma_cross": 1,
        "policy/momentum": 1,
        "policy/random": 3,
        "policy/hold": 1,
        "policy/buy_and_hold": 1,
    }
    assert (found["runs"], found["complete"], found["trials"]) == (7, 7, 7)


def test_entries_stand_in_the_order_of_what_they_ended_with_and_tiers_never_fall(found: dict[str, Any]) -> None:
    tiers = [entry["tier"] for entry in found["entries"]]
    assert tiers == sorted(tiers)
    assert tiers[0] == 1
    assert found["tiers"] == tiers[-1]
    order = [entry["model"] for entry in found["entries"]]
    percent = {(one["first"], one["second"]): one["percent"] for one in found["pairs"]}
    for first, second in combinations(order, 2):
        ahead = percent.get((first, second))
        assert ahead >= 0 if ahead is not None else percent[second, first] <= 0


def test_every_pair_is_compared_and_the_wider_interval_holds_for_all(found: dict[str, Any]) -> None:
    assert len(found["pairs"]) == 10
    for one in found["pairs"]:
        assert one["together"][0] <= one["alone"][0] <= one["percent"] <= one["alone"][1] <= one["together"][1]
        assert one["told_apart"] == (one["together"][0] > 0 or one["together"][1] < 0)
        assert one["told_apart"] == (one["p"] < 0.05 + 1e-9)


def test_holding_cash_returns_nothing_and_has_no_ratio(found: dict[str, Any]) -> None:
    (cash,) = [entry for entry in found["entries"] if entry["model"] == "policy/hold"]
    assert (cash["total_return_pct"], cash["sharpe"], cash["deflated_sharpe"], cash["cost_usd"]) == (0, None, None, 0)
    assert cash["baseline"]


def test_the_same_runs_give_the_same_document_again(workspace: Workspace, found: dict[str, Any]) -> None:
    assert arena(workspace, found["study_id"]) == found


def test_a_short_arena_tells_nobody_apart_and_says_why(workspace: Workspace) -> None:
    short = arena(workspace, done(workspace, contest(request(days=5), MODELS[:2])))
    assert {entry["tier"] for entry in short["entries"]} == {1}
    assert all(one["together"] is None for one in short["pairs"])
    assert short["overfitting"] is None
    assert "intervals need 20" in short["warnings"][0]
    assert "too few days to say" in render(short)


def test_a_sweep_is_no_arena(workspace: Workspace) -> None:
    study_id = done(workspace, sweep(request(days=2), parse_axes(["risk.max_position_pct=10"])))
    with pytest.raises(UserError, match="is no arena"):
        arena(workspace, study_id)


def test_the_page_names_everybody_opens_offline_and_is_the_same_each_time(found: dict[str, Any]) -> None:
    page = render(found)
    assert page == render(found)
    assert all(entry["model"] in page for entry in found["entries"])
    assert f"pitboss study show {found['study_id']} --json" in page
    outside = re.findall(r'(?:src|href)="(?!#|data:)[^"]*"|url\((?!#)[^)]*\)|https?://[^\s"<]+', page)
    assert outside == []
    assert "Synthetic market" in page


def test_what_strangers_named_is_only_text_on_the_page(found: dict[str, Any]) -> None:
    mean = "<script>alert(1)</script>"
    entries = [{**found["entries"][0], "model": mean}, *found["entries"][1:]]
    pairs = [
        {**one, **{side: mean for side in ("first", "second") if one[side] == found["entries"][0]["model"]}}
        for one in found["pairs"]
    ]
    curves = {mean if name == found["entries"][0]["model"] else name: curve for name, curve in found["curves"].items()}
    page = render({**found, "entries": entries, "pairs": pairs, "curves": curves, "skill": mean})
    assert mean not in page
    assert "&lt;script&gt;alert(1)" in page


def test_tiers_and_runs_without_a_result_have_their_place_on_the_page(found: dict[str, Any]) -> None:
    broken = {**found["entries"][-1], "tier": None, "rank": None, "returns_pct": [], "total_return_pct": None}
    apart = [{**one, "told_apart": True, "together": [1.0, 2.0], "percent": 1.5} for one in found["pairs"]]
    entries = [
        *({**entry, "tier": tier} for tier, entry in enumerate(found["entries"][:-1], 1)),
        {**broken, "total_return_ci": None, "sharpe": None},
    ]
    page = render({**found, "entries": entries, "pairs": apart, "tiers": 4, "cost_usd": None})
    assert "Tier 4" in page
    assert "no result" in page
    assert render({**found, "entries": [], "pairs": [], "curves": {}, "overfitting": None})
