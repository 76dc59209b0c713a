"""Live price feed: polls the current price and the candles of the last day.

Prices come from Hermes and are queued in order until they are consumed. Candles come from Benchmarks; the volatility of
their last day is attached to every price. An implausible price (far from the candles, with a wide confidence interval,
or older than the previous one) is discarded and reported. The module does not depend on what the prices are used for.
It does not raise if a service is down: `trouble` describes the problem, and the next poll tries again.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from decimal import Decimal
from typing import NoReturn

import numpy as np
import polars as pl

from pitboss.core.asof import Market
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import DAY_MS, MINUTE_MS, SECOND_MS, Instant
from pitboss.core.market import Bars
from pitboss.core.noun import noun
from pitboss.data.fetch import Fetcher
from pitboss.data.hermes import Hermes, OraclePrice
from pitboss.data.source import DownloadRequest, Ranged
from pitboss.data.sources.pyth import SOURCE
from pitboss.venues.predict.surface import realised

INTERVAL = "1m"
WINDOW_MS = DAY_MS
LEAST_BARS = 60
"""Minimum number of candles to compute a volatility: one hour."""
OLDEST_CANDLE_MS = 15 * MINUTE_MS
"""Maximum age of the newest candle for its volatility to count as current."""
MOST_OFF = Decimal("0.2")
MOST_UNSURE = Decimal("0.02")
MOST_WAITING = 4_096
CANDLES_S = 15.0
"""Seconds between polls for new candles; one closes every minute."""

_COLUMNS = ("open_at", "open", "high", "low", "close", "volume")

Pages = Callable[[Instant, Instant], Awaitable[pl.DataFrame]]
Sleep = Callable[[float], Awaitable[object]]


@noun
class Update:
    """One price in billionths, its publish time, and the volatility of the preceding day."""

    spot: int
    at: Instant
    volatility: float


async def candles_of(symbol: str, base_url: str, fetcher: Fetcher) -> Pages:
    """Return the function that fetches the one-minute candles of a symbol."""
    request = DownloadRequest(SOURCE.venue, (symbol,), (INTERVAL,), base_url=base_url)
    (task,) = await SOURCE.plan(request, fetcher)
    assert isinstance(task, Ranged)
    return task.page


class Spot:
    """The price feed of one symbol."""

    def __init__(self, symbol: str, hermes: Hermes, pages: Pages, now: Callable[[], Instant]) -> None:
        self.symbol = symbol
        self.market = Market({})
        """The candles, readable as of an instant."""
        self.volatility: float | None = None
        self.candles_at: Instant | None = None
        """Close time of the newest candle."""
        self.newest: OraclePrice | None = None
        self._hermes = hermes
        self._pages = pages
        self._now = now
        self._bars: Bars | None = None
        self._waiting: list[Update] = []
        self._past_prices: dict[Instant, Update | None] = {}
        self._past_requests: set[Instant] = set()
        self._price_trouble = ""
        self._candle_trouble = ""

    # Received data ------------------------------------------------------------------------------------------------

    def before(self, at: Instant) -> Sequence[Update]:
        """Return the unconsumed prices published before an instant, oldest first."""
        return self._waiting[: bisect_left(self._waiting, at, key=lambda update: update.at)]

    def remove(self, count: int) -> None:
        """Remove the first `count` queued prices as consumed."""
        del self._waiting[:count]

    def past_price(self, at: Instant) -> Update | None:
        """Return the first price published at or after a past instant; None until it arrives or if it is unavailable.

        `is_requesting` tells whether the request is still pending.
        """
        if at not in self._past_prices:
            self._past_prices[at] = None
            self._past_requests.add(at)
        return self._past_prices[at]

    def is_requesting(self, at: Instant) -> bool:
        """Whether the price of a past instant is still being requested."""
        return at in self._past_requests

    def forget(self, at: Instant) -> None:
        """Drop the request for the price of a past instant."""
        self._past_prices.pop(at, None)
        self._past_requests.discard(at)

    def trouble(self) -> str:
        """Describe the current problem; the text stays the same while the problem lasts."""
        return "; ".join(message for message in (self._price_trouble, self._candle_trouble) if message)

    def fresh_candles(self, at: Instant) -> bool:
        """Whether the newest candle is recent enough at an instant."""
        return self.candles_at is not None and at - self.candles_at <= OLDEST_CANDLE_MS

    # Polling
    # -----------------------------------------------------------------------------------------------------------

    async def watch(self, every_s: float, sleep: Sleep = asyncio.sleep) -> None:
        """Poll forever, prices and candles each at their own interval."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep(self.refresh, CANDLES_S, every_s, sleep))
            group.create_task(self._keep(self.look, every_s, every_s, sleep))

    async def _keep(self, ask: Callable[[], Awaitable[bool]], every_s: float, again_s: float, sleep: Sleep) -> NoReturn:
        while True:
            await sleep(every_s if await ask() else again_s)

    async def look(self) -> bool:
        """Request the newest price and pending prices of past instants."""
        try:
            price = await self._hermes.latest(self.symbol)
        except (TransientError, UserError) as error:
            self._price_trouble = _message(error)
        else:
            self._price_trouble = self._take(price)
        for at in sorted(self._past_requests):
            try:
                price_then = await self._hermes.at(self.symbol, at)
            except TransientError:
                break  # retried at the next poll
            except UserError:  # no longer available
                self._past_requests.discard(at)
                continue
            if at in self._past_requests:
                self._past_requests.discard(at)
                if _is_certain(price_then):
                    self._past_prices[at] = Update(price_then.units, price_then.published_at, self.volatility or 0.0)
        return not self._price_trouble

    def _take(self, price: OraclePrice) -> str:
        """Queue a price; return why it is discarded, if it is."""
        if self.newest is not None and price.published_at < self.newest.published_at:
            return "the price service went back in time"
        if not _is_certain(price):
            return "the publishers of the price do not agree on it"
        close = self._close()
        if close is not None and abs(price.price / close - 1) > MOST_OFF:
            return "the price is far from the candles"
        again = self.newest is not None and price.published_at == self.newest.published_at
        self.newest = price
        if self.volatility is not None and not again:
            self._waiting.append(Update(price.units, price.published_at, self.volatility))
            del self._waiting[:-MOST_WAITING]
        return ""

    def _close(self) -> Decimal | None:
        """Return the newest close, if it is recent enough for comparison."""
        if self._bars is None or not self.fresh_candles(self._now()):
            return None
        return Decimal(repr(float(self._bars.close[-1])))

    async def refresh(self) -> bool:
        """Request the candles closed since the last ones."""
        now = self._now()
        until = now // MINUTE_MS * MINUTE_MS
        since = until - WINDOW_MS - MINUTE_MS
        if self.candles_at is not None:
            since = max(since, self.candles_at)
        if since < until:
            try:
                page = await self._pages(since, until)
            except (TransientError, UserError) as error:
                self._candle_trouble = _message(error)
                return False
            if len(page):
                self._add(page, until - WINDOW_MS - MINUTE_MS)
        count = 0 if self._bars is None else len(self._bars)
        if count < LEAST_BARS:
            self._candle_trouble = f"only {count} candles, too few to say how much the price moves"
        elif not self.fresh_candles(now):
            self._candle_trouble = "no new candles"
        else:
            self._candle_trouble = ""
        return not self._candle_trouble

    def _add(self, frame: pl.DataFrame, oldest: Instant) -> None:
        """Append new candles and drop those older than the window."""
        frame = frame.with_columns(pl.col("open_at").cast(pl.Int64))
        fresh = {name: frame[name].to_numpy() for name in _COLUMNS}
        last = None if self._bars is None else self._bars.open_at[-1]
        later = np.ones(len(frame), bool) if last is None else fresh["open_at"] > last
        columns = {name: values[later] for name, values in fresh.items()}
        if self._bars is not None:
            columns = {name: np.concatenate([getattr(self._bars, name), columns[name]]) for name in _COLUMNS}
        recent = columns["open_at"] >= oldest
        if not recent.any():
            return
        bars = Bars(self.symbol, INTERVAL, MINUTE_MS, **{name: values[recent] for name, values in columns.items()})
        self._bars = bars
        self.market = Market({(self.symbol, INTERVAL): bars})
        self.candles_at = int(bars.open_at[-1]) + MINUTE_MS
        if len(bars) >= LEAST_BARS:
            self.volatility = realised(bars.close.tolist())


def _is_certain(price: OraclePrice) -> bool:
    return price.confidence <= price.price * MOST_UNSURE


def _message(error: TransientError | UserError) -> str:
    return error.message if isinstance(error, UserError) else str(error)


def age_s(price: OraclePrice | None, now: Instant) -> float | None:
    """Return the age of a price in seconds."""
    return None if price is None else (now - price.published_at) / SECOND_MS
