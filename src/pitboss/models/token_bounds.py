"""Upper bounds of the tokens and the cost of a request, computed before it is sent. Pure."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pitboss.core import codec
from pitboss.core.ports import ModelRequest, ToolSpec
from pitboss.models.identity_cache import IdentityCache
from pitboss.models.prices import ModelPrice
from pitboss.models.providers import MAX_TOKENS

CALL_TOKENS = 64
MESSAGE_TOKENS = 32
TOOL_TOKENS = 64
TOOLS_TOKENS = 1_024
"""Providers put a system prompt of their own (300 to 800 tokens) in front of a request that offers tools."""


def worst_case(price: ModelPrice | None, request: ModelRequest) -> Decimal | None:
    """An upper bound of what one attempt at this request costs; None where the price is unknown."""
    return None if price is None else price.most(most_input_tokens(request), token_limit(request.settings))


def token_limit(settings: Mapping[str, Any]) -> int:
    """The most tokens that a reply may have. It is sent with every request, so that the worst case is known."""
    most = settings.get("max_tokens")
    return most if isinstance(most, int) and most > 0 else MAX_TOKENS


def most_input_tokens(request: ModelRequest) -> int:
    """An upper bound of the tokens of a request: no token is shorter than one byte of UTF-8.

    About four times the real number for ordinary text, which covers what a provider's template adds around it.
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


@IdentityCache
def _tool_tokens(tool: ToolSpec) -> int:
    return TOOL_TOKENS + _size(tool.name) + _size(tool.description) + len(codec.dumps(tool.schema))


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
