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
from pitboss.venues.perp.blind.translation import Cover
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.state import PerpWorld, Position, TradingTerms, WorkingOrder


class AnonymisedValues:
    """Caches of anonymised values, keyed by the identity of the true value.

    A run passes the same objects from tick to tick, so identity is enough to recognise them.
    """

    __slots__ = ("_caps", "_disguise", "_market", "_memory", "_observation", "_skill", "_terms")

    def __init__(self, disguise: Cover) -> None:
        self._disguise = disguise
        self._market = IdentityMemo(lambda market: market_of(disguise, market))
        self._skill = IdentityMemo(lambda skill: skill_of(disguise, skill))
        self._terms = IdentityMemo(lambda terms: terms_of(disguise, terms))
        self._caps = IdentityMemo(lambda caps: caps_of(disguise, caps))
        self._memory = IdentityMemo(lambda memory: memory_of(disguise, memory))
        self._observation = IdentityMemo(self._observed)

    def market(self, market: Market) -> Market:
        """Return the anonymised market."""
        return self._market(market)

    def observation(self, observation: Observation) -> Observation:
        """Return a tick's observation, anonymised."""
        return self._observation(observation)

    def skill(self, skill: PerpSkill) -> PerpSkill:
        """Return the anonymised skill."""
        return self._skill(skill)

    def _observed(self, seen: Observation) -> Observation:
        shift, disguise = self._disguise.shift_ms, self._disguise
        return Observation(
            at=seen.at + shift,
            started_at=seen.started_at + shift,
            skill=self._skill(seen.skill),
            view=seen.view.transformed(self._market, seen.view.at + shift),
            world=world_of(disguise, seen.world),
            terms=self._terms(seen.terms),
            limits=self._caps(seen.limits),
            accepted_opens=tuple(at + shift for at in seen.accepted_opens),
            last=None if seen.last is None else last_of(disguise, seen.last),
            memory=self._memory(seen.memory),
            notes=tuple(map(disguise.words.skill, seen.notes)),
        )


class IdentityMemo:
    """A cache of a function by the identity of its argument; it holds the newest four results."""

    __slots__ = ("_kept", "_make")

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        self._kept: list[tuple[Any, Any]] = []

    def __call__(self, thing: Any) -> Any:
        for known, made in self._kept:
            if known is thing:
                return made
        made = self._make(thing)
        self._kept = [(thing, made), *self._kept[:3]]
        return made


# The market -------------------------------------------------------------------------------------------------------------


def market_of(disguise: Cover, market: Market) -> Market:
    """Return the market renamed, shifted in time and scaled; data of symbols outside the run is left out."""
    shift, known = disguise.shift_ms, disguise.by_symbol
    return Market(
        bars=_Bars(market.bars, disguise),
        points={
            (kind, known[symbol].name): points_of(points, known[symbol], shift)
            for (kind, symbol), points in market.points.items()
            if symbol in known
        },
        news=_Lazy(market.news, lambda item: news_of(disguise, item)),
        events=tuple(event_of(disguise, event) for event in market.events),
        listings={
            known[symbol].name: listing_of(listing, known[symbol], shift)
            for symbol, listing in market.listings.items()
            if symbol in known
        },
    )


def bars_of(bars: Bars, alias: Alias, shift: int) -> Bars:
    """Return bars, anonymised; scaling by a power of two changes only the exponent of a float."""
    price, volume = 2.0**alias.price_power, 2.0**alias.volume_power
    return Bars(
        alias.name,
        bars.interval,
        bars.interval_ms,
        _fixed(bars.open_at + shift),
        _fixed(bars.open * price),
        _fixed(bars.high * price),
        _fixed(bars.low * price),
        _fixed(bars.close * price),
        _fixed(bars.volume * volume),
    )


def points_of(points: Points, alias: Alias, shift: int) -> Points:
    """Return a series, anonymised: prices and amounts are scaled, funding rates are ratios and stay."""
    factors = {
        "mark": 2.0**alias.price_power,
        "oracle": 2.0**alias.price_power,
        "open_interest": 2.0**alias.volume_power,
    }
    value = points.value if points.kind == "funding" else _fixed(points.value * factors[points.kind])
    return Points(alias.name, points.kind, _fixed(points.at + shift), value)


def news_of(disguise: Cover, item: NewsItem) -> NewsItem:
    """Return a headline in neutral words; of its symbols only those that the run trades."""
    shift = disguise.shift_ms
    return replace(
        item,
        published_at=item.published_at + shift,
        available_at=item.available_at + shift,
        source=disguise.words.news(item.source),
        text=disguise.words.news(item.text),
        symbols=_named(disguise, item.symbols),
    )


def event_of(disguise: Cover, event: CalendarEvent) -> CalendarEvent:
    """Return an event at its shifted time; the shift is in whole weeks, so weekday and hour stay."""
    shift = disguise.shift_ms
    return replace(
        event,
        scheduled_at=event.scheduled_at + shift,
        known_at=event.known_at + shift,
        kind=disguise.words.news(event.kind),
        title=disguise.words.news(event.title),
        symbols=_named(disguise, event.symbols),
    )


def listing_of(listing: Listing, alias: Alias, shift: int) -> Listing:
    """Return the listing period of a symbol, renamed and shifted."""
    moments = (listing.listed_at, listing.delisted_at, listing.known_at)
    return Listing(alias.name, *(None if at is None else at + shift for at in moments))


def _named(disguise: Cover, symbols: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(disguise.names[symbol] for symbol in symbols if symbol in disguise.names))


def _fixed(column: Any) -> Any:
    column.flags.writeable = False
    return column


