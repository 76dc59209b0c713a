"""Reads a message of Anthropic, plain or streamed. Any JSON gives a reply or a failure, never an exception.

Only what is used is read: text, thinking with its signature, calls of our tools, the ending and the tokens. What the
provider ran on its own side (searches, code) is never requested and is left out.
"""

from collections.abc import Mapping
from typing import Any

from pitboss.core import codec
from pitboss.core.intent import Usage
from pitboss.core.ports import ModelReply
from pitboss.models.failures import Failure, malformed
from pitboss.models.json_body import as_dict, as_str, token_count
from pitboss.models.native.anthropic_stream import join_stream
from pitboss.models.native.reply import (
    ReplyContext,
    ReplyEnding,
    ReplyPart,
    build_reply,
    embedded_error,
    read_call,
    reply_document,
)

_CUT = frozenset({"max_tokens", "model_context_window_exceeded"})


def read(content: object, status: int, headers: Mapping[str, str], context: ReplyContext) -> ModelReply | Failure:
    """What a response means. `content` is the bytes or the text of its body, or the plain values of a recording."""
    body = reply_document(content, status, headers, context.name, join_stream)
    if isinstance(body, Failure):
        return body
    failure = embedded_error(body, "content", context.name)
    if failure is not None:
        return failure
    if "content" not in body:
        return malformed(context.name, "the reply holds no content")
    blocks = body["content"]
    if isinstance(blocks, str):
        blocks = [{"type": "text", "text": blocks}]
    blocks = blocks if isinstance(blocks, list) else []
    parts = [part for block in blocks if (part := _part(as_dict(block))) is not None]
    provider_id, model = as_str(body.get("id")), as_str(body.get("model"))
    return build_reply("anthropic", parts, _ending(body), _usage(body.get("usage")), context, provider_id, model)


def _part(block: dict[str, Any]) -> ReplyPart | None:
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        text = codec.printable(block["text"])
        return ReplyPart("text", {"type": kind, "text": text}, text)
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        signature = as_str(block.get("signature"))
        return ReplyPart("thought", {"type": kind, "thinking": block["thinking"], "signature": signature})
    if kind == "redacted_thinking" and isinstance(block.get("data"), str):
        return ReplyPart("thought", {"type": kind, "data": block["data"]})
    if kind != "tool_use":
        return None
    value = block.get("input")
    call = read_call(block.get("id"), block.get("name"), value)
    wire = {"type": kind, "id": call.id, "name": call.name, "input": {} if value is None else value}
    return ReplyPart("call", wire, call=call)


def _ending(body: dict[str, Any]) -> ReplyEnding:
    reason = as_str(body.get("stop_reason"))
    if reason in _CUT:
        return ReplyEnding("length", reason)
    if reason != "refusal":
        return ReplyEnding("stop", reason)
    details = as_dict(body.get("stop_details"))
    explanation = as_str(details.get("explanation")) or as_str(details.get("category"))
    return ReplyEnding("failed", reason, f"the model refused: {explanation}" if explanation else "the model refused")


def _usage(value: object) -> Usage:
    usage = as_dict(value)
    cached = token_count(usage.get("cache_read_input_tokens"))
    cache_writes = token_count(usage.get("cache_creation_input_tokens"))
    output = token_count(usage.get("output_tokens"))
    thinking = token_count(as_dict(usage.get("output_tokens_details")).get("thinking_tokens"))
    total = token_count(usage.get("input_tokens")) + cached + cache_writes
    return Usage(total, output, cached, min(thinking, output), cache_writes)
