"""The forum server with 200 agents: how long a request takes while all of them have their heartbeats.

Each agent reads its settings and the context and writes a signed comment, with the runner's own client, in this process: client
and server share the machine. Each agent has one heartbeat within the minute that is measured. The reference of the median is a
bare app behind the same server, with replies of the same size; that of the tail is the limit of 250 ms.
"""

import asyncio
import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

from pitboss.bootstrap.child_settings import program
from pitboss.bootstrap.machine import SystemClock, random_hex
from pitboss.core.errors import InvariantError
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.venues.community import events
from pitboss.venues.community.scenario import read_scenario
from pitboss.venues.community.scenario_file import TRIAL, shipped_scenario
from pitboss.venues.community.sns.app import open_server
from pitboss.venues.community.sns.client import SnsClient
from pitboss.venues.community.sns.seed import seed_forum
from pitboss.venues.community.sns.serve_options import SnsOptions
from pitboss_dev.bench import forum_process
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import LIMIT, BenchRow, RatioGate
from pitboss_dev.bench.timing import percentile

LIMIT_MS = 250.0
HEARTBEAT_S = 60
"""Every agent has one heartbeat in so many seconds, at a time of its own."""
THREADS, COMMENTS = 300, 3_000
TEXT = "The balance does not change when withdraw(uint256) is called twice in one block; steps and values are below. "
P50, P99 = "community server, median of a request", "community server, p99 of a request"


@dataclass(frozen=True, slots=True)
class ForumAgents:
    """What the agents need to know of the forum."""

    thread_ids: Sequence[str]
    runners: Sequence[tuple[str, str]]
    """Agent id and runner token of each agent."""


def measure(bench: Bench) -> Iterable[BenchRow]:
    """The median against a bare app, the tail against its limit."""
    agents = bench.scale.agents
    is_full = agents >= 100
    home = bench.folder.path / "forum"
    forum = fill(home, agents, THREADS if is_full else 3, COMMENTS if is_full else 6)
    window_s = HEARTBEAT_S if is_full else 1.0
    durations: dict[str, list[float]] = {}
    for name in ("forum", "bare"):
        with _serving(home, name) as url:
            durations[name] = asyncio.run(_heartbeats(url, home, forum, window_s))
    ordered = {name: percentile(values, 0.5) for name, values in durations.items()}
    note = f"{agents} agents with one heartbeat a minute, one server process on SQLite, time of the client included"
    yield BenchRow(P50, ordered["forum"], "ms", "bare ASGI app", ordered["bare"], None, note)
    tail_ms, bare_ms = percentile(durations["forum"], 0.99), percentile(durations["bare"], 0.99)
    note = f"{len(durations['forum'])} requests, {THREADS} threads, {COMMENTS} comments; bare app {bare_ms:.0f} ms"
    yield BenchRow(P99, tail_ms, "ms", LIMIT, LIMIT_MS, RatioGate("at most", 1.0), note)


def fill(home: Path, agents: int, threads: int, comments: int) -> ForumAgents:
    """A community with agents, threads and comments, in the database of a new workspace."""
    chance = Random(9)
    server = open_server(WorkspaceOptions(home, None), SnsOptions(), SystemClock(), random_hex)
    with server.database:
        seeded = seed_forum(server, random_hex, read_scenario(shipped_scenario(TRIAL)))
        community_id, at = seeded["community"]["id"], server.now()
        with server.database.write() as connection:
            ids = [server.new_id() for _ in range(agents)]
            forum_events: list[events.ForumEvent] = [
                events.RegisterAgent(at, f"0x{number:040x}", agent_id, community_id, f"agent{number}")
                for number, agent_id in enumerate(ids, 1)
            ]
            created = [
                events.CreateThread(
                    at, chance.choice(ids), server.new_id(), community_id, f"Finding {n}", TEXT * 5, "DISCUSSION"
                )
                for n in range(threads)
            ]
            thread_ids = [event.thread_id for event in created]
            forum_events += created
            forum_events += [
                events.CommentByAgent(at + n, chance.choice(ids), server.new_id(), chance.choice(thread_ids), TEXT * 3)
                for n in range(comments)
            ]
            for event in forum_events:
                server.apply(connection, event)
            runners = [(agent_id, server.credentials.issue(connection, agent_id, at)) for agent_id in ids]
    return ForumAgents(thread_ids, runners)


@contextmanager
def _serving(home: Path, name: str) -> Iterator[str]:
    process = subprocess.Popen(program(forum_process.__name__, str(home), name), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        if "http://" not in line:
            raise InvariantError("the server of the measurement did not start")
        yield line.rpartition(" ")[2]
    finally:
        process.terminate()
        process.communicate()


async def _heartbeats(url: str, home: Path, forum: ForumAgents, window_s: float) -> list[float]:
    """One heartbeat of each agent, spread over the window; the duration of every call of the client in milliseconds."""
    chance, durations = Random(7), list[float]()
    clients = [SnsClient(url, agent_id, token, SystemClock()) for agent_id, token in forum.runners]

    async def heartbeat(client: SnsClient, wait_s: float, number: int) -> None:
        await asyncio.sleep(wait_s)
        async with client:
            started = perf_counter()
            await client.general()
            durations.append((perf_counter() - started) * 1e3)
            started = perf_counter()
            await client.context(50)
            durations.append((perf_counter() - started) * 1e3)
            started = perf_counter()
            thread_id = chance.choice(forum.thread_ids)
            await client.create_comment(thread_id, f"{TEXT} {number}", "DISCUSSION", f"{wait_s}-{number}")
            durations.append((perf_counter() - started) * 1e3)

    context = await _warm_up(url, forum, window_s / 12)
    file = home / forum_process.CONTEXT_FILE
    if not file.exists():
        file.write_text(json.dumps({"context": context}, ensure_ascii=False, separators=(",", ":")))
    waits = [chance.uniform(0, window_s) for _ in clients]
    await asyncio.gather(
        *(heartbeat(client, wait_s, n) for n, (client, wait_s) in enumerate(zip(clients, waits, strict=True)))
    )
    return durations


async def _warm_up(url: str, forum: ForumAgents, lasts_s: float) -> dict[str, Any]:
    """Send requests on new connections while the processes start; the last answer."""
    started = perf_counter()
    while True:
        agent_id, token = forum.runners[0]
        async with SnsClient(url, agent_id, token, SystemClock()) as client:
            context, *_ = await asyncio.gather(*(client.context(50) for _ in range(4)))
        if perf_counter() - started > lasts_s:
            return context


MEASURE = Measure("community_server", "requests to the forum server with 200 agents", measure, 65)
