"""A chat completion that came back → our reply. Total: any JSON gives a reply or a failure, never a stray exception.

Everything here was sent by somebody else, so every field is looked at before it is used. A reply that is no answer (cut
off, refused, blocked, empty, a call that the provider itself rejected) is a reply with a `problem`; only what is not a
reply at all is a failure. `usage` of nothing means that nobody said how many tokens there were, so no price is known.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import orjson

from pitboss.core import codec
from pitboss.core.intent import NO_USAGE, FinishReason, Usage
from pitboss.core.ports import ModelReply, ToolCall
from pitboss.models.failures import NOTHING, Failure, classify, error_of, malformed, said

EMPTY = "the reply was empty"
CUT = "the reply was cut off at its limit of tokens"
BLOCKED = "the reply was blocked by the provider's filter"
BROKE = "the provider broke off in the middle of the reply"
REFUSED = "the model refused"

KEPT = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "extra_content",
    "thought_signature",
    "content",
    "tool_calls",
)
"""Fields that one provider or another wants to have back with its own turn."""
MAX_STATE_CHARS = 262_144
MOST_TOKENS = 10**12
_APART = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")

_CUT = frozenset({"length", "max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded"})
_BLOCKED = frozenset(
    [
        "content_filter",
        "safety",
        "refusal",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "image_safety",
        "content_filtered",
    ]
)
_BROKE = frozenset(
    [
        "error",
        "abort",
        "aborted",
        "cancelled",
        "canceled",
        "insufficient_system_resource",
        "malformed_function_call",
        "unexpected_tool_call",
        "function_call_filter",
    ]
)
_FILTERED = frozenset(
    [
        "content_filter",
        "content_policy_violation",
        "responsibleaipolicyviolation",
        "data_inspection_failed",
        "invalid_prompt",
    ]
)
_THOUGHT = re.compile(r"\s*<(?:think(?:ing)?|thought)>")
_THOUGHT_ENDS = re.compile(r"</(?:think(?:ing)?|thought)>\s*")
_TAGGED = re.compile(r"<function[=(]([\w.-]+)[)>]?\s*>?\s*(\{.*\})\s*(?:</function>)?", re.DOTALL)
_WRAPPED = re.compile(r"</?tool_call>")


def parse(raw: bytes | str) -> object:
    """A body as plain values; the text itself where it is no JSON that can be read."""
    try:
        return orjson.loads(raw)
    except ValueError:
        pass
    text = (raw if isinstance(raw, str) else raw.decode("utf-8", "replace")).removeprefix("\ufeff")
    try:
        return json.loads(text)  # takes half surrogate pairs, which some servers send
    except (ValueError, RecursionError):
        return text


def read(
    body: object, asked: str = "the provider", keeps: Sequence[str] = KEPT, first_call: int = 0
) -> ModelReply | Failure:
    """Read the body of a reply with a good status.

    `keeps` are the fields to hand back as state; `first_call` numbers the calls that come without an id, so that they
    differ from those of earlier turns and are the same in every run.
    """
    if not isinstance(body, dict):
        return malformed(asked, "the reply is not a chat completion")
    choices = body.get("choices")
    if not choices and (body.get("error") or error_of(body)):
        return read_error(200, body, NOTHING, asked, first_call)
    if not isinstance(choices, list):
        return malformed(asked, "the reply holds no choices")
    choice = _first(choices)
    message = choice.get("message") or choice.get("delta")
    if not isinstance(message, dict):
        text = choice.get("text")
        message = {"content": text} if isinstance(text, str) else {}
    content, refusal = _content(message.get("content"))
    text = without_thoughts(content)
    calls = _calls(message, first_call)
    said_no = message.get("refusal")
    refusal = said_no if isinstance(said_no, str) and said_no else refusal
    if choice.get("error") and not (text or calls or refusal):
        return read_error(200, choice, NOTHING, asked, first_call)
    finish, problem = _finish(choice.get("finish_reason"), text, calls, refusal)
    usage = body.get("usage")
    return ModelReply(
        codec.printable(text or refusal),
        calls,
        read_usage(usage),
        finish,
        provider_id=_word(body.get("id")),
        model=_word(body.get("model")),
        state=_state(message, keeps),
        problem=problem,
        cost_usd=read_cost(usage),
    )


def _first(choices: list[Any]) -> Mapping[str, Any]:
    """The choice that counts: we ask for one, and it is numbered 0 where several come."""
    found = [choice for choice in choices if isinstance(choice, dict)]
    return next((choice for choice in found if choice.get("index") == 0), found[0] if found else {})


def read_error(
    status: int, body: object, headers: Mapping[str, str] = NOTHING, asked: str = "the provider", first_call: int = 0
) -> ModelReply | Failure:
    """Read the body of a reply with a bad status. A mistake of the model's own is a reply, not a failure."""
    error = error_of(body)
    code = error.get("code")
    if status < 500 and code in ("tool_use_failed", "json_validate_failed"):
        return rejected(error, first_call)
    inner = error.get("innererror")
    codes = (code, error.get("type"), inner.get("code") if isinstance(inner, dict) else None)
    more = error.get("metadata")
    flagged = isinstance(more, dict) and "flagged_input" in more  # OpenRouter's word for it, with a 403
    if status < 500 and (flagged or any(isinstance(one, str) and one.lower() in _FILTERED for one in codes)):
        return ModelReply(finish_reason="error", problem=f"{BLOCKED}: {said(body)}", cost_usd=None)
    return classify(status, body, headers, asked)


