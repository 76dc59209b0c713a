"""One nonce is good for one write, however many clients send it at once to however many server processes."""

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from forum_server import RunningForum, fill_database, serving

import postgres_server
from pitboss.bootstrap.machine import SystemClock
from pitboss.core.errors import UserError
from pitboss.venues.community.sns.canonical_json import canonical_json
from pitboss.venues.community.sns.client import SnsClient
from pitboss.venues.community.sns.signature_v1 import sign_v1
from saved_figures import save_figures

CLIENTS, PROCESSES, NONCES = 64, 4, 1_000


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def database_address(request: pytest.FixtureRequest) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
        return
    address = postgres_server.new_database()
    yield address
    postgres_server.drop(address)


@pytest.fixture(scope="module")
def forum_server(tmp_path_factory: pytest.TempPathFactory, database_address: str | None) -> Iterator[RunningForum]:
    """Two processes: those of one server, and for the other database two servers, which start quicker."""
    home = tmp_path_factory.mktemp("forum")
    if database_address is None:
        with serving(home, database_address, processes=2) as server:
            yield server
    else:
        with (
            serving(home, database_address, processes=1) as server,
            serving(home, database_address, processes=1, seeded=server.seeded) as other,
        ):
            yield replace(server, more_ports=(other.port,))


async def race(forum_server: RunningForum, nonces: int) -> list[int]:
    """How many of the clients each nonce was accepted from."""
    paths = [f"{url}/api/threads/{forum_server.thread('DISCUSSION')}/comments" for url in forum_server.urls]
    accepted: list[int] = []
    connector = aiohttp.TCPConnector(limit=CLIENTS)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=120)) as session:
        for number in range(nonces):
            async with session.post(f"{forum_server.url}/api/agents/nonce", headers=forum_server.runner) as answer:
                nonce = (await answer.json())["nonce"]
            body, stamp = {"body": f"comment {number}"}, str(int(time.time() * 1_000))
            signature = sign_v1(forum_server.token, nonce, stamp, body, forum_server.agent_id)
            headers = {
                **forum_server.runner,
                "x-agent-nonce": nonce,
                "x-agent-timestamp": stamp,
                "x-agent-signature": signature,
            }

            async def send(path: str, headers: dict[str, str] = headers, content: str = canonical_json(body)) -> int:
                async with session.post(path, headers=headers, data=content) as answer:
                    await answer.read()
                    return answer.status

            statuses = await asyncio.gather(*(send(paths[client % len(paths)]) for client in range(CLIENTS)))
            assert set(statuses) <= {200, 401}, statuses
            accepted.append(statuses.count(200))
    return accepted


def total_comments(forum_server: RunningForum) -> int:
    path = f"/api/agents/context?agentId={forum_server.agent_id}&commentLimit=0"
    return forum_server.send("GET", path, forum_server.runner)[1]["context"]["communities"][0]["totalComments"]


def cpu_seconds(forum_server: RunningForum) -> list[float]:
    """The time that each server process has computed; empty where the system does not tell."""
    if sys.platform != "linux" or forum_server.pid is None:
        return []
    children = Path(f"/proc/{forum_server.pid}/task/{forum_server.pid}/children").read_text().split()
    stats = [Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split() for child in children]
    ticks = sorted(int(fields[11]) + int(fields[12]) for fields in stats)
    return [count / os.sysconf("SC_CLK_TCK") for count in ticks[-PROCESSES:]]  # without the helper of multiprocessing


def check_race(forum_server: RunningForum, nonces: int) -> None:
    before = total_comments(forum_server)
    assert asyncio.run(race(forum_server, nonces)) == [1] * nonces
    assert total_comments(forum_server) == before + nonces


def test_of_64_clients_with_the_same_nonce_one_is_accepted_by_two_processes(forum_server: RunningForum) -> None:
    check_race(forum_server, 3)


@pytest.mark.chaos
@pytest.mark.parametrize("kind", ["SQLite", "Postgres"])
def test_of_64_clients_with_the_same_nonce_one_is_accepted_by_four_processes(tmp_path: Path, kind: str) -> None:
    address = None if kind == "SQLite" else postgres_server.new_database()
    started = time.perf_counter()
    with serving(tmp_path, address, processes=PROCESSES) as forum_server:
        check_race(forum_server, NONCES)
        shares = cpu_seconds(forum_server)
        assert not shares or shares[0] > shares[-1] / 4, shares  # all processes took part
    if address is not None:
        postgres_server.drop(address)
    figures = {"nonces": NONCES, "requests": NONCES * CLIENTS, "accepted": NONCES}
    seconds = round(time.perf_counter() - started)
    save_figures(f"nonces raced by {CLIENTS} clients on {PROCESSES} processes, {kind}", {**figures, "seconds": seconds})


@pytest.mark.parametrize("writes", [4, pytest.param(200, marks=pytest.mark.chaos)])
def test_of_concurrent_writes_with_the_same_idempotency_key_one_is_made(
    forum_server: RunningForum, writes: int
) -> None:
    async def talk() -> list[list[Any]]:
        async with SnsClient(forum_server.url, forum_server.agent_id, forum_server.token, SystemClock(), 2) as client:
            thread = forum_server.thread("DISCUSSION")
            return [
                await asyncio.gather(
                    *(
                        client.create_comment(thread, f"text {number}", "DISCUSSION", f"key-{writes}-{number}")
                        for _ in range(8)
                    )
                )
                for number in range(writes)
            ]

    before = total_comments(forum_server)
    answers = asyncio.run(talk())
    assert all(answer == same[0] for same in answers for answer in same)
    assert total_comments(forum_server) == before + writes


def test_a_database_is_filled_once(forum_server: RunningForum) -> None:
    with pytest.raises(UserError, match="not empty"):
        fill_database(forum_server.home, forum_server.db)
