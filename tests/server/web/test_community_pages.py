"""The pages that the community venue adds to the app: its forum, approvals, and the communication log."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from forum_workspace import HOSTILE, ask_for_approvals, fill_forum, write_log
from pitboss.bootstrap.workspace import Workspace
from pitboss.report.markup import text
from pitboss.runs.web_section import WebRequest, web_sections
from pitboss.venues.community.web.section import SECTION

PAGES = ("", "/requests", "/reports", "/agents", "/approvals", "/log")
ESCAPED = text(HOSTILE)


def page_text(client: TestClient, path: str) -> str:
    reply = client.get(f"/community{path}")
    assert reply.status_code == 200, reply.text
    return reply.text


def test_the_section_of_a_venue_is_in_the_navigation_of_every_page(browser_session: TestClient) -> None:
    assert [section.venue for section in web_sections()] == ["community"]
    page = browser_session.get("/").text
    assert page.index('href="/data"') < page.index('href="/community"') < page.index('href="/settings"')


@pytest.mark.parametrize("path", PAGES)
def test_without_a_forum_a_page_says_what_there_would_be(path: str, browser_session: TestClient, home: Path) -> None:
    page = page_text(browser_session, path)
    expected = {"/approvals": "Nothing waits for an approval", "/log": "Nothing was logged yet"}
    assert expected.get(path, "There is no forum in this workspace") in page
    assert not (home / "community.db").exists(), "looking creates nothing"


@pytest.mark.parametrize("path", PAGES)
def test_without_credentials_no_page_is_shown(path: str, anonymous: TestClient) -> None:
    assert anonymous.get(f"/community{path}").status_code in (303, 401)


def test_the_forum_is_shown_with_its_threads_posts_and_replies(browser_session: TestClient, home: Path) -> None:
    secret = fill_forum(home)
    before = (home / "community.db").read_bytes()
    overview = page_text(browser_session, "")
    assert f'href="/community/c/{secret["slug"]}"' in overview
    community = page_text(browser_session, f"/c/{secret['slug']}")
    for part in ("It asks", "It reports", "Contract registry", "Sepolia", "pending", "registered"):
        assert part in community
    assert "It asks" in page_text(browser_session, "/requests")
    assert "It reports" not in page_text(browser_session, "/requests")
    assert "It reports" in page_text(browser_session, "/reports")
    thread = page_text(browser_session, "/threads/asks")
    assert ESCAPED in thread
    assert "<script>alert" not in thread
    assert thread.index("A comment of the agent.") < thread.index("The owner has answered.")
    assert "owner&#x27;s reply" in thread
    assert "active" in page_text(browser_session, "/agents")
    assert (home / "community.db").read_bytes() == before


def test_no_page_shows_a_secret_of_a_credential(browser_session: TestClient, home: Path) -> None:
    secret = fill_forum(home)
    for path in (*PAGES, f"/c/{secret['slug']}", "/threads/asks"):
        page = page_text(browser_session, path)
        for hidden in (
            secret["runner_token"],
            secret["runner_token"][4:20],
            secret["private_key"],
            "sealed",
            "token_hash",
        ):
            assert hidden not in page


@pytest.mark.parametrize("path", ["/c/no-such", "/threads/no-such"])
def test_what_is_not_in_the_forum_is_not_found(path: str, browser_session: TestClient, home: Path) -> None:
    fill_forum(home)
    assert browser_session.get(f"/community{path}").status_code == 404


def test_a_waiting_transaction_is_approved_and_another_denied(
    client: TestClient, home: Path, workspace: Workspace
) -> None:
    first, second = ask_for_approvals(home)
    assert "2 transactions wait for approval" in page_text(client, "")
    page = page_text(client, "/approvals")
    assert f'data-target="{first}"' in page
    assert "0.25 ETH" in page
    assert ESCAPED in page
    assert "<script>alert" not in page
    done = client.post("/api/venues/community/actions/approve", json={"target": first})
    assert (done.status_code, done.json()) == (200, {"message": f"approved {first[:12]}"})
    assert client.post("/api/venues/community/actions/deny", json={"target": second}).status_code == 200
    states = {request.id: request.state for request in workspace.approval_requests.listing(every=True)}
    assert states == {first: "approved", second: "denied"}
    again = client.post("/api/venues/community/actions/approve", json={"target": second})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert "already denied" in again.json()["detail"]
    assert "Withdraw" in page_text(client, "/approvals")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("community/actions/explode", {"target": "x"}, 404),
        ("perp/actions/approve", {"target": "x"}, 404),
        ("community/actions/approve", {"target": "ffff"}, 409),
        ("community/actions/approve", {}, 422),
        ("community/actions/approve", {"target": "x", "more": 1}, 422),
    ],
)
def test_an_action_that_does_not_exist_or_fit_is_refused(
    path: str, body: dict[str, object], status: int, client: TestClient
) -> None:
    assert client.post(f"/api/venues/{path}", json=body).status_code == status


def test_a_viewer_sees_the_approvals_without_buttons(home: Path, workspace: Workspace) -> None:
    ask_for_approvals(home)
    (render,) = [page.render for page in SECTION.pages if page.path == "/approvals"]
    assert "<button" not in render(WebRequest(workspace, "local"))
    assert "<button" in render(WebRequest(workspace, "local", can_operate=True))


def test_another_owner_sees_neither_the_forum_nor_the_log_nor_the_approvals(home: Path, workspace: Workspace) -> None:
    fill_forum(home)
    ask_for_approvals(home)
    write_log(home, "a word of an agent")
    for page in SECTION.pages:
        if "{" not in page.path:
            content = page.render(WebRequest(workspace.owned_by("somebody"), "somebody", can_operate=True))
            for part in ("It asks", "It reports", "a word of an agent", "deposit", "auditor1"):
                assert part not in content, page.path


def test_the_log_is_shown_newest_first_and_can_be_filtered(browser_session: TestClient, home: Path) -> None:
    write_log(home, "the first", HOSTILE)
    page = page_text(browser_session, "/log")
    assert page.index("heartbeat") < page.index(ESCAPED[:30]) < page.index("the first")
    assert "<script>alert" not in page
    assert "the first" not in page_text(browser_session, "/log?direction=runner_to_agent")
    assert "the first" in page_text(browser_session, "/log?action=comment&agent=agent-1")
    assert "No entry matches" in page_text(browser_session, "/log?agent=nobody")
    assert browser_session.get(f"/community/log?agent={'x' * 300}").status_code == 422


def test_a_page_gives_its_content_alone_to_the_script_that_follows_it(browser_session: TestClient, home: Path) -> None:
    write_log(home, "one")
    page = page_text(browser_session, "/log?direction=agent_to_runner")
    assert 'data-live="/community/log?direction=agent_to_runner&amp;part=content"' in page
    part = page_text(browser_session, "/log?direction=agent_to_runner&part=content")
    assert "<html" not in part
    assert part in page
    write_log(home, "another one")
    assert "another one" in page_text(browser_session, "/log?part=content")
