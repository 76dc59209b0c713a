"""The app as a whole: access, and the headers of every response."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.machine import random_hex
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.server.access.sign_in import SignIn, digest
from pitboss.server.app import create_app
from pitboss.server.pages.frame import static_file
from server.web.conftest import ADDRESS, TOKEN


@pytest.fixture
def empty_client(tmp_path: Path) -> Iterator[TestClient]:
    """A client of a server whose workspace has no runs."""
    app = create_app(open_workspace(load_settings(tmp_path / "new")), SignIn(digest(TOKEN), random_hex))
    with TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        yield client


def test_health_is_open_and_the_rest_is_not(anonymous: TestClient) -> None:
    assert anonymous.get("/health").json()["status"] == "ok"
    refused = anonymous.get("/api/runs")
    assert refused.status_code == 401
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["code"] == "unauthorized"


def test_the_start_token_is_a_bearer_token_of_the_api(client: TestClient) -> None:
    (run,) = client.get("/api/runs").json()["runs"]
    assert run["status"] == "complete"


def test_the_link_works_once_and_gives_a_session(anonymous: TestClient) -> None:
    assert anonymous.get("/start?token=wrong").status_code == 401
    first = anonymous.get(f"/start?token={TOKEN}")
    assert first.status_code == 303
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "Latest runs" in anonymous.get("/").text
    anonymous.cookies.clear()
    assert anonymous.get(f"/start?token={TOKEN}").status_code == 401


def test_every_response_forbids_scripts_and_frames_of_others(browser_session: TestClient) -> None:
    for path in ("/", "/health", "/api/runs", "/nothing"):
        policy = browser_session.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy


def test_requests_for_static_files_that_do_not_exist_leave_nothing_in_memory(anonymous: TestClient) -> None:
    assert anonymous.get("/static/0/none.css").status_code == 404
    assert anonymous.get("/static/0/app.css").status_code == 200
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(1_000):
            assert static_file(f"{number:01000}.css") is None
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100_000


def test_no_error_tells_where_the_database_of_the_server_is(empty_client: TestClient) -> None:
    for path in ("/api/runs/3f9a", "/api/runs/last", "/runs/3f9a", "/runs/last"):
        reply = empty_client.get(path)
        assert reply.status_code == 404
        assert "pitboss.db" not in reply.text, reply.text
    assert empty_client.get("/api/runs/3f9a").json()["hint"] == "there are no runs in the database"


def test_a_page_without_a_session_has_no_chat(anonymous: TestClient) -> None:
    assert 'id="chat"' not in anonymous.get("/sign-in").text
    assert anonymous.get(f"/start?token={TOKEN}").status_code == 303
    assert 'id="chat"' in anonymous.get("/runs").text
