"""Reads a chat completion into a `ModelReply`. Any JSON gives a reply or a failure, never an exception.

Everything in a body was written by another party, so every field is checked before it is used. A reply without an answer
(cut off, refused, blocked, empty, a call that the provider itself rejected) is a reply with a `problem`; only what is not
a reply at all is a failure. Without a `usage` the number of tokens is unknown, and so is the price.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pitboss.core import codec
from pitboss.core.ports import ModelReply
from pitboss.models.chat.calls import call_extras, read_calls, rejected_calls, short_text
from pitboss.models.chat.content import read_content, without_thoughts
from pitboss.models.chat.finish import BLOCKED, read_finish
from pitboss.models.chat.usage import read_cost, read_usage
from pitboss.models.error_bodies import error_message, error_of
from pitboss.models.failures import NO_HEADERS, Failure, classify, malformed
from pitboss.models.json_body import as_text

KEPT = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "extra_content",
    "thought_signature",
    "content",
    "tool_calls",
)
"""Fields that some provider wants back with its own turn."""
MAX_STATE_CHARS = 262_144

_FILTERED = frozenset(
    [
        "content_filter",
        "content_policy_violation",
        "responsibleaipolicyviolation",
        "data_inspection_failed",
        "invalid_prompt",
    ]
)


def read(
    body: object, name: str = "the provider", keeps: Sequence[str] = KEPT, first_call: int = 0
) -> ModelReply | Failure:
    """Read the body of a response with a good status.

    `keeps` are the fields to return as state; `first_call` numbers the calls without an id, so that they differ from those
    of earlier turns and are the same in every run.
    """
    if not isinstance(body, dict):
        return malformed(name, "the reply is not a chat completion")
    choices = body.get("choices")
    if not choices and (body.get("error") or error_of(body)):
        return read_error(200, body, NO_HEADERS, name, first_call)
    if not isinstance(choices, list):
        return malformed(name, "the reply holds no choices")
    choice = _first(choices)
    message = choice.get("message") or choice.get("delta")
    if not isinstance(message, dict):
        text = choice.get("text")
        message = {"content": text} if isinstance(text, str) else {}
    content, refusal = read_content(message.get("content"))
    text = without_thoughts(content)
    calls = read_calls(message, first_call)
    field = message.get("refusal")
    refusal = field if isinstance(field, str) and field else refusal
    if choice.get("error") and not (text or calls or refusal):
        return read_error(200, choice, NO_HEADERS, name, first_call)
    finish, problem = read_finish(choice.get("finish_reason"), text, calls, refusal)
    usage = body.get("usage")
    return ModelReply(
        codec.printable(text or refusal),
        calls,
        read_usage(usage),
        finish,
        provider_id=short_text(body.get("id")),
        model=short_text(body.get("model")),
        state=_state(message, keeps),
        problem=problem,
        cost_usd=read_cost(usage),
    )


def _first(choices: list[Any]) -> Mapping[str, Any]:
    """The choice with index 0, else the first: requests ask for one."""
    objects = [choice for choice in choices if isinstance(choice, dict)]
    return next((choice for choice in objects if choice.get("index") == 0), objects[0] if objects else {})


def read_error(
    status: int, body: object, headers: Mapping[str, str] = NO_HEADERS, name: str = "the provider", first_call: int = 0
) -> ModelReply | Failure:
    """Read the body of a response with a bad status. A mistake of the model itself is a reply, not a failure."""
    error = error_of(body)
    code = error.get("code")
    if status < 500 and code in ("tool_use_failed", "json_validate_failed"):
        return rejected(error, first_call)
    inner = error.get("innererror")
    codes = (code, error.get("type"), inner.get("code") if isinstance(inner, dict) else None)
    more = error.get("metadata")
    flagged = isinstance(more, dict) and "flagged_input" in more  # OpenRouter's field, with a 403
    if status < 500 and (flagged or any(isinstance(code, str) and code.lower() in _FILTERED for code in codes)):
        return ModelReply(finish_reason="error", problem=f"{BLOCKED}: {error_message(body)}", cost_usd=None)
    return classify(status, body, headers, name)


def rejected(error: Mapping[str, Any], first_call: int = 0) -> ModelReply:
    """A generation that the provider checked against the tools and rejected: its content, and the reason.

    It has no usage although tokens were spent.
    """
    generated = error.get("failed_generation")
    generated = generated if isinstance(generated, str) else as_text(generated)
    problem = error_message({"error": dict(error)}) or "the provider rejected the call"
    calls = rejected_calls(generated, first_call) if error.get("code") == "tool_use_failed" else ()
    text = "" if calls else codec.printable(without_thoughts(generated))
    return ModelReply(text, calls, finish_reason="tool_calls" if calls else "stop", problem=problem, cost_usd=None)


def _state(message: Mapping[str, Any], keeps: Sequence[str]) -> str:
    state: dict[str, Any] = {}
    for field in keeps:
        value = message.get(field)
        if field == "tool_calls":
            value = call_extras(value)
        elif field == "content" and not isinstance(value, list):
            continue  # plain text is sent back as the text of the turn
        if value:
            state[field] = value
    text = as_text(state) if state else ""
    return text if len(text) <= MAX_STATE_CHARS else ""


def with_usage(reply: ModelReply, usage: object) -> ModelReply:
    """The reply with a usage that arrived separately."""
    return replace(reply, usage=read_usage(usage), cost_usd=read_cost(usage))
