"""The app as a whole: who gets in, what every response carries."""

import tracemalloc

from starlette.testclient import TestClient

from pitboss.server.pages.frame import static_file
from server.web.conftest import TOKEN


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


def test_a_page_without_a_session_has_no_chat(anonymous: TestClient) -> None:
    assert 'id="chat"' not in anonymous.get("/sign-in").text
    assert anonymous.get(f"/start?token={TOKEN}").status_code == 303
    assert 'id="chat"' in anonymous.get("/runs").text
