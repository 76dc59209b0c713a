"""What markets look like as columns: bars and point series, oldest first, one numpy array a column.

A bar is keyed by its open time and becomes available at its close. Columns are shared, never copied, and read-only.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pitboss.core.instant import Instant
from pitboss.core.noun import noun

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
PointKind = Literal["funding", "open_interest", "mark", "oracle"]


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """OHLCV columns of one symbol at one interval. `open_at` rises strictly."""

    symbol: str
    interval: str
    interval_ms: int
    open_at: Ints
    open: Floats
    high: Floats
    low: Floats
    close: Floats
    volume: Floats

    def __len__(self) -> int:
        return len(self.open_at)

    def slice(self, start: int, stop: int) -> "Bars":
        """Bars `start` (inclusive) to `stop` (exclusive), as views on the same memory."""
        return Bars(
            self.symbol,
            self.interval,
            self.interval_ms,
            self.open_at[start:stop],
            self.open[start:stop],
            self.high[start:stop],
            self.low[start:stop],
            self.close[start:stop],
            self.volume[start:stop],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """A value over time: funding rates, open interest, mark or oracle prices. `at` rises strictly.

    For a price series that came as bars the value is the bar's open, which is the price at `at`.
    """

    symbol: str
    kind: PointKind
    at: Ints
    value: Floats

    def __len__(self) -> int:
        return len(self.at)


@noun
class NewsItem:
    """One headline. Text of a stranger: data, never instructions.

    `sentiment` is what the source says of it, −1 to 1; `mood` is counted from its words where the source says nothing.
    """

    published_at: Instant
    available_at: Instant
    source: str
    text: str
    sentiment: float | None = None
    symbols: tuple[str, ...] = ()
    mood: float | None = None


@noun
class CalendarEvent:
    """A scheduled market event and the instant from which it could have been known."""

    scheduled_at: Instant
    known_at: Instant
    kind: str
    title: str
    importance: float = 0.5
    symbols: tuple[str, ...] = ()


@noun
class Unconfirmed(CalendarEvent):
    """An event that was only read out of a headline. `confidence` is how far that can be trusted, from 0 to 1."""

    confidence: float = 0.0


@noun
class Listing:
    """From when to when a venue lists a symbol; None where it always did, or still does.

    `known_at` is when the end was announced; None means that it was known only when it came.
    """

    symbol: str
    listed_at: Instant | None = None
    delisted_at: Instant | None = None
    known_at: Instant | None = None

    def covers(self, at: Instant) -> bool:
        """Whether the symbol is listed at an instant."""
        begun = self.listed_at is None or self.listed_at <= at
        return begun and (self.delisted_at is None or at < self.delisted_at)

    def ends_at(self, at: Instant) -> Instant | None:
        """The end of the listing, if that is known by an instant."""
        known_at = self.delisted_at if self.known_at is None else self.known_at
        return self.delisted_at if known_at is not None and known_at <= at else None
