"""The pages compare, studies, costs and data: their content, and that untrusted text is escaped."""

from decimal import Decimal

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import DAY_MS
from pitboss.core.ports import ModelReply
from pitboss.store.answers import StoredReply, answer_row
from pitboss.store.compression import compressor
from pitboss.store.schema import answers
from server.web.queue_work import run_queued
from server.web.test_api_data import bars, import_csv
from server.web.test_api_runs import DAY
from server.web.test_api_studies import ARENA, SWEEP

HOSTILE = "<script>alert(1)</script>"

pytestmark = pytest.mark.usefixtures("no_workers")


def pay(workspace: Workspace, run_id: str, model: str, usd: str, days_ago: int) -> None:
    """Store a paid reply of a run."""
    at = workspace.now() - days_ago * DAY_MS
    reply = StoredReply(f"{model}{days_ago}", model, run_id, Decimal(usd), at, ModelReply(text="x"))
    with workspace.database.write() as connection:
        connection.execute(answers.insert(), answer_row(reply, compressor()))


def test_runs_are_compared_with_their_equity_and_first_difference(client: TestClient, workspace: Workspace) -> None:
    first = client.post("/api/runs", json=DAY).json()["run_id"]
    second = client.post("/api/runs", json={**DAY, "model": "policy/buy_and_hold"}).json()["run_id"]
    run_queued(workspace)
    page = client.get("/compare", params={"run": [first, second]})
    assert page.status_code == 200, page.text
    for words in ("Equity of the runs from 100", "Paired differences", "First decisions that differ", "Total return"):
        assert words in page.text
    assert f'href="/runs/{second}"' in page.text
    assert f'href="/runs/{second}#d0"' in page.text
    document = client.get("/api/compare", params={"run": [first, second]}).json()
    assert [run["run_id"] for run in document["runs"]] == [first, second]
    assert document["difference"]["same"] is False
    assert len(document["pairs"]) == 1
    assert client.get("/api/compare", params={"run": [first, first]}).status_code == 422
    assert "This is one run" in client.get("/compare", params={"run": [first, first[:8]]}).text
    assert "at least two" in client.get("/compare").text
    assert client.get("/compare", params={"run": [first, "none"]}).status_code == 404


def test_a_study_shows_its_progress_and_then_its_report(client: TestClient, workspace: Workspace) -> None:
    assert "There are no studies yet" in client.get("/studies").text
    study_id = client.post("/api/studies", json={**SWEEP, "name": HOSTILE, "by": "total_return_pct"}).json()["study_id"]
    running = client.get(f"/studies/{study_id}").text
    assert "4 queued" in running
    assert "study.js" in running
    run_queued(workspace)
    ended = client.get(f"/studies/{study_id}")
    assert "Both fields" in ended.text
    assert "sha256-" in ended.headers["content-security-policy"]
    assert 'href="/runs/' in ended.text
    listed = client.get("/studies").text
    assert HOSTILE not in running + ended.text + listed
    assert "&lt;script&gt;" in listed
    assert client.get("/studies/none").status_code == 404


def test_an_arena_shows_its_leaderboard(client: TestClient, workspace: Workspace) -> None:
    study_id = client.post("/api/studies", json=ARENA).json()["study_id"]
    run_queued(workspace)
    page = client.get(f"/studies/{study_id}").text
    assert "policy/momentum" in page
    assert "Leaderboard" in page


def test_costs_are_shown_by_day_model_and_skill(client: TestClient, workspace: Workspace) -> None:
    assert "Nothing was spent" in client.get("/costs").text
    run_id = client.get("/api/runs").json()["runs"][0]["run_id"]
    pay(workspace, run_id, "groq/small", "0.25", 0)
    pay(workspace, run_id, HOSTILE, "0.5", 3)
    page = client.get("/costs").text
    for words in ("Costs by day and model", "groq/small", "$0.75", "Costs by skill"):
        assert words in page
    assert HOSTILE not in page
    costs = client.get("/api/costs").json()
    assert costs["cost_usd"] == 0.75
    assert [row["cost_usd"] for row in costs["days"]] == [0.5, 0.25]
    assert client.get("/api/costs", params={"from": "2031-01-01", "to": "2032-01-01"}).json()["rows"] == []
    assert "$0.25" in client.get("/costs", params={"days": 1}).text


def test_the_calendar_of_a_series_shows_its_gaps(client: TestClient) -> None:
    import_csv(client, bars([*range(24), *range(72, 90)]))
    page = client.get("/data", params={"show": "mine/bars/BTC/1h"}).text
    assert "2025-01-02: 0 rows, 100% missing" in page
    assert "1 gap, 2.0 days in all" in page
    assert "demo BTC 5m bars" not in page
    assert "demo BTC 5m bars" in client.get("/data").text
    assert client.get("/data", params={"show": "../../x"}).status_code == 200
