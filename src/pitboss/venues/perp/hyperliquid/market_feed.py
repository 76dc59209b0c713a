"""Live market data from Hyperliquid: a `MarketFeed` over `/info` and the WebSocket of one base address.

Two loops feed one `FeedState`: the stream (`exchange_stream`), and requests for whatever the stream has not delivered (`catch_up`).
Without a stream the requests alone keep it complete, a few seconds later. After a gap no bar counts before a reply has
filled it. Implausible prices are held back by the rules in `price_checks`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from decimal import Decimal
from typing import Any, NoReturn, TypeVar

from pitboss.core.asof import Market
from pitboss.core.asset import Asset
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import HOUR_MS, Instant, interval_ms
from pitboss.core.suggestion import suggestion
from pitboss.venues.perp.hyperliquid.candle_series import CandleSeries
from pitboss.venues.perp.hyperliquid.catch_up import CatchUp
from pitboss.venues.perp.hyperliquid.exchange_access import ExchangeAccess
from pitboss.venues.perp.hyperliquid.exchange_clock import ExchangeClock
from pitboss.venues.perp.hyperliquid.exchange_stream import ExchangeStream, Subscription
from pitboss.venues.perp.hyperliquid.feed_problems import feed_problems, opening_problem
from pitboss.venues.perp.hyperliquid.feed_state import BASE_INTERVAL, FeedState
from pitboss.venues.perp.hyperliquid.funding_series import FundingSeries
from pitboss.venues.perp.hyperliquid.market_messages import (
    MalformedMessage,
    read_active_context,
    read_best_prices,
    read_candle,
)
from pitboss.venues.perp.hyperliquid.market_requests import MarketRequests
from pitboss.venues.perp.hyperliquid.price_checks import PriceChecks
from pitboss.venues.perp.hyperliquid.request_pacer import RequestPacer
from pitboss.venues.perp.hyperliquid.ws_connection import Connect

HISTORY_BARS = 1_000
"""Bars of each series that are requested at opening; more cost more of the rate limit."""
FUNDING_HISTORY_MS = 7 * 24 * HOUR_MS
OPEN_ATTEMPTS, OPEN_PAUSE_S = 30, 5.0
"""Attempts at a request of the opening: with many symbols the rate limit spreads them over minutes."""
CONCURRENT_LOADS = 4
MOST_SUBSCRIPTIONS = 1_000

T = TypeVar("T")


class HyperliquidFeed:
    """Market data of the symbols that were included. It lives on one event loop."""

    base_interval = BASE_INTERVAL

    def __init__(
        self,
        requests: MarketRequests,
        connect: Connect,
        *,
        now: Callable[[], Instant],
        elapsed: Callable[[], float],
        random: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        history_bars: int = HISTORY_BARS,
    ) -> None:
        """`elapsed` is a monotonic clock in seconds; `random` gives numbers from 0 to 1 for the jitter of pauses."""
        self.state = FeedState(ExchangeClock(now, elapsed))
        self.stream = ExchangeStream(
            connect, self._on_message, self._on_disconnect, elapsed=elapsed, random=random, sleep=sleep
        )
        self.pacer = RequestPacer(elapsed, random)
        self.access: ExchangeAccess | None = None
        """What sends its requests, for others that use the same exchange; set where it is opened."""
        self.foreign_messages = 0
        """Messages about symbols or intervals that were not subscribed."""
        self._catch_up = CatchUp(self.state, self.stream, requests, self.pacer, sleep)
        self._requests = requests
        self._sleep = sleep
        self._history_bars = history_bars
        self._stream_at: Instant = 0
        self._including = asyncio.Lock()
        self._loads = asyncio.Semaphore(CONCURRENT_LOADS)
        self._tasks: list[asyncio.Task[NoReturn]] = []

    # What readers ask ---------------------------------------------------------------------------------------------

    @property
    def assets(self) -> Mapping[str, Asset]:
        """Lot, leverage and margin tiers of its symbols."""
        return self.state.assets

    def market(self) -> Market:
        """Return everything that has arrived."""
        return self.state.live_market.market()

    def complete_until(
        self, symbols: Collection[str] | None = None, intervals: Collection[str] | None = None
    ) -> Instant:
        """Return until when the bars and the funding of symbols are complete; by default of all of them."""
        return self.state.complete_until(symbols, intervals)

    async def wait_until(
        self, at: Instant, symbols: Collection[str] | None = None, intervals: Collection[str] | None = None
    ) -> None:
        """Return when it is complete until an instant. Raises `TransientError` if it has failed."""
        while self.state.complete_until(symbols, intervals) < at:
            if self.has_failed():
                raise TransientError("the feed has failed")
            await self.state.wait()

    async def load_since(self, at: Instant, symbols: Collection[str] | None = None) -> Instant:
        """Load the base bars of symbols (by default all) that opened since an instant, as far as the exchange still has them.

        Returns the instant, or a later one from which every symbol has bars. Raises `TransientError` without an answer.
        """
        names = self.state.prices if symbols is None else symbols
        firsts = [await self._catch_up.load_back(symbol, at) for symbol in sorted(names)]
        return max((at, *firsts))

    def marks(self) -> Mapping[str, tuple[Decimal, Instant]]:
        """Return the mark of each symbol and its venue time; a symbol with an implausible price is left out."""
        return self.state.marks()

    @property
    def skew_ms(self) -> int:
        """The machine's clock minus the exchange's."""
        return self.state.clock.skew_ms()

    def trouble(self, symbols: Collection[str] | None = None) -> str:
        """Return the current problems as text that does not change while they last."""
        problems = ["the feed has failed"] if self.has_failed() else []
        return "; ".join(problems + feed_problems(self.state, self.stream.problem, self.pacer.problem, symbols))

    def opening_problem(self, symbol: str) -> str:
        """Return why no position in a symbol may be opened on the data of this moment; empty if one may."""
        return "the feed has failed" if self.has_failed() else opening_problem(self.state, symbol)

    def has_failed(self) -> bool:
        """Whether a task has ended for good, which only a fault of this program does."""
        return any(task.done() for task in self._tasks)

    # Opening and closing ------------------------------------------------------------------------------------------

    async def include(self, symbols: Iterable[str], intervals: Iterable[str]) -> None:
        """Load the history of symbols at intervals, and of the base bars, and follow them from now on.

        Raises `UserError` for a symbol that cannot be traded, `TransientError` if the exchange does not answer.
        """
        state, names = self.state, sorted(set(symbols))
        lengths = sorted({BASE_INTERVAL, *intervals}, key=interval_ms)
        wanted = [(symbol, interval) for symbol in names for interval in lengths]
        async with self._including:
            if len({*state.series, *wanted}) + 2 * len({*state.prices, *names}) > MOST_SUBSCRIPTIONS:
                raise UserError(
                    f"the exchange allows {MOST_SUBSCRIPTIONS} streams for a connection", "use fewer symbols"
                )
            if not state.clock.is_measured():
                await self._retried(self._catch_up.measure)
            new = [symbol for symbol in names if symbol not in state.prices]
            if new:
                await self._add_symbols(new)
            keys = [key for key in wanted if key not in state.series]
            await asyncio.gather(*(self._retried(lambda key=key: self._load(*key)) for key in keys))
            subscriptions = [Subscription("candle", symbol, interval) for symbol, interval in wanted]
            subscriptions += [Subscription(kind, symbol) for symbol in names for kind in ("bbo", "activeAssetCtx")]
            await self.stream.subscribe(subscriptions)

    def start(self) -> None:
        """Start the tasks."""
        self._tasks = [asyncio.create_task(self.stream.run()), asyncio.create_task(self._catch_up.run())]
        for task in self._tasks:
            task.add_done_callback(lambda _: self.state.wake())

    async def close(self) -> None:
        """End the tasks."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _add_symbols(self, symbols: Collection[str]) -> None:
        state, requested_at = self.state, self.state.clock.now()
        assets, contexts = await self._retried(self._requests.universe)
        for symbol in symbols:
            if symbol not in assets:
                raise UserError(
                    f"Hyperliquid does not trade {symbol!r}", suggestion(symbol, sorted(assets), "symbols:")
                )
        await asyncio.gather(*(self._retried(lambda symbol=symbol: self._load_funding(symbol)) for symbol in symbols))
        for symbol in symbols:
            state.assets[symbol] = assets[symbol]
            state.prices[symbol] = PriceChecks(symbol)
        state.add_contexts(contexts, requested_at)
        state.sample(requested_at, symbols)

    async def _load_funding(self, symbol: str) -> None:
        at = self.state.clock.now()
        rows = await self._requests.funding(symbol, at - FUNDING_HISTORY_MS)
        due = (rows[-1][0] if rows else at) // HOUR_MS * HOUR_MS + HOUR_MS
        self.state.funding[symbol] = FundingSeries(symbol, due)
        self.state.live_market.add_points("funding", symbol, rows)

    async def _load(self, symbol: str, interval: str) -> None:
        step, at = interval_ms(interval), self.state.clock.now()
        rows = await self._requests.candles(symbol, interval, at // step * step - self._history_bars * step, at)
        series = CandleSeries(symbol, interval, rows[0].open_at if rows else at // step * step)
        self.state.series[symbol, interval] = series
        self.state.live_market.add_bars(symbol, interval, ())  # the series is there, even without a bar
        self.state.add_bars(series, series.add_snapshot(rows, at, is_subscribed=False))

    async def _retried(self, request: Callable[[], Awaitable[T]]) -> T:
        attempt = 0
        while True:
            try:
                async with self._loads:
                    return await request()
            except TransientError:
                attempt += 1
                if attempt >= OPEN_ATTEMPTS:
                    raise
            await self._sleep(min(OPEN_PAUSE_S, float(attempt)))

    # The stream ---------------------------------------------------------------------------------------------------

    def _on_message(self, channel: str, data: Any) -> None:
        if channel == "candle":
            for row in data if isinstance(data, list) else [data]:
                self._on_candle(row)
        elif channel == "activeAssetCtx":
            context = read_active_context(data)
            if self._is_followed(context.symbol) and self._stream_at:
                self.state.prices[context.symbol].add_context(context, self._stream_at)
        elif channel == "bbo":
            best = read_best_prices(data)
            if self.state.clock.is_contradicted_by(best.at):
                self._catch_up.measure_soon()
                raise MalformedMessage("a message comes from the future")
            if self._is_followed(best.symbol):
                # a context has no time of its own: it was sent after the newest message that has one
                self._stream_at = max(self._stream_at, best.at)
                self.state.prices[best.symbol].add_best_prices(best)

    def _on_candle(self, row: Any) -> None:
        candle = read_candle(row)
        series = self.state.series.get((candle.symbol, candle.interval))
        if series is None:
            self.foreign_messages += 1
        else:
            self.state.add_bars(series, series.add_update(candle, self.state.clock.now()))

    def _is_followed(self, symbol: str) -> bool:
        is_followed = symbol in self.state.prices
        self.foreign_messages += not is_followed
        return is_followed

    def _on_disconnect(self) -> None:
        self._stream_at = 0
        for series in self.state.series.values():
            series.on_disconnect()
