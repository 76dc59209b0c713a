"""What a call costs: prices per million tokens, from a public table that ships with us or from the person.

An unknown price is `None` all the way up and never 0. Prices are only looked up here; who may spend is `budgeted`'s matter.
The table (genai-prices) is read from the installed package, never from the network, and imported on first use: it takes a
third of a second, which a run on a policy must not pay.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from typing import Any

from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.intent import NO_USAGE, Usage
from pitboss.core.money import ZERO, decimal, exact
from pitboss.core.noun import noun
from pitboss.core.ports import ModelRequest, ToolSpec
from pitboss.models.identity_cache import Remembered

MILLION = Decimal(1_000_000)
FREE_PROVIDERS = frozenset({"local", "ollama"})
"""Their models run on the person's own machine."""
FREE_SUFFIX = ":free"
"""How OpenRouter marks the models it does not charge for; the table has them without any price."""

CALL_TOKENS = 64
MESSAGE_TOKENS = 32
TOOL_TOKENS = 64
TOOLS_TOKENS = 1_024
"""Providers put a system prompt of their own (300 to 800 tokens) in front of a request that offers tools."""


@noun
class TokenRate:
    """USD per million tokens; `tiers` are (input tokens that must be passed, the rate for all tokens of that call)."""

    usd: Decimal
    tiers: tuple[tuple[int, Decimal], ...] = ()

    def at(self, input_tokens: int) -> Decimal:
        """The rate of a call of this length."""
        found = self.usd
        for start, usd in self.tiers:
            if input_tokens > start:
                found = usd
        return found

    def dearest(self, input_tokens: int) -> Decimal:
        """The highest rate of any call up to this length."""
        return max((self.usd, *(usd for start, usd in self.tiers if input_tokens > start)))


@noun
class Rates:
    """Everything that is charged at one time of day. `cached` and `written` are tokens of the provider's prompt cache."""

    input: TokenRate
    output: TokenRate
    cached: TokenRate
    written: TokenRate
    reasoning: TokenRate
    call_usd: Decimal = ZERO
    dearest_write: TokenRate | None = None
    """Entries that are kept for longer cost more; which ones were written is not told, so only the worst case uses it."""

    def cost(self, usage: Usage) -> Decimal:
        """The exact price of these tokens. Parts that are larger than their whole are cut to it."""
        total = max(usage.input_tokens, 0)
        cached = min(max(usage.cached_tokens, 0), total)
        written = min(max(usage.cache_write_tokens, 0), total - cached)
        output = max(usage.output_tokens, 0)
        reasoning = min(max(usage.reasoning_tokens, 0), output)
        sum_ = (total - cached - written) * self.input.at(total) + (output - reasoning) * self.output.at(total)
        if cached:
            sum_ += cached * self.cached.at(total)
        if written:
            sum_ += written * self.written.at(total)
        if reasoning:
            sum_ += reasoning * self.reasoning.at(total)
        return sum_ / MILLION + self.call_usd

    def most(self, input_tokens: int, output_tokens: int) -> Decimal:
        """No call of at most this many tokens costs more, however they are divided."""
        reads = max(rate.dearest(input_tokens) for rate in (self.input, self.cached, self.written))
        if self.dearest_write is not None:
            reads = max(reads, self.dearest_write.dearest(input_tokens))
        writes = max(self.output.dearest(input_tokens), self.reasoning.dearest(input_tokens))
        return (input_tokens * reads + output_tokens * writes) / MILLION + self.call_usd


Active = Callable[[datetime], bool]


@noun
class ModelPrice:
    """What a model costs: one set of rates, or several of which the last active one counts (off-peak hours)."""

    periods: tuple[tuple[Active | None, Rates], ...]

    @exact
    def cost(self, usage: Usage, at: Instant | None = None) -> Decimal:
        """The price of these tokens at an instant; without one, at the dearest hour."""
        if len(self.periods) == 1:
            return self.periods[0][1].cost(usage)
        if at is None:
            return max(rates.cost(usage) for _, rates in self.periods)
        moment = datetime.fromtimestamp(at / 1000, UTC)
        for active, rates in reversed(self.periods):
            if active is None or active(moment):
                return rates.cost(usage)
        return self.periods[0][1].cost(usage)

    @exact
    def most(self, input_tokens: int, output_tokens: int) -> Decimal:
        """No call of at most this many tokens costs more, whenever it is made."""
        if len(self.periods) == 1:
            return self.periods[0][1].most(input_tokens, output_tokens)
        return max(rates.most(input_tokens, output_tokens) for _, rates in self.periods)