class _Bars(Mapping[tuple[str, str], Bars]):
    """The bars of a market keyed by anonymised names, transformed on first use."""

    def __init__(self, true: Mapping[tuple[str, str], Bars], disguise: Cover) -> None:
        self._true, self._shift = true, disguise.shift_ms
        self._aliases = {alias.name: alias for alias in disguise.aliases}
        self._made: dict[tuple[str, str], Bars] = {}

    def __getitem__(self, key: tuple[str, str]) -> Bars:
        made = self._made.get(key)
        if made is None:
            alias = self._aliases[key[0]]
            made = self._made[key] = bars_of(self._true[alias.symbol, key[1]], alias, self._shift)
        return made

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


class _Lazy(Sequence[NewsItem]):
    """News items transformed on first access: a run reads few of all headlines."""

    def __init__(self, true: Sequence[NewsItem], make: Callable[[NewsItem], NewsItem]) -> None:
        self._true, self._make = true, make
        self._made: dict[int, NewsItem] = {}

    def __len__(self) -> int:
        return len(self._true)

    @overload
    def __getitem__(self, place: int) -> NewsItem: ...
    @overload
    def __getitem__(self, place: slice) -> list[NewsItem]: ...
    def __getitem__(self, place: int | slice) -> NewsItem | list[NewsItem]:
        if isinstance(place, slice):
            return [self._one(each) for each in range(*place.indices(len(self._true)))]
        return self._one(range(len(self._true))[place])

    def _one(self, place: int) -> NewsItem:
        made = self._made.get(place)
        if made is None:
            made = self._made[place] = self._make(self._true[place])
        return made


# The skill, its caps and the venue's terms -----------------------------------------------------------------------------


def skill_of(disguise: Cover, skill: PerpSkill) -> PerpSkill:
    """Return the skill with its symbols renamed, and without names and dates in its author's texts."""
    strategy = {
        name: disguise.words.skill(words)
        for name, words in skill.strategy.texts().items()
        if words is not None and name not in ("mode", "leash", "style")
    }
    symbols = tuple(sorted(disguise.name(symbol) for symbol in skill.context.symbols))
    return skill.model_copy(
        update={
            "name": disguise.words.skill(skill.name),
            "description": disguise.words.skill(skill.description),
            "strategy": skill.strategy.model_copy(update=strategy),
            "context": skill.context.model_copy(update={"symbols": symbols}),
            "risk": skill.risk.model_copy(update={"allowed_symbols": _allowed(disguise, skill.risk.allowed_symbols)}),
        }
    )


def caps_of(disguise: Cover, caps: PerpCaps) -> PerpCaps:
    """Return the same limits for the renamed symbols."""
    allowed, unlisted = _allowed(disguise, caps.allowed_symbols), _named(disguise, caps.unlisted)
    return replace(caps, symbols=_named(disguise, caps.symbols), allowed_symbols=allowed, unlisted=unlisted)


def _allowed(disguise: Cover, symbols: Sequence[str]) -> tuple[str, ...]:
    """Return the symbols that may be opened, renamed.

    A list that names no symbol of the run must not become empty, because an empty list allows every symbol.
    """
    return _named(disguise, symbols) or (("OTHER",) if symbols else ())


def terms_of(disguise: Cover, terms: TradingTerms) -> TradingTerms:
    """Return the same costs and tiers; lots are scaled with the sizes."""
    known = disguise.by_symbol
    assets = {
        known[symbol].name: DisguisedAsset(
            known[symbol].name,
            asset.size_decimals,
            asset.max_leverage,
            asset.tiers,
            known[symbol].price,
            known[symbol].size,
        )
        for symbol, asset in terms.assets.items()
        if symbol in known
    }
    return replace(terms, assets=assets)


@noun
class DisguisedAsset(Asset):
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
def world_of(disguise: Cover, world: PerpWorld) -> PerpWorld:
    """Return the account with names, times, prices and sizes anonymised; cash, costs and equity are unchanged."""
    known, shift = disguise.by_symbol, disguise.shift_ms
    positions = {
        known[symbol].name: position_of(disguise, held, known[symbol]) for symbol, held in world.positions.items()
    }
    return replace(
        world,
        day=world.day + 7 * disguise.weeks,
        positions=positions,
        orders=tuple(order_of(disguise, order, known[order.symbol]) for order in world.orders),
        leverage={known[symbol].name: leverage for symbol, leverage in world.leverage.items()},
        marks={known[symbol].name: mark * known[symbol].price for symbol, mark in world.marks.items()},
        marked_at={known[symbol].name: at + shift for symbol, at in world.marked_at.items()},
    )


def position_of(disguise: Cover, held: Position, alias: Alias) -> Position:
    """Return a position, anonymised: its cost is money and stays, so the entry price scales inversely to the size."""
    return replace(
        held,
        symbol=alias.name,
        size=held.size * alias.size,
        opened_at=held.opened_at + disguise.shift_ms,
        stop=_times(held.stop, alias.price),
        take_profit=_times(held.take_profit, alias.price),
        thesis=disguise.own(held.thesis),
    )


def order_of(disguise: Cover, order: WorkingOrder, alias: Alias) -> WorkingOrder:
    """Return a working order, anonymised."""
    shift = disguise.shift_ms
    return replace(
        order,
        symbol=alias.name,
        size=order.size * alias.size,
        submitted_at=order.submitted_at + shift,
        active_from=order.active_from + shift,
        limit=_times(order.limit, alias.price),
        stop=_times(order.stop, alias.price),
        take_profit=_times(order.take_profit, alias.price),
        thesis=disguise.own(order.thesis),
    )


def _times(value: Decimal | None, factor: Decimal) -> Decimal | None:
    return None if value is None else value * factor
