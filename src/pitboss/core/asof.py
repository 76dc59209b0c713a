"""The as-of view: market data restricted to what is available at one instant.

A `Market` holds complete columns, future included; agents, tools and policies only receive a `View`. A view cuts every
column by *availability*: a bar by its close, a news item by its arrival, an event by the instant it became known. A
request for anything later raises `LookaheadError`. A symbol that is not listed at that instant has no data.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pitboss.core.errors import LookaheadError, UserError
from pitboss.core.instant import HOUR_MS, Instant, iso
from pitboss.core.market import Bars, CalendarEvent, Listing, NewsItem, Points


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Market:
    """All data of a run, past and future. The data layer builds it; every other reader goes through `view(at)`.

    `news` is sorted by `available_at`, `events` by `known_at`. A symbol without a listing counts as always listed.
    """

    bars: Mapping[tuple[str, str], Bars]
    points: Mapping[tuple[str, str], Points] = field(default_factory=dict[tuple[str, str], Points])
    news: Sequence[NewsItem] = ()
    events: Sequence[CalendarEvent] = ()
    listings: Mapping[str, Listing] = field(default_factory=dict[str, Listing])

    def view(self, at: Instant) -> "View":
        """The data available at `at`."""
        return View(self, at)


class View:
    """A market restricted to the data available at one instant."""

    __slots__ = ("_market", "at")

    def __init__(self, market: Market, at: Instant) -> None:
        self._market = market
        self.at = at

    def same_market(self, other: "View") -> bool:
        """Whether both views are of the same market."""
        return self._market is other._market

    def transformed(self, transform: Callable[[Market], Market], at: Instant) -> "View":
        """A view at `at` of this market after `transform`; blind mode uses it to rename symbols and shift dates."""
        return View(transform(self._market), at)

    def _not_after(self, until: Instant | None) -> Instant:
        if until is None:
            return self.at
        if until > self.at:
            raise LookaheadError(f"asked for {iso(until)} at {iso(self.at)}")
        return until

    def listed(self, symbol: str) -> bool:
        """Whether the venue lists the symbol now."""
        listing = self._market.listings.get(symbol)
        return listing is None or listing.covers(self.at)

    def unlisted(self, symbols: Sequence[str]) -> tuple[str, ...]:
        """The given symbols that the venue does not list now."""
        if not self._market.listings:
            return ()
        return tuple(symbol for symbol in symbols if not self.listed(symbol))

    def was_delisted(self, symbol: str) -> bool:
        """Whether the symbol has been delisted by now."""
        listing = self._market.listings.get(symbol)
        return listing is not None and listing.delisted_at is not None and listing.delisted_at <= self.at

    def ends_at(self, symbol: str) -> Instant | None:
        """When the symbol is delisted, if that has been announced by now."""
        listing = self._market.listings.get(symbol)
        return None if listing is None else listing.ends_at(self.at)

    def series(self, symbol: str, interval: str) -> tuple[Bars, int]:
        """The complete columns and the number of bars closed by now, which is 0 for a symbol that is not listed.

        For caches over complete columns (formatted rows, causal indicators); callers must index below the count.
        """
        bars = self._market.bars.get((symbol, interval))
        if bars is None:
            raise UserError(f"no {interval} bars of {symbol}", "see `pitboss data list`")
        if self._market.listings and not self.listed(symbol):
            return bars, 0
        open_at, step = bars.open_at, bars.interval_ms
        last_at = self.at - step
        if len(open_at):  # without gaps the index can be computed, at a third of the cost of a search
            first_at = open_at.item(0)
            index = (last_at - first_at) // step
            if 0 <= index < len(open_at) and open_at.item(index) == first_at + index * step:
                return bars, index + 1
        return bars, int(open_at.searchsorted(last_at, side="right"))

    def bars(self, symbol: str, interval: str, lookback: int, until: Instant | None = None) -> Bars:
        """The newest `lookback` bars closed by `until` (default: now), oldest first."""
        bars, closed = self.series(symbol, interval)
        if until is not None:
            latest = self._not_after(until) - bars.interval_ms
            closed = min(closed, int(np.searchsorted(bars.open_at, latest, side="right")))
        return bars.slice(max(0, closed - lookback), closed)

    def has_bars(self, symbol: str, interval: str) -> bool:
        """Whether the run has such bars, including when none is closed yet."""
        return (symbol, interval) in self._market.bars

    def points(self, kind: str, symbol: str, lookback: int, until: Instant | None = None) -> Points | None:
        """The newest `lookback` values of a point series known by `until`; None if there is no such series."""
        points = self._market.points.get((kind, symbol))
        if points is None:
            return None
        stop = int(np.searchsorted(points.at, self._not_after(until), side="right"))
        if self._market.listings and not self.listed(symbol):
            stop = 0
        start = max(0, stop - lookback)
        return Points(points.symbol, points.kind, points.at[start:stop], points.value[start:stop])

    def news(self, hours: float, until: Instant | None = None) -> list[NewsItem]:
        """Items that became available in the last `hours`, newest first."""
        latest = self._not_after(until)
        news = self._market.news
        start = bisect_right(news, latest - round(hours * HOUR_MS), key=_available_at)
        stop = bisect_right(news, latest, key=_available_at)
        return list(reversed(news[start:stop]))

    def events(self, hours: float) -> list[CalendarEvent]:
        """Events known by now that are scheduled within the next `hours`, soonest first."""
        known_events = self._market.events[: bisect_right(self._market.events, self.at, key=_known_at)]
        until = self.at + round(hours * HOUR_MS)
        upcoming = [event for event in known_events if self.at <= event.scheduled_at <= until]
        return sorted(upcoming, key=lambda event: (event.scheduled_at, event.kind, event.title))

    def news_count(self) -> int:
        """How many news items have arrived by now; a cheap way to detect new ones."""
        return bisect_left(self._market.news, self.at + 1, key=_available_at)


def _available_at(item: NewsItem) -> Instant:
    return item.available_at


def _known_at(event: CalendarEvent) -> Instant:
    return event.known_at
