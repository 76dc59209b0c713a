"""The market of a blind run as the model sees it: other names, other dates, other prices and volumes, neutral news.

Every anonymised value has the type of the true one, so sections and tools use it unchanged. The market is transformed
lazily, only for the columns that are read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, overload

from pitboss.agent.blind.mapping import Alias
from pitboss.agent.blind.translator import Translator
from pitboss.core.asof import Market
from pitboss.core.market import Bars, CalendarEvent, Listing, NewsItem, Points


class IdentityMemo:
    """A cache of a function by the identity of its argument; it holds the newest four results."""

    __slots__ = ("_entries", "_function")

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._entries: list[tuple[Any, Any]] = []

    def __call__(self, argument: Any) -> Any:
        for cached, result in self._entries:
            if cached is argument:
                return result
        result = self._function(argument)
        self._entries = [(argument, result), *self._entries[:3]]
        return result


def market_of(translator: Translator, market: Market) -> Market:
    """Return the market renamed, shifted in time and scaled; data of symbols outside the run is left out."""
    shift, aliases = translator.shift_ms, translator.by_symbol
    return Market(
        bars=_Bars(market.bars, translator),
        points={
            (kind, aliases[symbol].name): points_of(points, aliases[symbol], shift)
            for (kind, symbol), points in market.points.items()
            if symbol in aliases
        },
        news=_LazyNews(market.news, lambda item: news_of(translator, item)),
        events=tuple(event_of(translator, event) for event in market.events),
        listings={
            aliases[symbol].name: listing_of(listing, aliases[symbol], shift)
            for symbol, listing in market.listings.items()
            if symbol in aliases
        },
    )


def bars_of(bars: Bars, alias: Alias, shift: int) -> Bars:
    """Return bars, anonymised; scaling by a power of two changes only the exponent of a float."""
    price, volume = 2.0**alias.price_power, 2.0**alias.volume_power
    return Bars(
        alias.name,
        bars.interval,
        bars.interval_ms,
        _read_only(bars.open_at + shift),
        _read_only(bars.open * price),
        _read_only(bars.high * price),
        _read_only(bars.low * price),
        _read_only(bars.close * price),
        _read_only(bars.volume * volume),
    )


def points_of(points: Points, alias: Alias, shift: int) -> Points:
    """Return a series, anonymised: prices and amounts are scaled, funding rates are ratios and stay."""
    factors = {
        "mark": 2.0**alias.price_power,
        "oracle": 2.0**alias.price_power,
        "open_interest": 2.0**alias.volume_power,
    }
    value = points.value if points.kind == "funding" else _read_only(points.value * factors[points.kind])
    return Points(alias.name, points.kind, _read_only(points.at + shift), value)


def news_of(translator: Translator, item: NewsItem) -> NewsItem:
    """Return a neutralised headline; of its symbols only those that the run trades."""
    shift = translator.shift_ms
    return replace(
        item,
        published_at=item.published_at + shift,
        available_at=item.available_at + shift,
        source=translator.neutraliser.news(item.source),
        text=translator.neutraliser.news(item.text),
        symbols=aliases_of(translator, item.symbols),
    )


def event_of(translator: Translator, event: CalendarEvent) -> CalendarEvent:
    """Return an event at its shifted time; the shift is in whole weeks, so weekday and hour stay."""
    shift = translator.shift_ms
    return replace(
        event,
        scheduled_at=event.scheduled_at + shift,
        known_at=event.known_at + shift,
        kind=translator.neutraliser.news(event.kind),
        title=translator.neutraliser.news(event.title),
        symbols=aliases_of(translator, event.symbols),
    )


def listing_of(listing: Listing, alias: Alias, shift: int) -> Listing:
    """Return the listing period of a symbol, renamed and shifted."""
    moments = (listing.listed_at, listing.delisted_at, listing.known_at)
    return Listing(alias.name, *(None if at is None else at + shift for at in moments))


def aliases_of(translator: Translator, symbols: Sequence[str]) -> tuple[str, ...]:
    """Return the aliases of those symbols that the run trades."""
    return tuple(sorted(translator.names[symbol] for symbol in symbols if symbol in translator.names))


def _read_only(column: Any) -> Any:
    column.flags.writeable = False
    return column


class _Bars(Mapping[tuple[str, str], Bars]):
    """The bars of a market keyed by anonymised names, transformed on first use."""

    def __init__(self, true: Mapping[tuple[str, str], Bars], translator: Translator) -> None:
        self._true, self._shift = true, translator.shift_ms
        self._aliases = {alias.name: alias for alias in translator.aliases}
        self._cache: dict[tuple[str, str], Bars] = {}

    def __getitem__(self, key: tuple[str, str]) -> Bars:
        bars = self._cache.get(key)
        if bars is None:
            alias = self._aliases[key[0]]
            bars = self._cache[key] = bars_of(self._true[alias.symbol, key[1]], alias, self._shift)
        return bars

    def __contains__(self, key: object) -> bool:
        name, interval = cast("tuple[str, str]", key)
        alias = self._aliases.get(name)
        return alias is not None and (alias.symbol, interval) in self._true

    def get(self, key: tuple[str, str], default: Any = None) -> Any:
        """Check by `in`, not by iteration: a lazy source may be able to make a column that it does not list."""
        return self[key] if key in self else default  # noqa: SIM401 – `dict.get` would be this method itself

    def __iter__(self) -> Iterator[tuple[str, str]]:
        names = {alias.symbol: name for name, alias in self._aliases.items()}
        return ((names[symbol], interval) for symbol, interval in self._true if symbol in names)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _LazyNews(Sequence[NewsItem]):
    """News items transformed on first access: a run reads few of all headlines."""

    def __init__(self, true: Sequence[NewsItem], transform: Callable[[NewsItem], NewsItem]) -> None:
        self._true, self._transform = true, transform
        self._cache: dict[int, NewsItem] = {}

    def __len__(self) -> int:
        return len(self._true)

    @overload
    def __getitem__(self, index: int) -> NewsItem: ...
    @overload
    def __getitem__(self, index: slice) -> list[NewsItem]: ...
    def __getitem__(self, index: int | slice) -> NewsItem | list[NewsItem]:
        if isinstance(index, slice):
            return [self._item(each) for each in range(*index.indices(len(self._true)))]
        return self._item(range(len(self._true))[index])

    def _item(self, index: int) -> NewsItem:
        item = self._cache.get(index)
        if item is None:
            item = self._cache[index] = self._transform(self._true[index])
        return item
