"""The routes of studies, costs, venues and deployments."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.jobs.search import BATCH
from pitboss.jobs.study import study
from pitboss.jobs.study_queue import StudySettings
from pitboss.server.api.study_body import SweepBody
from server.web.queue_work import run_queued, run_queued_with_worker
from server.web.test_api_runs import DAY

SWEEP = {**DAY, "kind": "sweep", "vary": ["risk.max_leverage=1,2", "context.bars_lookback=40,50"]}
ARENA = {**DAY, "kind": "arena", "models": ["policy/momentum", "policy/hold"], "baselines": []}

pytestmark = pytest.mark.usefixtures("no_workers")


def test_a_sweep_is_queued_followed_and_shown(client: TestClient, workspace: Workspace) -> None:
    estimate = client.post("/api/studies/estimate", json=SWEEP).json()
    assert (estimate["total_runs"], estimate["usd"]) == (4, 0)
    assert client.get("/api/studies").json() == {"studies": [], "next": None}
    created = client.post("/api/studies", json=SWEEP)
    assert created.status_code == 201, created.text
    study_id = created.json()["study_id"]
    assert study_id == estimate["study_id"]
    assert len(created.json()["run_ids"]) == 4
    progress = client.get(f"/api/studies/{study_id}/progress").json()
    assert (progress["counts"], progress["is_ended"]) == ({"queued": 4}, False)
    assert run_queued(workspace) == 4
    assert client.get(f"/api/studies/{study_id}/progress").json()["progress_pct"] == 100
    assert len(client.get(f"/api/studies/{study_id}").json()["trials"]) == 4
    result = client.get(f"/api/studies/{study_id}/result")
    assert result.json()["luck"]["trials"] == 4
    tag = {"If-None-Match": result.headers["etag"]}
    assert client.get(f"/api/studies/{study_id}/result", headers=tag).status_code == 304
    assert "attachment" in client.get(f"/api/studies/{study_id}/report").headers["content-disposition"]
    again = client.post("/api/studies", json=SWEEP).json()
    assert again["study_id"] == study_id
    assert again["estimate"]["runs"] == 0
    assert run_queued(workspace) == 0


def test_an_arena_is_cancelled_and_continued_by_the_same_request(client: TestClient, workspace: Workspace) -> None:
    study_id = client.post("/api/studies", json=ARENA).json()["study_id"]
    assert client.post(f"/api/studies/{study_id}/cancel").json() == {"study_id": study_id, "cancelled": 2}
    assert client.get(f"/api/studies/{study_id}/progress").json()["is_ended"] is True
    assert client.post("/api/studies", json=ARENA).status_code == 201
    assert run_queued(workspace) == 2
    entries = client.get(f"/api/studies/{study_id}/result").json()["entries"]
    assert {entry["model"] for entry in entries} == {"policy/momentum", "policy/hold"}


def test_pages_of_studies_follow_each_other(client: TestClient) -> None:
    ids = {client.post("/api/studies", json={**ARENA, "name": name}).json()["study_id"] for name in "abc"}
    first = client.get("/api/studies", params={"limit": 2}).json()
    second = client.get("/api/studies", params={"limit": 2, "before": first["next"]}).json()
    assert {study["study_id"] for page in (first, second) for study in page["studies"]} == ids
    assert second["next"] is None


SEARCH = {**DAY, "kind": "sweep", "vary": ["context.bars_lookback=40..60:5"], "search": 6, "by": "total_return_pct"}
WALK = {
    **DAY,
    "kind": "sweep",
    "vary": ["context.bars_lookback=40,50"],
    "walk_forward": "8h/8h",
    "by": "total_return_pct",
}


def test_a_search_is_carried_on_by_workers_from_the_results_so_far(client: TestClient, workspace: Workspace) -> None:
    estimate = client.post("/api/studies/estimate", json=SEARCH).json()
    created = client.post("/api/studies", json=SEARCH)
    assert created.status_code == 201, created.text
    study_id = created.json()["study_id"]
    assert study_id == estimate["study_id"]
    first = len(created.json()["run_ids"])  # optuna may choose a point twice
    assert 1 <= first <= BATCH
    assert run_queued(workspace) == first
    between = client.get(f"/api/studies/{study_id}/progress").json()
    assert (between["runs"], between["expected_runs"], between["is_ended"]) == (first, 6, False)
    assert "The report follows" in client.get(f"/studies/{study_id}").text

    run_queued_with_worker(workspace)  # it makes the step that was still missing
    progress = client.get(f"/api/studies/{study_id}/progress").json()
    assert progress["is_ended"] is True
    document = client.get(f"/api/studies/{study_id}/result").json()
    assert (document["kind"], len(document["trials"])) == ("search", progress["runs"])
    own = SweepBody.model_validate(SEARCH).built(workspace.owned_by("local"))
    alone = asyncio.run(study(workspace.owned_by("local"), own.plan, own.method, StudySettings("here")))
    assert alone.id == study_id
    assert {run.id for runs in alone.trials.values() for run in runs} == {
        run["run_id"] for trial in document["trials"] for run in trial["runs"]
    }
    again = client.post("/api/studies", json=SEARCH).json()
    assert again["run_ids"] == []
    assert client.get(f"/api/studies/{study_id}/progress").json()["is_ended"] is True


def test_a_walk_forward_is_carried_on_by_its_worker(client: TestClient, workspace: Workspace) -> None:
    created = client.post("/api/studies", json=WALK)
    assert created.status_code == 201, created.text
    study_id = created.json()["study_id"]
    assert len(created.json()["run_ids"]) == 4
    assert run_queued_with_worker(workspace) == 6
    forward = client.get(f"/api/studies/{study_id}/result").json()["forward"]
    assert [window["window"] for window in forward["windows"]] == [0, 1]
    page = client.get(f"/studies/{study_id}")
    assert page.status_code == 200
    assert [row["kind"] for row in client.get("/api/studies").json()["studies"]] == ["walk"]


def test_a_search_that_was_cancelled_goes_on_only_when_it_is_asked_for_again(
    client: TestClient, workspace: Workspace
) -> None:
    study_id = client.post("/api/studies", json=WALK).json()["study_id"]
    assert client.post(f"/api/studies/{study_id}/cancel").json()["cancelled"] == 4
    assert run_queued_with_worker(workspace) == 0
    assert client.get(f"/api/studies/{study_id}/progress").json()["is_ended"] is True
    assert len(client.post("/api/studies", json=WALK).json()["run_ids"]) == 4
    assert run_queued_with_worker(workspace) == 6


def test_a_study_that_cannot_go_on_says_why_and_goes_on_when_it_is_asked_for_again(
    client: TestClient, workspace: Workspace, home: Path
) -> None:
    study_id = client.post("/api/studies", json=WALK).json()["study_id"]
    assert run_queued(workspace) == 4
    (home / "lake").rename(home / "away")
    with open_workspace(load_settings(home)) as another:
        assert run_queued_with_worker(another) == 0
    (home / "away").rename(home / "lake")
    progress = client.get(f"/api/studies/{study_id}/progress").json()
    assert progress["is_ended"] is True
    assert "SOL" in progress["stopped_text"]
    assert "It was not carried on" in client.get(f"/studies/{study_id}").text
    assert len(client.post("/api/studies", json=WALK).json()["run_ids"]) == 2
    assert run_queued_with_worker(workspace) == 2
    assert client.get(f"/api/studies/{study_id}/progress").json()["stopped_text"] is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"vary": ["run.surfaces=a,b"]}, "run.surfaces"),
        ({"vary": ["risk.max_leverage=1..2:0.00001"]}, "values"),
        ({"vary": [f"seed=0..{9_000}"]}, "more than 5,000 runs"),
        ({"vary": []}, "vary"),
        ({"vary": ["risk.max_leverage"]}, "vary: risk.max_leverage: the field or its values are missing"),
        ({"vary": ["run.taker_bps=4,nan"]}, "vary: run.taker_bps: nan is not a number of at least 0"),
        ({"vary": ["run.news_latency_ms=-60000..0:60000"]}, "vary: run.news_latency_ms: -60000 is not"),
        ({"by": "luck"}, "luck"),
        ({"kind": "search"}, "kind"),
    ],
)
def test_a_study_that_cannot_be_queued_is_a_422(client: TestClient, change: dict[str, Any], words: str) -> None:
    refused = client.post("/api/studies", json={**SWEEP, **change})
    assert refused.status_code == 422, refused.text
    assert words in refused.json()["detail"]


def test_costs_of_a_workspace_without_paid_calls_are_zero(client: TestClient) -> None:
    costs = client.get("/api/costs").json()
    assert (costs["cost_usd"], costs["rows"], costs["budget"]["daily_usd"]) == (0, [], 5)
    assert client.get("/api/costs", params={"from": "2025-01-02", "to": "2025-01-01"}).status_code == 422


def test_venues_and_deployments_are_listed(client: TestClient) -> None:
    venues = {venue["name"]: venue for venue in client.get("/api/venues").json()}
    assert {"perp", "predict", "community"} <= set(venues)
    assert "hold" in venues["perp"]["policies"]
    assert client.get("/api/deployments").json() == []
