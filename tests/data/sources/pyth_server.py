"""Pyth's services on loopback: candles of Benchmarks, prices of Hermes."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from source_servers import faulty_reply

MINUTE_S = 60
BTC = "e62df6c8b4a85fe1a67db44dc12de5db330f7ac66b72dc658afedf0f4a415b43"


def minutes(count: int, start_s: int) -> list[tuple[int, float, float, float, float]]:
    """Minute candles that wander a little: time, open, high, low, close."""
    rows: list[tuple[int, float, float, float, float]] = []
    for index in range(count):
        opening, closing = 68_000 + index * 7 % 11 / 4, 68_000 + index * 5 % 13 / 4
        rows.append(
            (start_s + index * MINUTE_S, opening, max(opening, closing) + 0.5, min(opening, closing) - 0.5, closing)
        )
    return rows


def columns(rows: list[tuple[int, float, float, float, float]]) -> dict[str, Any]:
    """Candles in the form of a chart's data feed."""
    named = {name: [row[index] for row in rows] for index, name in enumerate("tohlc")}
    return {"s": "ok", **named, "v": [0] * len(rows)}


def hermes(price: str = "6852230000000", conf: str = "2528354539", expo: int = -8, second: int = 0) -> dict[str, Any]:
    """A reply of Hermes with one price."""
    result = {"price": price, "conf": conf, "expo": expo, "publish_time": second}
    return {
        "binary": {"encoding": "hex", "data": ["504e4155"]},
        "parsed": [{"id": BTC, "price": result, "ema_price": result, "metadata": {"slot": 1, "prev_publish_time": 0}}],
    }


@dataclass
class PythServer:
    """Both services. `faults` says what goes wrong with the n-th request; `said` is a reply in place of the true one."""

    rows: list[tuple[int, float, float, float, float]] = field(default_factory=list)
    fixed_reply: Any = None
    content: bytes | None = None
    most: int = 100_000
    hang: bool = False
    faults: Callable[[int], str | None] = lambda number: None
    queries: list[dict[str, str]] = field(default_factory=list)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/{path:.*}", self.reply)
        return app

    async def reply(self, request: web.Request) -> web.StreamResponse:
        self.queries.append({"path": request.path, **request.query})
        number = len(self.queries)
        if self.hang:
            await asyncio.sleep(30)  # longer than any client waits
        if self.content is not None:
            return web.Response(body=self.content, content_type="text/html")
        fault = self.faults(number)
        if fault in ("shuffled", "doubled", "short", "holed", "early"):
            return web.json_response(self.disturbed(request.query, fault, random.Random(number)))
        value = self.fixed_reply if self.fixed_reply is not None else self.candles(request.query)
        return await faulty_reply(request, value, fault, random.Random(number))

    def candles(self, query: Any) -> dict[str, Any]:
        fit = [row for row in self.rows if int(query["from"]) <= row[0] <= int(query["to"])]
        return columns(fit[: self.most]) if fit else {"s": "no_data", "nextTime": None, "t": []}

    def disturbed(self, query: Any, fault: str, chance: random.Random) -> dict[str, Any]:
        start = int(query["from"]) - (3_600 if fault == "early" else 0)
        fit = [row for row in self.rows if start <= row[0] <= int(query["to"])]
        if len(fit) > 4:
            if fault == "short":
                fit = fit[: chance.randrange(1, len(fit))]
            elif fault == "shuffled":
                fit = chance.sample(fit, len(fit))
            elif fault == "doubled":
                fit = sorted(fit + fit[: len(fit) // 2])
            elif fault == "holed":
                at = chance.randrange(1, len(fit) - 2)
                fit = fit[:at] + fit[at + 2 :]
        return columns(fit)
