"""The market feed of a deployment: one connection for each exchange and event loop, shared by all deployments there.

News and events come from the lake of the workspace while the feed is open.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from pitboss.bootstrap.machine import SystemClock, stopwatch, unit_random
from pitboss.bootstrap.workspace import Workspace
from pitboss.venues.perp.hyperliquid.info_client import HyperliquidInfo
from pitboss.venues.perp.hyperliquid.market_feed import HyperliquidFeed
from pitboss.venues.perp.hyperliquid.market_requests import MarketRequests
from pitboss.venues.perp.hyperliquid.rate_budget import RateBudget
from pitboss.venues.perp.hyperliquid.shared_feeds import SharedFeeds
from pitboss.venues.perp.hyperliquid.transport import open_transport
from pitboss.venues.perp.hyperliquid.ws_connection import open_connector
from pitboss.venues.perp.lake_news import LakeNews
from pitboss.venues.perp.live_market import MarketFeed
from pitboss.venues.perp.settings import PerpSettings

DATA_VENUE = "hyperliquid"
"""The venue in the lake whose news and events are read."""

_FEEDS: "WeakKeyDictionary[asyncio.AbstractEventLoop, SharedFeeds]" = WeakKeyDictionary()


@asynccontextmanager
async def shared_feed(
    workspace: Workspace, symbols: Collection[str], intervals: Collection[str]
) -> AsyncIterator[MarketFeed]:
    """Share the feed of the exchange in the settings for the duration of the block."""
    loop = asyncio.get_running_loop()
    if loop not in _FEEDS:
        _FEEDS[loop] = SharedFeeds(lambda address: _open_feed(workspace, address))
    url = PerpSettings.of(workspace.settings).hyperliquid_url
    async with _FEEDS[loop].share(url, symbols, intervals) as feed:
        yield feed


@asynccontextmanager
async def _open_feed(workspace: Workspace, address: str) -> AsyncIterator[HyperliquidFeed]:
    """Open a feed and its tasks for the duration of the block."""
    now, random = SystemClock().now, unit_random()
    async with open_transport(address) as transport, open_connector(address) as connect:
        info = HyperliquidInfo(transport, RateBudget(random), now)
        feed = HyperliquidFeed(MarketRequests(info), connect, now=now, elapsed=stopwatch, random=random)
        feed.start()
        news = LakeNews(workspace.lake, DATA_VENUE, feed.state.live_market, now)
        reading = asyncio.create_task(news.run())
        try:
            yield feed
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            await feed.close()
