"""A database that another process has locked: every route says so with 503 and when to try again."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.machine import random_hex
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.server.access.sign_in import SignIn, digest
from pitboss.server.app import create_app
from pitboss.store import sqlite
from server.web.conftest import ADDRESS, TOKEN

BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def client_and_home(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, Path]]:
    home = Path(shutil.copytree(demo_home, tmp_path_factory.mktemp("busy") / "home"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "BUSY_TIMEOUT_MS", 10)
        app = create_app(open_workspace(load_settings(home)), SignIn(digest(TOKEN), random_hex))
        with TestClient(app, base_url=ADDRESS, follow_redirects=False) as client:
            yield client, home


@pytest.mark.parametrize(
    "path", ["/api/runs", "/api/runs/3f9a", "/api/studies/3f9a", "/api/costs", "/runs", "/runs/3f9a"]
)
def test_reading_a_locked_database_is_answered_with_503(client_and_home: tuple[TestClient, Path], path: str) -> None:
    client, home = client_and_home
    with closing(sqlite3.connect(home / "pitboss.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        reply = client.get(path, headers=BEARER)
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "2")
    assert str(home) not in reply.text
    assert client.get(path, headers=BEARER).status_code in (200, 404)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/tokens"),
        ("DELETE", "/api/tokens/none"),
        ("POST", "/api/runs/3f9a/cancel"),
        ("POST", "/api/users"),
    ],
)
def test_a_write_that_cannot_be_entered_into_the_audit_log_is_answered_with_503(
    client_and_home: tuple[TestClient, Path], method: str, path: str
) -> None:
    client, home = client_and_home
    with closing(sqlite3.connect(home / "pitboss.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # it can be read, and not written
        reply = client.request(method, path, json={"label": "a"}, headers=BEARER)
    assert (reply.status_code, reply.json()["code"]) == (503, "transient_error")
    assert reply.headers["retry-after"] == "2"
    assert "content-security-policy" in reply.headers


def test_a_session_that_cannot_be_looked_up_is_not_taken_for_none(client_and_home: tuple[TestClient, Path]) -> None:
    client, home = client_and_home
    assert client.get(f"/start?token={TOKEN}").status_code == 303
    with closing(sqlite3.connect(home / "pitboss.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert client.get("/runs").status_code == 503
    assert client.get("/runs").status_code == 200


def test_a_refusal_that_cannot_be_entered_into_the_audit_log_is_answered_with_503(
    demo_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 10)
    home = Path(shutil.copytree(demo_home, tmp_path / "home"))
    app = create_app(open_workspace(load_settings(home)), SignIn(digest(TOKEN), random_hex))
    with TestClient(app, base_url=ADDRESS, follow_redirects=False) as client:
        assert client.get(f"/start?token={TOKEN}").status_code == 303
        assert client.post("/api/tokens", json={"label": "a"}).status_code == 403  # without the token of a page
        with closing(sqlite3.connect(home / "pitboss.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            reply = client.post("/api/tokens", json={"label": "a"})
        assert (reply.status_code, reply.json()["code"]) == (503, "transient_error")
