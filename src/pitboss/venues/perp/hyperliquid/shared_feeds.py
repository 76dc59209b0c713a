"""One feed for many deployments of a process: one connection and one copy of the columns for each base address.

A deployment gets a `FeedShare`, a `MarketFeed` of its own symbols and intervals; what other deployments use in addition does
not delay it. The feed is opened for the first share and closed after the last. Symbols of an ended share are followed until then.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from decimal import Decimal

from pitboss.core.asof import Market
from pitboss.core.asset import Asset
from pitboss.core.instant import Instant
from pitboss.venues.perp.hyperliquid.exchange_access import ExchangeAccess
from pitboss.venues.perp.hyperliquid.market_feed import HyperliquidFeed

OpenFeed = Callable[[str], AbstractAsyncContextManager[HyperliquidFeed]]
"""Opens the feed of a base address, started and without symbols."""


class FeedShare:
    """The part of a shared feed that one deployment uses."""

    def __init__(self, feed: HyperliquidFeed, symbols: Collection[str], intervals: Collection[str]) -> None:
        self._feed = feed
        self.symbols = frozenset(symbols)
        self.intervals = frozenset(intervals)

    @property
    def access(self) -> ExchangeAccess | None:
        """What sends requests to the exchange within its rate limit; orders use it too."""
        return self._feed.access

    @property
    def base_interval(self) -> str:
        """The interval of the bars that advance the paper world."""
        return self._feed.base_interval

    @property
    def assets(self) -> Mapping[str, Asset]:
        """Lot, leverage and margin tiers of its symbols."""
        return {symbol: self._feed.assets[symbol] for symbol in sorted(self.symbols)}

    def market(self) -> Market:
        """Return everything that has arrived, for all shares together."""
        return self._feed.market()

    def complete_until(self) -> Instant:
        """Return until when the bars and the funding of its symbols are complete."""
        return self._feed.complete_until(self.symbols, self.intervals)

    async def wait_until(self, at: Instant) -> None:
        """Return when its symbols are complete until an instant."""
        await self._feed.wait_until(at, self.symbols, self.intervals)

    async def load_since(self, at: Instant) -> Instant:
        """Load the base bars of its symbols that opened since an instant, as far as they still exist."""
        return await self._feed.load_since(at, self.symbols)

    def marks(self) -> Mapping[str, tuple[Decimal, Instant]]:
        """Return the marks of its symbols and their venue times; a symbol with an implausible price is left out."""
        return {symbol: mark for symbol, mark in self._feed.marks().items() if symbol in self.symbols}

    @property
    def skew_ms(self) -> int:
        """The machine's clock minus the exchange's."""
        return self._feed.skew_ms

    def opening_problem(self, symbol: str) -> str:
        """Return why no position in a symbol may be opened on this data; empty if one may."""
        return self._feed.opening_problem(symbol)

    def trouble(self) -> str:
        """Return the current problems of the feed and of its symbols."""
        return self._feed.trouble(self.symbols)

    def has_failed(self) -> bool:
        """Whether the feed has ended for good."""
        return self._feed.has_failed()


class _OpenedFeed:
    def __init__(self) -> None:
        self.users = 0
        self.opening = asyncio.Lock()
        self.context: AbstractAsyncContextManager[HyperliquidFeed] | None = None
        self.feed: HyperliquidFeed | None = None


class SharedFeeds:
    """The feeds of a process, by base address. Not safe for threads: it lives on one event loop."""

    def __init__(self, open_feed: OpenFeed) -> None:
        self._open_feed = open_feed
        self._opened: dict[str, _OpenedFeed] = {}

    def __len__(self) -> int:
        return len(self._opened)

    @asynccontextmanager
    async def share(
        self, base_url: str, symbols: Collection[str], intervals: Collection[str]
    ) -> AsyncIterator[FeedShare]:
        """Use the feed of an address for the duration of the block, with the history of these symbols loaded."""
        address = base_url.rstrip("/")
        opened = self._opened.setdefault(address, _OpenedFeed())
        opened.users += 1
        try:
            feed = await self._feed_of(address, opened)
            await feed.include(symbols, intervals)
            yield FeedShare(feed, symbols, intervals)
        finally:
            opened.users -= 1
            if not opened.users:
                if self._opened.get(address) is opened:
                    del self._opened[address]
                if opened.context is not None:
                    await opened.context.__aexit__(None, None, None)

    async def _feed_of(self, address: str, opened: _OpenedFeed) -> HyperliquidFeed:
        """Return the opened feed. If opening it fails, the next waiter tries again."""
        async with opened.opening:
            if opened.feed is None:
                context = self._open_feed(address)
                opened.feed = await context.__aenter__()
                opened.context = context
            return opened.feed
