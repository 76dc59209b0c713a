"""One feed for many deployments: one connection, one copy of the columns, and no delay by the symbols of others."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import MINUTE_MS, SECOND_MS
from pitboss.testing.hyperliquid.transport import run_in_virtual_time
from pitboss.venues.perp.hyperliquid.shared_feeds import SharedFeeds
from pitboss.venues.perp.live_market import MarketFeed
from venues.perp.hyperliquid.feed_scene import PERPS, START, FeedScene

URL = "http://exchange"


class SharedScene(FeedScene):
    """Shares of feeds that are opened on a fake exchange."""

    def __init__(self, **fields):
        super().__init__(symbols=[perp.name for perp in PERPS], **fields)
        self.opened = []
        self.open = 0
        self.problems = []
        self.shared = SharedFeeds(self.open_feed)

    @asynccontextmanager
    async def open_feed(self, base_url):
        if self.problems:
            raise self.problems.pop()
        self.opened.append(base_url)
        self.open += 1
        self.feed = self.make_feed()
        self.feed.start()
        try:
            yield self.feed
        finally:
            self.open -= 1
            await self.feed.close()

    def run(self, work):
        return run_in_virtual_time(self.clock, work(self))


def test_two_hundred_deployments_cost_one_connection_and_one_copy():
    async def deployment(scene, symbols, markets):
        async with scene.shared.share(URL, symbols, ("5m",)) as share:
            feed: MarketFeed = share
            await feed.wait_until(START + MINUTE_MS)
            markets.add(id(feed.market()))
            assert set(feed.assets) == set(symbols)
            assert set(feed.marks()) <= set(symbols)
            await feed.wait_until(START + 2 * MINUTE_MS)

    async def work(scene):
        markets = set()
        await asyncio.gather(
            *(deployment(scene, ("BTC",) if number % 2 else ("BTC", "ETH"), markets) for number in range(200))
        )
        assert len(markets) <= 3  # one after each bar or sample that arrived in between
        assert len(scene.sockets) == 1
        assert scene.opened == [URL]
        assert scene.open == 0
        assert len(scene.shared) == 0
        # history of two symbols at two intervals, and what the stream did not close
        assert scene.requests("candleSnapshot") <= 10
        assert scene.requests("fundingHistory") == 2

    SharedScene().run(work)


def test_a_later_share_adds_its_symbols_to_the_open_feed():
    async def work(scene):
        async with scene.shared.share(URL, ("BTC",), ("5m",)) as first:
            await first.wait_until(START + MINUTE_MS)
            async with scene.shared.share(f"{URL}/", ("ETH",), ("15m",)) as second:
                assert set(second.assets) == {"ETH"}
                await second.wait_until(START + 2 * MINUTE_MS)
                assert ("ETH", "15m") in second.market().bars
                assert first.market() is second.market()
                assert set(first.marks()) == {"BTC"}
                assert second.opening_problem("ETH") == ""
            await first.wait_until(START + 3 * MINUTE_MS)
            assert scene.clock.now() <= START + 3 * MINUTE_MS + 5 * SECOND_MS
        assert len(scene.sockets) == 1
        assert scene.open == 0

    SharedScene().run(work)


def test_the_dead_symbol_of_another_deployment_delays_nothing():
    def without_eth(body, reply):
        if body["type"] == "candleSnapshot" and body["req"]["coin"] == "ETH":
            return [row for row in reply if row["t"] < START]
        return reply

    async def work(scene):
        async with scene.shared.share(URL, ("ETH",), ()) as dead, scene.shared.share(URL, ("BTC",), ()) as share:
            await share.wait_until(START + MINUTE_MS)
            await scene.until(START + MINUTE_MS + 30 * SECOND_MS)
            assert share.trouble() == "the stream is not connected: refused; prices are requested instead"
            assert "ETH: a 1m bar is overdue" in dead.trouble()
            assert dead.complete_until() < share.complete_until()

    scene = SharedScene()
    scene.refuses = True
    scene.info.change = without_eth
    scene.run(work)


def test_a_feed_that_could_not_be_opened_is_opened_by_the_next():
    async def work(scene):
        scene.problems.append(TransientError("no network"))
        with pytest.raises(TransientError, match="no network"):
            async with scene.shared.share(URL, ("BTC",), ()):
                pass
        assert len(scene.shared) == 0
        async with scene.shared.share(URL, ("BTC",), ()) as share:
            assert share.complete_until() == START
        assert scene.open == 0

    SharedScene().run(work)


def test_a_symbol_that_does_not_exist_costs_only_its_own_share():
    async def work(scene):
        async with scene.shared.share(URL, ("BTC",), ()) as share:
            with pytest.raises(UserError, match="does not trade 'NOPE'"):
                async with scene.shared.share(URL, ("NOPE",), ()):
                    pass
            await share.wait_until(START + MINUTE_MS)
            assert not share.has_failed()
        assert scene.open == 0

    SharedScene().run(work)


def test_a_share_that_is_cancelled_while_it_opens_leaves_nothing_behind():
    async def work(scene):
        async def one():
            async with scene.shared.share(URL, ("BTC",), ()):
                pass

        task = asyncio.ensure_future(one())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert scene.open == 0
        assert len(scene.shared) == 0

    SharedScene().run(work)
