"""Concurrent model calls over HTTP, compared with a bare client of the same library that only posts and reads bytes.

The server is a process of its own and answers after 100 ms, like a fast model. Both sides send the same bytes over as many
connections; the difference is everything that makes a call usable: encoding the request, decoding the reply into calls and
tokens, the deadline, the bound on its size.
"""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic, perf_counter, process_time

import aiohttp

from pitboss.bootstrap.child_settings import program
from pitboss.core.ports import Message, ModelRequest, ToolSpec
from pitboss.models import http_pool
from pitboss.models.chat import wire
from pitboss.models.chat.client import ChatModel
from pitboss.models.json_body import encode_json
from pitboss.models.providers import Dialect, entry
from pitboss.models.secret import Secret
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import BenchRow, RatioGate
from pitboss_dev.bench.timing import interleave

CONCURRENT = 256
LATENCY_MS = 100
BARE = "bare aiohttp"

_SCHEMA = {
    "type": "object",
    "properties": {"action": {"type": "string"}, "reason": {"type": "string"}, "size_usd": {"type": "number"}},
    "required": ["action", "reason"],
}
REQUEST = ModelRequest(
    "You trade one market and keep inside your limits. " * 40,
    (Message("user", "2024-01-01 00:00 | 101.25 | 101.40 | 101.10 | 101.32 | 1200\n" * 100),),
    (ToolSpec("get_bars", "Bars of a market.", _SCHEMA), ToolSpec("decide", "Decide.", _SCHEMA)),
    settings={"temperature": 0.2, "max_tokens": 512},
)
"""About the request of a tick: a page of rules, a hundred bars, a tool and the decision."""


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Calls a second with 256 at a time."""
    total = bench.scale.calls
    with fake_provider(LATENCY_MS, "decide") as url:
        durations = interleave(
            {"ours": lambda: asyncio.run(_ours(url, total)), "bare": lambda: asyncio.run(_bare(url, total))},
            bench.repeats,
        )
        cpu_s = {
            name: asyncio.run(_cpu_seconds(side)) / (total + min(CONCURRENT, total))
            for name, side in (("ours", _ours(url, total)), ("bare", _bare(url, total)))
        }
    ours, bare = total / durations["ours"], total / durations["bare"]
    note = (
        f"{LATENCY_MS} ms a call, {CONCURRENT} at once; "
        f"{cpu_s['ours'] * 1e3:.2f} ms of processor a call, bare {cpu_s['bare'] * 1e3:.2f}"
    )
    yield BenchRow(f"model calls at {CONCURRENT}", ours, "calls/s", BARE, bare, RatioGate("at least", 0.45), note)


@contextmanager
def fake_provider(latency_ms: int, tool: str) -> Iterator[str]:
    """The address of the fake provider, which runs in a process of its own and always calls `tool`."""
    command = program("pitboss.testing.provider", "--latency-ms", str(latency_ms), "--canned", tool)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(10)


async def _ours(url: str, total: int) -> float:
    model = ChatModel("fake/model", entry("fake", url), Secret("fake-key"), clock=monotonic)
    async with http_pool.opened():

        async def call() -> None:
            reply = await model.complete(REQUEST)
            assert reply.calls

        return await _drive(call, total)


async def _bare(url: str, total: int) -> float:
    content = encode_json(wire.body(REQUEST, "model", Dialect()))
    headers = {"Content-Type": "application/json", "Authorization": "Bearer fake-key"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call() -> None:
            async with session.post(f"{url}/chat/completions", data=content, headers=headers) as response:
                await response.read()

        return await _drive(call, total)


async def _drive(call: Callable[[], Awaitable[None]], total: int) -> float:
    """Seconds of `total` calls with `CONCURRENT` of them at any time. Connections are opened before."""
    concurrent = min(CONCURRENT, total)
    await asyncio.gather(*(call() for _ in range(concurrent)))
    remaining = iter(range(total))

    async def worker() -> None:
        for _ in remaining:
            await call()

    start = perf_counter()
    await asyncio.gather(*(worker() for _ in range(concurrent)))
    return perf_counter() - start


async def _cpu_seconds(side: Awaitable[float]) -> float:
    """Processor time of one side in this process."""
    start = process_time()
    await side
    return process_time() - start


MEASURE = Measure("model_calls", "model calls over HTTP, 256 at once, against a bare client", measure, 45)
