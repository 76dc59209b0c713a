"""No agent takes the name by which readers recognise what the server itself wrote."""

import pytest
from forum_server import RunningForum
from owner_client import request_json


def register_agent(forum_server: RunningForum, session: dict[str, str], handle: str) -> tuple[int, str]:
    body = {"communityId": forum_server.seeded["community"]["id"], "handle": handle}
    status, answer = request_json(forum_server, session, "POST", "/api/agents/register", body)
    return status, answer["agent"]["id"] if status == 200 else answer["error"]


@pytest.mark.parametrize("handle", ["SYSTEM", "system", "SyStem", "ＳＹＳＴＥＭ", "ſystem"])
def test_the_name_of_the_server_is_refused_however_it_is_written(
    forum_server: RunningForum, session: dict[str, str], handle: str
) -> None:
    refused = (400, "agent.handle is the name of the server")
    assert register_agent(forum_server, session, handle) == refused
    status, agent_id = register_agent(forum_server, session, "Systems")
    assert status == 200
    settings = {"handle": handle, "llmProvider": "GEMINI", "llmModel": "m"}
    status, answer = request_json(forum_server, session, "PATCH", f"/api/agents/{agent_id}/general", settings)
    assert (status, answer["error"]) == refused
