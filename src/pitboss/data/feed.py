"""From the lake to a run: its base interval, the check for gaps, the market it reads, and the digest of its data.

The market holds past and future; an agent gets only as-of views of it. The caller chooses symbols and intervals.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain
from typing import Any

import numpy as np

from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, INTERVALS, Instant, interval_ms, iso
from pitboss.core.market import Bars, CalendarEvent, NewsItem, Points
from pitboss.core.order_book import Books
from pitboss.core.suggestion import suggestion
from pitboss.data.books import hash_books
from pitboss.data.lake import Lake
from pitboss.data.listings import late_base_interval, required_span, run_listings
from pitboss.data.news_latency import Delay, Latency, arrivals
from pitboss.data.resample import resample
from pitboss.data.sentiment import with_mood
from pitboss.data.series import POINT_KINDS
from pitboss.data.synthetic_marker import venue_folder

MAX_GAP = 12
DEFAULT_VENUE = "hyperliquid"
"""The data venue where nothing else decides."""
# the mood is computed from the text and is not part of the data
_NEWS_FIELDS = tuple(field for field in fields(NewsItem) if field.name != "mood")


class LazyBars(Mapping[tuple[str, str], Bars]):
    """Bars by (symbol, interval), read or resampled at the first access and then cached.

    Contains every interval that an imported one divides, so that tools may use intervals that the run did not request.
    """

    def __init__(self, lake: Lake, venue: str, symbols: Iterable[str], from_at: Instant | None, to_at: Instant) -> None:
        self._lake = lake
        self._venue = venue
        self._from_at = from_at
        self._to_at = to_at
        self._imported = {symbol: lake.intervals(venue, symbol) for symbol in sorted(set(symbols))}
        self._bars: dict[tuple[str, str], Bars] = {}
        self._stored_bars: dict[tuple[str, str], Bars] = {}

    def __getitem__(self, key: tuple[str, str]) -> Bars:
        bars = self._bars.get(key)
        if bars is None:
            if key not in self:
                raise KeyError(key)
            bars = self._bars[key] = self._build(*key)
        return bars

    def get(self, key: tuple[str, str], default: Any = None) -> Any:
        """The same as that of every mapping, at a third of its cost: policies call it at every tick."""
        bars = self._bars.get(key)
        return Mapping.get(self, key, default) if bars is None else bars

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, tuple) or len(key) != 2 or key[1] not in INTERVALS:
            return False
        return any(INTERVALS[key[1]] % INTERVALS[source] == 0 for source in self._imported.get(key[0], ()))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return (key for symbol in self._imported for interval in INTERVALS if (key := (symbol, interval)) in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _build(self, symbol: str, interval: str) -> Bars:
        length = interval_ms(interval)
        imported = self._imported[symbol]
        if interval in imported and self._covers(symbol, interval, length):
            return self._stored(symbol, interval)
        sources = [source for source in imported if source != interval and length % INTERVALS[source] == 0]
        covering = [source for source in sources if self._covers(symbol, source, length)]
        if covering:
            return resample(self._stored(symbol, covering[0]), interval)
        # nothing covers the span: the bars that exist are used; the gap check protects the base bars of a run
        return (
            self._stored(symbol, interval)
            if interval in imported
            else resample(self._stored(symbol, sources[0]), interval)
        )

    def _covers(self, symbol: str, source: str, length: int) -> bool:
        bars = self._stored(symbol, source)
        if not len(bars):
            return False
        begins = self._from_at is None or int(bars.open_at[0]) <= self._from_at
        return begins and int(bars.open_at[-1]) + bars.interval_ms >= self._to_at - self._to_at % length

    def _stored(self, symbol: str, interval: str) -> Bars:
        key = (symbol, interval)
        if key not in self._stored_bars:
            bars = self._lake.bars(self._venue, symbol, interval, self._to_at)
            if bars is None:
                raise UserError(f"no {interval} bars of {symbol}", "see `pitboss data list`")
            self._stored_bars[key] = bars
        return self._stored_bars[key]


def load_market(
    lake: Lake,
    venue: str,
    symbols: Iterable[str],
    intervals_needed: Iterable[str],
    to_at: Instant,
    news_latency_ms: int = 0,
    from_at: Instant | None = None,
    with_news: bool = True,
    news_latency: Latency | None = None,
    extracted: bool = False,
) -> Market:
    """All data of the symbols up to `to_at`: bars that open before it, values, news and events known by it.

    Funding is paid in the hour of its timestamp, so the rows of an hour that begins before `to_at` are all included.
    With `from_at` an imported interval is used only if it covers [from, to); else it is resampled from a finer one.
    `with_news=False` skips news. `news_latency` is a latency that differs between items; `extracted` adds the events
    extracted from headlines.
    """
    names = sorted(set(symbols))
    check_symbols(lake, venue, names)
    bars = LazyBars(lake, venue, names, from_at, to_at)
    for interval in intervals_needed:
        for symbol in names:
            interval_ms(interval)
            if (symbol, interval) not in bars:
                raise UserError(
                    f"no bars of {symbol} from which {interval} can be built", _covered(lake, venue, [symbol])
                )
            bars[symbol, interval]
    points: dict[tuple[str, str], Points] = {}
    for kind in POINT_KINDS:
        for symbol in names:
            values = lake.points(kind, venue, symbol, funding_until(to_at) if kind == "funding" else to_at)
            if values is not None:
                points[kind, symbol] = values
    latency = news_latency or Latency(Delay(news_latency_ms, news_latency_ms))
    news = load_news(lake, venue, to_at, latency) if with_news else []
    events = load_events(lake, venue, to_at)
    if extracted:
        events = sorted([*events, *_extracted(lake, venue, to_at, latency)], key=_sort_key)
    return Market(bars, points, news, events)


def funding_until(to_at: Instant) -> Instant:
    """The last instant at which a funding row can be stamped that is due before `to_at`, or known by it."""
    return max(to_at, -(-to_at // HOUR_MS) * HOUR_MS - 1)


def with_listings(
    market: Market, lake: Lake, venue: str, base: str, from_at: Instant, to_at: Instant, max_gap: int = MAX_GAP
) -> Market:
    """The market of a run with its listings; the base bars of a symbol must have no long gap while it is listed."""
    symbols = sorted({symbol for symbol, _ in market.bars})
    bars = {symbol: market.bars[symbol, base] for symbol in symbols}
    listings = run_listings(lake.listings(venue), bars, from_at, to_at, max_gap)
    any_listed = False
    for symbol, column in bars.items():
        begins, ends = required_span(listings.get(symbol), column.interval_ms, from_at, to_at)
        if begins < ends:
            any_listed = True
            check_gaps(column, begins, ends, max_gap)
    if not any_listed:
        raise UserError(
            f"{', '.join(symbols)} {'is' if len(symbols) == 1 else 'are'} not listed between {iso(from_at)} and {iso(to_at)}",
            "choose another range; see the imported listings",
        )
    return replace(market, listings=listings) if listings else market


def check_symbols(lake: Lake, venue: str, symbols: Iterable[str]) -> None:
    """Refuse symbols without bars, with the nearest symbol that has some."""
    for symbol in symbols:
        if not lake.intervals(venue, symbol):
            imported, venues = lake.symbols(venue), lake.venues()
            if venues and venue not in venues:
                raise UserError(f"there is no data of venue {venue!r}", suggestion(venue, venues, "venues with data:"))
            hint = suggestion(symbol, imported, "import it, or change the symbols of the skill; imported are")
            hint = hint or "import some with `pitboss data import PATH`, or generate some with `pitboss data demo`"
            raise UserError(f"no bars of {symbol} for venue {venue}", hint)


def base_intervals(
    lake: Lake,
    venue: str,
    symbols: Iterable[str],
    tick_ms: int,
    from_at: Instant,
    to_at: Instant,
    max_gap: int = MAX_GAP,
    requested: str = "",
) -> Iterator[str]:
    """The intervals that divide the tick period and whose bars span [from, to) for all symbols, finest first.

    If there is none, one that spans the part of the range in which each symbol is listed. With `requested`, that one only.
    """
    if to_at <= from_at:
        raise UserError(f"the range ends ({iso(to_at)}) before it begins ({iso(from_at)})", "swap --from and --to")
    names = sorted(set(symbols))
    check_symbols(lake, venue, names)
    # Each interval costs a read of its files, and the finest is almost always the one that is used: they are looked at one by one.
    fitting = (
        interval
        for interval, length in INTERVALS.items()
        if tick_ms % length == 0 and all(_spans(lake, venue, symbol, interval, from_at, to_at) for symbol in names)
    )
    finest = next(fitting, None) or late_base_interval(lake, venue, names, tick_ms, from_at, to_at, max_gap)
    if finest is not None:
        intervals = chain([finest], fitting)
        if not requested:
            return intervals
        if requested in intervals:
            return iter([requested])
    lengths = {requested: INTERVALS[requested]} if requested else INTERVALS
    lacking = [
        symbol
        for symbol in names
        if not any(
            tick_ms % length == 0 and _spans(lake, venue, symbol, interval, from_at, to_at)
            for interval, length in lengths.items()
        )
    ]
    raise UserError(
        f"no bars {f'of {requested} ' if requested else ''}that fit the schedule cover"
        f" {iso(from_at)} to {iso(to_at)} for {', '.join(lacking or names)}",
        _covered(lake, venue, lacking or names),
    )


def check_gaps(bars: Bars, from_at: Instant, to_at: Instant, max_gap: int = MAX_GAP) -> None:
    """Refuse a gap of more than `max_gap` bars inside [from, to)."""
    step = bars.interval_ms
    first = -(-from_at // step) * step
    end = -(-to_at // step) * step  # one step after the last bar that opens before `to`
    low, high = np.searchsorted(bars.open_at, [from_at, to_at], side="left")
    edges = np.concatenate(([first - step], bars.open_at[low:high], [end]))
    missing = np.diff(edges) // step - 1
    holes = np.flatnonzero(missing > max_gap)
    if len(holes):
        hole = int(holes[0])
        begins, ends = int(edges[hole]) + step, int(edges[hole + 1])
        raise UserError(
            f"{bars.symbol}: {int(missing[hole])} bars of {bars.interval} are missing"
            f" from {iso(begins)} to {iso(ends)} (at most {max_gap} in a row may be)",
            "choose a range without the hole, or import the missing bars",
        )


def data_digest(
    market: Market,
    symbols: Iterable[str],
    intervals: Iterable[str],
    news: bool = True,
    events: bool = True,
    books: Mapping[str, Books] | None = None,
) -> str:
    """SHA-256 of the columns a run reads. The order in which symbols and intervals are listed does not matter."""
    total = hashlib.sha256()
    names = sorted(set(symbols))
    for symbol in names:
        for interval in sorted(set(intervals), key=interval_ms):
            bars = market.bars[symbol, interval]
            _hash(total, ["bars", symbol, interval, len(bars)])
            total.update(bars.open_at.astype("<i8").tobytes())
            for column in (bars.open, bars.high, bars.low, bars.close, bars.volume):
                total.update(column.astype("<f8").tobytes())
        for kind in POINT_KINDS:
            points = market.points.get((kind, symbol))
            if points is not None:
                _hash(total, [kind, symbol, len(points)])
                total.update(points.at.astype("<i8").tobytes())
                total.update(points.value.astype("<f8").tobytes())
    _hash(total, ["news", *(_hashed_fields(item) for item in (market.news if news else ()))])
    _hash(total, ["events", *(market.events if events else ())])
    if market.listings:
        _hash(total, ["listings", *(listing for _, listing in sorted(market.listings.items()))])
    for symbol, snapshots in sorted((books or {}).items()):
        _hash(total, ["l2", symbol, len(snapshots)])
        hash_books(total, snapshots)
    return total.hexdigest()


def _hashed_fields(item: NewsItem) -> dict[str, object]:
    return {field.name: getattr(item, field.name) for field in _NEWS_FIELDS}


def _hash(total: "hashlib._Hash", value: object) -> None:
    total.update(codec.dumps(value))
    total.update(b"\n")


def load_news(lake: Lake, venue: str, to_at: Instant, latency: Latency) -> list[NewsItem]:
    """News that arrived by an instant, of all venues that share news with this one, in the order of arrival."""
    items = dict.fromkeys(item for each in _shared_venues(lake, "news", venue) for item in lake.news(each, to_at))
    return with_mood(arrivals(items, latency, to_at))


def load_events(lake: Lake, venue: str, to_at: Instant) -> list[CalendarEvent]:
    """Events known by an instant, of all venues that share a calendar with this one."""
    events = {event for each in _shared_venues(lake, "events", venue) for event in lake.events(each, to_at)}
    return sorted(events, key=_sort_key)


def _extracted(lake: Lake, venue: str, to_at: Instant, latency: Latency) -> list[CalendarEvent]:
    """Events extracted from headlines, each known from the arrival of its headline in this run."""
    return [
        replace(event, known_at=arrival.available_at)
        for each in _shared_venues(lake, "extracted", venue)
        for item, event in lake.extracted(each)
        for arrival in arrivals([item], latency, to_at)
    ]


def _sort_key(event: CalendarEvent) -> tuple[object, ...]:
    return event.known_at, event.scheduled_at, event.kind, event.title, event.symbols


def _shared_venues(lake: Lake, kind: str, venue: str) -> list[str]:
    # news and calendars belong to no exchange, but generated and real markets must not share them
    if lake.is_synthetic(venue):
        return [venue]
    return [each for each in lake.venues(kind) if not lake.is_synthetic(each)]


def _spans(lake: Lake, venue: str, symbol: str, interval: str, from_at: Instant, to_at: Instant) -> bool:
    extent = lake.extent(venue, symbol, interval)
    return extent is not None and extent[0] <= from_at and extent[1] + interval_ms(interval) >= to_at


def _covered(lake: Lake, venue: str, symbols: list[str]) -> str:
    spans: list[str] = []
    for symbol in symbols:
        for interval in lake.intervals(venue, symbol):
            extent = lake.extent(venue, symbol, interval)
            if extent:
                spans.append(f"{symbol} {interval} {iso(extent[0])} to {iso(extent[1] + interval_ms(interval))}")
    listed = "; ".join(spans[:8]) + ("; …" if len(spans) > 8 else "")
    return f"imported: {listed}" if spans else "see `pitboss data list`"


def choose_venue(requested: str, lake: Lake, symbols: Sequence[str]) -> str:
    """The requested data venue; if none is requested, the one with bars of the most symbols, else the default one.

    A text that cannot be the name of a venue is refused: a name is a part of paths.

    A venue that lacks one of the symbols is chosen too, so that the error names the missing symbol.
    """
    if requested:
        venue_folder(lake.root, "bars", requested)  # refuses a text that is no name
        return requested
    counts = {venue: sum(bool(lake.intervals(venue, symbol)) for symbol in symbols) for venue in lake.venues("bars")}
    most = max(counts.values(), default=0)
    candidates = [venue for venue, count in counts.items() if count == most]
    return candidates[0] if most and len(candidates) == 1 else DEFAULT_VENUE
