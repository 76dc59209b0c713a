"""What a mind answers at a tick: a `Decision` with a reason and zero or more intents, and how it got there.

Intents stay as the raw JSON values they arrived as: the venue's first rule judges their shape, so that nothing
untrusted is ever cast. Numbers in them are exact (`int` or `Decimal`).
"""

import hashlib
from decimal import Decimal
from typing import Any, Literal

from pitboss.core import codec
from pitboss.core.instant import Instant
from pitboss.core.money import ZERO
from pitboss.core.noun import noun

FinishReason = Literal["stop", "length", "tool_calls", "error"]


def sealed_intent(tick_at: Instant, intent: Any) -> tuple[str, bytes]:
    """The name of an intent, which is its tick and its exact content, and that content in canonical bytes."""
    content = codec.dumps(codec.number_fragments(intent))
    return hashlib.sha256(b"%d %b" % (tick_at, content)).hexdigest(), content


@noun
class Usage:
    """Tokens of one or more model calls.

    `cached_tokens` (read from a provider's cache) and `cache_write_tokens` are parts of `input_tokens`,
    `reasoning_tokens` of `output_tokens`, whatever the provider's own way of counting.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


NO_USAGE = Usage()


@noun
class ToolResult:
    """One tool call with the text that was given back to the model."""

    name: str
    arguments: Any
    result: str
    failed: bool = False


@noun
class Step:
    """One model call: what it said, which tools it called, and what they answered."""

    text: str
    calls: tuple[ToolResult, ...] = ()
    usage: Usage = NO_USAGE
    finish_reason: FinishReason = "stop"
    latency_ms: float = 0.0
    provider_id: str = ""
    model: str = ""
    cost_usd: Decimal | None = ZERO
    saved_usd: Decimal = ZERO


@noun
class Decision:
    """The answer of a tick. No intents means hold. `prompt` is the system and user text a model was given."""

    intents: tuple[Any, ...] = ()
    text: str = ""
    steps: tuple[Step, ...] = ()
    flags: tuple[str, ...] = ()
    usage: Usage = NO_USAGE
    cost_usd: Decimal | None = ZERO
    saved_usd: Decimal = ZERO
    finish_reason: FinishReason = "stop"
    prompt: tuple[str, str] | None = None
