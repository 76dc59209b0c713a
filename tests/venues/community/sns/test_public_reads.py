"""Reads of the forum without credentials, and the web origins that may call it."""

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
def forum_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningForum]:
    address = postgres_server.new_database() if request.param == "postgres" else None
    with serving(tmp_path_factory.mktemp("forum"), address, origin=ORIGIN) as server:
        yield server
    if address is not None:
        postgres_server.drop(address)


def get(forum_server: RunningForum, path: str) -> Any:
    status, answer, _ = forum_server.send("GET", path)
    assert status == 200, answer
    return answer


def threads(forum_server: RunningForum, query: str = "") -> list[str]:
    answer = get(forum_server, f"/api/communities/{forum_server.seeded['community']['slug']}/threads{query}")
    schemas.ThreadsReply.model_validate(answer)
    return [row["id"] for row in answer["threads"]]


def test_a_thread_is_read_with_its_comments_from_the_oldest_on(forum_server: RunningForum) -> None:
    thread = forum_server.thread("REPORT_TO_HUMAN")
    for text in ("first 100% sure", "second"):
        assert signed_write(forum_server, "POST", f"/api/threads/{thread}/comments", {"body": text})[0] == 200
    answer = get(forum_server, f"/api/threads/{thread}")
    schemas.PublicThreadReply.model_validate(answer)
    assert [row["body"] for row in answer["comments"]][-2:] == ["first 100% sure", "second"]
    assert answer["thread"]["author"] != "system"
    assert answer["community"]["slug"] == forum_server.seeded["community"]["slug"]
    assert forum_server.send("GET", "/api/threads/nothing")[0] == 404
    assert forum_server.send("GET", "/api/threads/a%00b")[0] == 404


def test_threads_are_searched_by_type_text_comment_author_and_id(forum_server: RunningForum) -> None:
    report, system = forum_server.thread("REPORT_TO_HUMAN"), forum_server.thread("SYSTEM")
    assert signed_write(forum_server, "POST", f"/api/threads/{report}/comments", {"body": "found 100% here"})[0] == 200
    everything = threads(forum_server)
    assert {row["id"] for row in forum_server.seeded["threads"]} <= set(everything)
    assert threads(forum_server, "?type=SYSTEM") == [system]
    assert threads(forum_server, "?q=FOUND%20100%25") == [report]
    assert threads(forum_server, f"?q={report}") == [report]
    assert threads(forum_server, "?q=100%25_") == []  # the signs of LIKE mean themselves
    assert threads(forum_server, "?q=%00") == everything
    handle = get(forum_server, f"/api/agents/{forum_server.agent_id}/profile")["agent"]["handle"]
    assert set(threads(forum_server, f"?q={quote(handle)}")) >= {report}
    assert forum_server.send("GET", "/api/communities/nowhere/threads")[0] == 404


def test_an_agent_is_shown_without_its_wallet(forum_server: RunningForum) -> None:
    answer = get(forum_server, f"/api/agents/{forum_server.agent_id}/profile")
    schemas.ProfileReply.model_validate(answer)
    assert forum_server.seeded["agent"]["wallet"] not in json.dumps(answer)
    assert forum_server.send("GET", "/api/agents/nobody/profile")[0] == 404


def test_ids_in_a_text_become_links_to_what_can_be_read(forum_server: RunningForum) -> None:
    ids = [
        forum_server.agent_id,
        forum_server.thread("SYSTEM"),
        forum_server.seeded["community"]["id"],
        "nothing",
        "a\0b",
    ]
    status, answer, _ = forum_server.send("POST", "/api/mentions/resolve", {}, json.dumps({"ids": ids}).encode())
    assert status == 200
    assert {link["type"] for link in answer["links"].values()} == {"agent", "thread", "community"}
    assert set(answer["links"]) == set(ids[:3])
    for link in answer["links"].values():
        assert forum_server.send("GET", link["href"])[0] == 200
    assert forum_server.send("POST", "/api/mentions/resolve", {}, json.dumps({"ids": ["a"] * 65}).encode())[0] == 400


def test_pages_of_one_origin_may_call_every_method_and_no_other_page_any(forum_server: RunningForum) -> None:
    for method in {route.method for route in ROUTES}:
        asked = {
            "Origin": ORIGIN,
            "Access-Control-Request-Method": method,
            "Access-Control-Request-Headers": "x-agent-nonce",
        }
        status, _, headers = forum_server.send("OPTIONS", "/api/threads", asked)
        assert (status, headers["access-control-allow-origin"]) == (200, ORIGIN)
        assert method in headers["access-control-allow-methods"]
        other = forum_server.send("OPTIONS", "/api/threads", {**asked, "Origin": "https://evil.example"})
        assert other[0] == 400
        assert "access-control-allow-origin" not in other[2]
    assert forum_server.send("GET", "/health", {"Origin": ORIGIN})[2]["access-control-allow-origin"] == ORIGIN
    assert (
        "access-control-allow-origin" not in forum_server.send("GET", "/health", {"Origin": "https://evil.example"})[2]
    )


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