def rejected(error: Mapping[str, Any], first_call: int = 0) -> ModelReply:
    """A generation that the provider held against the tools and did not pass on: what the model did say, and why not.

    No usage comes with it although tokens were spent.
    """
    generated = error.get("failed_generation")
    generated = generated if isinstance(generated, str) else as_text(generated)
    problem = said({"error": dict(error)}) or "the provider rejected the call"
    calls = _generated_calls(generated, first_call) if error.get("code") == "tool_use_failed" else ()
    text = "" if calls else codec.printable(without_thoughts(generated))
    return ModelReply(text, calls, finish_reason="tool_calls" if calls else "stop", problem=problem, cost_usd=None)


def _generated_calls(text: str, first_call: int) -> tuple[ToolCall, ...]:
    value = parse(_WRAPPED.sub("", text).strip())
    wishes = value if isinstance(value, list) else [value]
    found = [
        {"function": {"name": wish["name"], "arguments": wish.get("arguments", wish.get("parameters"))}}
        for wish in wishes
        if isinstance(wish, dict) and isinstance(wish.get("name"), str)
    ]
    if not found:
        tagged = _TAGGED.search(text)
        found = [{"function": {"name": tagged[1], "arguments": tagged[2]}}] if tagged else []
    return _calls({"tool_calls": found}, first_call)


def without_thoughts(text: str) -> str:
    """The text after the thoughts that some servers leave in it. Thoughts that never end leave nothing."""
    if "think" not in text and "thought" not in text:
        return text
    if _THOUGHT.match(text):
        end = _THOUGHT_ENDS.search(text)
        return text[end.end() :] if end else ""
    end = _THOUGHT_ENDS.search(text)  # the opening tag is part of some servers' prompts
    return text[end.end() :] if end and "<th" not in text[: end.start()] else text


def _content(content: object) -> tuple[str, str]:
    """Text and refusal of a content in any of its forms."""
    if isinstance(content, str):
        return content, ""
    texts: list[str] = []
    refusals: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            if part.get("type") in (None, "text", "output_text") and isinstance(part.get("text"), str):
                texts.append(part["text"])
            elif part.get("type") == "refusal" and isinstance(part.get("refusal"), str):
                refusals.append(part["refusal"])
    return "".join(texts), "".join(refusals)


def _calls(message: Mapping[str, Any], first_call: int) -> tuple[ToolCall, ...]:
    wishes = message.get("tool_calls")
    if isinstance(wishes, dict) and wishes:
        wishes = [wishes]
    old = message.get("function_call")
    if not wishes and isinstance(old, dict) and old.get("name"):
        wishes = [old]
    if not isinstance(wishes, list):
        return ()
    calls: list[ToolCall] = []
    ids: set[str] = set()
    for wish in wishes:
        if not isinstance(wish, dict):
            continue
        function = wish.get("function") or wish.get("custom")
        function = function if isinstance(function, dict) else wish
        id_ = _word(wish.get("id"), 8_192)  # gateways carry signatures in it
        if not id_ or id_ in ids:
            id_ = _own_id(first_call + len(calls), ids)
        ids.add(id_)
        name = function.get("name")
        arguments = function.get("arguments", function.get("input"))
        calls.append(
            ToolCall(
                id_,
                codec.printable(name) if isinstance(name, str) else "",
                codec.printable(arguments) if isinstance(arguments, str) else as_text(arguments),
            )
        )
    return tuple(calls)


