"""Fake data sources on loopback with injected faults, and a fetcher in virtual time."""

import asyncio
import json
import random
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from aiohttp import web

from pitboss.core.instant import parse_instant
from pitboss.data.fetch import Fetcher

START = parse_instant("2024-12-20")
MIN15, HOUR = 900_000, 3_600_000
FAULTS = ("busy", "down", "cut", "short", "shuffled", "doubled", "early", "holed", "garbled")


def candles(
    symbol: str, count: int, interval: str = "15m", step: int = MIN15, start: int = START
) -> list[dict[str, Any]]:
    """Candles as Hyperliquid sends them."""
    return [dict(row) for row in _candles(symbol, count, interval, step, start)]


@cache
def _candles(symbol: str, count: int, interval: str, step: int, start: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for index in range(count):
        opening, closing = 100 + index * 7 % 11 / 4, 100 + index * 5 % 13 / 4
        at = start + index * step
        rows.append(
            {
                "t": at,
                "T": at + step - 1,
                "s": symbol,
                "i": interval,
                "o": str(opening),
                "c": str(closing),
                "h": str(max(opening, closing) + 0.5),
                "l": str(min(opening, closing) - 0.5),
                "v": str(1 + index / 8),
                "n": index,
            }
        )
    return rows


def funding(symbol: str, count: int, start: int = START) -> list[dict[str, Any]]:
    """Hourly funding, stamped a little after the hour."""
    return [
        {"coin": symbol, "fundingRate": f"0.0000{index % 97:02d}", "premium": "0.0", "time": start + index * HOUR + 48}
        for index in range(count)
    ]


META = {
    "universe": [
        {"name": "BTC", "szDecimals": 5, "maxLeverage": 40, "marginTableId": 56},
        {"name": "ETH", "szDecimals": 4, "maxLeverage": 25, "marginTableId": 25},
        {"name": "OLD", "szDecimals": 1, "maxLeverage": 3, "marginTableId": 3, "isDelisted": True},
    ],
    "marginTables": [
        [
            56,
            {
                "description": "",
                "marginTiers": [
                    {"lowerBound": "0.0", "maxLeverage": 40},
                    {"lowerBound": "150000000.0", "maxLeverage": 20},
                ],
            },
        ]
    ],
}


@dataclass
class HyperliquidServer:
    """Hyperliquid's `/info` over rows in memory. `faults` says what goes wrong with the n-th request, if anything."""

    candles: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    funding: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    meta: Any = field(default_factory=lambda: META)
    contexts: Any = None
    most: int = 5_000
    faults: Callable[[int], str | None] = lambda number: None
    hold: int | None = None
    requests: list[dict[str, Any]] = field(default_factory=list)
    reached: threading.Event = field(default_factory=threading.Event)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/info", self.info)
        return app

    async def info(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        number = len(self.requests)
        if self.hold == number:
            self.reached.set()
            await asyncio.sleep(30)  # the client is killed meanwhile
        fault = self.faults(number)
        if fault == "early":  # a page that overlaps far with the one before
            asked = body.get("req", body)
            asked = asked | {"startTime": asked.get("startTime", 0) - 100 * HOUR}
            body = body | ({"req": asked} if "req" in body else asked)
        return await faulty_reply(request, self.rows(body), fault, random.Random(number))

    def rows(self, body: dict[str, Any]) -> Any:
        if body["type"] == "meta":
            return self.meta
        if body["type"] == "metaAndAssetCtxs":
            return [self.meta, self.contexts]
        if body["type"] == "fundingHistory":
            rows = self.funding.get(body["coin"], [])
            return [row for row in rows if body["startTime"] <= row["time"] <= body["endTime"]][: min(500, self.most)]
        asked = body["req"]
        rows = self.candles.get((asked["coin"], asked["interval"]), [])
        # as measured: the candle that contains the start comes too
        return [row for row in rows if row["T"] >= asked["startTime"] and row["t"] <= asked["endTime"]][: self.most]


async def faulty_reply(
    request: web.Request, value: Any, fault: str | None, chance: random.Random
) -> web.StreamResponse:
    """A reply with a fault."""
    if fault == "busy":
        return web.Response(status=429, headers={"Retry-After": "3"} if chance.random() < 0.5 else {})
    if fault == "down":
        return web.Response(status=chance.choice((500, 502, 503)), text="null")
    if isinstance(value, list) and len(value) > 4:
        if fault == "short":
            value = value[: chance.randrange(1, len(value))]
        elif fault == "shuffled":
            value = chance.sample(value, len(value))
        elif fault == "doubled":
            value = sorted(
                value + value[: len(value) // 2],
                key=lambda row: (
                    next(iter(row.values())) if isinstance(row, dict) else row[0] if isinstance(row, list) else 0
                ),
            )
        elif fault == "holed":
            at = chance.randrange(1, len(value) - 2)
            value = value[:at] + value[at + 2 :]
    content = json.dumps(value).encode()
    if fault == "garbled":
        return web.Response(body=content[: len(content) // 2], content_type="application/json")
    if fault == "cut":
        response = web.StreamResponse(headers={"Content-Length": str(len(content) + 10)})
        await response.prepare(request)
        await response.write(content[: len(content) // 2])
        assert request.transport is not None
        request.transport.close()
        return response
    return web.Response(body=content, content_type="application/json")


@contextmanager
def serving_app(app: web.Application) -> Iterator[str]:
    """The app on a free port of loopback, in a thread of its own; its address."""
    loop = asyncio.new_event_loop()
    ready: list[str] = []
    up, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        ready.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
        up.set()
        await stop.wait()
        assert runner.server is not None
        transports = [connection.transport for connection in runner.server.connections]
        await runner.cleanup()
        for transport in transports:
            if transport is not None:
                transport.abort()  # closed alone, it waits until the client has read all that was written
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0)  # an aborted transport closes its socket in the next turn of the loop

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert up.wait(60)
    try:
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()


class FakeTime:
    """A clock that advances only during pauses."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.paused: list[float] = []

    def now(self) -> int:
        return self.at + round(sum(self.paused) * 1000)

    def elapsed(self) -> float:
        return sum(self.paused)

    async def sleep(self, seconds: float) -> None:
        self.paused.append(seconds)

    def fetcher(self, seed: int = 1, **more: Any) -> Fetcher:
        return Fetcher(now=self.now, elapsed=self.elapsed, random=random.Random(seed).random, sleep=self.sleep, **more)


async def closing(fetcher: Fetcher, work: Awaitable[Any]) -> Any:
    """The work's result, with the connections closed whatever happens."""
    try:
        return await work
    finally:
        await fetcher.close()
