"""The web server under load: 100 people who read and write while four backtests run beside it, on the same machine.

Each person opens pages, reads documents of the API and now and then saves a skill or starts a run, with pauses as somebody has who
reads what is shown. Then: how much 20 open pages of running runs slow the workers, how soon the first page comes after the server is
started, and how much memory it takes when it is idle.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter

import httpx2

from pitboss.bootstrap.child_settings import program
from pitboss.core.errors import InvariantError
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import LIMIT, BenchRow, RatioGate
from pitboss_dev.bench.timing import percentile

USERS, SIMULATIONS, WATCHERS = 100, 4, 20
LASTS_S = 120.0
PAUSE_S = 5.0
"""A person sends a request every so many seconds, on average."""
WRITES = 0.05
"""The share of requests that write."""
READ_LIMIT_MS, WRITE_LIMIT_MS, FIRST_PAGE_LIMIT_S, MEMORY_LIMIT_MB, SLOWDOWN = 250.0, 500.0, 5.0, 250.0, 1.10
SKILL = "trend-thesis.yaml"
RANGE = {"from": "2025-01-20", "to": "2025-03-10", "model": "standin/analyst", "data_venue": "demo"}
AT_MOST = RatioGate("at most", 1.0)


@dataclass
class Durations:
    """The durations of requests in milliseconds, and what failed."""

    reads: list[float] = field(default_factory=list)
    writes: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class WebServer:
    """A running `pitboss serve`."""

    url: str
    token: str
    api: str
    process_id: int

    @property
    def address(self) -> str:
        """Scheme, host and port."""
        return self.api.removesuffix("/api")

    def client(self) -> httpx2.AsyncClient:
        """A client with the start token."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx2.AsyncClient(base_url=self.address, headers=headers, timeout=60, follow_redirects=False)

    def memory_mb(self) -> float:
        """The memory that the process holds now."""
        lines = Path(f"/proc/{self.process_id}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Start, idle memory, load and the cost of open pages."""
    home = bench.folder.path / "web"
    subprocess.run(program("pitboss", "demo", "--home", str(home)), check=True, capture_output=True)
    is_full = bench.scale.agents >= 100
    started = perf_counter()
    with _serving(home) as server:
        asyncio.run(_first_page(server))
        note = "from the command to the first page, with what the system has cached"
        yield BenchRow("web: first page", perf_counter() - started, "s", LIMIT, FIRST_PAGE_LIMIT_S, AT_MOST, note)
        if os.path.exists("/proc/self/status"):
            note = "resident memory after the first page"
            yield BenchRow("web: idle memory", server.memory_mb(), "MB", LIMIT, MEMORY_LIMIT_MB, AT_MOST, note)
        skill = (home / SKILL).read_text(encoding="utf-8")
        yield from asyncio.run(_load(server, skill, is_full))
        yield asyncio.run(_watched(server, skill, bench.repeats if is_full else 1))


async def _load(server: WebServer, skill: str, is_full: bool) -> list[BenchRow]:
    users, lasts_s = (USERS, LASTS_S) if is_full else (3, 1.0)
    durations, ends_at = Durations(), perf_counter() + lasts_s
    async with server.client() as client, _running(client, skill, SIMULATIONS if is_full else 1) as runs:
        chances = [Random(number) for number in range(users)]
        await asyncio.gather(*(_person(client, chance, skill, runs, durations, ends_at) for chance in chances))
    if durations.errors:
        raise InvariantError(f"{len(durations.errors)} requests failed, the first: {durations.errors[0]}")
    note = f"{users} users, one request in {PAUSE_S:.0f} s each, {SIMULATIONS} backtests, {lasts_s:.0f} s"
    reads, writes = durations.reads, durations.writes or [0.0]
    return [
        BenchRow("web: median of a read", percentile(reads, 0.5), "ms", note=f"{len(reads)} reads"),
        BenchRow("web: p99 of a read", percentile(reads, 0.99), "ms", LIMIT, READ_LIMIT_MS, AT_MOST, note),
        BenchRow("web: p99 of a write", percentile(writes, 0.99), "ms", LIMIT, WRITE_LIMIT_MS, AT_MOST, note),
    ]


async def _person(
    client: httpx2.AsyncClient, chance: Random, skill: str, runs: list[str], durations: Durations, ends_at: float
) -> None:
    """Requests with pauses until the end."""
    while True:
        await asyncio.sleep(min(chance.expovariate(1 / PAUSE_S), 6 * PAUSE_S))
        if perf_counter() >= ends_at:
            return
        started = perf_counter()
        if chance.random() < WRITES:
            name = f"person-{chance.randrange(1_000_000)}"
            text = skill.replace("name: trend-thesis", f"name: {name}", 1)
            reply = await client.put(f"/api/skills/{name}", json={"text": text})
            durations.writes.append((perf_counter() - started) * 1e3)
        else:
            reply = await client.get(chance.choice(_paths(chance.choice(runs))))
            durations.reads.append((perf_counter() - started) * 1e3)
        if reply.status_code >= 400:
            durations.errors.append(
                f"{reply.request.method} {reply.request.url.path}: {reply.status_code} {reply.text[:300]}"
            )


def _paths(run_id: str) -> list[str]:
    return [
        "/",
        "/runs",
        f"/runs/{run_id}",
        "/skills",
        "/costs",
        "/api/runs",
        f"/api/runs/{run_id}",
        f"/api/runs/{run_id}/decisions?limit=50",
        f"/api/runs/{run_id}/equity?points=400",
        "/api/tools/catalog",
    ]


async def _first_page(server: WebServer) -> None:
    async with httpx2.AsyncClient(follow_redirects=True) as client:
        (await client.get(server.url)).raise_for_status()


async def _start_run(client: httpx2.AsyncClient, skill: str, seed: int) -> str:
    reply = await client.post("/api/runs", json={"text": skill, "seed": seed, **RANGE})
    if reply.status_code != 201:
        raise InvariantError(f"a run was not accepted: {reply.text[:300]}")
    return str(reply.json()["run_id"])


@asynccontextmanager
async def _running(client: httpx2.AsyncClient, skill: str, number: int) -> AsyncIterator[list[str]]:
    """Keep so many runs going: whichever ends is followed by another. Gives the ids of all of them."""
    ids = [await _start_run(client, skill, seed) for seed in range(number)]

    async def keep(seed: int) -> None:
        run_id = ids[seed]
        while True:
            await asyncio.sleep(1)
            if (await client.get(f"/api/runs/{run_id}")).json()["finished_at"] is not None:
                seed += number
                run_id = await _start_run(client, skill, seed)
                ids.append(run_id)

    tasks = [asyncio.create_task(keep(seed)) for seed in range(number)]
    try:
        yield ids
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for run_id in ids[-number:]:
            await client.post(f"/api/runs/{run_id}/cancel")


async def _watched(server: WebServer, skill: str, repeats: int) -> BenchRow:
    """How much longer a run takes while 20 pages show it: runs with and without, in turns."""
    walls: dict[bool, list[float]] = {True: [], False: []}
    async with server.client() as client:
        for number in range(2 * repeats):
            is_watched = bool(number % 2)
            run_id = await _start_run(client, skill, 10_000 + number)
            watchers = [asyncio.create_task(_watch(server, run_id)) for _ in range(WATCHERS if is_watched else 0)]
            while True:
                await asyncio.sleep(0.5)
                document = (await client.get(f"/api/runs/{run_id}")).json()
                if document["finished_at"] is not None:
                    break
            walls[is_watched].append(float(document["wall_s"]))
            for task in watchers:
                task.cancel()
            await asyncio.gather(*watchers, return_exceptions=True)
    best = {is_watched: min(values) for is_watched, values in walls.items()}
    return BenchRow(
        "web: a run with 20 open pages",
        best[True],
        "s",
        "the same run with none",
        best[False],
        RatioGate("at most", SLOWDOWN),
        f"best of {repeats}, in turns",
    )


async def _watch(server: WebServer, run_id: str) -> None:
    async with server.client() as client, client.stream("GET", f"/api/runs/{run_id}/events", timeout=None) as reply:
        with suppress(httpx2.HTTPError):
            async for _ in reply.aiter_bytes():
                pass


@contextmanager
def _serving(home: Path) -> Iterator[WebServer]:
    command = program("pitboss", "serve", "--home", str(home), "--port", "0", "--json")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise InvariantError("the server of the measurement did not start")
        yield WebServer(**json.loads(line), process_id=process.pid)
    finally:
        process.terminate()
        process.communicate()


MEASURE = Measure("web_server", "the web server with 100 users, and what open pages cost the workers", measure, 66)
