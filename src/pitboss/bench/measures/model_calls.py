"""Calls of a model over HTTP, many at once, against a bare client of the same library that only posts and reads bytes.

The server is a process of its own and answers after 100 ms, as a fast model would. Both sides send the same bytes over
as many connections; what differs is everything that makes a call usable: writing the question, reading the reply into
calls and tokens, the deadline, the bound on its size. They take turns, so that a slow minute slows both.
"""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic, perf_counter, process_time

import aiohttp

from pitboss.bench.measure import Bench, Measure
from pitboss.bench.row import BenchRow, RatioGate
from pitboss.bench.timing import interleave
from pitboss.core.ports import Message, ModelRequest, ToolSpec
from pitboss.models import http_pool
from pitboss.models.chat import wire
from pitboss.models.chat.client import ChatModel
from pitboss.models.json_body import encode_json
from pitboss.models.providers import Dialect, entry
from pitboss.models.secret import Secret

AT_ONCE = 256
LATENCY_MS = 100
BARE = "bare aiohttp"

_SCHEMA = {
    "type": "object",
    "properties": {"action": {"type": "string"}, "reason": {"type": "string"}, "size_usd": {"type": "number"}},
    "required": ["action", "reason"],
}
QUESTION = ModelRequest(
    "You trade one market and keep inside your limits. " * 40,
    (Message("user", "2024-01-01 00:00 | 101.25 | 101.40 | 101.10 | 101.32 | 1200\n" * 100),),
    (ToolSpec("get_bars", "Bars of a market.", _SCHEMA), ToolSpec("decide", "Decide.", _SCHEMA)),
    settings={"temperature": 0.2, "max_tokens": 512},
)
"""About what a tick asks: a page of rules, a hundred bars, a tool and the decision."""


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Calls a second with 256 under way."""
    total = bench.scale.calls
    with server() as url:
        taken = interleave(
            {"ours": lambda: asyncio.run(_ours(url, total)), "bare": lambda: asyncio.run(_bare(url, total))},
            bench.repeats,
        )
        busy = {
            name: asyncio.run(_work(side)) / (total + min(AT_ONCE, total))
            for name, side in (("ours", _ours(url, total)), ("bare", _bare(url, total)))
        }
    ours, bare = total / taken["ours"], total / taken["bare"]
    note = f"{LATENCY_MS} ms a call, {AT_ONCE} at once; {busy['ours'] * 1e3:.2f} ms of processor a call, bare {busy['bare'] * 1e3:.2f}"
    yield BenchRow(f"model calls at {AT_ONCE}", ours, "calls/s", BARE, bare, RatioGate("at least", 0.45), note)


@contextmanager
def server(latency_ms: int = LATENCY_MS) -> Iterator[str]:
    """The fake provider in a process of its own; gives its address."""
    words = [sys.executable, "-m", "pitboss.testing.provider", "--latency-ms", str(latency_ms), "--canned", "decide"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
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

        async def ask() -> None:
            reply = await model.complete(QUESTION)
            assert reply.calls

        return await _drive(ask, total)


async def _bare(url: str, total: int) -> float:
    content = encode_json(wire.body(QUESTION, "model", Dialect()))
    headers = {"Content-Type": "application/json", "Authorization": "Bearer fake-key"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask() -> None:
            async with session.post(f"{url}/chat/completions", data=content, headers=headers) as response:
                await response.read()

        return await _drive(ask, total)


async def _drive(ask: Callable[[], Awaitable[None]], total: int) -> float:
    """Seconds for so many calls, as many under way at any time as are allowed. Connections are opened before."""
    at_once = min(AT_ONCE, total)
    await asyncio.gather(*(ask() for _ in range(at_once)))
    left = iter(range(total))

    async def worker() -> None:
        for _ in left:
            await ask()

    began = perf_counter()
    await asyncio.gather(*(worker() for _ in range(at_once)))
    return perf_counter() - began


async def _work(side: Awaitable[float]) -> float:
    """Seconds of processor time that one side takes in this process."""
    began = process_time()
    await side
    return process_time() - began


MEASURE = Measure("model_calls", "model calls over HTTP, 256 at once, against a bare client", measure, 45)
