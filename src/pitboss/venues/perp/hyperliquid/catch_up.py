"""Requests for what the stream has not delivered: candles that are over, funding rows, prices, and the exchange's time.

While the stream works these are few; without it they keep the feed complete. Requests fail with exponential backoff, and during an
outage one request at a time finds out whether the exchange answers again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NoReturn

from pitboss.core.errors import TransientError
from pitboss.core.instant import HOUR_MS, SECOND_MS, Instant
from pitboss.venues.perp.hyperliquid.candle_series import SETTLE_MS, CandleSeries
from pitboss.venues.perp.hyperliquid.exchange_stream import ExchangeStream, Subscription
from pitboss.venues.perp.hyperliquid.feed_state import BASE_INTERVAL, FeedState
from pitboss.venues.perp.hyperliquid.funding_series import FundingSeries
from pitboss.venues.perp.hyperliquid.market_requests import MarketRequests
from pitboss.venues.perp.hyperliquid.price_checks import is_possible
from pitboss.venues.perp.hyperliquid.request_pacer import RequestPacer

POLL_S = 0.5
QUIET_MS = 3 * SECOND_MS
"""How long after its end a candle of a trusted stream is waited for before it is requested."""
CONTEXT_AGE_MS = 3 * SECOND_MS
CONTEXT_PAUSE_S = 4.0
"""Prices that the stream has not renewed are requested, all symbols at once, with this pause."""
CLOCK_PAUSE_S, CLOCK_AGAIN_S = 30.0, 2.0
AUDIT_S = 900.0
"""How often the newest bars of a series are compared with the exchange's record: a stream may lose a message silently."""
AUDITED_BARS = 15
LONGEST_AUDITED_MS = HOUR_MS
CONCURRENT_REQUESTS = 4


class CatchUp:
    """The requests of one feed."""

    def __init__(
        self,
        state: FeedState,
        stream: ExchangeStream,
        requests: MarketRequests,
        pacer: RequestPacer,
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._state = state
        self._stream = stream
        self._requests = requests
        self._pacer = pacer
        self._sleep = sleep
        self._slots = asyncio.Semaphore(CONCURRENT_REQUESTS)

    async def run(self) -> NoReturn:
        """Request what is due, again and again."""
        while True:
            if self._pacer.may_ask():
                due = self._due()
                if self._pacer.failures:
                    due = due[:1]
                await asyncio.gather(*(self._ask(request) for request in due))
            self._state.take_samples()
            await self._sleep(POLL_S)

    async def measure(self) -> None:
        """Measure the exchange's clock."""
        clock = self._state.clock
        self._pacer.postpone("clock", CLOCK_AGAIN_S)
        sent_ms = clock.monotonic_ms()
        exchange_at = await self._requests.exchange_time()
        clock.measure(sent_ms, clock.monotonic_ms(), exchange_at)
        self._pacer.postpone("clock", CLOCK_PAUSE_S)

    async def load_back(self, symbol: str, at: Instant) -> Instant:
        """Load the base bars of a symbol back to an instant, page by page; return when the oldest that could be loaded opened."""
        market = self._state.live_market
        while (first := market.first_open(symbol, BASE_INTERVAL)) is not None and first > at:
            rows = await self._requests.candles(symbol, BASE_INTERVAL, at, first - 1)
            bars = [bar for row in rows if at <= row.open_at < first and is_possible(bar := row.bar())]
            if not market.add_earlier_bars(symbol, BASE_INTERVAL, bars):
                return first
        return at if first is None else first

    def measure_soon(self) -> None:
        """Measure the exchange's clock with the next requests."""
        self._pacer.on_progress("clock")

    def _due(self) -> list[Callable[[], Awaitable[None]]]:
        state, pacer = self._state, self._pacer
        now = state.clock.now()
        due: list[Callable[[], Awaitable[None]]] = []
        if pacer.may_repeat("clock"):
            due.append(self.measure)
        for key, series in state.series.items():
            patience = QUIET_MS if series.is_trusted else SETTLE_MS
            if now >= series.complete_before + patience and pacer.may_repeat(key):
                due.append(lambda series=series: self._request_candles(series))
            elif series.step <= LONGEST_AUDITED_MS and pacer.is_time(("audit", *key), AUDIT_S):
                due.append(lambda series=series: self._request_candles(series, AUDITED_BARS))
        for symbol, funding in state.funding.items():
            if funding.is_due(now) and pacer.may_repeat(("funding", symbol)):
                due.append(lambda funding=funding: self._request_funding(funding))
        ages = [now - (prices.received_at or 0) for prices in state.prices.values()]
        if max(ages, default=0) > CONTEXT_AGE_MS and pacer.may_repeat("contexts"):
            due.append(self._request_contexts)
        return due

    async def _ask(self, request: Callable[[], Awaitable[None]]) -> None:
        try:
            async with self._slots:
                await request()
        except TransientError as error:
            self._pacer.on_failure(str(error))
        else:
            self._pacer.on_success()

    async def _request_candles(self, series: CandleSeries, back: int = 2) -> None:
        """Request what is due of a series, and some bars before it, which are compared with those released."""
        key, subscription = (series.symbol, series.interval), Subscription("candle", series.symbol, series.interval)
        at, connection = self._state.clock.now(), self._stream.connections
        was_subscribed = self._stream.is_subscribed(subscription)
        missing, next_open = series.missing, series.next_open
        self._pacer.on_request(key)
        rows = await self._requests.candles(*key, next_open - back * series.step, at)
        is_subscribed = (
            was_subscribed and connection == self._stream.connections and self._stream.is_subscribed(subscription)
        )
        self._state.add_bars(series, series.add_snapshot(rows, at, is_subscribed))
        if series.next_open > next_open:
            self._pacer.on_progress(key)
        if series.missing != missing:
            self._state.wake()

    async def _request_funding(self, funding: FundingSeries) -> None:
        purpose, at, hour = ("funding", funding.symbol), self._state.clock.now(), funding.next_hour
        self._pacer.on_request(purpose)
        rows = await self._requests.funding(funding.symbol, hour)
        self._state.live_market.add_points("funding", funding.symbol, funding.add_reply(rows, at))
        if funding.next_hour > hour:
            self._pacer.on_progress(purpose)
            self._state.wake()

    async def _request_contexts(self) -> None:
        self._pacer.postpone("contexts", CONTEXT_PAUSE_S)
        at = self._state.clock.now()
        self._state.add_contexts(await self._requests.contexts(), at)
