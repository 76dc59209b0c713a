"""The app as a whole: who gets in, what every response carries."""

from starlette.testclient import TestClient

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