def flat(price_in: Decimal | str | float, price_out: Decimal | str | float) -> ModelPrice:
    """The price that a person gave, in USD per million tokens. Cached tokens count in full: nobody said otherwise."""
    reads, writes = TokenRate(_given("--price-in", price_in)), TokenRate(_given("--price-out", price_out))
    return ModelPrice(((None, Rates(reads, writes, reads, reads, writes)),))


def _given(option: str, value: Decimal | str | float) -> Decimal:
    try:
        usd = decimal(value)
    except ArithmeticError:
        usd = Decimal("NaN")
    if not usd.is_finite() or usd < 0:
        raise UserError(
            f"{option} must be an amount of USD per million tokens, not {value}", f"for example {option} 0.59"
        )
    return usd


FREE = flat(ZERO, ZERO)


def price(provider_id: str | None, model: str, at: Instant | None = None) -> ModelPrice | None:
    """The listed price of a model, as from an instant on; None where nobody knows it.

    `provider_id` is the table's name of the provider: the same model costs different amounts in different places, so
    there is no price without one.
    """
    if provider_id in FREE_PROVIDERS or (provider_id == "openrouter" and model.endswith(FREE_SUFFIX)):
        return FREE
    periods = _listed(provider_id, model) if provider_id and model else None
    return ModelPrice(_still_valid(periods, at)) if periods else None


def price_of(provider_id: str | None, model: str, usage: Usage, at: Instant | None = None) -> Decimal | None:
    """What these tokens cost there; None where the price is unknown or no tokens were reported."""
    known = price(provider_id, model, at)
    if known is None or (usage == NO_USAGE and known != FREE):
        return None
    return known.cost(usage, at)


def worst_case(price: ModelPrice | None, request: ModelRequest, max_tokens: int) -> Decimal | None:
    """An upper bound of what one attempt at this request costs; None where the price is unknown."""
    return None if price is None else price.most(most_input_tokens(request), max_tokens)


def most_input_tokens(request: ModelRequest) -> int:
    """An upper bound of the tokens of a request: no token is shorter than one byte of UTF-8.

    About four times the truth for ordinary text, which covers whatever a provider's template adds around it.
    """
    tokens = CALL_TOKENS + _size(request.system) + MESSAGE_TOKENS * len(request.messages)
    for message in request.messages:
        tokens += _size(message.text) + _size(message.state) + _size(message.name) + _size(message.call_id)
        for call in message.calls:
            tokens += _size(call.arguments) + _size(call.name) + _size(call.id) + MESSAGE_TOKENS
    if request.tools:
        tokens += TOOLS_TOKENS
        tokens += sum(map(_tool_tokens, request.tools))
    return tokens


@Remembered
def _tool_tokens(tool: ToolSpec) -> int:
    return TOOL_TOKENS + _size(tool.name) + _size(tool.description) + len(codec.dumps(tool.schema))


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


Listed = tuple[tuple[Any, Rates], ...]


@lru_cache(maxsize=512)
def _listed(provider_id: str, model: str) -> Listed | None:
    """The table's prices of a model, each with the table's own condition, oldest first."""
    try:
        snapshot = import_module("genai_prices.data_snapshot").get_snapshot()
        _, found = snapshot.find_provider_model(model, None, provider_id, None)
    except (LookupError, ImportError):
        return None
    listed = found.prices if isinstance(found.prices, list) else None
    pairs = [(None, found.prices)] if listed is None else [(one.constraint, one.prices) for one in listed]
    periods = [(constraint, _rates(prices)) for constraint, prices in pairs]
    if any(rates is None for _, rates in periods):
        return None  # a gap in the list could make any hour look free
    return tuple((constraint, rates) for constraint, rates in periods if rates is not None) or None


def _rates(prices: Any) -> Rates | None:
    """One entry of the table. Without a price for text in and out it says nothing about a conversation."""
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
    """Leave out what a later price has replaced for good: a price with a start date, once begun, hides all before it."""
    moment = None if at is None else datetime.fromtimestamp(at / 1000, UTC)
    first = 0
    for index, (constraint, _) in enumerate(periods):
        lasting = constraint is None or hasattr(constraint, "start_date")
        if lasting and (constraint is None or moment is None or constraint.active(moment)):
            first = index
    return tuple((None if constraint is None else constraint.active, rates) for constraint, rates in periods[first:])
