"""Reads a response of the Responses protocol, plain or streamed. Any JSON gives a reply or a failure, never an exception.

Only what is used is read: text, reasoning as it must be sent back, calls of our tools, the ending and the tokens. What
the provider ran on its own side (searches, code) is never requested and is left out.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pitboss.core.ports import ModelReply
from pitboss.models.chat.finish import BLOCKED, REFUSED
from pitboss.models.chat.reply import read_error
from pitboss.models.chat.usage import read_cost, read_usage
from pitboss.models.failures import NO_HEADERS, Failure, malformed
from pitboss.models.json_body import as_dict, as_str, parse_body
from pitboss.models.native.reply import (
    ReplyContext,
    ReplyEnding,
    ReplyPart,
    build_reply,
    read_call,
    reply_document,
)
from pitboss.models.native.responses_request import PROVIDER
from pitboss.models.native.responses_stream import join_stream

_REASONING_FIELDS = ("type", "id", "summary", "content", "encrypted_content")


def read(content: object, status: int, headers: Mapping[str, str], context: ReplyContext) -> ModelReply | Failure:
    """What a response means. `content` is the bytes or the text of its body, or the plain values of a recording."""
    if status >= 300:  # a prompt that the provider filtered is a reply, not a failure
        body = parse_body(content) if isinstance(content, bytes | str) else content
        return read_error(status, body, headers, context.name)
    body = reply_document(content, status, headers, context.name, join_stream)
    if isinstance(body, Failure):
        return body
    if body.get("error") or body.get("status") == "failed":
        return read_error(200, body, NO_HEADERS, context.name)
    if not isinstance(body.get("output"), list):
        return malformed(context.name, "the reply holds no output")
    parts, refusal = list[ReplyPart](), ""
    for item in body["output"]:
        item_parts, item_refusal = _parts(as_dict(item))
        parts += item_parts
        refusal = refusal or item_refusal
    usage = body.get("usage")
    provider_id, model = as_str(body.get("id")), as_str(body.get("model"))
    reply = build_reply(PROVIDER, parts, _ending(body, refusal), read_usage(usage), context, provider_id, model)
    return replace(reply, cost_usd=read_cost(usage), text=reply.text or refusal)


def _parts(item: dict[str, Any]) -> tuple[list[ReplyPart], str]:
    """The parts of one item of the output, and the text of a refusal in it."""
    kind = item.get("type")
    if kind == "reasoning":
        wire = {name: item[name] for name in _REASONING_FIELDS if item.get(name) is not None}
        return [ReplyPart("thought", {"summary": [], **wire})], ""
    if kind == "function_call":
        return [_call(item)], ""
    if kind != "message":
        return [], ""
    content = item.get("content")
    blocks = [as_dict(block) for block in content] if isinstance(content, list) else [{"text": content}]
    text = "".join(as_str(block.get("text")) for block in blocks)
    refusal = next((as_str(block["refusal"]) for block in blocks if block.get("refusal")), "")
    wire = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    wire |= {name: item[name] for name in ("id", "phase") if isinstance(item.get(name), str)}
    return ([ReplyPart("text", wire, text)] if text else []), refusal


def _call(item: dict[str, Any]) -> ReplyPart:
    call = read_call(item.get("call_id") or item.get("id"), item.get("name"), item.get("arguments"))
    wire = {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
    if isinstance(item.get("id"), str) and item["id"] != call.id:
        wire["id"] = item["id"]
    return ReplyPart("call", wire, call=call)


def _ending(body: dict[str, Any], refusal: str) -> ReplyEnding:
    reason = as_str(as_dict(body.get("incomplete_details")).get("reason"))
    if reason == "max_output_tokens":
        return ReplyEnding("length", reason)
    if refusal:
        return ReplyEnding("failed", "refusal", f"{REFUSED}: {refusal[:300]}")
    if reason == "content_filter":
        return ReplyEnding("failed", reason, BLOCKED)
    status = as_str(body.get("status"))
    return ReplyEnding("stop", "" if status in ("completed", "complete") else reason or status)
