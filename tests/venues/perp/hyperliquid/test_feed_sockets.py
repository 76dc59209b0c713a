"""The live feed over real HTTP and WebSocket to the fake exchange, whose time passes only when the test says so."""

import asyncio
from contextlib import asynccontextmanager
from random import Random

from aiohttp import web

from pitboss.core.instant import HOUR_MS, MINUTE_MS
from pitboss.testing.hyperliquid.exchange import FakeExchange
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.server import FakeServer, serving
from pitboss.venues.perp.hyperliquid.exchange_access import open_access
from pitboss.venues.perp.hyperliquid.market_feed import HyperliquidFeed
from pitboss.venues.perp.hyperliquid.market_requests import MarketRequests
from pitboss.venues.perp.hyperliquid.ws_connection import MOST_MESSAGE_BYTES, open_connector, stream_url
from venues.perp.hyperliquid.feed_scene import PERPS, START, FeedScene

LIMIT_S = 30
STEP_MS = 500


class SocketScene:
    """A feed on a server. `sleep` ends when the exchange's time has passed, which `until` moves in small steps."""

    def __init__(self, server):
        self.server = server
        self.exchange = server.exchange
        self.sleepers = []
        self.truth = lambda symbol, interval="1m": FeedScene.truth(self, symbol, interval)

    def now(self):
        return self.exchange.now

    def elapsed(self):
        return self.exchange.now / 1000

    async def sleep(self, seconds):
        over = asyncio.get_running_loop().create_future()
        self.sleepers.append((self.exchange.now + seconds * 1000, over))
        await over

    async def step(self):
        """Let half a second pass, and everything that was sent arrive."""
        self.server.advance(STEP_MS)
        due = [over for at, over in self.sleepers if at <= self.exchange.now]
        self.sleepers = [(at, over) for at, over in self.sleepers if at > self.exchange.now]
        for over in due:
            if not over.done():
                over.set_result(None)
        await self.info.post({"type": "exchangeStatus"})  # a whole round trip: what was sent before has arrived

    async def until(self, at):
        while self.exchange.now < at:
            await self.step()

    async def complete(self, at):
        """Let time pass until the feed is complete until an instant."""
        waiting = asyncio.ensure_future(self.feed.wait_until(at))
        while not waiting.done():
            await self.step()
        await waiting
        return self.exchange.now - at

    @property
    def sessions(self):
        return self.server.hub.sessions


@asynccontextmanager
async def socket_scene(symbols=("BTC", "ETH")):
    rules = VenueRules(step_ms=1_000, history_ms=2 * HOUR_MS, verify_every=0, ip_weight=0)
    exchange = FakeExchange(3, PERPS, START, rules)
    async with asyncio.timeout(LIMIT_S), serving(exchange) as server:
        scene = SocketScene(server)
        async with (
            open_access(server.url, scene.now, Random(1).random) as access,
            open_connector(server.url) as connect,
        ):
            scene.info = access.info
            access.budget.wait_ms = lambda *_: 0  # a test sends its minutes in a second
            scene.feed = HyperliquidFeed(
                MarketRequests(access.info),
                connect,
                now=scene.now,
                elapsed=scene.elapsed,
                random=Random(2).random,
                sleep=scene.sleep,
                history_bars=20,
            )
            await scene.feed.include(symbols, ("5m",))
            scene.feed.start()
            try:
                yield scene
            finally:
                await scene.feed.close()


def test_bars_come_over_real_connections_and_are_those_of_the_exchange():
    async def main():
        async with socket_scene() as scene:
            for minute in range(1, 4):
                assert await scene.complete(START + minute * MINUTE_MS) <= 8_000
            assert len(scene.sessions) == 1
            assert scene.feed.stream.connections == 1
            assert scene.feed.stream.malformed == 0
            assert set(scene.feed.marks()) == {"BTC", "ETH"}
            assert FeedScene.differences(scene) == []

    asyncio.run(main())


def test_an_aborted_connection_is_replaced():
    async def main():
        async with socket_scene(("BTC",)) as scene:
            await scene.complete(START + MINUTE_MS)
            scene.sessions[0].close(is_abrupt=True)
            while scene.feed.stream.connections < 2:
                await scene.step()
            await scene.complete(START + 3 * MINUTE_MS)
            assert FeedScene.differences(scene) == []

    asyncio.run(main())


def test_an_oversized_message_ends_the_connection_and_nothing_else():
    async def main():
        async with socket_scene(("BTC",)) as scene:
            await scene.until(START + 5_000)
            scene.sessions[0]._send('{"channel":"candle","data":"' + "x" * (2 * MOST_MESSAGE_BYTES) + '"}')
            while scene.feed.stream.connections < 2:
                await scene.step()
            await scene.complete(START + 2 * MINUTE_MS)
            assert not scene.feed.has_failed()
            assert FeedScene.differences(scene) == []

    asyncio.run(main())


def test_without_a_websocket_at_the_address_requests_take_over(monkeypatch):
    async def refuse(server, request):
        return web.Response(status=404)

    async def main():
        async with socket_scene(("BTC",)) as scene:
            await scene.complete(START + 2 * MINUTE_MS)
            assert scene.feed.stream.connections == 0
            assert "the stream is not connected" in scene.feed.trouble()
            assert FeedScene.differences(scene) == []

    monkeypatch.setattr(FakeServer, "_websocket", refuse)
    asyncio.run(main())


def test_the_address_of_the_stream_follows_from_the_base_address():
    assert stream_url("https://api.hyperliquid.xyz") == "wss://api.hyperliquid.xyz/ws"
    assert stream_url("http://127.0.0.1:8000/") == "ws://127.0.0.1:8000/ws"
