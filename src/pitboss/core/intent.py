"""The decision of one tick: its text, zero or more intents, and the model calls that led to it.

Intents are kept as raw JSON values: the venue's first rule checks their shape, so that untrusted values are never cast.
Numbers in them are exact (`int` or `Decimal`).
"""

import hashlib
from decimal import Decimal
from typing import Any, Literal

from pitboss.core import codec
from pitboss.core.instant import Instant
from pitboss.core.money import ZERO
from pitboss.core.noun import noun

FinishReason = Literal["stop", "length", "tool_calls", "error"]

NOT_ASKED = frozenset({"asleep", "ruined", "no_quote"})
"""Flags of ticks at which the decider was not called: they are not decisions."""


def sealed_intent(tick_at: Instant, intent: Any) -> tuple[str, bytes]:
    """The key of an intent, a hash of its tick and its exact content, and that content in canonical bytes."""
    content = codec.dumps(codec.number_fragments(intent))
    return hashlib.sha256(b"%d %b" % (tick_at, content)).hexdigest(), content


@noun
class Usage:
    """Tokens of one or more model calls.

    `cached_tokens` (read from a provider's cache) and `cache_write_tokens` are parts of `input_tokens`,
    `reasoning_tokens` of `output_tokens`, whichever way the provider counts.
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
    """One tool call with the text returned to the model."""

    name: str
    arguments: Any
    result: str
    failed: bool = False


@noun
class Step:
    """One model call: its text, the tools it called, and their results."""

    text: str
    calls: tuple[ToolResult, ...] = ()
    usage: Usage = NO_USAGE
    finish_reason: FinishReason = "stop"
    latency_ms: float = 0.0
    provider_id: str = ""
    model: str = ""
    cost_usd: Decimal | None = ZERO
    saved_usd: Decimal = ZERO
    rejected_settings: tuple[str, ...] = ()


@noun
class Decision:
    """The decision of a tick. No intents means hold. `prompt` is the system and user text sent to the model."""

    intents: tuple[Any, ...] = ()
    text: str = ""
    steps: tuple[Step, ...] = ()
    flags: tuple[str, ...] = ()
    usage: Usage = NO_USAGE
    cost_usd: Decimal | None = ZERO
    saved_usd: Decimal = ZERO
    finish_reason: FinishReason = "stop"
    prompt: tuple[str, str] | None = None
