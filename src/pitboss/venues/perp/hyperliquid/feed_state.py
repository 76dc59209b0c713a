"""What the feed knows: columns, series, prices and the exchange's clock, and the answers to its readers. No network."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal

from pitboss.core.asset import Asset
from pitboss.core.instant import MINUTE_MS, SECOND_MS, Instant, interval_ms
from pitboss.core.market import Bar
from pitboss.venues.perp.hyperliquid.candle_series import CandleSeries
from pitboss.venues.perp.hyperliquid.exchange_clock import ExchangeClock
from pitboss.venues.perp.hyperliquid.funding_series import FundingSeries
from pitboss.venues.perp.hyperliquid.market_messages import AssetContext
from pitboss.venues.perp.hyperliquid.price_checks import PriceChecks
from pitboss.venues.perp.live_market import LiveMarket

BASE_INTERVAL = "1m"
SAMPLE_MS = 5 * MINUTE_MS
SAMPLE_AGE_MS = 10 * SECOND_MS
"""Open interest, mark and oracle price are kept as a value every five minutes, if it is not older than this."""


class FeedState:
    """The state of one feed, on one event loop."""

    def __init__(self, clock: ExchangeClock) -> None:
        self.clock = clock
        self.assets: dict[str, Asset] = {}
        self.series: dict[tuple[str, str], CandleSeries] = {}
        self.funding: dict[str, FundingSeries] = {}
        self.prices: dict[str, PriceChecks] = {}
        self.live_market = LiveMarket()
        self.notices: list[Callable[[], str]] = []
        """Functions that give further problems in words; empty for none."""
        self._waiting: set[asyncio.Future[None]] = set()
        self._sampled_at: Instant = 0

    def complete_until(self, symbols: Collection[str] | None, intervals: Collection[str] | None) -> Instant:
        """Return until when the bars and the funding of symbols are complete; None for all symbols or intervals."""
        step = interval_ms(BASE_INTERVAL)
        bounds = [
            series.complete_before
            for (symbol, interval), series in self.series.items()
            if (symbols is None or symbol in symbols)
            and (intervals is None or interval in intervals or interval == BASE_INTERVAL)
        ]
        bounds += [
            funding.complete_before(step)
            for symbol, funding in self.funding.items()
            if symbols is None or symbol in symbols
        ]
        return (min(bounds) - 1) // step * step if bounds else 0

    def marks(self, symbols: Collection[str] | None = None) -> Mapping[str, tuple[Decimal, Instant]]:
        """Return the mark of each symbol and its venue time; a symbol with an implausible price is left out."""
        now = self.clock.now()
        return {
            symbol: prices.mark
            for symbol, prices in self.prices.items()
            if (symbols is None or symbol in symbols) and prices.mark is not None and not prices.problem(now)
        }

    def add_bars(self, series: CandleSeries, bars: Iterable[Bar]) -> None:
        """Add closed bars of a series, and wake the waiting readers."""
        if self.live_market.add_bars(series.symbol, series.interval, bars):
            if series.flagged_at is not None:
                self.prices[series.symbol].flag(series.flagged_at)
            self.wake()

    def add_contexts(self, contexts: Mapping[str, AssetContext], at: Instant) -> None:
        """Add contexts that the exchange sent at a venue time or later."""
        for symbol, prices in self.prices.items():
            if symbol in contexts:
                prices.add_context(contexts[symbol], at)

    def take_samples(self) -> None:
        """Sample prices and open interest once in every five minutes."""
        at = self.clock.now() // SAMPLE_MS * SAMPLE_MS
        if at > self._sampled_at:
            self._sampled_at = at
            self.sample(at, self.prices)

    def sample(self, at: Instant, symbols: Iterable[str]) -> None:
        """Keep open interest, mark and oracle price of an instant, as far as they are plausible and recent."""
        for symbol in symbols:
            prices = self.prices[symbol]
            context, received_at = prices.context, prices.received_at
            if context is None or received_at is None or abs(at - received_at) > SAMPLE_AGE_MS or prices.problem(at):
                continue
            self.live_market.add_points("open_interest", symbol, [(at, context.open_interest)])
            self.live_market.add_points("mark", symbol, [(at, float(context.mark))])
            self.live_market.add_points("oracle", symbol, [(at, float(context.oracle))])

    async def wait(self) -> None:
        """Return at the next call of `wake`."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)

    def wake(self) -> None:
        """End all waits."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
