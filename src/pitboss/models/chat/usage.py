"""The `usage` of a chat completion, whatever the provider's way of counting: tokens and the charged amount."""

from decimal import Decimal

from pitboss.core.intent import NO_USAGE, Usage
from pitboss.models.json_body import MOST_TOKENS, as_dict, token_count

_SEPARATE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def read_usage(usage: object) -> Usage:
    """Tokens as `core.intent.Usage` counts them. A part is never larger than its total."""
    if not isinstance(usage, dict):
        return NO_USAGE
    input_details = as_dict(usage.get("prompt_tokens_details")) or as_dict(usage.get("input_tokens_details"))
    output_details = as_dict(usage.get("completion_tokens_details")) or as_dict(usage.get("output_tokens_details"))
    input_tokens = token_count(usage.get("prompt_tokens"))
    if not input_tokens:
        # Anthropic counts tokens read from the cache and written to it separately.
        input_tokens = sum(token_count(usage.get(name)) for name in _SEPARATE)
    output_tokens = token_count(usage.get("completion_tokens")) or token_count(usage.get("output_tokens"))
    reasoning = token_count(output_details.get("reasoning_tokens"))
    # Reasoning that is billed and not counted shows only in the total.
    hidden = max(0, token_count(usage.get("total_tokens")) - input_tokens - output_tokens)
    output_tokens += hidden
    cached = (
        token_count(input_details.get("cached_tokens"))
        or token_count(usage.get("prompt_cache_hit_tokens"))
        or token_count(usage.get("num_cached_tokens"))
        or token_count(usage.get("cached_tokens"))
        or token_count(usage.get("cache_read_input_tokens"))
    )
    cache_writes = token_count(input_details.get("cache_write_tokens")) or token_count(
        usage.get("cache_creation_input_tokens")
    )
    cached = min(cached, input_tokens)
    return Usage(
        input_tokens,
        output_tokens,
        cached,
        min(max(reasoning, hidden), output_tokens),
        min(cache_writes, input_tokens - cached),
    )


def read_cost(usage: object) -> Decimal | None:
    """What the provider reports as charged, in dollars; None where it reports nothing."""
    if not isinstance(usage, dict):
        return None
    cost = _amount(usage.get("cost"))
    if cost is not None and usage.get("is_byok") is True:
        # With the user's own key at the provider behind the gateway, that provider's charge is added.
        cost += _amount(as_dict(usage.get("cost_details")).get("upstream_inference_cost")) or 0
    return cost


def _amount(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MOST_TOKENS:
        return None
    return Decimal(repr(value))
