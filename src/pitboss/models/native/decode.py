"""What a native provider answered → `ModelReply`, with a defined outcome for every ending.

Tokens are counted our way (`core.intent.Usage`), calls without an id get one that is the same in every run, and what the
provider must have back with its turn (signatures of its reasoning) is kept in `state`.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.usage import RequestUsage

from pitboss.core import codec
from pitboss.core.intent import FinishReason, Usage
from pitboss.core.ports import ModelReply, ToolCall

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""Stored turns carry no reading of the clock: the same answer is the same bytes."""
_MADE_UP = "pyd_ai_"
"""How ids begin that pydantic-ai draws at random for providers that give none."""

_ORDINARY = ("", "STOP", "end_turn")


def reply_of(response: ModelResponse, turn: int = 0, call: str = "", latency_ms: float = 0.0) -> ModelReply:
    """A reply. `turn` counts the model's turns before this one; `call` names the tool that JSON text stands for."""
    parts = _named(_finished(response), turn)
    text = codec.printable("".join(part.content for part in parts if isinstance(part, TextPart)))
    calls = tuple(_call(part) for part in parts if isinstance(part, ToolCallPart))
    finish, problem = _ending(response, text, calls)
    if call and not calls and text and not problem:
        calls, finish = (ToolCall(f"call_{turn}_0", call, text),), "tool_calls"
    return ModelReply(
        text=text,
        calls=calls,
        usage=usage_of(response.usage),
        finish_reason=finish,
        latency_ms=round(latency_ms, 3),
        provider_id=response.provider_response_id or "",
        model=response.model_name or "",
        state=_state(response, parts),
        problem=problem,
        cost_usd=None,  # nobody has said yet
    )


def usage_of(usage: RequestUsage) -> Usage:
    """Tokens our way. pydantic-ai's totals hold the cached, the cache-written and the thought ones, or should."""
    details = usage.details
    reasoning = getattr(usage, "output_reasoning_tokens", 0) or details.get("thinking_tokens", 0)
    reasoning = reasoning or details.get("thoughts_tokens", 0)
    cached = min(usage.cache_read_tokens, usage.input_tokens)
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=cached,
        reasoning_tokens=min(reasoning, usage.output_tokens),
        cache_write_tokens=min(usage.cache_write_tokens, usage.input_tokens - cached),
    )


# Calls --------------------------------------------------------------------------------------------------------------


def _finished(response: ModelResponse) -> list[ModelResponsePart]:
    """The parts that were said to their end: a call at which the reply was cut off, or refused, is none."""
    parts = list(response.parts)
    if response.finish_reason in ("content_filter", "error"):
        return [part for part in parts if not isinstance(part, ToolCallPart)]
    if response.finish_reason == "length" and parts and isinstance(parts[-1], ToolCallPart):
        return parts[:-1]
    return parts


def _named(parts: list[ModelResponsePart], turn: int) -> list[ModelResponsePart]:
    """The same parts with an id on every call that follows from its place alone where the provider gave none."""
    named: list[ModelResponsePart] = []
    seen: set[str] = set()
    for part in parts:
        if isinstance(part, ToolCallPart):
            given = part.tool_call_id
            if not given or given.startswith(_MADE_UP) or given in seen:
                part = replace(part, tool_call_id=f"call_{turn}_{len(seen)}")
            seen.add(part.tool_call_id)
        named.append(part)
    return named


def _call(part: ToolCallPart) -> ToolCall:
    if isinstance(part.args, str):
        return ToolCall(part.tool_call_id, part.tool_name, part.args or "{}")
    return ToolCall(part.tool_call_id, part.tool_name, arguments_text(cast("dict[str, Any]", part.args or {})))


def arguments_text(arguments: dict[str, Any]) -> str:
    """Arguments that came as an object, as canonical text."""
    return codec.dumps(codec.number_fragments(arguments)).decode()


# Endings ------------------------------------------------------------------------------------------------------------


def _ending(response: ModelResponse, text: str, calls: tuple[ToolCall, ...]) -> tuple[FinishReason, str]:
    """How a reply ended, and in words why it is no answer, if it is none."""
    details = response.provider_details or {}
    reason = _reason(details)
    if response.finish_reason == "content_filter":
        return "error", _refusal(details)
    if response.finish_reason == "error":
        return "error", f"the provider could not take the reply ({reason})"
    if response.finish_reason == "length":
        return "length", "the reply was cut off at its limit of tokens"
    if calls:
        return "tool_calls", ""
    if not text.strip():
        return "stop", "the reply was empty" + ("" if reason in _ORDINARY else f" ({reason})")
    return "stop", ""


def _refusal(details: dict[str, Any]) -> str:
    if "block_reason" in details:
        return f"the provider blocked the question: {details.get('block_reason_message') or details['block_reason']}"
    why = details.get("refusal") or details.get("refusal_category")
    if why or _reason(details) == "refusal":
        return f"the model refused: {why}" if why else "the model refused"
    return f"the reply was blocked by the provider's filter ({_reason(details)})"


def _reason(details: dict[str, Any]) -> str:
    return str(details.get("finish_reason", ""))


# State --------------------------------------------------------------------------------------------------------------


def _state(response: ModelResponse, parts: list[ModelResponsePart]) -> str:
    """The turn as the provider must have it back; empty where text and calls say it all."""
    if not any(_signed(part) for part in parts):
        return ""
    kept = ModelResponse(
        parts=parts,
        model_name=response.model_name,
        timestamp=_NEVER,
        provider_name=response.provider_name,
        canonical_system=response.canonical_system,
        finish_reason=response.finish_reason,
    )
    return ModelMessagesTypeAdapter.dump_json([kept], exclude_none=True).decode()


def _signed(part: ModelResponsePart) -> bool:
    return isinstance(part, ThinkingPart) or bool(part.provider_details)
