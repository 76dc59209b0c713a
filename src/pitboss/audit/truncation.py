"""Two copies of everything that is held, both the same up to an instant: one that ends there, one that goes on in lies.

What counts is availability: a bar is known at its close, a value at its time, news when it arrived, an event when it was
announced, a listing when it begins, its end when it was announced, a recording when it was made, a decision after its tick. The lies are chosen so that they show at once where
somebody goes by another time: news published long before it arrives, an event of the next hour that nobody has heard of,
a value one millisecond away, a bar that is still forming, a symbol that is not listed yet.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.audit.evidence import Evidence, HeldRecordings, Lazy
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.instant import HOUR_MS, MINUTE_MS, Instant
from pitboss.core.market import Bars, CalendarEvent, Listing, NewsItem, Points
from pitboss.core.snapshot import Record

AHEAD = 64
"""Bars and values of the changed future: more would only cost time."""
UNLISTED = "NEVERLISTED"
NEVER: Instant = 253_402_300_799_999
_KEPT_NEWS = 12


def deleted(held: Evidence, at: Instant, market_type: type[Market] = Market) -> Evidence:
    """A copy without anything that becomes known after `at`."""
    whole = held.market
    market = _new(market_type)(
        Lazy(whole.bars, lambda key, bars: bars.slice(0, closed(bars, at))),
        Lazy(whole.points, lambda key, points: _known(points, at)),
        _arrived(whole.news, at),
        _announced(whole.events, at),
        {symbol: _as_known(one, at) for symbol, one in whole.listings.items()},
    )
    prior, _ = held.split(at)
    return Evidence(market, prior, HeldRecordings(held.recordings.all[: held.recordings.known(at)]))


def corrupted(
    held: Evidence,
    at: Instant,
    symbols: Sequence[str],
    interval: str,
    dice: Generator,
    market_type: type[Market] = Market,
) -> Evidence:
    """A copy in which everything that becomes known after `at` is something else, and there is more of it."""
    whole = held.market
    fresh = _walk(UNLISTED, interval, whole.bars[symbols[0], interval].interval_ms, at, 100.0, dice)
    empty = Points(UNLISTED, "funding", np.empty(0, np.int64), np.empty(0))
    market = _new(market_type)(
        Lazy(whole.bars, lambda key, bars: spoil(bars, at, dice), {(UNLISTED, interval): fresh}),
        Lazy(
            whole.points,
            lambda key, points: _spoil_points(points, at, dice),
            {("funding", UNLISTED): _spoil_points(empty, at, dice)},
        ),
        _spoil_news(whole.news, at, symbols, dice),
        _spoil_events(whole.events, at, symbols, dice),
        {symbol: _spoil_listing(one, at, dice) for symbol, one in whole.listings.items()},
    )
    prior, later = held.split(at)
    changed = [_spoil_record(record) for record in later]
    return Evidence(market, [*prior, *changed], _spoil_recordings(held.recordings, at))


def closed(bars: Bars, at: Instant) -> int:
    """How many bars have closed by an instant."""
    return int(bars.open_at.searchsorted(at - bars.interval_ms, side="right"))


# Markets --------------------------------------------------------------------------------------------------------------


def _new(market_type: type[Market]) -> type[Market]:
    """The same kind of market, but one that can be asked whether somebody still holds on to it."""
    return _TRACKED.setdefault(market_type, type("Copied", (market_type,), {}))


_TRACKED: dict[type[Market], type[Market]] = {}


def spoil(bars: Bars, at: Instant, dice: Generator) -> Bars:
    """The closed bars, and a walk in other prices from the one that is still forming on."""
    count = closed(bars, at)
    price = float(bars.close[count - 1]) if count else float(bars.open[0]) if len(bars) else 100.0
    ahead = _walk(bars.symbol, bars.interval, bars.interval_ms, at, price, dice)
    columns = ("open_at", "open", "high", "low", "close", "volume")
    joined = [np.concatenate((getattr(bars, name)[:count], getattr(ahead, name))) for name in columns]
    return Bars(bars.symbol, bars.interval, bars.interval_ms, *joined)


def _walk(symbol: str, interval: str, step: int, at: Instant, price: float, dice: Generator) -> Bars:
    first = (at // step) * step  # the bar that holds `at`: its close is later
    open_at = first + step * np.arange(AHEAD, dtype=np.int64)
    close = price * dice.uniform(0.4, 2.5) * np.exp(np.cumsum(dice.normal(0.0, 0.05, AHEAD)))
    opened = np.append(price * dice.uniform(0.9, 1.1), close[:-1])
    high, low = np.maximum(opened, close) * 1.02, np.minimum(opened, close) * 0.98
    return Bars(symbol, interval, step, open_at, opened, high, low, close, dice.uniform(1, 1e6, AHEAD))


def _known(points: Points, at: Instant) -> Points:
    stop = int(points.at.searchsorted(at, side="right"))
    return Points(points.symbol, points.kind, points.at[:stop], points.value[:stop])


def _spoil_points(points: Points, at: Instant, dice: Generator) -> Points:
    known = _known(points, at)
    usual = float(known.value[-1]) if len(known) else 1.0
    # funding belongs to the hour that its stamp lies in, so a stamp inside the hour of `at` would be a lie about the past
    first = -(-at // HOUR_MS) * HOUR_MS if points.kind == "funding" else at
    times = first + 1 + HOUR_MS * np.arange(AHEAD, dtype=np.int64)
    values = (usual or 1e-5) * dice.uniform(-5, 5, AHEAD)
    return Points(points.symbol, points.kind, np.concatenate((known.at, times)), np.concatenate((known.value, values)))


def _arrived(news: Sequence[NewsItem], at: Instant) -> Sequence[NewsItem]:
    return news[: bisect_right(news, at, key=lambda item: item.available_at)]


def _announced(events: Sequence[CalendarEvent], at: Instant) -> Sequence[CalendarEvent]:
    return events[: bisect_right(events, at, key=lambda event: event.known_at)]


def _spoil_news(news: Sequence[NewsItem], at: Instant, symbols: Sequence[str], dice: Generator) -> Sequence[NewsItem]:
    known = _arrived(news, at)
    planted = [
        NewsItem(
            at - int(dice.integers(1, 90)) * MINUTE_MS,
            at + 1 + place,
            "audit",
            f"{symbol} planted headline {int(dice.integers(1 << 30))}",
            float(dice.uniform(-1, 1)),
            (symbol,),
        )
        for place, symbol in enumerate(symbols)
    ]
    for item in news[len(known) : len(known) + _KEPT_NEWS]:
        text = f"{item.text[::-1]} {int(dice.integers(1 << 30))}"
        planted.append(replace(item, published_at=at - MINUTE_MS, text=text, sentiment=float(dice.uniform(-1, 1))))
    return [*known, *sorted(planted, key=lambda item: item.available_at)]


def _spoil_events(
    events: Sequence[CalendarEvent], at: Instant, symbols: Sequence[str], dice: Generator
) -> Sequence[CalendarEvent]:
    known = _announced(events, at)
    planted = [
        CalendarEvent(
            at + HOUR_MS // 2, at + 1, "planted", f"meeting {int(dice.integers(1 << 30))}", 1.0, tuple(symbols)
        )
    ]
    for event in events[len(known) : len(known) + _KEPT_NEWS]:
        planted.append(replace(event, scheduled_at=at + int(dice.integers(1, 90)) * MINUTE_MS, importance=1.0))
    return [*known, *sorted(planted, key=lambda event: event.known_at)]


def _as_known(listing: Listing, at: Instant) -> Listing:
    """A listing of which nothing is left that is not known by an instant: a beginning that may never come, no end."""
    begun = listing.listed_at is None or listing.listed_at <= at
    over = listing.delisted_at is not None and listing.delisted_at <= at
    known = over or listing.ends_at(at) is not None
    return Listing(
        listing.symbol,
        listing.listed_at if begun else NEVER,
        listing.delisted_at if known else None,
        listing.known_at if known else None,
    )


def _spoil_listing(listing: Listing, at: Instant, dice: Generator) -> Listing:
    """What is known by an instant, and otherwise a listing that begins or ends at once."""
    known = _as_known(listing, at)
    listed_at = at + int(dice.integers(1, 90)) * MINUTE_MS if known.listed_at == NEVER else known.listed_at
    if known.delisted_at is not None:
        return replace(known, listed_at=listed_at)
    return Listing(listing.symbol, listed_at, (listed_at if listed_at and listed_at > at else at) + MINUTE_MS, at + 1)


# Records and recordings -----------------------------------------------------------------------------------------------


def _spoil_record(record: Record) -> Record:
    body, extra = codec.loads(record.covered), codec.loads(record.extra)
    body["text"] = "planted: another decision than the one that was made"
    body["proposals"], body["verdicts"], body["steps"], body["receipts"] = [], [], [], []
    body["before"] = {**body["before"], "equity_usd": "123456.78"}
    extra["cost_usd"] = "9.99"
    return replace(record, covered=codec.dumps(body), extra=codec.dumps(extra), digest="f" * 64)


def _spoil_recordings(recordings: HeldRecordings, at: Instant) -> HeldRecordings:
    known = recordings.known(at)
    later = [
        replace(one, result=f"planted {one.result[::-1]}", failed=not one.failed)
        for one in recordings.all[known : known + AHEAD]
    ]
    planted = [
        replace(one, known_at=at + 1, result="planted: recorded just after") for one in recordings.questions[:AHEAD]
    ]
    return HeldRecordings([*recordings.all[:known], *planted, *later])
