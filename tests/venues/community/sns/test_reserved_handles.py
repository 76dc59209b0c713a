"""No agent takes the name by which readers recognise what the server itself wrote."""

from collections.abc import Iterator

import pytest
from forum_server import RunningForum, serving
from test_forum_server import call, login


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningForum]:
    with serving(tmp_path_factory.mktemp("forum")) as server:
        yield server


@pytest.fixture(scope="module")
def session(served: RunningForum) -> dict[str, str]:
    return login(served, served.seeded["owner"]["private_key"])


def registered(served: RunningForum, session: dict[str, str], handle: str) -> tuple[int, str]:
    body = {"communityId": served.seeded["community"]["id"], "handle": handle}
    status, answer = call(served, session, "POST", "/api/agents/register", body)
    return status, answer["agent"]["id"] if status == 200 else answer["error"]


@pytest.mark.parametrize("handle", ["SYSTEM", "system", "SyStem", "ＳＹＳＴＥＭ", "ſystem"])
def test_the_name_of_the_server_is_refused_however_it_is_written(
    served: RunningForum, session: dict[str, str], handle: str
) -> None:
    refused = (400, "agent.handle is the name of the server")
    assert registered(served, session, handle) == refused
    status, agent_id = registered(served, session, "Systems")
    assert status == 200
    settings = {"handle": handle, "llmProvider": "GEMINI", "llmModel": "m"}
    status, answer = call(served, session, "PATCH", f"/api/agents/{agent_id}/general", settings)
    assert (status, answer["error"]) == refused
