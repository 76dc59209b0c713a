"""Two copies of the evidence that agree up to an instant: one that ends there, and one with a changed future.

Availability decides: a bar is known at its close, a value at its time, a news item at its arrival, an event at its
announcement, a listing at its beginning and its end at the announcement, a recording when it was made, a decision after
its tick. The changes are chosen to expose code that goes by another time: news published long before it arrives, an
unannounced event of the next hour, a value one millisecond away, a bar that is still forming, a symbol that is not listed
yet.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.instant import HOUR_MS, MINUTE_MS, Instant
from pitboss.core.market import Bars, CalendarEvent, Listing, NewsItem, Points
from pitboss.core.snapshot import Record
from pitboss.venues.perp.audit.evidence import Evidence, LazyColumns, MemoryRecordings

FUTURE_ITEMS = 64
"""Number of bars and values of the changed future; more would only cost time."""
UNLISTED = "NEVERLISTED"
NEVER: Instant = 253_402_300_799_999
_KEPT_NEWS = 12


def without_future(evidence: Evidence, at: Instant, market_type: type[Market] = Market) -> Evidence:
    """A copy without everything that becomes known after `at`."""
    source = evidence.market
    market = _tracked_type(market_type)(
        LazyColumns(source.bars, lambda key, bars: bars.slice(0, closed_count(bars, at))),
        LazyColumns(source.points, lambda key, points: _points_until(points, at)),
        _arrived(source.news, at),
        _announced(source.events, at),
        {symbol: _as_known(listing, at) for symbol, listing in source.listings.items()},
    )
    prior, _ = evidence.split(at)
    return Evidence(market, prior, MemoryRecordings(evidence.recordings.all[: evidence.recordings.count_known(at)]))


def with_changed_future(
    evidence: Evidence,
    at: Instant,
    symbols: Sequence[str],
    interval: str,
    dice: Generator,
    market_type: type[Market] = Market,
) -> Evidence:
    """A copy in which everything that becomes known after `at` is changed and more is added."""
    source = evidence.market
    unlisted_bars = _walk(UNLISTED, interval, source.bars[symbols[0], interval].interval_ms, at, 100.0, dice)
    empty = Points(UNLISTED, "funding", np.empty(0, np.int64), np.empty(0))
    market = _tracked_type(market_type)(
        LazyColumns(source.bars, lambda key, bars: changed_bars(bars, at, dice), {(UNLISTED, interval): unlisted_bars}),
        LazyColumns(
            source.points,
            lambda key, points: _changed_points(points, at, dice),
            {("funding", UNLISTED): _changed_points(empty, at, dice)},
        ),
        _changed_news(source.news, at, symbols, dice),
        _changed_events(source.events, at, symbols, dice),
        {symbol: _changed_listing(listing, at, dice) for symbol, listing in source.listings.items()},
    )
    prior, later = evidence.split(at)
    changed = [_changed_record(record) for record in later]
    return Evidence(market, [*prior, *changed], _changed_recordings(evidence.recordings, at))


def closed_count(bars: Bars, at: Instant) -> int:
    """How many bars have closed by an instant."""
    return int(bars.open_at.searchsorted(at - bars.interval_ms, side="right"))


# Markets --------------------------------------------------------------------------------------------------------------


def _tracked_type(market_type: type[Market]) -> type[Market]:
    """A subclass of the market type that supports weak references, to detect references that are kept."""
    return _TRACKED.setdefault(market_type, type("Copied", (market_type,), {}))


_TRACKED: dict[type[Market], type[Market]] = {}


def changed_bars(bars: Bars, at: Instant, dice: Generator) -> Bars:
    """The closed bars, followed by a random walk from the bar that is still forming on."""
    count = closed_count(bars, at)
    price = float(bars.close[count - 1]) if count else float(bars.open[0]) if len(bars) else 100.0
    ahead = _walk(bars.symbol, bars.interval, bars.interval_ms, at, price, dice)
    columns = ("open_at", "open", "high", "low", "close", "volume")
    joined = [np.concatenate((getattr(bars, name)[:count], getattr(ahead, name))) for name in columns]
    return Bars(bars.symbol, bars.interval, bars.interval_ms, *joined)


def _walk(symbol: str, interval: str, step: int, at: Instant, price: float, dice: Generator) -> Bars:
    first = (at // step) * step  # the bar that contains `at`; its close is later
    open_at = first + step * np.arange(FUTURE_ITEMS, dtype=np.int64)
    close = price * dice.uniform(0.4, 2.5) * np.exp(np.cumsum(dice.normal(0.0, 0.05, FUTURE_ITEMS)))
    opened = np.append(price * dice.uniform(0.9, 1.1), close[:-1])
    high, low = np.maximum(opened, close) * 1.02, np.minimum(opened, close) * 0.98
    return Bars(symbol, interval, step, open_at, opened, high, low, close, dice.uniform(1, 1e6, FUTURE_ITEMS))


def _points_until(points: Points, at: Instant) -> Points:
    stop = int(points.at.searchsorted(at, side="right"))
    return Points(points.symbol, points.kind, points.at[:stop], points.value[:stop])


def _changed_points(points: Points, at: Instant, dice: Generator) -> Points:
    past = _points_until(points, at)
    usual = float(past.value[-1]) if len(past) else 1.0
    # Funding belongs to the hour of its timestamp, so one inside the hour of `at` would change the past.
    first = -(-at // HOUR_MS) * HOUR_MS if points.kind == "funding" else at
    times = first + 1 + HOUR_MS * np.arange(FUTURE_ITEMS, dtype=np.int64)
    values = (usual or 1e-5) * dice.uniform(-5, 5, FUTURE_ITEMS)
    return Points(points.symbol, points.kind, np.concatenate((past.at, times)), np.concatenate((past.value, values)))


def _arrived(news: Sequence[NewsItem], at: Instant) -> Sequence[NewsItem]:
    return news[: bisect_right(news, at, key=lambda item: item.available_at)]


def _announced(events: Sequence[CalendarEvent], at: Instant) -> Sequence[CalendarEvent]:
    return events[: bisect_right(events, at, key=lambda event: event.known_at)]


def _changed_news(news: Sequence[NewsItem], at: Instant, symbols: Sequence[str], dice: Generator) -> Sequence[NewsItem]:
    past = _arrived(news, at)
    planted = [
        NewsItem(
            at - int(dice.integers(1, 90)) * MINUTE_MS,
            at + 1 + index,
            "audit",
            f"{symbol} planted headline {int(dice.integers(1 << 30))}",
            float(dice.uniform(-1, 1)),
            (symbol,),
        )
        for index, symbol in enumerate(symbols)
    ]
    for item in news[len(past) : len(past) + _KEPT_NEWS]:
        text = f"{item.text[::-1]} {int(dice.integers(1 << 30))}"
        planted.append(replace(item, published_at=at - MINUTE_MS, text=text, sentiment=float(dice.uniform(-1, 1))))
    return [*past, *sorted(planted, key=lambda item: item.available_at)]


def _changed_events(
    events: Sequence[CalendarEvent], at: Instant, symbols: Sequence[str], dice: Generator
) -> Sequence[CalendarEvent]:
    past = _announced(events, at)
    planted = [
        CalendarEvent(
            at + HOUR_MS // 2, at + 1, "planted", f"meeting {int(dice.integers(1 << 30))}", 1.0, tuple(symbols)
        )
    ]
    for event in events[len(past) : len(past) + _KEPT_NEWS]:
        planted.append(replace(event, scheduled_at=at + int(dice.integers(1, 90)) * MINUTE_MS, importance=1.0))
    return [*past, *sorted(planted, key=lambda event: event.known_at)]


def _as_known(listing: Listing, at: Instant) -> Listing:
    """A listing with only what is known by an instant: an unknown beginning becomes `NEVER`, an unknown end None."""
    has_begun = listing.listed_at is None or listing.listed_at <= at
    has_ended = listing.delisted_at is not None and listing.delisted_at <= at
    end_is_known = has_ended or listing.ends_at(at) is not None
    return Listing(
        listing.symbol,
        listing.listed_at if has_begun else NEVER,
        listing.delisted_at if end_is_known else None,
        listing.known_at if end_is_known else None,
    )


def _changed_listing(listing: Listing, at: Instant, dice: Generator) -> Listing:
    """The listing as known by an instant; what is unknown begins or ends shortly after it."""
    current = _as_known(listing, at)
    listed_at = at + int(dice.integers(1, 90)) * MINUTE_MS if current.listed_at == NEVER else current.listed_at
    if current.delisted_at is not None:
        return replace(current, listed_at=listed_at)
    return Listing(listing.symbol, listed_at, (listed_at if listed_at and listed_at > at else at) + MINUTE_MS, at + 1)


# Records and recordings -----------------------------------------------------------------------------------------------


def _changed_record(record: Record) -> Record:
    body, extra = codec.loads(record.covered), codec.loads(record.extra)
    body["text"] = "planted: another decision than the one that was made"
    body["proposals"], body["verdicts"], body["steps"], body["receipts"] = [], [], [], []
    body["before"] = {**body["before"], "equity_usd": "123456.78"}
    extra["cost_usd"] = "9.99"
    return replace(record, covered=codec.dumps(body), extra=codec.dumps(extra), digest="f" * 64)


def _changed_recordings(recordings: MemoryRecordings, at: Instant) -> MemoryRecordings:
    count = recordings.count_known(at)
    later = [
        replace(recording, result=f"planted {recording.result[::-1]}", failed=not recording.failed)
        for recording in recordings.all[count : count + FUTURE_ITEMS]
    ]
    planted = [
        replace(recording, known_at=at + 1, result="planted: recorded just after")
        for recording in recordings.questions[:FUTURE_ITEMS]
    ]
    return MemoryRecordings([*recordings.all[:count], *planted, *later])
