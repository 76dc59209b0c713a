"""Pages and routes of runs: the list, the report in the app, decisions, charts, forks, runs that have not ended."""

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import HOUR_MS, iso, parse_instant
from pitboss.jobs.run_report import write_run_report
from pitboss.runs.explain import explain
from pitboss.runs.fork import ForkChange, fork
from pitboss.runs.indexed_runs import IndexedRuns
from pitboss.runs.run import resume, start
from pitboss.runs.run_files import KINDS, path_of
from pitboss.server.api import run_access
from pitboss.server.api.run_reader import RunReader
from pitboss.server.pages.run_difference import difference_view
from pitboss.store.runs import Run
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import plain_skill

HOSTILE = "</script><script>window.hit=1</script><img src=x onerror='window.hit=1'>"
FROM, TO = parse_instant("2025-02-01"), parse_instant("2025-02-02")


@pytest.fixture
def run(workspace: Workspace) -> Run:
    """The run of the demo."""
    return workspace.runs.listing(1).runs[0]


class ActiveElements(HTMLParser):
    """The elements of a page that could run a script or load something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[str | None] = []
        self.handlers: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "script":
            self.scripts.append(dict(attrs).get("src"))
        self.handlers += [name for name, _ in attrs if name.startswith("on") or name == "style"]


def start_run(workspace: Workspace, *proposals: dict[str, Any], name: str = "sample") -> Run:
    lines = [json.dumps({"tick_at": iso(FROM + n * HOUR_MS), "proposal": each}) for n, each in enumerate(proposals)]
    skill = plain_skill(["BTC"], "1h", name=name)
    request = PerpRequest(skill, FROM, TO, data_venue="demo", decisions="\n".join(lines))
    return asyncio.run(start(workspace, request))


# The list ---------------------------------------------------------------------------------------------------------------


def test_the_list_filters_and_offers_boxes_to_compare(
    browser_session: TestClient, workspace: Workspace, run: Run
) -> None:
    other = start_run(workspace, name="another")
    page = browser_session.get("/runs").text
    assert f'href="/runs/{run.id}"' in page
    assert f'<input type="checkbox" name="run" value="{other.id}"' in page
    only = browser_session.get("/runs?skill=another&status=complete").text
    assert other.id in only
    assert run.id not in only
    assert "No such run" in browser_session.get("/runs?status=error").text
    assert browser_session.get("/runs?status=nonsense").status_code == 200
    assert browser_session.get("/runs?before=x.y").status_code == 422


def test_the_list_goes_on_where_the_page_ends(
    browser_session: TestClient, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pitboss.server.pages.runs.PAGE", 1)
    start_run(workspace)
    seen: list[str] = []
    path = "/runs"
    while path:
        page = browser_session.get(path).text
        seen += [each.id for each in workspace.runs.listing().runs if f'value="{each.id}"' in page]
        path = page.partition('<a href="/runs?before=')[2].partition('"')[0]
        path = f"/runs?before={path}" if path else ""
    assert seen == [each.id for each in workspace.runs.listing().runs]


def test_the_list_goes_on_after_a_page_with_a_damaged_run(
    browser_session: TestClient, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pitboss.server.pages.runs.PAGE", 2)
    oldest = workspace.runs.listing().runs[-1]
    damaged = start_run(workspace)
    start_run(workspace, name="newest")
    with closing(sqlite3.connect(workspace.home / "pitboss.db")) as database:
        database.execute("UPDATE runs SET model = 'other' WHERE id = ?", (damaged.id,))
        database.commit()
    page = browser_session.get("/runs").text
    assert f"Run {damaged.id} is not listed" in page
    assert oldest.id in page
    monkeypatch.setattr("pitboss.server.pages.runs.PAGE", 1)
    page = browser_session.get("/runs").text
    assert oldest.id not in page
    path = page.partition('<a href="/runs?before=')[2].partition('"')[0]
    assert path
    assert oldest.id in browser_session.get(f"/runs?before={path}").text


def test_the_list_goes_on_after_a_page_on_which_every_run_is_damaged(
    browser_session: TestClient, workspace: Workspace, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pitboss.server.pages.runs.PAGE", 1)
    damaged = {start_run(workspace, name=f"damaged-{number}").id for number in range(5)}
    with closing(sqlite3.connect(workspace.home / "pitboss.db")) as database:
        database.execute(
            "UPDATE runs SET model = 'other' WHERE skill_id IN (SELECT id FROM skills WHERE name LIKE 'damaged-%')"
        )
        database.commit()
    start_run(workspace, name="newest")
    readable = [each.id for each in workspace.runs.listing().runs]
    assert run.id in readable[1:]
    shown: list[str] = []
    missing: set[str] = set()
    before: str | None = ""
    while before is not None:
        page = browser_session.get(f"/api/runs?limit=1&before={before}").json()
        shown += [each["run_id"] for each in page["runs"]]
        missing.update(page["damaged"])
        before = page["next"]
    assert (shown, missing) == (readable, damaged)
    path, seen = "/runs", ""
    while path:
        page = browser_session.get(path).text
        seen += page
        path = page.partition('<a href="/runs?before=')[2].partition('"')[0]
        path = f"/runs?before={path}" if path else ""
    assert all(run_id in seen for run_id in (*readable, *damaged))


# The page of a run ------------------------------------------------------------------------------------------------------


def test_the_page_is_the_report_with_a_table_of_its_own(browser_session: TestClient, run: Run) -> None:
    page = browser_session.get(f"/runs/{run.id}")
    assert page.status_code == 200
    for text in ("Equity against its baselines", "From ticks to fills", 'data-part="price/BTC"', 'class="log-view"'):
        assert text in page.text
    assert '<table class="decisions"' not in page.text
    for link in (f"/api/runs/{run.id}/report", f"/api/runs/{run.id}/bundle"):
        assert f'href="{link}"' in page.text
    elements = ActiveElements(page.text)
    assert elements.handlers == []
    assert all(source and source.startswith("/static/") for source in elements.scripts)
    assert browser_session.get("/runs/nothing").status_code == 404


def test_a_run_that_traded_little_says_why(browser_session: TestClient, workspace: Workspace, run: Run) -> None:
    too_large = {"action": "open_long", "symbol": "BTC", "size_usd": 9_000_000, "reason": "all of it"}
    idle = start_run(workspace, *[too_large] * 3)
    page = browser_session.get(f"/runs/{idle.id}").text
    assert "Why it traded little: at 21 of 24 ticks nothing was proposed (21 the agent chose to hold); " in page
    assert "the engine refused 3 of 3 proposals (3 by R" in page
    assert "Why it traded little" not in browser_session.get(f"/runs/{run.id}").text


def test_a_worker_leaves_what_the_page_opens_with(client: TestClient, workspace: Workspace, run: Run) -> None:
    paths = [path_of(workspace, run, kind) for kind in KINDS]
    assert not any(path.exists() for path in paths)
    assert write_run_report(workspace, run.id) is None
    assert all(path.is_file() for path in paths)
    before = [path.stat().st_mtime_ns for path in paths]
    assert client.get(f"/runs/{run.id}").status_code == 200
    assert client.get(f"/runs/{run.id}/charts/equity").status_code == 200
    assert [path.stat().st_mtime_ns for path in paths] == before
    workspace.remove_files(run.id)
    assert not any(path.exists() for path in paths)


def test_a_page_that_its_worker_is_composing_is_awaited_without_reading_the_run(
    browser_session: TestClient, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start_run(workspace, {"action": "no_op", "reason": "waits"})
    fresh = replace(run, params={**run.params, "queued": {"report": True}}, finished_at=workspace.now())
    monkeypatch.setattr(run_access, "named_run", lambda *given: fresh)
    with monkeypatch.context() as patched:
        patched.setattr(run_access, "PATIENCE_S", 0.01)
        patched.setattr(RunReader, "index", None)  # an error if it is called
        page = browser_session.get(f"/runs/{run.id}")
        assert f'data-wait="/runs/{run.id}/ready"' in page.text
        assert browser_session.get(f"/runs/{run.id}/ready").json() == {"ready": False}
    assert write_run_report(workspace, run.id) is None
    assert browser_session.get(f"/runs/{run.id}/ready").json() == {"ready": True}


# Decisions --------------------------------------------------------------------------------------------------------------


def test_decisions_are_listed_in_pages_and_by_conditions(client: TestClient, run: Run) -> None:
    path = f"/api/runs/{run.id}/decisions"
    rows: list[dict[str, Any]] = []
    page = client.get(path, params={"limit": 250}).json()
    while True:
        rows += page["decisions"]
        if page["next"] is None:
            break
        page = client.get(path, params={"limit": 250, "after": page["next"]}).json()
    assert [row["row"] for row in rows] == list(range(page["total"]))
    refused = client.get(path, params={"outcome": "refused"}).json()
    assert refused["decisions"] == [row for row in rows if row["outcome"] == "refused"]
    assert refused["total"] == 8
    shorts = client.get(path, params={"action": "open_short", "code": "R3_POSITION_CAP", "symbol": "BTC"}).json()
    assert [row["seq"] for row in shorts["decisions"]] == [
        row["seq"] for row in refused["decisions"] if (row["action"], row["symbol"]) == ("open_short", "BTC")
    ]
    newest = client.get(path, params={"newest": True, "limit": 3}).json()
    assert newest["decisions"] == rows[:-4:-1]
    skipped = client.get(path, params={"skip": 40, "limit": 2}).json()
    assert skipped["decisions"] == rows[40:42]
    assert client.get(path, params={"limit": 0}).status_code == 422


def test_one_decision_has_everything(client: TestClient, workspace: Workspace, run: Run) -> None:
    text, values = explain(workspace, run, "refused")
    document = client.get(f"/api/runs/{run.id}/decisions/{values['seq']}").json()
    for name in ("proposals", "receipts", "before", "after", "steps", "cost_usd", "digest"):
        assert document[name] == json.loads(json.dumps(values[name]))
    assert document["asked"]["system"].startswith("You are")
    assert document["asked"]["user"].startswith("## Time")
    assert "in_words" in document["proposals"][0]
    assert document["proposals"][0]["in_words"]["in numbers"] in text
    for seq in (10_000, -1, 2**80):
        assert client.get(f"/api/runs/{run.id}/decisions/{seq}").status_code in (404, 422)


def test_the_drawer_shows_rule_and_margin_of_a_refused_decision(client: TestClient, run: Run) -> None:
    (first, second) = client.get(f"/api/runs/{run.id}/decisions?outcome=refused&limit=2").json()["decisions"]
    drawer = client.get(f"/runs/{run.id}/decisions/{first['seq']}?outcome=refused").text
    for text in (
        "R3_POSITION_CAP",
        "The position in the symbol, with its working orders, would have exceeded",
        "limit $2,022.02, with this order $8,087.69: $6,065.67 beyond",
        "R11_PRICE_BAND",
        "Steps of the model (2)",
        "Prompt: system",
        "Ask again with…",
        "1 of 8",
        f'data-next="{second["seq"]}"',
    ):
        assert text in drawer, text
    assert "data-previous" not in drawer
    assert client.get(f"/runs/{run.id}/decisions/99999").status_code == 404


def test_hostile_text_is_inert_in_page_table_and_drawer(client: TestClient, workspace: Workspace) -> None:
    hostile = start_run(
        workspace,
        {"action": "open_long", "symbol": "BTC", "size_usd": 9_000_000, "reason": HOSTILE},
        {"action": HOSTILE, "symbol": HOSTILE, "size_usd": HOSTILE, "reason": "x"},
    )
    rows = client.get(f"/api/runs/{hostile.id}/decisions?outcome=refused").json()["decisions"]
    assert HOSTILE[:40] in rows[0]["reason"]
    for path in (f"/runs/{hostile.id}", *[f"/runs/{hostile.id}/decisions/{row['seq']}" for row in rows], "/runs"):
        text = client.get(path).text
        elements = ActiveElements(text)
        assert "img" not in elements.tags
        assert elements.handlers == []
        assert all(source and source.startswith("/static/") for source in elements.scripts)
    assert "&lt;script&gt;window.hit=1" in client.get(f"/runs/{hostile.id}/decisions/{rows[0]['seq']}").text


# Charts and tags --------------------------------------------------------------------------------------------------------


def test_charts_are_drawn_for_a_window_and_equity_is_given_in_points(client: TestClient, run: Run) -> None:
    window = {"from": run.params["from_at"] + 2 * 86_400_000, "to": run.params["from_at"] + 4 * 86_400_000}
    for part in ("equity", "price/BTC"):
        chart = client.get(f"/runs/{run.id}/charts/{part}", params=window)
        assert chart.status_code == 200
        assert chart.text.startswith('<figure class="chart timed"')
        assert f'data-start="{window["from"]}"' in chart.text
    assert client.get(f"/runs/{run.id}/charts/price/NONE").status_code == 404
    whole = client.get(f"/api/runs/{run.id}/equity?points=100000").json()
    few = client.get(f"/api/runs/{run.id}/equity?points=5").json()
    assert [few["at"][0], few["at"][-1]] == [whole["at"][0], whole["at"][-1]]
    assert len(few["at"]) <= 5
    assert {min(whole["equity_usd"]), max(whole["equity_usd"])} <= set(few["equity_usd"])
    equity = client.get(f"/api/runs/{run.id}/equity?points=50").json()
    assert len(equity["at"]) == len(equity["equity_usd"]) <= 50
    assert set(equity["baselines"]) == {"buy_and_hold", "buy_and_hold_capped", "cash"}


def test_what_cannot_change_has_a_tag(client: TestClient, run: Run) -> None:
    for path in ("decisions?outcome=refused", "decisions/53", "equity?points=20"):
        first = client.get(f"/api/runs/{run.id}/{path}")
        again = client.get(f"/api/runs/{run.id}/{path}", headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


# Forks, and runs that have not ended -----------------------------------------------------------------------------------


def test_a_fork_is_shown_beside_its_source(client: TestClient, workspace: Workspace, run: Run) -> None:
    seq = client.get(f"/api/runs/{run.id}/decisions?outcome=refused&limit=1").json()["decisions"][0]["tick_at"]
    branch = asyncio.run(fork(workspace, run.id, seq, ForkChange("policy/hold")))
    asyncio.run(resume(workspace, branch))
    page = client.get(f"/runs/{branch}").text
    assert f'data-fetch="/runs/{branch}/changes"' in page
    assert f"/compare?run={run.id}&amp;run={branch}" in page
    changes = client.get(f"/runs/{branch}/changes").text
    for text in ("First difference", "2025-01-22 05:00 UTC", "Total return", "Open long BTC for $8,088.08 at 3×"):
        assert text.lower() in changes.lower(), text
    finished = workspace.runs.get(branch)
    short = replace(finished, metrics={**(finished.metrics or {}), "sharpe_ci": None})
    flagged = str(difference_view(workspace, IndexedRuns(), run, short))
    assert [changes.count("(&lt;20 days)"), flagged.count("(&lt;20 days)")] == [0, 1]
    assert "is not in this workspace" in client.get(f"/runs/{run.id}/changes").text


def test_a_run_that_waits_has_a_page_that_follows_it(client: TestClient, workspace: Workspace, run: Run) -> None:
    tick = iso(run.params["from_at"] + 86_400_000)
    waiting = asyncio.run(fork(workspace, run.id, tick, ForkChange("policy/hold")))
    page = client.get(f"/runs/{waiting}").text
    assert "Waiting for a worker" in page
    assert 'data-do="cancel-run"' in page
    assert "run_live.js" in page
    assert client.get(f"/runs/{waiting}/charts/equity").status_code == 200
    assert client.get(f"/api/runs/{waiting}/decisions?newest=true&limit=2").json()["total"] == 24
    workspace.runs.request_cancel(waiting)
    cancelled = client.get(f"/runs/{waiting}").text
    assert "This run was cancelled" in cancelled
    assert 'data-do="resume-run"' in cancelled
