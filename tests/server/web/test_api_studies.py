"""The routes of studies, costs, venues and deployments."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.workspace import Workspace
from server.web.queue_work import work_off
from server.web.test_api_runs import DAY

SWEEP = {**DAY, "kind": "sweep", "vary": ["risk.max_leverage=1,2", "context.bars_lookback=40,50"]}
ARENA = {**DAY, "kind": "arena", "models": ["policy/momentum", "policy/hold"], "baselines": []}


@pytest.fixture(autouse=True)
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PITBOSS_EXECUTOR", "none")


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
    assert work_off(workspace) == 4
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
    assert work_off(workspace) == 0


def test_an_arena_is_cancelled_and_continued_by_the_same_request(client: TestClient, workspace: Workspace) -> None:
    study_id = client.post("/api/studies", json=ARENA).json()["study_id"]
    assert client.post(f"/api/studies/{study_id}/cancel").json() == {"study_id": study_id, "cancelled": 2}
    assert client.get(f"/api/studies/{study_id}/progress").json()["is_ended"] is True
    assert client.post("/api/studies", json=ARENA).status_code == 201
    assert work_off(workspace) == 2
    entries = client.get(f"/api/studies/{study_id}/result").json()["entries"]
    assert {entry["model"] for entry in entries} == {"policy/momentum", "policy/hold"}


def test_pages_of_studies_follow_each_other(client: TestClient) -> None:
    ids = {client.post("/api/studies", json={**ARENA, "name": name}).json()["study_id"] for name in "abc"}
    first = client.get("/api/studies", params={"limit": 2}).json()
    second = client.get("/api/studies", params={"limit": 2, "before": first["next"]}).json()
    assert {study["study_id"] for page in (first, second) for study in page["studies"]} == ids
    assert second["next"] is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"vary": ["run.surfaces=a,b"]}, "run.surfaces"),
        ({"vary": ["risk.max_leverage=1..2:0.00001"]}, "values"),
        ({"vary": [f"seed=0..{9_000}"]}, "more than 5,000 runs"),
        ({"vary": []}, "vary"),
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
