"""The market data of the deployments of this process: one shared feed for each exchange address, with the news of the lake.

`shared_feed` is what a deployment opens; its `access` sends requests within the same rate budget. Feeds belong to the event loop that
opened them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import NoReturn
from weakref import WeakKeyDictionary

from pitboss.bootstrap.machine import SystemClock, stopwatch, unit_random
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import Instant
from pitboss.data.fetch import address
from pitboss.data.lake import Lake
from pitboss.venues.perp.exchange_address import exchange_url
from pitboss.venues.perp.hyperliquid.exchange_access import open_access
from pitboss.venues.perp.hyperliquid.market_feed import HyperliquidFeed
from pitboss.venues.perp.hyperliquid.market_requests import MarketRequests
from pitboss.venues.perp.hyperliquid.shared_feeds import FeedShare, SharedFeeds
from pitboss.venues.perp.hyperliquid.ws_connection import open_connector
from pitboss.venues.perp.lake_news import LakeNews

DATA_VENUE = "hyperliquid"
_CLOCK = SystemClock()

_FEEDS: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, SharedFeeds]]" = WeakKeyDictionary()


def shared_feed(
    workspace: Workspace, symbols: Collection[str], intervals: Collection[str]
) -> AbstractAsyncContextManager[FeedShare]:
    """Open a share of the feed of the exchange that the settings name, for the duration of the block."""
    by_home = _FEEDS.setdefault(asyncio.get_running_loop(), {})
    if workspace.home not in by_home:

        def open_feed(base_url: str) -> AbstractAsyncContextManager[HyperliquidFeed]:
            return open_market_feed(base_url, lambda: workspace.lake)

        by_home[workspace.home] = SharedFeeds(open_feed)
    url = exchange_url(workspace.settings)
    return by_home[workspace.home].share(address(url), symbols, intervals)


@asynccontextmanager
async def open_market_feed(
    base_url: str,
    find_lake: Callable[[], Lake] | None = None,
    now: Callable[[], Instant] = _CLOCK.now,
) -> AsyncIterator[HyperliquidFeed]:
    """Open the feed of an exchange, started and without symbols, with the news of a lake if one is given."""
    random = unit_random()
    async with open_access(base_url, now, random) as access, open_connector(base_url) as connect:
        feed = HyperliquidFeed(MarketRequests(access.info), connect, now=now, elapsed=stopwatch, random=random)
        feed.access = access
        feed.start()
        tasks: list[asyncio.Task[NoReturn]] = []
        if find_lake is not None:
            news = LakeNews(find_lake, DATA_VENUE, feed.state.live_market, now)
            reading = asyncio.create_task(news.run())
            feed.state.notices.append(
                lambda: "the news of the lake are read no more" if reading.done() else news.problem
            )
            tasks.append(reading)
        try:
            yield feed
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await feed.close()