def _own_id(number: int, taken: set[str]) -> str:
    while (own := f"c{number}") in taken:
        number += 1
    return own


def as_text(value: object) -> str:
    """A value as JSON text; nothing for nothing."""
    if value is None:
        return ""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        pass
    try:
        return codec.printable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except (TypeError, ValueError, RecursionError):
        return codec.TOO_DEEP  # as malformed as it was: nothing would be taken for no arguments


def _finish(said_reason: object, text: str, calls: tuple[ToolCall, ...], refusal: str) -> tuple[FinishReason, str]:
    # Google's compatible address adds its own word: "content_filter: SAFETY".
    reason = said_reason.lower().partition(":")[0].strip() if isinstance(said_reason, str) else ""
    if reason in _CUT:
        return "length", CUT
    if refusal:
        return "error", f"{REFUSED}: {codec.printable(refusal)[:300]}"
    if reason in _BLOCKED:
        return "error", BLOCKED
    if reason in _BROKE:
        return "error", BROKE
    if calls:
        return "tool_calls", ""
    return "stop", "" if text.strip() else EMPTY


def _state(message: Mapping[str, Any], keeps: Sequence[str]) -> str:
    state: dict[str, Any] = {}
    for name in keeps:
        value = message.get(name)
        if name == "tool_calls":
            value = _call_extras(value)
        elif name == "content" and not isinstance(value, list):
            continue  # plain text goes back as the turn's own text
        if value:
            state[name] = value
    text = as_text(state) if state else ""
    return text if len(text) <= MAX_STATE_CHARS else ""


def _call_extras(wishes: object) -> list[Any] | None:
    """What hangs on single calls and has to go back with them: Google's signatures."""
    if not isinstance(wishes, list):
        return None
    extras = [
        {"extra_content": wish["extra_content"]} if wish.get("extra_content") else None
        for wish in wishes
        if isinstance(wish, dict)
    ]
    return extras if any(extras) else None


def read_usage(usage: object) -> Usage:
    """Tokens in our way of counting, whatever the provider's. Parts are never larger than what they are parts of."""
    if not isinstance(usage, dict):
        return NO_USAGE
    into = _part(usage, "prompt_tokens_details") or _part(usage, "input_tokens_details")
    out = _part(usage, "completion_tokens_details") or _part(usage, "output_tokens_details")
    given = _count(usage.get("prompt_tokens"))
    if not given:
        # Anthropic's way of counting: what was read from the cache and written to it comes on top.
        given = sum(_count(usage.get(name)) for name in _APART)
    made = _count(usage.get("completion_tokens")) or _count(usage.get("output_tokens"))
    thought = _count(out.get("reasoning_tokens"))
    # Thoughts that are billed and not counted show only in the total.
    hidden = max(0, _count(usage.get("total_tokens")) - given - made)
    made += hidden
    cached = (
        _count(into.get("cached_tokens"))
        or _count(usage.get("prompt_cache_hit_tokens"))
        or _count(usage.get("num_cached_tokens"))
        or _count(usage.get("cached_tokens"))
        or _count(usage.get("cache_read_input_tokens"))
    )
    written = _count(into.get("cache_write_tokens")) or _count(usage.get("cache_creation_input_tokens"))
    cached = min(cached, given)
    return Usage(given, made, cached, min(max(thought, hidden), made), min(written, given - cached))


def read_cost(usage: object) -> Decimal | None:
    """What the provider says it charges, in dollars; None where it says nothing."""
    if not isinstance(usage, dict):
        return None
    cost = _amount(usage.get("cost"))
    if cost is not None and usage.get("is_byok") is True:
        # With a key of one's own at the provider behind it, its charge comes on top.
        cost += _amount(_part(usage, "cost_details").get("upstream_inference_cost")) or 0
    return cost


def _amount(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return Decimal(repr(value)) if value < MOST_TOKENS else None


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return 0
    return int(value)


def _part(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = whole.get(name)
    return part if isinstance(part, dict) else {}


def _word(value: object, most: int = 200) -> str:
    return codec.printable(value)[:most] if isinstance(value, str) else ""


def with_usage(reply: ModelReply, usage: object) -> ModelReply:
    """The same reply with the usage that came apart from it."""
    return replace(reply, usage=read_usage(usage), cost_usd=read_cost(usage))
