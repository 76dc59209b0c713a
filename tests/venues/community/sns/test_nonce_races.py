"""One nonce is good for one write, however many clients send it at once to however many server processes."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from forum_server import Served, filled, serving

import postgres_server
from figures import keep
from pitboss.bootstrap.machine import SystemClock
from pitboss.venues.community.sns.canonical_json import canonical_json
from pitboss.venues.community.sns.client import SnsClient
from pitboss.venues.community.sns.signature_v1 import sign_v1

CLIENTS, PROCESSES = 64, 4


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
        return
    address = postgres_server.new_database()
    yield address
    postgres_server.drop(address)


async def race(served: Served, nonces: int) -> list[int]:
    """How many of the clients each nonce was accepted from."""
    path = f"{served.url}/api/threads/{served.thread('DISCUSSION')}/comments"
    accepted: list[int] = []
    connector = aiohttp.TCPConnector(limit=CLIENTS)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=120)) as session:
        for number in range(nonces):
            async with session.post(f"{served.url}/api/agents/nonce", headers=served.runner) as answer:
                nonce = (await answer.json())["nonce"]
            body, stamp = {"body": f"comment {number}"}, str(int(time.time() * 1_000))
            signature = sign_v1(served.token, nonce, stamp, body, served.agent_id)
            headers = {
                **served.runner,
                "x-agent-nonce": nonce,
                "x-agent-timestamp": stamp,
                "x-agent-signature": signature,
            }

            async def send(headers: dict[str, str] = headers, content: str = canonical_json(body)) -> int:
                async with session.post(path, headers=headers, data=content) as answer:
                    await answer.read()
                    return answer.status

            statuses = await asyncio.gather(*(send() for _ in range(CLIENTS)))
            assert set(statuses) <= {200, 401}, statuses
            accepted.append(statuses.count(200))
    return accepted


@pytest.mark.parametrize("nonces", [3, pytest.param(1_000, marks=pytest.mark.chaos)])
def test_of_64_clients_with_the_same_nonce_one_is_accepted_by_four_processes(
    tmp_path: Path, place: str | None, nonces: int
) -> None:
    with serving(tmp_path, place, processes=PROCESSES) as served:
        accepted = asyncio.run(race(served, nonces))
        assert accepted == [1] * nonces
        answer = served.send("GET", f"/api/agents/context?agentId={served.agent_id}&commentLimit=0", served.runner)[1]
        assert answer["context"]["communities"][0]["totalComments"] == nonces
    kind = "SQLite" if place is None else "Postgres"
    keep(f"nonces raced by {CLIENTS} clients on {PROCESSES} processes, {kind}", {"nonces": nonces, "accepted": nonces})


@pytest.mark.parametrize("writes", [4, pytest.param(200, marks=pytest.mark.chaos)])
def test_of_concurrent_writes_with_the_same_idempotency_key_one_is_made(
    tmp_path: Path, place: str | None, writes: int
) -> None:
    async def talk(served: Served) -> list[list[Any]]:
        async with SnsClient(served.url, served.agent_id, served.token, SystemClock(), 2) as client:
            thread = served.thread("DISCUSSION")
            return [
                await asyncio.gather(
                    *(client.create_comment(thread, f"text {number}", "DISCUSSION", f"key-{number}") for _ in range(8))
                )
                for number in range(writes)
            ]

    with serving(tmp_path, place, processes=2) as served:
        answers = asyncio.run(talk(served))
        assert all(answer == same[0] for same in answers for answer in same)
        document = served.send("GET", f"/api/agents/context?agentId={served.agent_id}", served.runner)[1]["context"]
        assert document["communities"][0]["totalComments"] == writes


def test_the_same_database_is_filled_once_by_the_first_of_several(tmp_path: Path, place: str | None) -> None:
    from pitboss.core.errors import UserError

    filled(tmp_path, place)
    with pytest.raises(UserError, match="not empty"):
        filled(tmp_path, place)
