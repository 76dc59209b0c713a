"""Pyth on loopback as it is at this moment: prices published every second, candles up to the minute, and its bad days."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

BTC = "e62df6c8b4a85fe1a67db44dc12de5db330f7ac66b72dc658afedf0f4a415b43"


def wandering(second: int) -> float:
    """A price for every second there is: it moves enough for a volatility, and never far."""
    return 68_000 + (second // 7 * 7_919) % 97 + (second * 31) % 11 / 8


@dataclass
class LivePyth:
    """Hermes and Benchmarks in one. `clock` gives the second it is; `mood` says what goes wrong with a request."""

    clock: Callable[[], float]
    price: Callable[[int], float] = wandering
    mood: Callable[[str], str] = lambda path: ""
    asked: list[str] = field(default_factory=list)

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/v2/updates/price/{when}", self.update)
        app.router.add_get("/v1/shims/tradingview/history", self.history)
        return app

    async def update(self, request: web.Request) -> web.Response:
        when = request.match_info["when"]
        now = int(self.clock())
        # What is published now is served a second later, as by the real one.
        second = now - 1 if when == "latest" else int(when)
        if second > now:
            return web.Response(status=404, text="not found")
        return await self.answer(request.path, self.told(second))

    def told(self, second: int) -> dict[str, Any]:
        """A reply with the price of a second."""
        units = round(self.price(second) * 10**8)
        told = {"price": str(units), "conf": str(units // 20_000), "expo": -8, "publish_time": second}
        return {
            "binary": {"encoding": "hex", "data": ["504e4155"]},
            "parsed": [{"id": BTC, "price": told, "ema_price": told, "metadata": {"slot": 1}}],
        }

    async def history(self, request: web.Request) -> web.Response:
        first, last = int(request.query["from"]), min(int(request.query["to"]), int(self.clock()) - 60)
        times = list(range(-(-first // 60) * 60, last + 1, 60))
        if not times:
            return await self.answer(request.path, {"s": "no_data", "t": []})
        opened, closed = [self.price(at) for at in times], [self.price(at + 59) for at in times]
        rows = {
            "t": times,
            "o": opened,
            "h": [max(pair) + 1 for pair in zip(opened, closed, strict=True)],
            "l": [min(pair) - 1 for pair in zip(opened, closed, strict=True)],
            "c": closed,
            "v": [0] * len(times),
        }
        return await self.answer(request.path, {"s": "ok", **rows})

    async def answer(self, path: str, value: Any) -> web.Response:
        self.asked.append(path)
        mood = self.mood(path)
        if mood == "hang":
            await asyncio.sleep(60)  # whoever asked has given up long before
        if mood == "down":
            return web.Response(status=503, text="null")
        if mood == "garbled":
            return web.Response(body=b'{"parsed": [', content_type="application/json")
        return web.json_response(value)
