"""A workspace with something to see on every page: runs of each venue and in each state, a fork, studies, costs, a forum, users.

It is made once for all workers of a test run. Nothing in it is executed later: serve it with `PITBOSS_EXECUTOR=none`.
"""

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from starlette.testclient import TestClient

from forum_workspace import ask_for_approvals, fill_forum, write_log
from pitboss.bootstrap.accounts import Accounts
from pitboss.bootstrap.machine import random_hex
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.trading_accounts import TradingAccount, add_account
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.runs.skill_reference import example_skills
from pitboss.runs.stored import journal_of
from pitboss.server.access.sign_in import SignIn, digest
from pitboss.server.app import create_app
from pitboss.store.import_run import insert_run
from pitboss.store.passwords import hash_password
from server.web.conftest import ADDRESS, TOKEN
from server.web.queue_work import run_queued
from server.web.test_api_runs import DAY
from server.web.test_api_studies import ARENA, SWEEP
from server.web.test_panel_pages import pay

IDS = "ids.json"
PASSWORD = "correct horse battery staple"
QUIET = {**DAY, "text": DAY["text"].replace("trends", "quiet"), "model": "policy/hold"}
EXAMPLES = {example.name: example.text for example in example_skills()}
PREDICT = {"text": EXAMPLES["btc-brain"], "from": "2024-12-30T12:00", "to": "2024-12-30T13:00", "data_venue": "demo"}
COMMUNITY = {"text": EXAMPLES["contract-auditor"], "from": "2025-03-01", "to": "2025-03-01T00:30"}
REASON = "the provider groq refused the key: 401 invalid_api_key; the key ends in …3f9a and was set on 2025-03-01"
PART = 200
"""Records of a run that did not come to its end."""


def full_workspace(demo_home: Path, factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The folder, to be copied before it is written to, and the ids of what is in it by names."""
    root = factory.getbasetemp()
    shared = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    home = shared / "full-workspace"
    with FileLock(f"{home}.lock"):
        if not (home / IDS).exists():
            shutil.rmtree(home, ignore_errors=True)
            shutil.copytree(demo_home, home)
            with ThreadPoolExecutor(1) as thread:  # a browser may keep a loop running in this one
                ids = thread.submit(_fill, home).result()
            (home / IDS).write_text(json.dumps(ids))
    return home, json.loads((home / IDS).read_text())


def _fill(home: Path) -> dict[str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PITBOSS_EXECUTOR", "none")
        forum = fill_forum(home)
        with open_workspace(load_settings(home)) as workspace, _api(workspace) as client:
            ids = _runs(workspace, client)
            _people(workspace)
            ids |= _deployments(workspace, ids)
            for days, (model, usd) in enumerate((("groq/small", "0.25"), ("llm/fake", "1.5"), ("groq/large", "0.04"))):
                pay(workspace, ids["traded"], model, usd, 3 * days)
        ask_for_approvals(home)
        write_log(home, "I looked at the vault and found nothing new.")
    return {**ids, "slug": forum["slug"], "thread": "asks"}


@contextmanager
def _api(workspace: Workspace) -> Iterator[TestClient]:
    app = create_app(workspace, SignIn(digest(TOKEN), random_hex))
    yield TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {TOKEN}"})


def _created(reply: Any) -> dict[str, Any]:
    assert reply.status_code == 201, reply.text
    return reply.json()


def _runs(workspace: Workspace, client: TestClient) -> dict[str, str]:
    traded = workspace.runs.listing(1).runs[0]
    ids = {"traded": traded.id}
    for name, body in (
        ("quiet", QUIET),
        ("predict", {**PREDICT, "model": "policy/yes_only"}),
        ("community", COMMUNITY),
    ):
        ids[name] = _created(client.post("/api/runs", json=body))["run_id"]
    change = {"at": "2025-02-11T20:00:00Z", "model": "policy/momentum"}
    ids["fork"] = _created(client.post(f"/api/runs/{traded.id}/fork", json=change))["run_id"]
    for name, body in (("sweep", SWEEP), ("arena", ARENA)):
        ids[name] = _created(client.post("/api/studies", json=body))["study_id"]
    run_queued(workspace)
    ids["waiting_study"] = _created(client.post("/api/studies", json={**SWEEP, "name": "waits"}))["study_id"]
    ids["queued"] = _created(client.post("/api/runs", json={**DAY, "model": "policy/buy_and_hold"}))["run_id"]
    journal = journal_of(workspace, traded)
    state = journal.latest_state()
    assert state is not None
    part = list(journal.records())[:PART]
    unfinished = {"metrics": None, "baselines": None, "report": None, "digest": None, "progress": 0.37}
    for number, (name, status, records) in enumerate(
        (("failed", "error", part), ("broken", "error", []), ("cancelled", "cancelled", part), ("running", "running", part))
    ):  # fmt: skip
        changes: dict[str, Any] = {"status": status, "error_text": REASON if status == "error" else None, **unfinished}
        stored = replace(traded, id=f"{number + 1}" * 12, ticks=len(records), **changes)
        insert_run(workspace.database, stored, records, state[1] if records else None)
        ids[name] = stored.id
    return ids


def _deployments(workspace: Workspace, ids: dict[str, str]) -> dict[str, str]:
    """One on paper, one that sends orders and one that is halted; nothing works on them."""
    add_account(workspace.home, "main", TradingAccount(address=f"0x{'ab' * 20}", network="testnet"))
    deployments = workspace.deployments
    paper = deployments.create(ids["fork"], "trend-thesis", 1, "perp", "paper")
    live = deployments.create(ids["failed"], "trend-thesis", 1, "perp", "live", "main")
    halted = deployments.create(ids["cancelled"], "trend-thesis", 1, "perp", "shadow", "main")
    deployments.send(live.id, "snapshot", "for the weekly review", "anna")
    deployments.halt(halted.id, "drawdown", "equity 8,480.12 is 15.2 % below the peak of 10,000.00")
    return {"paper_deployment": paper.id, "live_deployment": live.id, "halted_deployment": halted.id}


def _people(workspace: Workspace) -> None:
    """An admin and a viewer with passwords, whose hashes are made as weak as quick ones are, and tokens."""
    accounts = Accounts(workspace)
    hashed = hash_password(PASSWORD, "ab" * 16, log_n=4, p=1)
    anna = accounts.users.add("anna", "admin", hashed, "local")
    accounts.users.add("vera", "viewer", hashed, "local")
    accounts.create_token(anna, "nightly backtests", "author", 90)
    local = accounts.users.get("local")
    assert local is not None
    accounts.create_token(local, "notebook", "viewer", None)
