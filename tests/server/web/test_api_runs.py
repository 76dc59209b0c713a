"""The routes of runs: estimate, create, list, show, cancel, resume, fork, diff, verify, files and events."""

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, parse_instant
from pitboss.runs.check_bundle import check_bundle
from pitboss.runs.run import job_of
from pitboss.runs.stored import journal_of, request_of
from pitboss.store.import_run import insert_run
from server.web.queue_work import run_queued

SKILL = """\
pitboss: 1
name: trends
venue: perp
model: policy/momentum
schedule: {every: 1h}
strategy: {mode: thesis, thesis: Trends go on., avoid: Ranges.}
context: {symbols: [SOL], bars_interval: 1h, bars_lookback: 40}
"""
DAY = {"text": SKILL, "from": "2025-03-01", "to": "2025-03-02"}
PAID = {**DAY, "model": "llm/fake", "speculate": "0"}

pytestmark = pytest.mark.usefixtures("no_workers")


@pytest.fixture
def paid_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model at an unreachable address, and a limit above which costs have to be confirmed."""
    monkeypatch.setenv("PITBOSS_CONFIRM_ABOVE_USD", "0.5")
    unreachable = "http://127.0.0.1:9/v1"
    for name, value in (("LLM_BASE_URL", unreachable), ("LLM_API_KEY", "test-key-123456"), ("LLM_MODEL", "fake")):
        monkeypatch.setenv(name, value)


def events_of(text: str) -> list[tuple[str, dict[str, Any], str]]:
    """The kind, data and id of each event of a stream."""
    events: list[tuple[str, dict[str, Any], str]] = []
    for block in text.split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.splitlines())
        if "event" in fields:
            events.append((fields["event"], json.loads(fields["data"]), fields.get("id", "")))
    return events


def test_a_run_is_queued_worked_on_and_shown(client: TestClient, workspace: Workspace) -> None:
    created = client.post("/api/runs", json={**DAY, "repeats": 2, "options": {"taker_bps": 3}})
    assert created.status_code == 201, created.text
    ids = created.json()["run_ids"]
    assert ids[0] == created.json()["run_id"]
    assert created.json()["estimate"]["usd"] == 0
    assert client.get(f"/api/runs/{ids[0]}").json()["status"] == "queued"
    assert workspace.runs.get(ids[1]).params["taker_bps"] == "3"
    assert run_queued(workspace) == 2
    shown = client.get(f"/api/runs/{ids[0]}")
    assert shown.json()["status"] == "complete"
    assert shown.json()["ticks"] == 24
    again = client.get(f"/api/runs/{ids[0]}", headers={"If-None-Match": shown.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.post(f"/api/runs/{ids[0]}/verify").json()["ok"] is True
    assert client.get(f"/api/runs/{ids[0]}/diff", params={"with": ids[0]}).json()["same"] is True


def test_a_range_may_be_counted_back_from_the_end_of_the_data_and_last_is_the_newest_run(
    client: TestClient, workspace: Workspace
) -> None:
    created = client.post("/api/runs", json={**DAY, "from": "-6h", "to": "-0h"})
    assert created.status_code == 201, created.text
    shown = client.get("/api/runs/last").json()
    assert shown["run_id"] == created.json()["run_id"]
    newest = max(series.last_at for series in workspace.lake.list() if series.kind == "bars" and series.last_at)
    to_at = parse_instant(shown["to"])
    assert 0 <= to_at - newest <= HOUR_MS
    assert to_at - parse_instant(shown["from"]) == 6 * HOUR_MS
    unread = client.post("/api/runs", json={**DAY, "from": "-6"})
    assert (unread.status_code, unread.json()["detail"]) == (422, "from: cannot read '-6' as a time")


def test_an_estimate_stores_nothing(client: TestClient, workspace: Workspace) -> None:
    before = len(workspace.runs.listing().runs)
    estimate = client.post("/api/estimate", json=DAY).json()
    assert (estimate["usd"], estimate["ticks"], estimate["needs_confirmation"]) == (0, 24, False)
    assert len(workspace.runs.listing().runs) == before


@pytest.mark.parametrize("data_venue", ["nowhere", "\0", "a\0b", "demo/../venue=demo"])
@pytest.mark.parametrize("path", ["/api/runs", "/api/estimate", "/api/studies", "/api/studies/estimate"])
def test_a_venue_without_data_is_refused_by_what_starts_runs_and_by_its_estimate(
    client: TestClient, path: str, data_venue: str
) -> None:
    study = {"kind": "sweep", "vary": ["risk.max_leverage=1,2"]} if "studies" in path else {}
    refused = client.post(path, json={**DAY, **study, "data_venue": data_venue})
    assert (refused.status_code, refused.json()["code"]) == (422, "user_error"), refused.text
    assert repr(data_venue) in refused.json()["detail"]


@pytest.mark.usefixtures("paid_model")
def test_a_cost_above_the_limit_needs_a_confirmation_of_its_upper_end(client: TestClient, workspace: Workspace) -> None:
    body = {**PAID, "price_in": 10, "price_out": 20}
    refused = client.post("/api/runs", json=body)
    assert (refused.status_code, refused.json()["code"]) == (409, "confirmation_required")
    high = refused.json()["estimate"]["hi"]
    assert high > 0.5
    too_little = client.post("/api/runs", json={**body, "confirm_usd": high / 2})
    assert too_little.status_code == 409
    accepted = client.post("/api/runs", json={**body, "confirm_usd": high})
    assert accepted.status_code == 201, accepted.text
    assert workspace.runs.get(accepted.json()["run_id"]).status == "queued"
    beyond_the_daily_budget = client.post("/api/runs", json={**body, "price_in": 90, "confirm_usd": 100})
    assert (beyond_the_daily_budget.status_code, beyond_the_daily_budget.json()["code"]) == (409, "budget_exceeded")


@pytest.mark.usefixtures("paid_model")
def test_an_unknown_price_needs_prices_or_consent(client: TestClient) -> None:
    refused = client.post("/api/runs", json=PAID)
    assert refused.status_code == 409
    assert refused.json()["estimate"]["usd"] is None
    assert client.post("/api/runs", json={**PAID, "any_price": True}).status_code == 201


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("runs", "status=&limit=&study="),
        ("runs/{id}/decisions", "code=&action=&after="),
        ("runs/{id}/equity", "points="),
        ("tools/catalog", "venue=&mode="),
    ],
)
def test_a_parameter_without_a_value_counts_as_left_out(
    client: TestClient, workspace: Workspace, path: str, parameters: str
) -> None:
    run = workspace.runs.listing().runs[0]
    address = f"/api/{path.format(id=run.id)}"
    assert client.get(f"{address}?{parameters}").json() == client.get(address).json()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"to": "2025-02-01"}, "the range is empty"),
        ({"from": "yesterday"}, "from: cannot read"),
        ({"text": "name: [", "skill": None}, "text"),
        ({"options": {"surfaces": "/etc/passwd"}}, "options.surfaces"),
        ({"options": {"max_cost_usd": "1"}}, "not an option of the venue"),
        ({"options": {"taker_bps": "much"}}, "does not fit"),
        ({"options": {"taker_bps": "nan"}}, "options.taker_bps: nan is not a number of at least 0"),
        ({"options": {"slippage_bps_per_million": "-Infinity"}}, "options.slippage_bps_per_million: -Infinity is not"),
        ({"options": {"requested_base": "zzz"}}, "the base interval 'zzz' is not the length of a bar"),
        ({"options": {"news_latency_ms": -60_000}}, "options.news_latency_ms: -60000 is not"),
        ({"set": ["risk.max_leverage"]}, "set: risk.max_leverage: no value given"),
        ({"decisions": "{}"}, "decisions"),
        ({"skill": "nobody", "text": None}, "nobody"),
        ({"price_in": 1}, "go together"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_wrong_input_is_a_422_that_says_what(client: TestClient, change: dict[str, Any], words: str) -> None:
    refused = client.post("/api/runs", json={**DAY, **change})
    assert refused.status_code == 422
    assert words in refused.json()["detail"]


def test_a_hint_writes_a_change_of_the_skill_as_the_api_takes_it(client: TestClient) -> None:
    refused = client.post("/api/runs", json={**DAY, "set": ["risk.max_leverage"]})
    assert refused.json()["hint"] == "write risk.max_leverage=5"


def test_the_runs_of_a_study_that_does_not_exist_are_a_documented_404(client: TestClient) -> None:
    assert client.get("/api/runs?study=none").status_code == 404
    assert "404" in client.get("/api/openapi.json").json()["paths"]["/api/runs"]["get"]["responses"]


def test_an_active_run_that_no_process_executes_is_cancelled_at_once(client: TestClient, workspace: Workspace) -> None:
    run_id = client.post("/api/runs", json=DAY).json()["run_id"]
    workspace.runs.claim(run_id, into="running")
    assert client.post(f"/api/runs/{run_id}/cancel").json()["status"] == "cancelled"


def test_pages_of_runs_are_stable_while_runs_are_created(client: TestClient) -> None:
    ids = client.post("/api/runs", json={**DAY, "repeats": 4}).json()["run_ids"]
    first = client.get("/api/runs", params={"limit": 2, "skill": "trends"}).json()
    client.post("/api/runs", json=DAY)
    seen = [run["run_id"] for run in first["runs"]]
    page = first
    while page["next"]:
        page = client.get("/api/runs", params={"limit": 2, "before": page["next"], "skill": "trends"}).json()
        seen += [run["run_id"] for run in page["runs"]]
    assert sorted(seen) == sorted(ids)
    assert client.get("/api/runs", params={"before": "nonsense"}).status_code == 422
    queued = client.get("/api/runs", params={"status": "queued", "model": "policy/momentum"}).json()["runs"]
    assert len(queued) == 5
    assert client.get("/api/runs", params={"status": "lost"}).status_code == 422


def test_a_run_is_cancelled_resumed_and_deleted(client: TestClient, workspace: Workspace) -> None:
    run_id = client.post("/api/runs", json=DAY).json()["run_id"]
    assert client.post(f"/api/runs/{run_id}/resume").status_code == 409
    assert client.post(f"/api/runs/{run_id}/cancel").json()["status"] == "cancelled"
    assert client.post(f"/api/runs/{run_id}/cancel").status_code == 409
    assert client.post(f"/api/runs/{run_id}/resume").json()["status"] == "queued"
    run_queued(workspace)
    assert client.get(f"/api/runs/{run_id}").json()["status"] == "complete"
    assert client.delete(f"/api/runs/{run_id}").status_code == 204
    assert client.get(f"/api/runs/{run_id}").status_code == 404


def test_a_fork_is_queued_and_continues_from_its_tick(client: TestClient, workspace: Workspace) -> None:
    run_id = client.post("/api/runs", json=DAY).json()["run_id"]
    run_queued(workspace)
    forked = client.post(f"/api/runs/{run_id}/fork", json={"at": "2025-03-01T12:00:00Z", "model": "policy/hold"})
    assert forked.status_code == 201, forked.text
    branch = forked.json()["run_id"]
    assert client.get(f"/api/runs/{branch}").json()["status"] == "queued"
    assert run_queued(workspace) == 1
    shown = client.get(f"/api/runs/{branch}").json()
    assert shown["status"] == "complete"
    assert shown["forked_from"]["run_id"] == run_id
    assert client.post(f"/api/runs/{run_id}/fork", json={"at": "2031-01-01"}).status_code == 422
    assert client.post(f"/api/runs/{branch}/verify").json()["problems"] == []


@pytest.mark.usefixtures("paid_model")
def test_a_fork_without_consent_leaves_nothing(client: TestClient, workspace: Workspace) -> None:
    run_id = client.post("/api/runs", json=DAY).json()["run_id"]
    run_queued(workspace)
    before = len(workspace.runs.listing().runs)
    change = {"at": "2025-03-01T12:00:00Z", "model": "llm/fake", "price_in": 90, "price_out": 100}
    refused = client.post(f"/api/runs/{run_id}/fork", json=change)
    assert refused.status_code == 409
    assert refused.json()["estimate"]["hi"] > 0.5
    assert len(workspace.runs.listing().runs) == before


def test_the_files_of_a_run_are_those_of_the_commands(client: TestClient, workspace: Workspace, tmp_path: Path) -> None:
    run_id = client.post("/api/runs", json=DAY).json()["run_id"]
    run_queued(workspace)
    export = client.get(f"/api/runs/{run_id}/export", params={"what": "equity"})
    assert "equity_usd" in json.loads(export.text.splitlines()[0])
    trades = client.get(f"/api/runs/{run_id}/export", params={"what": "trades"}).text.splitlines()
    assert all(json.loads(trade)["opened_at"].endswith("Z") for trade in trades)
    tag = {"If-None-Match": export.headers["etag"]}
    assert client.get(f"/api/runs/{run_id}/export", params={"what": "equity"}, headers=tag).status_code == 304
    report = client.get(f"/api/runs/{run_id}/report", params={"download": True})
    assert report.headers["content-security-policy"] == "sandbox allow-scripts"
    assert "attachment" in report.headers["content-disposition"]
    assert run_id in report.text
    bundle = client.get(f"/api/runs/{run_id}/bundle")
    assert zipfile.ZipFile(io.BytesIO(bundle.content)).testzip() is None
    file = tmp_path / "run.pitboss.zip"
    file.write_bytes(bundle.content)
    assert check_bundle(file).problems == []


def test_the_events_of_a_run_that_has_ended_end_with_its_document(client: TestClient) -> None:
    run_id = client.get("/api/runs").json()["runs"][0]["run_id"]
    reply = client.get(f"/api/runs/{run_id}/events")
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = events_of(reply.text)
    kinds = [kind for kind, _, _ in events]
    assert set(kinds) == {"tick", "progress", "done"}
    assert kinds[-1] == "done"
    assert events[-1][1] == client.get(f"/api/runs/{run_id}").json()
    ticks = [(data, number) for kind, data, number in events if kind == "tick"]
    assert len(ticks) <= 256
    assert all(str(data["seq"]) == number for data, number in ticks)
    last = ticks[-3][1]
    missed = events_of(client.get(f"/api/runs/{run_id}/events", headers={"Last-Event-ID": last}).text)
    assert [number for kind, _, number in missed if kind == "tick"] == [ticks[-2][1], ticks[-1][1]]


@pytest.mark.parametrize("path", ["", "/events", "/export", "/report", "/bundle", "/diff?with=x"])
def test_an_unknown_run_is_not_found(client: TestClient, path: str) -> None:
    reply = client.get(f"/api/runs/nothing{path}")
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")


def test_a_worker_finds_the_run_to_be_replayed_among_those_of_the_owner(
    client: TestClient, workspace: Workspace
) -> None:
    body = {"text": SKILL, "from": "2025-03-01", "to": "2025-03-02", "model": "standin/analyst"}
    first = client.post("/api/runs", json=body).json()["run_id"]
    assert run_queued(workspace) == 1
    stored = workspace.runs.get(first)
    journal = journal_of(workspace, stored)
    state = journal.latest_state()
    assert state is not None
    # a run of another owner whose id begins in the same way
    insert_run(
        workspace.database, replace(stored, id=first[:4] + "f" * 8, owner="anna"), list(journal.records()), state[1]
    )

    again = client.post("/api/runs", json={**body, "model": f"replay/{first[:4]}"})
    assert again.status_code == 201, again.text
    assert run_queued(workspace) == 1
    replayed = client.get(f"/api/runs/{again.json()['run_id']}").json()
    assert (replayed["status"], replayed["error_text"]) == ("complete", None)
    assert replayed["digest"] == stored.digest

    anna = workspace.owned_by("anna")
    foreign = replace(request_of(workspace.runs.get(again.json()["run_id"])), model=f"replay/{first}")
    with pytest.raises(UserError, match="no run"):
        job_of(anna, foreign)
