"""The market of a live run: closed bars, point series and news, added as they arrive; `market()` is what a `View` cuts.

It holds a bounded past and no future: a bar is added when it has closed. `MarketFeed` is the port through which a live run
gets it; the implementations are in `hyperliquid/` (an exchange) and `recorded_feed.py` (stored bars).
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Protocol

import numpy as np

from pitboss.core.asof import Market
from pitboss.core.asset import Asset
from pitboss.core.errors import InvariantError
from pitboss.core.instant import Instant, interval_ms
from pitboss.core.market import Bar, Bars, CalendarEvent, NewsItem, PointKind, Points

MOST_BARS = 5_000
"""Bars that are kept of one series: what an exchange gives as history, and more than any prompt or tool shows."""
MOST_POINTS = 10_000
MOST_NEWS = 2_000


class MarketFeed(Protocol):
    """Live market data of a set of symbols. Its tasks run while it is open."""

    @property
    def base_interval(self) -> str:
        """The interval of the bars that advance the paper world."""
        ...

    @property
    def assets(self) -> Mapping[str, Asset]:
        """Lot, leverage and margin tiers of its symbols."""
        ...

    def market(self) -> Market:
        """Everything that has arrived; the same object until something new has."""
        ...

    def complete_until(self) -> Instant:
        """Every base bar of every symbol that closes by this instant has arrived, with the funding of its hour."""
        ...

    async def wait_until(self, at: Instant) -> None:
        """Return when it is complete until an instant. The caller sets the time limit."""
        ...

    async def load_since(self, at: Instant) -> Instant:
        """Load the base bars that opened since an instant, as far as they still exist.

        Returns the instant, or a later one from which every symbol has bars. Raises `TransientError` without an answer.
        """
        ...

    def marks(self) -> Mapping[str, tuple[Decimal, Instant]]:
        """The newest mark or mid price of each symbol, and when the venue sent it."""
        ...

    def opening_problem(self, symbol: str) -> str:
        """Why no position in a symbol may be opened on the data of this moment; empty if one may."""
        ...

    def trouble(self) -> str:
        """The current problem, as text; empty if there is none."""
        ...

    def has_failed(self) -> bool:
        """Whether a task of it has ended for good."""
        ...


class LiveMarket:
    """Growing columns of a market. Not safe for threads: it lives on one event loop."""

    def __init__(self, most_bars: int = MOST_BARS) -> None:
        self._most_bars = most_bars
        self._bars: dict[tuple[str, str], list[tuple[Instant, float, float, float, float, float]]] = {}
        self._points: dict[tuple[PointKind, str], list[tuple[Instant, float]]] = {}
        self._news: list[NewsItem] = []
        self._events: tuple[CalendarEvent, ...] = ()
        self._columns: dict[tuple[str, str], Bars] = {}
        self._series: dict[tuple[str, str], Points] = {}
        self._market: Market | None = None

    def add_bars(self, symbol: str, interval: str, bars: Iterable[Bar]) -> int:
        """Add closed bars in the order of time; bars that are there already are ignored. Returns how many were new.

        A bar that closed is never changed: a source that sends another one for the same time does not replace it.
        """
        key, step = (symbol, interval), interval_ms(interval)
        column = self._bars.setdefault(key, [])
        added = 0
        for bar in bars:
            open_at = bar.closed_at - step
            if open_at % step:
                raise InvariantError(f"a bar of {symbol} does not begin at a multiple of {interval}")
            if column and open_at <= column[-1][0]:
                continue
            column.append((open_at, bar.open, bar.high, bar.low, bar.close, bar.volume))
            added += 1
        if added:
            del column[: -self._most_bars]
            self._columns.pop(key, None)
            self._market = None
        elif key not in self._columns:
            self._market = None
        return added

    def add_earlier_bars(self, symbol: str, interval: str, bars: Iterable[Bar]) -> int:
        """Add bars before the oldest one, in the order of time. Returns how many were added: the oldest beyond the bound are dropped."""
        key, step = (symbol, interval), interval_ms(interval)
        column = self._bars.setdefault(key, [])
        first = column[0][0] if column else None
        earlier = [
            (bar.closed_at - step, bar.open, bar.high, bar.low, bar.close, bar.volume)
            for bar in bars
            if first is None or bar.closed_at <= first
        ]
        earlier = earlier[-(self._most_bars - len(column)) :] if len(column) < self._most_bars else []
        if earlier:
            column[:0] = earlier
            self._columns.pop(key, None)
            self._market = None
        return len(earlier)

    def first_open(self, symbol: str, interval: str) -> Instant | None:
        """When the oldest bar of a series opened."""
        column = self._bars.get((symbol, interval))
        return column[0][0] if column else None

    def add_points(self, kind: PointKind, symbol: str, points: Iterable[tuple[Instant, float]]) -> int:
        """Add values in the order of time; those at or before the newest are ignored. Returns how many were new."""
        key = (kind, symbol)
        column = self._points.setdefault(key, [])
        added = 0
        for at, value in points:
            if not column or at > column[-1][0]:
                column.append((at, value))
                added += 1
        if added:
            del column[:-MOST_POINTS]
            self._series.pop(key, None)
            self._market = None
        return added

    def add_news(self, items: Iterable[NewsItem]) -> None:
        """Add news; an item that is there already is ignored."""
        by_content: dict[tuple[str, str, Instant], NewsItem] = {}
        for item in (*self._news, *items):
            by_content.setdefault((item.source, item.text, item.published_at), item)
        if len(by_content) > len(self._news):
            self._news = sorted(by_content.values(), key=lambda item: item.available_at)[-MOST_NEWS:]
            self._market = None

    def set_events(self, events: Sequence[CalendarEvent]) -> None:
        """Replace the calendar."""
        self._events = tuple(sorted(events, key=lambda event: event.known_at))
        self._market = None

    def last_close(self, symbol: str, interval: str) -> Instant | None:
        """When the newest bar of a series closed."""
        column = self._bars.get((symbol, interval))
        return column[-1][0] + interval_ms(interval) if column else None

    def market(self) -> Market:
        """The market; the same object until something is added."""
        if self._market is None:
            for (symbol, interval), column in self._bars.items():
                if (symbol, interval) not in self._columns:
                    self._columns[symbol, interval] = _bars(symbol, interval, column)
            for (kind, symbol), column in self._points.items():
                if (kind, symbol) not in self._series:
                    self._series[kind, symbol] = _points(symbol, kind, column)
            self._market = Market(
                bars=dict(self._columns), points=dict(self._series), news=tuple(self._news), events=self._events
            )
        return self._market


def _bars(symbol: str, interval: str, column: Sequence[tuple[Instant, float, float, float, float, float]]) -> Bars:
    times = np.array([row[0] for row in column], dtype=np.int64)
    values = np.array([row[1:] for row in column], dtype=np.float64).reshape(len(column), 5)
    return Bars(symbol, interval, interval_ms(interval), times, *(values[:, index].copy() for index in range(5)))


def _points(symbol: str, kind: PointKind, column: Sequence[tuple[Instant, float]]) -> Points:
    times = np.array([at for at, _ in column], dtype=np.int64)
    return Points(symbol, kind, times, np.array([value for _, value in column], dtype=np.float64))
