"""The public price list (genai-prices): the price of a model at a provider, or None where it is not listed.

The list is read from the installed package, never from the network, and imported on first use: importing it takes a third
of a second, which a run with a policy must not pay.
"""

from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from typing import Any

from pitboss.core.instant import Instant
from pitboss.core.intent import NO_USAGE, Usage
from pitboss.core.money import ZERO
from pitboss.core.suggestion import fold_spelling, nearest
from pitboss.models.prices import FREE, Active, ModelPrice, Rates, TokenRate

FREE_PROVIDERS = frozenset({"local", "ollama"})
"""Their models run on the user's own machine."""
FREE_SUFFIX = ":free"
"""How OpenRouter marks models that cost nothing; the list has them without any price."""


def price(provider_id: str | None, model: str, at: Instant | None = None) -> ModelPrice | None:
    """The listed price of a model from an instant on; None where it is unknown.

    `provider_id` is the list's name of the provider: the same model costs different amounts at different providers, so
    there is no price without one.
    """
    if provider_id in FREE_PROVIDERS or (provider_id == "openrouter" and model.endswith(FREE_SUFFIX)):
        return FREE
    periods = _listed(provider_id, model) if provider_id and model else None
    return ModelPrice(_still_valid(periods, at)) if periods else None


def price_of(provider_id: str | None, model: str, usage: Usage, at: Instant | None = None) -> Decimal | None:
    """What these tokens cost at the provider; None where the price is unknown or no tokens were reported."""
    listed = price(provider_id, model, at)
    if listed is None or (usage == NO_USAGE and listed != FREE):
        return None
    return listed.cost(usage, at)


def provider_of(model: str) -> str | None:
    """The list's name of the provider whose models are called like this one; None where there is none."""
    try:
        return (
            import_module("genai_prices.data_snapshot")
            .get_snapshot()
            .find_provider_model(model, None, None, None)[0]
            .id
        )
    except (LookupError, ImportError):
        return None


def similar_model(provider_id: str | None, model: str) -> str | None:
    """The listed model of a provider whose name is most similar to a wrong one; None if none is."""
    if not provider_id:
        return None
    try:
        provider = import_module("genai_prices.data_snapshot").get_snapshot().find_provider(None, provider_id, None)
    except (LookupError, ImportError):
        return None
    similar = nearest(model, [entry.id for entry in provider.models if not entry.deprecated], fold_spelling, 0.7)
    return None if similar == model else similar


Listed = tuple[tuple[Any, Rates], ...]


@lru_cache(maxsize=512)
def _listed(provider_id: str, model: str) -> Listed | None:
    """The listed prices of a model, each with the list's own condition, oldest first."""
    try:
        snapshot = import_module("genai_prices.data_snapshot").get_snapshot()
        _, entry = snapshot.find_provider_model(model, None, provider_id, None)
    except (LookupError, ImportError):
        return None
    listed = entry.prices if isinstance(entry.prices, list) else None
    pairs = [(None, entry.prices)] if listed is None else [(row.constraint, row.prices) for row in listed]
    periods = [(constraint, _rates(prices)) for constraint, prices in pairs]
    if any(rates is None for _, rates in periods):
        return None  # a gap in the list could make any hour look free
    return tuple((constraint, rates) for constraint, rates in periods if rates is not None) or None


def _rates(prices: Any) -> Rates | None:
    """One entry of the list; None where it has no price for text in and out."""
    reads, writes = _rate(prices.input_mtok), _rate(prices.output_mtok)
    if reads is None or writes is None:
        return None
    per_thousand = prices.requests_kcount
    return Rates(
        reads,
        writes,
        _rate(prices.cache_read_mtok) or reads,
        _rate(prices.cache_write_mtok) or reads,
        _rate(prices.output_reasoning_mtok) or writes,
        ZERO if per_thousand is None else per_thousand / 1000,
        _rate(prices.cache_write_1h_mtok),
    )


def _rate(value: Any) -> TokenRate | None:
    if value is None:
        return None
    if isinstance(value, Decimal):
        return TokenRate(value)
    return TokenRate(value.base, tuple((tier.start, tier.price) for tier in value.tiers))


def _still_valid(periods: Listed, at: Instant | None) -> tuple[tuple[Active | None, Rates], ...]:
    """Leave out periods that a later one has replaced for good: a price with a start date, once begun, ends all before it."""
    moment = None if at is None else datetime.fromtimestamp(at / 1000, UTC)
    first = 0
    for index, (constraint, _) in enumerate(periods):
        is_permanent = constraint is None or hasattr(constraint, "start_date")
        if is_permanent and (constraint is None or moment is None or constraint.active(moment)):
            first = index
    return tuple((None if constraint is None else constraint.active, rates) for constraint, rates in periods[first:])
