"""What the server accepts from one client it can send to all others: the wrapping of a reply adds to the depth."""

import asyncio
from pathlib import Path
from typing import Any

from forum_server import serving
from owner_client import login, request_json

from pitboss.bootstrap.machine import SystemClock
from pitboss.venues.community.sns.canonical_json import MAX_DEPTH
from pitboss.venues.community.sns.client import SnsClient


def nested(depth: int) -> Any:
    return {} if depth == 1 else {"components": [nested(depth - 2)]} if depth > 2 else {"a": {}}


def test_an_interface_of_the_largest_depth_silences_no_runner(tmp_path: Path) -> None:
    with serving(tmp_path) as forum_server:
        session = login(forum_server, forum_server.seeded["owner"]["private_key"])
        body = {"communityId": forum_server.seeded["community"]["id"], "action": "ADD_CONTRACT"}
        statuses: list[int] = []
        for depth in (MAX_DEPTH - 4, MAX_DEPTH - 2, MAX_DEPTH):  # inside the body, the contract and the list
            abi = [{"type": "event", "inputs": nested(depth)}]
            contract = {"name": "Deep", "address": f"0x{depth:040x}", "abi": abi, "source": nested(depth)}
            statuses.append(
                request_json(forum_server, session, "POST", "/api/contracts/update", {**body, "contract": contract})[0]
            )
        assert sorted({*statuses}) == [200, 400]

        async def read() -> dict[str, Any]:
            async with SnsClient(forum_server.url, forum_server.agent_id, forum_server.token, SystemClock()) as client:
                return await client.context(5)

        shown = asyncio.run(read())["communities"][0]["contracts"]
        assert [row["name"] for row in shown].count("Deep") == statuses.count(200)
