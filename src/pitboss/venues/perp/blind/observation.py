"""Skill, caps and account of a blind run as the model sees them.

Every anonymised value has the type of the true one, so sections and tools use it unchanged. Values that do not change
from tick to tick are cached. Names and factors come from `agent.blind.mapping`; the market is in `agent.blind.market`,
the memory in `venues.perp.blind.memory`.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from pitboss.agent.blind.mapping import Alias
from pitboss.agent.blind.market import IdentityMemo, aliases_of, market_of
from pitboss.core.asset import Asset
from pitboss.core.money import ONE, exact
from pitboss.core.noun import noun
from pitboss.venues.perp.blind.memory import memory_of
from pitboss.venues.perp.blind.translation import PerpTranslator
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.state import PerpWorld, Position, TradingTerms, WorkingOrder


class AnonymisedValues:
    """Caches of anonymised values, keyed by the identity of the true value.

    A run passes the same objects from tick to tick, so identity is enough to recognise them.
    """

    __slots__ = ("_caps", "_memory", "_terms", "_translator", "market", "observation", "skill")

    def __init__(self, translator: PerpTranslator) -> None:
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
            last=None if true.last is None else translator.last(true.last),
            memory=self._memory(true.memory),
            notes=tuple(map(translator.neutraliser.skill, true.notes)),
        )


# The skill, its caps and the venue's terms -----------------------------------------------------------------------------


def skill_of(translator: PerpTranslator, skill: PerpSkill) -> PerpSkill:
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


def caps_of(translator: PerpTranslator, caps: PerpCaps) -> PerpCaps:
    """Return the same limits for the renamed symbols."""
    allowed, unlisted = _allowed(translator, caps.allowed_symbols), aliases_of(translator, caps.unlisted)
    return replace(caps, symbols=aliases_of(translator, caps.symbols), allowed_symbols=allowed, unlisted=unlisted)


def _allowed(translator: PerpTranslator, symbols: Sequence[str]) -> tuple[str, ...]:
    """Return the symbols that may be opened, renamed.

    A list that names no symbol of the run must not become empty, because an empty list allows every symbol.
    """
    return aliases_of(translator, symbols) or (("OTHER",) if symbols else ())


def terms_of(translator: PerpTranslator, terms: TradingTerms) -> TradingTerms:
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
def world_of(translator: PerpTranslator, world: PerpWorld) -> PerpWorld:
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


def position_of(translator: PerpTranslator, position: Position, alias: Alias) -> Position:
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


def order_of(translator: PerpTranslator, order: WorkingOrder, alias: Alias) -> WorkingOrder:
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
