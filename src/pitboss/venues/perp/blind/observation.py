"""Market, skill, caps and account of a blind run as the model sees them.

Every anonymised value has the type of the true one, so sections and tools use it unchanged. The market is transformed
once and lazily, only for the columns that are read; values that do not change from tick to tick are cached. Names and
factors come from `agent.blind.mapping`; the memory is in `venues.perp.blind.memory`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, cast, overload

from pitboss.agent.blind.mapping import Alias
from pitboss.core.asof import Market
from pitboss.core.asset import Asset
from pitboss.core.market import Bars, CalendarEvent, Listing, NewsItem, Points
from pitboss.core.money import ONE, exact
from pitboss.core.noun import noun
from pitboss.venues.perp.blind.memory import last_of, memory_of
from pitboss.venues.perp.blind.translation import Translator
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.state import PerpWorld, Position, TradingTerms, WorkingOrder


class AnonymisedValues:
    """Caches of anonymised values, keyed by the identity of the true value.

    A run passes the same objects from tick to tick, so identity is enough to recognise them.
    """

    __slots__ = ("_caps", "_memory", "_terms", "_translator", "market", "observation", "skill")

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self.market = IdentityMemo(lambda market: market_of(translator, market))
        self.skill = IdentityMemo(lambda skill: skill_of(translator, skill))
        self.observation = IdentityMemo(self._anonymise)
        self._terms = IdentityMemo(lambda terms: terms_of(translator, terms))
        self._caps = IdentityMemo(lambda caps: caps_of(translator, caps))
        self._memory = IdentityMemo(lambda memory: memory_of(translator, memory))

    def _anonymise(self, true: Observation) -> Observation:
        shift, translator = self._translator.shift_ms, self._translator
        return Observation(
            at=true.at + shift,
            started_at=true.started_at + shift,
            skill=self.skill(true.skill),
            view=true.view.transformed(self.market, true.view.at + shift),
            world=world_of(translator, true.world),
            terms=self._terms(true.terms),
            limits=self._caps(true.limits),
            accepted_opens=tuple(at + shift for at in true.accepted_opens),
            last=None if true.last is None else last_of(translator, true.last),
            memory=self._memory(true.memory),
            notes=tuple(map(translator.neutraliser.skill, true.notes)),
        )


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


# The market -------------------------------------------------------------------------------------------------------------


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
        symbols=_aliases_of(translator, item.symbols),
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
        symbols=_aliases_of(translator, event.symbols),
    )


def listing_of(listing: Listing, alias: Alias, shift: int) -> Listing:
    """Return the listing period of a symbol, renamed and shifted."""
    moments = (listing.listed_at, listing.delisted_at, listing.known_at)
    return Listing(alias.name, *(None if at is None else at + shift for at in moments))


def _aliases_of(translator: Translator, symbols: Sequence[str]) -> tuple[str, ...]:
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


# The skill, its caps and the venue's terms -----------------------------------------------------------------------------


def skill_of(translator: Translator, skill: PerpSkill) -> PerpSkill:
    """Return the skill with its symbols renamed, and without names and dates in its author's texts."""
    strategy = {
        name: translator.neutraliser.skill(text)
        for name, text in skill.strategy.texts().items()
        if text is not None and name not in ("mode", "leash", "style")
    }
    symbols = tuple(sorted(translator.name(symbol) for symbol in skill.context.symbols))
    return skill.model_copy(
        update={
            "name": translator.neutraliser.skill(skill.name),
            "description": translator.neutraliser.skill(skill.description),
            "strategy": skill.strategy.model_copy(update=strategy),
            "context": skill.context.model_copy(update={"symbols": symbols}),
            "risk": skill.risk.model_copy(update={"allowed_symbols": _allowed(translator, skill.risk.allowed_symbols)}),
        }
    )


def caps_of(translator: Translator, caps: PerpCaps) -> PerpCaps:
    """Return the same limits for the renamed symbols."""
    allowed, unlisted = _allowed(translator, caps.allowed_symbols), _aliases_of(translator, caps.unlisted)
    return replace(caps, symbols=_aliases_of(translator, caps.symbols), allowed_symbols=allowed, unlisted=unlisted)


def _allowed(translator: Translator, symbols: Sequence[str]) -> tuple[str, ...]:
    """Return the symbols that may be opened, renamed.

    A list that names no symbol of the run must not become empty, because an empty list allows every symbol.
    """
    return _aliases_of(translator, symbols) or (("OTHER",) if symbols else ())


def terms_of(translator: Translator, terms: TradingTerms) -> TradingTerms:
    """Return the same costs and tiers; lots are scaled with the sizes."""
    aliases = translator.by_symbol
    assets = {
        aliases[symbol].name: AnonymisedAsset(
            aliases[symbol].name,
            asset.size_decimals,
            asset.max_leverage,
            asset.tiers,
            aliases[symbol].price,
            aliases[symbol].size,
        )
        for symbol, asset in terms.assets.items()
        if symbol in aliases
    }
    return replace(terms, assets=assets)


@noun
class AnonymisedAsset(Asset):
    """An asset whose lot and price steps are the true ones, scaled."""

    price_factor: Decimal = ONE
    size_factor: Decimal = ONE

    @property
    def lot(self) -> Decimal:
        """Smallest size step."""
        return ONE.scaleb(-self.size_decimals) * self.size_factor

    @exact
    def round_price(self, price: Decimal, up: bool) -> Decimal:
        """Round a price as the venue would, in anonymised prices."""
        return Asset.round_price(self, price * self.size_factor, up) * self.price_factor


# The account ------------------------------------------------------------------------------------------------------------


@exact
def world_of(translator: Translator, world: PerpWorld) -> PerpWorld:
    """Return the account with names, times, prices and sizes anonymised; cash, costs and equity are unchanged."""
    aliases, shift = translator.by_symbol, translator.shift_ms
    positions = {
        aliases[symbol].name: position_of(translator, position, aliases[symbol])
        for symbol, position in world.positions.items()
    }
    return replace(
        world,
        day=world.day + 7 * translator.weeks,
        positions=positions,
        orders=tuple(order_of(translator, order, aliases[order.symbol]) for order in world.orders),
        leverage={aliases[symbol].name: leverage for symbol, leverage in world.leverage.items()},
        marks={aliases[symbol].name: mark * aliases[symbol].price for symbol, mark in world.marks.items()},
        marked_at={aliases[symbol].name: at + shift for symbol, at in world.marked_at.items()},
    )


def position_of(translator: Translator, position: Position, alias: Alias) -> Position:
    """Return a position, anonymised: its cost is money and stays, so the entry price scales inversely to the size."""
    return replace(
        position,
        symbol=alias.name,
        size=position.size * alias.size,
        opened_at=position.opened_at + translator.shift_ms,
        stop=_times(position.stop, alias.price),
        take_profit=_times(position.take_profit, alias.price),
        thesis=translator.own(position.thesis),
    )


def order_of(translator: Translator, order: WorkingOrder, alias: Alias) -> WorkingOrder:
    """Return a working order, anonymised."""
    shift = translator.shift_ms
    return replace(
        order,
        symbol=alias.name,
        size=order.size * alias.size,
        submitted_at=order.submitted_at + shift,
        active_from=order.active_from + shift,
        limit=_times(order.limit, alias.price),
        stop=_times(order.stop, alias.price),
        take_profit=_times(order.take_profit, alias.price),
        thesis=translator.own(order.thesis),
    )


def _times(value: Decimal | None, factor: Decimal) -> Decimal | None:
    return None if value is None else value * factor
