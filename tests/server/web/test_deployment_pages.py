"""The pages of deployments: what they show of each state, and to whom they offer commands."""

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.accounts import Accounts
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.deployment import COMMAND_MEANINGS
from pitboss.jobs.worker_settings import open_queue
from pitboss.store.deployment_alarms import raise_alarm
from pitboss.store.deployments import Deployment
from pitboss.store.queue import Job

pytestmark = pytest.mark.usefixtures("no_workers")


@pytest.fixture
def live(workspace: Workspace) -> Deployment:
    """A live deployment with the records of the demo run."""
    (run,) = workspace.runs.listing().runs
    return workspace.deployments.create(run.id, "trend-thesis", 1, "perp", "live", "main")


def test_without_deployments_the_list_says_how_to_make_one(browser_session: TestClient) -> None:
    assert "Nothing is deployed" in browser_session.get("/deployments").text
    assert "No agent is deployed" in browser_session.get("/").text


def test_a_page_shows_state_account_entries_caps_and_commands(
    browser_session: TestClient, workspace: Workspace, live: Deployment
) -> None:
    workspace.deployments.send(live.id, "snapshot", "for the <b>review</b>", "anna")
    page = browser_session.get(f"/deployments/{live.id}").text
    for words in ("LIVE · armed", "No process works on it now", "Open orders", "Newest entries", "max leverage"):
        assert words in page
    assert "or <code>pitboss live host</code> runs one" in page
    for words in ("waits for a process", "for the &lt;b&gt;review", "None can be raised beyond the skill"):
        assert words in page
    assert all(f'data-command="{command}"' in page for command in COMMAND_MEANINGS)
    assert f'href="/runs/{live.run_id}"' in page
    assert f'href="/deployments/{live.id}"' in browser_session.get("/deployments").text
    raise_alarm(workspace.database, live.id, "the exchange has <i>liquidated</i> positions")
    assert "Alarm. </strong>the exchange has &lt;i&gt;" in browser_session.get(f"/deployments/{live.id}/now").text
    workspace.deployments.send(live.id, "acknowledge", "", "anna")
    assert "Alarm." not in browser_session.get(f"/deployments/{live.id}/now").text
    workspace.deployments.halt(live.id, "daily_loss", "3.1 % lost today")
    parts = browser_session.get(f"/deployments/{live.id}/now").text
    for words in ("LIVE · disarmed", "Halted", "daily_loss", "3.1 % lost today", 'data-state="halted"'):
        assert words in parts
    assert "data-command" not in parts


def test_the_home_page_shows_deployments_that_have_not_ended_and_halted_ones_first(
    browser_session: TestClient, workspace: Workspace, live: Deployment
) -> None:
    create = workspace.deployments.create
    halted, stopped = (create(run_id, "trend-thesis", 1, "perp", "paper") for run_id in ("b" * 12, "c" * 12))
    workspace.deployments.halt(halted.id, "drawdown", "too deep")
    workspace.deployments.stop(stopped.id, "stop", "")
    home = browser_session.get("/").text
    assert 0 < home.index(halted.id) < home.index(live.id)
    assert stopped.id not in home
    listed = browser_session.get("/deployments/now").text
    assert listed.index(halted.id) < listed.index(live.id) < listed.index(stopped.id)


def test_the_home_page_does_not_count_an_old_live_run_among_those_that_run_now(
    browser_session: TestClient, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pitboss.server.pages.home.SEARCHED", 1)
    (finished,) = workspace.runs.listing().runs
    for params in ({**finished.params, "every_ms": 60_000}, finished.params):
        job = Job(finished.skill_id, finished.skill_version, finished.model, params)
        (run_id,) = open_queue(workspace).enqueue([job])
        if "every_ms" in params:
            workspace.runs.claim(run_id, into="running")
    tile = browser_session.get("/").text.partition("<h2>Running now</h2>")[2]
    assert tile.startswith('<p class="value">0</p>')


def test_a_viewer_is_offered_no_commands_and_no_form(
    client: TestClient, workspace: Workspace, live: Deployment
) -> None:
    skill = client.get("/skills/trend-thesis").text
    assert ('id="deploy-form"' in skill, "data-cap=" in skill, "deploy-password" in skill) == (True, True, False)
    accounts = Accounts(workspace)
    vera = accounts.users.add("vera", "viewer", "", "local")
    client.headers["Authorization"] = f"Bearer {accounts.create_token(vera, 'hers', 'viewer', None)[0]}"
    page = client.get(f"/deployments/{live.id}").text
    assert ("LIVE · armed" in page, "data-command" in page, 'id="command"' in page) == (True, False, False)
    assert 'id="deploy-form"' not in client.get("/skills/trend-thesis").text


def test_the_run_of_a_deployment_leads_to_it_and_is_not_cancelled_by_itself(client: TestClient) -> None:
    made = client.post("/api/deployments", json={"skill": "trend-thesis", "mode": "paper"}).json()
    page = client.get(f"/runs/{made['run_id']}").text
    assert (f'href="/deployments/{made["run_id"]}"' in page, "cancel-run" in page) == (True, False)
    assert client.get(f"/deployments/{made['run_id']}").status_code == 200
    run = f"/api/runs/{made['run_id']}"
    for refused in (client.post(f"{run}/cancel"), client.post(f"{run}/resume"), client.delete(run)):
        assert (refused.status_code, "belongs to a deployment" in refused.json()["detail"]) == (409, True)
        assert "pitboss command" in refused.json()["hint"]
