"""The price of this moment and the candles of the last day, kept up by asking again and again: what a live run is fed with.

Prices come from Hermes and wait in order until somebody takes them; candles come from Benchmarks, and the volatility of
their last day goes with every price. A price that cannot be one (far from the candles, hardly agreed on by its own
publishers, older than the one before) is left out and told. Nothing here knows what the prices are used for, and nothing
raises because a service is down: `trouble` says what is wrong, and the next round asks again.
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
"""With less than an hour of candles nobody can say how much the price moves."""
OLDEST_CANDLE_MS = 15 * MINUTE_MS
"""A volatility that ends longer ago than this is no longer that of now."""
MOST_OFF = Decimal("0.2")
MOST_UNSURE = Decimal("0.02")
MOST_WAITING = 4_096
CANDLES_S = 15.0
"""How often new candles are looked for; one closes every minute."""

_COLUMNS = ("open_at", "open", "high", "low", "close", "volume")

Pages = Callable[[Instant, Instant], Awaitable[pl.DataFrame]]
Sleep = Callable[[float], Awaitable[object]]


@noun
class Update:
    """One price in billionths, when it was published, and the volatility of the day before it."""

    spot: int
    at: Instant
    volatility: float


async def candles_of(symbol: str, base_url: str, fetcher: Fetcher) -> Pages:
    """Where the one-minute candles of a symbol are read."""
    wanted = DownloadRequest(SOURCE.venue, (symbol,), (INTERVAL,), base_url=base_url)
    (task,) = await SOURCE.plan(wanted, fetcher)
    assert isinstance(task, Ranged)
    return task.page


class Spot:
    """The feed of one symbol."""

    def __init__(self, symbol: str, hermes: Hermes, pages: Pages, now: Callable[[], Instant]) -> None:
        self.symbol = symbol
        self.market = Market({})
        """The candles, for whoever looks at them as of an instant."""
        self.volatility: float | None = None
        self.candles_at: Instant | None = None
        """When the newest candle closed."""
        self.newest: OraclePrice | None = None
        self._hermes = hermes
        self._pages = pages
        self._now = now
        self._bars: Bars | None = None
        self._waiting: list[Update] = []
        self._wanted: dict[Instant, Update | None] = {}
        self._asked: set[Instant] = set()
        self._price_trouble = ""
        self._candle_trouble = ""

    # What was heard ------------------------------------------------------------------------------------------------

    def before(self, at: Instant) -> Sequence[Update]:
        """The prices published before an instant that nobody has taken yet, oldest first."""
        return self._waiting[: bisect_left(self._waiting, at, key=lambda update: update.at)]

    def taken(self, count: int) -> None:
        """So many of them are used."""
        del self._waiting[:count]

    def recalled(self, at: Instant) -> Update | None:
        """The first price published at or after a past instant; None until it is known, or if nobody knows it.

        Whether there is hope is `recalling`.
        """
        if at not in self._wanted:
            self._wanted[at] = None
            self._asked.add(at)
        return self._wanted[at]

    def recalling(self, at: Instant) -> bool:
        """Whether the price of a past instant is still being asked for."""
        return at in self._asked

    def forget(self, at: Instant) -> None:
        """The price of that instant is needed no more."""
        self._wanted.pop(at, None)
        self._asked.discard(at)

    def trouble(self) -> str:
        """What is wrong just now, in words that stay the same while it does."""
        return "; ".join(words for words in (self._price_trouble, self._candle_trouble) if words)

    def fresh_candles(self, at: Instant) -> bool:
        """Whether the candles reach close enough to an instant."""
        return self.candles_at is not None and at - self.candles_at <= OLDEST_CANDLE_MS

    # Asking ----------------------------------------------------------------------------------------------------------

    async def watch(self, every_s: float, sleep: Sleep = asyncio.sleep) -> None:
        """Ask for ever, prices and candles each at their own pace."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep(self.refresh, CANDLES_S, every_s, sleep))
            group.create_task(self._keep(self.look, every_s, every_s, sleep))

    async def _keep(self, ask: Callable[[], Awaitable[bool]], every_s: float, again_s: float, sleep: Sleep) -> NoReturn:
        while True:
            await sleep(every_s if await ask() else again_s)

    async def look(self) -> bool:
        """Ask for the newest price, and for those of the past that somebody waits for."""
        try:
            price = await self._hermes.latest(self.symbol)
        except (TransientError, UserError) as error:
            self._price_trouble = _words(error)
        else:
            self._price_trouble = self._take(price)
        for at in sorted(self._asked):
            try:
                found = await self._hermes.at(self.symbol, at)
            except TransientError:
                break  # next time
            except UserError:  # nobody has it any more
                self._asked.discard(at)
                continue
            if at in self._asked:
                self._asked.discard(at)
                if _sure(found):
                    self._wanted[at] = Update(found.units, found.published_at, self.volatility or 0.0)
        return not self._price_trouble

    def _take(self, price: OraclePrice) -> str:
        """Put a price in line; why it is not taken, where it is not."""
        if self.newest is not None and price.published_at < self.newest.published_at:
            return "the price service went back in time"
        if not _sure(price):
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
        """The newest close, where it is new enough to compare with."""
        if self._bars is None or not self.fresh_candles(self._now()):
            return None
        return Decimal(repr(float(self._bars.close[-1])))

    async def refresh(self) -> bool:
        """Ask for the candles that closed since the last ones."""
        now = self._now()
        until = now // MINUTE_MS * MINUTE_MS
        since = until - WINDOW_MS - MINUTE_MS
        if self.candles_at is not None:
            since = max(since, self.candles_at)
        if since < until:
            try:
                page = await self._pages(since, until)
            except (TransientError, UserError) as error:
                self._candle_trouble = _words(error)
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
        """Put new candles behind those that are known, and let go of those that are older than the window."""
        frame = frame.with_columns(pl.col("open_at").cast(pl.Int64))
        fresh = {name: frame[name].to_numpy() for name in _COLUMNS}
        known = None if self._bars is None else self._bars.open_at[-1]
        later = np.ones(len(frame), bool) if known is None else fresh["open_at"] > known
        columns = {name: values[later] for name, values in fresh.items()}
        if self._bars is not None:
            columns = {name: np.concatenate([getattr(self._bars, name), columns[name]]) for name in _COLUMNS}
        kept = columns["open_at"] >= oldest
        if not kept.any():
            return
        bars = Bars(self.symbol, INTERVAL, MINUTE_MS, **{name: values[kept] for name, values in columns.items()})
        self._bars = bars
        self.market = Market({(self.symbol, INTERVAL): bars})
        self.candles_at = int(bars.open_at[-1]) + MINUTE_MS
        if len(bars) >= LEAST_BARS:
            self.volatility = realised(bars.close.tolist())


def _sure(price: OraclePrice) -> bool:
    return price.confidence <= price.price * MOST_UNSURE


def _words(error: TransientError | UserError) -> str:
    return error.message if isinstance(error, UserError) else str(error)


def age_s(price: OraclePrice | None, now: Instant) -> float | None:
    """How old a price is, in seconds."""
    return None if price is None else (now - price.published_at) / SECOND_MS
