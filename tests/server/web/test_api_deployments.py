"""The routes of deployments: deploying, listing, commands with and without a process, confirmations, caps, owners."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.accounts import Accounts
from pitboss.bootstrap.trading_accounts import TradingAccount, add_account
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.role import Role
from pitboss.server.api.lookup import named_subject
from pitboss.server.api.routes import deployments
from pitboss.server.problem import Problem
from pitboss.store.audit_log import AuditLog
from pitboss.store.passwords import hash_password
from server.web.conftest import TOKEN

PAPER = {"skill": "trend-thesis", "mode": "paper"}
LIVE = {"skill": "trend-thesis", "mode": "live", "account": "main"}
PASSWORD = "correct horse battery staple"
BEARER = {"Authorization": f"Bearer {TOKEN}"}

pytestmark = pytest.mark.usefixtures("no_workers")


@pytest.fixture
def main_account(workspace: Workspace) -> None:
    add_account(workspace.home, "main", TradingAccount(address=f"0x{'ab' * 20}", network="testnet"))


def deploy_paper(client: TestClient, **changes: Any) -> str:
    reply = client.post("/api/deployments", json={**PAPER, **changes})
    assert reply.status_code == 201, reply.text
    assert reply.json()["state"] == "running"
    return reply.json()["deployment_id"]


def send_command(client: TestClient, deployment: str, command: str, **more: str) -> Any:
    return client.post(f"/api/deployments/{deployment}/commands", json={"command": command, **more})


@contextmanager
def acknowledging_process(workspace: Workspace, deployment_id: str, note: str = "done") -> Iterator[None]:
    """A process at work on a deployment, as far as commands are concerned: it has the lease and acknowledges."""
    workspace.runs.claim(workspace.deployments.get(deployment_id).run_id, into="running")
    ended = threading.Event()

    def acknowledge() -> None:
        while not ended.wait(0.01):
            for command in workspace.deployments.open_commands([deployment_id]):
                workspace.deployments.acknowledge(command, note)

    thread = threading.Thread(target=acknowledge)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_skill_is_deployed_on_paper_with_tighter_caps_and_is_listed(client: TestClient) -> None:
    deployment = deploy_paper(client, caps=["risk.max_leverage=1"], max_cost_usd_per_day=2, model="policy/hold")
    (listed,) = client.get("/api/deployments").json()
    assert (listed["deployment_id"], listed["skill"], listed["mode"]) == (deployment, "trend-thesis", "paper")
    assert (listed["state"], listed["attended"], listed["foreground"], listed["model"]) == (
        "running",
        False,
        False,
        "policy/hold",
    )
    shown = client.get(f"/api/deployments/{deployment[:6]}").json()
    assert shown["caps"]["max_leverage"] == 1
    assert (shown["commands"], shown["entries"], shown["account_after"]) == ([], [], None)
    assert client.get("/api/deployments", params={"state": "halted"}).json() == []
    assert client.get(f"/api/runs/{shown['run_id']}").status_code == 200


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"caps": ["risk.max_leverage=50"]}, "looser than in the skill"),
        ({"caps": ["model=policy/hold"]}, "is not a cap"),
        ({"caps": ["risk.nothing=1"]}, "nothing"),
        ({"account": "main"}, "paper money has no account"),
        ({"mode": "shadow"}, "needs an account"),
        ({"skill": "no-such-skill"}, "no-such-skill"),
        ({"price_in": 1}, "go together"),
    ],
)
def test_what_cannot_be_deployed_is_refused_and_nothing_is_stored(
    client: TestClient, changes: dict[str, Any], words: str
) -> None:
    refused = client.post("/api/deployments", json={**PAPER, **changes})
    assert (refused.status_code, refused.json()["code"]) == (422, "user_error")
    assert words in refused.json()["detail"] + refused.json()["hint"]
    assert client.get("/api/deployments").json() == []


@pytest.mark.usefixtures("main_account")
def test_mode_live_needs_the_typed_name_of_the_account_and_so_does_resuming_it(client: TestClient) -> None:
    for confirm in ("", "mian"):
        refused = client.post("/api/deployments", json={**LIVE, "confirm": confirm})
        assert (refused.status_code, refused.json()["code"]) == (409, "confirmation_required")
    assert client.get("/api/deployments").json() == []
    deployment = deploy_paper(client, **LIVE, confirm="main")
    again = client.post("/api/deployments", json={**LIVE, "confirm": "main"})
    assert (again.status_code, "already trades on account" in again.json()["detail"]) == (422, True)

    assert send_command(client, deployment, "pause").json()["state"] == "paused"
    refused = send_command(client, deployment, "resume")
    assert (refused.status_code, refused.json()["code"]) == (409, "confirmation_required")
    assert send_command(client, deployment, "resume", confirm="main").json()["state"] == "running"
    assert send_command(client, deployment, "kill").json()["state"] == "stopped"


@pytest.mark.usefixtures("main_account")
def test_a_user_with_a_password_gives_it_once_more_to_deploy_live(client: TestClient, workspace: Workspace) -> None:
    accounts = Accounts(workspace)
    anna = accounts.users.add("anna", "operator", hash_password(PASSWORD, "ab" * 16, log_n=4, p=1), "local")
    client.headers["Authorization"] = f"Bearer {accounts.create_token(anna, 'hers', 'operator', None)[0]}"
    statuses = [
        client.post("/api/deployments", json={**LIVE, "confirm": "main", "password": password}).status_code
        for password in ("", "wrong", PASSWORD)
    ]
    assert statuses == [409, 403, 201]


@pytest.mark.usefixtures("main_account")
def test_caps_are_lowered_without_and_raised_with_name_and_password_after_a_delay(
    client: TestClient, workspace: Workspace
) -> None:
    deployment = deploy_paper(client, **LIVE, confirm="main")
    accounts = Accounts(workspace)
    anna = accounts.users.add("anna", "operator", hash_password(PASSWORD, "ab" * 16, log_n=4, p=1), "local")
    client.headers["Authorization"] = f"Bearer {accounts.create_token(anna, 'hers', 'operator', None)[0]}"
    path = f"/api/deployments/{deployment}/caps"
    lowered = client.post(path, json={"caps": ["risk.max_leverage=1"], "reason": "news"})
    assert (lowered.status_code, lowered.json()["caps"]["max_leverage"]) == (200, 1)

    def raised(**more: str) -> Any:
        return client.post(path, json={"caps": ["risk.max_leverage=2"], **more})

    asked = [raised(), raised(confirm="main"), raised(confirm="main", password="wrong")]
    assert [reply.status_code for reply in asked] == [409, 409, 403]
    pending = raised(confirm="main", password=PASSWORD).json()
    assert (pending["caps"]["max_leverage"], pending["pending"]["user_name"]) == (1, "anna")
    assert pending["pending"]["changes"] == [{"cap": "max_leverage", "from": 1, "to": 2}]
    assert client.get(f"/api/deployments/{deployment}").json()["pending"] == pending["pending"]
    assert "Cancel the raise" in client.get(f"/deployments/{deployment}").text
    assert client.delete(f"{path}/pending").json()["pending"] is None
    assert client.delete(f"{path}/pending").status_code == 409
    assert client.post(path, json={"caps": ["risk.max_leverage=99"], "confirm": "main"}).status_code == 422
    entries = AuditLog(workspace.database, workspace.now).listing(20)
    details = {entry.detail for entry in entries if entry.user_name == "anna"}
    assert {"200 caps risk.max_leverage=1 news", "200 cancels the raise of caps that is pending"} <= details
    send_command(client, deployment, "stop")
    assert client.post(path, json={"caps": ["risk.max_leverage=0.5"]}).status_code == 409


def test_without_a_process_a_command_takes_effect_at_once_and_one_that_needs_the_account_waits(
    client: TestClient, workspace: Workspace
) -> None:
    deployment = deploy_paper(client)
    paused = send_command(client, deployment, "pause", reason="lunch").json()
    assert (paused["state"], paused["note"]) == ("paused", "no process worked on the deployment")
    assert paused["acked_at"] is not None
    waits = send_command(client, deployment, "flatten", reason="enough").json()
    assert (waits["state"], waits["acked_at"]) == ("paused", None)
    listed = client.get(f"/api/deployments/{deployment}/commands").json()
    assert [(each["command"], each["user_name"], each["state"]) for each in listed] == [
        ("flatten", "local", None),
        ("pause", "local", "paused"),
    ]
    assert client.get(f"/api/deployments/{deployment}").json()["reason"] == "lunch"
    assert send_command(client, deployment, "stop").json()["state"] == "stopped"
    stopped = send_command(client, deployment, "resume")
    assert (stopped.status_code, stopped.json()["detail"]) == (409, "the deployment is stopped")
    assert workspace.runs.get(workspace.deployments.get(deployment).run_id).status == "cancelled"


def test_with_a_process_a_command_is_acknowledged_by_it(client: TestClient, workspace: Workspace) -> None:
    deployment = deploy_paper(client)
    with acknowledging_process(workspace, deployment, "closed 2 positions"):
        flattened = send_command(client, deployment, "flatten", reason="news").json()
        assert (flattened["state"], flattened["note"]) == ("paused", "closed 2 positions")
        assert flattened["acked_at"] is not None
        assert client.get(f"/api/deployments/{deployment}").json()["attended"] is True


def test_a_process_that_does_not_answer_is_not_waited_for_long(
    client: TestClient, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployments, "WAIT_S", 0.0)
    deployment = deploy_paper(client)
    workspace.runs.claim(workspace.deployments.get(deployment).run_id, into="running")
    sent = send_command(client, deployment, "pause").json()
    assert (sent["acked_at"], sent["state"]) == (None, "running")


def test_a_halt_is_lifted_only_with_a_reason(client: TestClient, workspace: Workspace) -> None:
    deployment = deploy_paper(client)
    workspace.deployments.halt(deployment, "drawdown", "15.2 % below the peak")
    refused = send_command(client, deployment, "resume")
    assert (refused.status_code, refused.json()["detail"]) == (422, "a halt is lifted only with a reason")
    assert "--" not in refused.json()["hint"]
    assert client.get("/api/deployments", params={"state": "halted"}).json()[0]["code"] == "drawdown"
    assert send_command(client, deployment, "resume", reason="prices checked").json()["state"] == "running"


def test_a_viewer_reads_another_owner_finds_nothing_and_every_write_is_in_the_audit_log(
    client: TestClient, workspace: Workspace
) -> None:
    deployment = deploy_paper(client)
    send_command(client, deployment, "pause", reason="lunch")
    accounts = Accounts(workspace)
    statuses = {}
    people: tuple[tuple[str, Role, str], ...] = (("vera", "viewer", "local"), ("otto", "operator", "otto"))
    for name, role, owner in people:
        user = accounts.users.add(name, role, "", owner)
        client.headers["Authorization"] = f"Bearer {accounts.create_token(user, name, role, None)[0]}"
        read, told = client.get(f"/api/deployments/{deployment}"), send_command(client, deployment, "kill")
        listed = client.get("/api/deployments").json()
        statuses[name] = (read.status_code, told.status_code, client.post("/api/deployments", json=PAPER).status_code)
        assert len(listed) == (1 if owner == "local" else 0)
    assert statuses == {"vera": (200, 403, 403), "otto": (404, 404, 422)}
    client.headers.update(BEARER)
    entries = AuditLog(workspace.database, workspace.now).listing(20)
    words = [(entry.user_name, entry.action, entry.detail) for entry in entries]
    assert ("local", "POST /api/deployments/{deployment_id}/commands", "200 pause lunch") in words
    assert ("local", "POST /api/deployments", f"201 trend-thesis paper {deployment}") in words
    assert workspace.deployments.get(deployment).state == "paused"


def test_a_conversation_about_a_deployment_is_about_its_run(client: TestClient, workspace: Workspace) -> None:
    deployment = workspace.deployments.get(deploy_paper(client))
    for name in (deployment.id, deployment.id[:8], deployment.run_id):
        assert named_subject(workspace, name).id == deployment.run_id
    with pytest.raises(Problem, match="there is no run"):
        named_subject(workspace.owned_by("otto"), deployment.id)
