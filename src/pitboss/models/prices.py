"""Prices per million tokens, and what a call costs at them. Pure; the public price list is `price_list`.

An unknown price is `None` everywhere and never 0. Who may spend how much is decided by `Budget`.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.intent import Usage
from pitboss.core.money import ZERO, decimal, exact
from pitboss.core.noun import noun

MILLION = Decimal(1_000_000)


@noun
class TokenRate:
    """USD per million tokens; `tiers` are (input tokens that must be passed, the rate for all tokens of that call)."""

    usd: Decimal
    tiers: tuple[tuple[int, Decimal], ...] = ()

    def at(self, input_tokens: int) -> Decimal:
        """The rate of a call of this length."""
        rate = self.usd
        for start, usd in self.tiers:
            if input_tokens > start:
                rate = usd
        return rate

    def dearest(self, input_tokens: int) -> Decimal:
        """The highest rate of any call up to this length."""
        return max((self.usd, *(usd for start, usd in self.tiers if input_tokens > start)))


@noun
class Rates:
    """All rates at one time of day. `cached` and `cache_write` are for tokens of the provider's prompt cache."""

    input: TokenRate
    output: TokenRate
    cached: TokenRate
    cache_write: TokenRate
    reasoning: TokenRate
    call_usd: Decimal = ZERO
    dearest_write: TokenRate | None = None
    """The rate of cache entries with a longer lifetime. Replies do not report which kind was written, so only the worst case uses it."""

    def cost(self, usage: Usage) -> Decimal:
        """The exact price of these tokens. A part that is larger than its total is cut to it."""
        total = max(usage.input_tokens, 0)
        cached = min(max(usage.cached_tokens, 0), total)
        cache_writes = min(max(usage.cache_write_tokens, 0), total - cached)
        output = max(usage.output_tokens, 0)
        reasoning = min(max(usage.reasoning_tokens, 0), output)
        sum_ = (total - cached - cache_writes) * self.input.at(total) + (output - reasoning) * self.output.at(total)
        if cached:
            sum_ += cached * self.cached.at(total)
        if cache_writes:
            sum_ += cache_writes * self.cache_write.at(total)
        if reasoning:
            sum_ += reasoning * self.reasoning.at(total)
        return sum_ / MILLION + self.call_usd

    def most(self, input_tokens: int, output_tokens: int) -> Decimal:
        """No call of at most this many tokens costs more, however they are divided."""
        reads = max(rate.dearest(input_tokens) for rate in (self.input, self.cached, self.cache_write))
        if self.dearest_write is not None:
            reads = max(reads, self.dearest_write.dearest(input_tokens))
        writes = max(self.output.dearest(input_tokens), self.reasoning.dearest(input_tokens))
        return (input_tokens * reads + output_tokens * writes) / MILLION + self.call_usd


Active = Callable[[datetime], bool]


@noun
class ModelPrice:
    """The price of a model: one set of rates, or several of which the last active one applies (off-peak hours)."""

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
    """A price given by a person, in USD per million tokens. Cached tokens cost the full price."""
    reads, writes = TokenRate(_amount("--price-in", price_in)), TokenRate(_amount("--price-out", price_out))
    return ModelPrice(((None, Rates(reads, writes, reads, reads, writes)),))


def _amount(option: str, value: Decimal | str | float) -> Decimal:
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
