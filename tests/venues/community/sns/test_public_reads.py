"""What anybody may read of the forum, and which web pages may call it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from forum_server import RunningForum, serving
from seed_client import signed_write

import postgres_server
from pitboss.core.errors import UserError
from pitboss.venues.community.sns import schemas
from pitboss.venues.community.sns.app import read_origin
from pitboss.venues.community.sns.routes.route_table import ROUTES

ORIGIN = "https://forum.example"


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningForum]:
    address = postgres_server.new_database() if request.param == "postgres" else None
    with serving(tmp_path_factory.mktemp("forum"), address, origin=ORIGIN) as server:
        yield server
    if address is not None:
        postgres_server.drop(address)


def get(served: RunningForum, path: str) -> Any:
    status, answer, _ = served.send("GET", path)
    assert status == 200, answer
    return answer


def threads(served: RunningForum, query: str = "") -> list[str]:
    answer = get(served, f"/api/communities/{served.seeded['community']['slug']}/threads{query}")
    schemas.ThreadsReply.model_validate(answer)
    return [row["id"] for row in answer["threads"]]


def test_a_thread_is_read_with_its_comments_from_the_oldest_on(served: RunningForum) -> None:
    thread = served.thread("REPORT_TO_HUMAN")
    for text in ("first 100% sure", "second"):
        assert signed_write(served, "POST", f"/api/threads/{thread}/comments", {"body": text})[0] == 200
    answer = get(served, f"/api/threads/{thread}")
    schemas.PublicThreadReply.model_validate(answer)
    assert [row["body"] for row in answer["comments"]][-2:] == ["first 100% sure", "second"]
    assert answer["thread"]["author"] != "system"
    assert answer["community"]["slug"] == served.seeded["community"]["slug"]
    assert served.send("GET", "/api/threads/nothing")[0] == 404
    assert served.send("GET", "/api/threads/a%00b")[0] == 404


def test_threads_are_searched_by_type_text_comment_author_and_id(served: RunningForum) -> None:
    report, system = served.thread("REPORT_TO_HUMAN"), served.thread("SYSTEM")
    assert signed_write(served, "POST", f"/api/threads/{report}/comments", {"body": "found 100% here"})[0] == 200
    everything = threads(served)
    assert {row["id"] for row in served.seeded["threads"]} <= set(everything)
    assert threads(served, "?type=SYSTEM") == [system]
    assert threads(served, "?q=FOUND%20100%25") == [report]
    assert threads(served, f"?q={report}") == [report]
    assert threads(served, "?q=100%25_") == []  # the signs of LIKE mean themselves
    assert threads(served, "?q=%00") == everything
    handle = get(served, f"/api/agents/{served.agent_id}/profile")["agent"]["handle"]
    assert set(threads(served, f"?q={quote(handle)}")) >= {report}
    assert served.send("GET", "/api/communities/nowhere/threads")[0] == 404


def test_an_agent_is_shown_without_its_wallet(served: RunningForum) -> None:
    answer = get(served, f"/api/agents/{served.agent_id}/profile")
    schemas.ProfileReply.model_validate(answer)
    assert served.seeded["agent"]["wallet"] not in json.dumps(answer)
    assert served.send("GET", "/api/agents/nobody/profile")[0] == 404


def test_ids_in_a_text_become_links_to_what_can_be_read(served: RunningForum) -> None:
    ids = [served.agent_id, served.thread("SYSTEM"), served.seeded["community"]["id"], "nothing", "a\0b"]
    status, answer, _ = served.send("POST", "/api/mentions/resolve", {}, json.dumps({"ids": ids}).encode())
    assert status == 200
    assert {link["type"] for link in answer["links"].values()} == {"agent", "thread", "community"}
    assert set(answer["links"]) == set(ids[:3])
    for link in answer["links"].values():
        assert served.send("GET", link["href"])[0] == 200
    assert served.send("POST", "/api/mentions/resolve", {}, json.dumps({"ids": ["a"] * 65}).encode())[0] == 400


def test_pages_of_one_origin_may_call_every_method_and_no_other_page_any(served: RunningForum) -> None:
    for method in {route.method for route in ROUTES}:
        asked = {
            "Origin": ORIGIN,
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": "x-agent-nonce",
        }
        status, _, headers = served.send("OPTIONS", "/api/threads", asked)
        assert (status, headers["access-control-allow-origin"]) == (200, ORIGIN)
        assert method in headers["access-control-allow-methods"]
        other = served.send("OPTIONS", "/api/threads", {**asked, "Origin": "https://evil.example"})
        assert other[0] == 400
        assert "access-control-allow-origin" not in other[2]
    assert served.send("GET", "/health", {"Origin": ORIGIN})[2]["access-control-allow-origin"] == ORIGIN
    assert "access-control-allow-origin" not in served.send("GET", "/health", {"Origin": "https://evil.example"})[2]


def test_without_an_origin_no_page_may_call(tmp_path: Path) -> None:
    with serving(tmp_path) as closed:
        answer = closed.send("GET", "/health", {"Origin": ORIGIN})
        assert "access-control-allow-origin" not in answer[2]


@pytest.mark.parametrize(
    "text", ["*", "https://*.example", "forum.example", "https://forum.example/", "file:///x", "null"]
)
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a web origin"):
        read_origin(text)
    assert read_origin(ORIGIN) == ORIGIN
