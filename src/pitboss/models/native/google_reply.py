"""Reads a reply of Google's generateContent, plain or streamed. Any JSON gives a reply or a failure, never an exception.

Only what is used is read: text, thoughts, signatures, calls of our tools, the ending and the tokens.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from pitboss.core import codec
from pitboss.core.intent import Usage
from pitboss.core.ports import ModelReply
from pitboss.models.failures import Failure, malformed
from pitboss.models.json_body import as_dict, as_str, token_count
from pitboss.models.native.google_stream import first_candidate, join_stream
from pitboss.models.native.reply import (
    ReplyContext,
    ReplyEnding,
    ReplyPart,
    build_reply,
    embedded_error,
    read_call,
    reply_document,
)

_FIELDS = ("candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId")
_FILTERED = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"})
_FAILED = frozenset({"LANGUAGE", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"})
_NAMED = frozenset({"", "STOP", "MAX_TOKENS", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"})
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def read(content: object, status: int, headers: Mapping[str, str], context: ReplyContext) -> ModelReply | Failure:
    """What a response means. `content` is the bytes or the text of its body, or the plain values of a recording."""
    body = reply_document(content, status, headers, context.name, join_stream)
    if isinstance(body, Failure):
        return body
    failure = embedded_error(body, "candidates", context.name)
    if failure is not None:
        return failure
    if not any(name in body for name in _FIELDS):
        return malformed(context.name, "the reply holds no candidates")
    candidate = first_candidate(body)
    values = as_dict(candidate.get("content")).get("parts")
    parts: list[ReplyPart] = []
    for value in values if isinstance(values, list) else ():
        part = _part(as_dict(value))
        if part is not None:
            parts.append(part)
        elif _is_partial(as_dict(value)):
            return malformed(context.name, "a tool call arrived in several parts, which was not requested")
    provider_id, model = as_str(body.get("responseId")), as_str(body.get("modelVersion"))
    ending = _ending(candidate, as_dict(body.get("promptFeedback")))
    return build_reply("google", parts, ending, _usage(body.get("usageMetadata")), context, provider_id, model)


def _function_call(part: Mapping[str, Any]) -> object:
    return part.get("functionCall", part.get("function_call"))


def _is_partial(part: Mapping[str, Any]) -> bool:
    call = _function_call(part)
    return isinstance(call, dict) and bool(call.get("willContinue") or call.get("partialArgs"))


def _part(part: Mapping[str, Any]) -> ReplyPart | None:
    value = _function_call(part)
    signature = part.get("thoughtSignature", part.get("thought_signature"))
    signed = {"thoughtSignature": signature} if _is_base64(signature) else {}
    if isinstance(value, dict):
        if _is_partial(part):
            return None
        arguments = value.get("args")
        if arguments is None:
            arguments = {}
        elif not isinstance(arguments, dict):
            arguments = {"arguments": arguments}  # no tool takes this, and the model is told so
        call = read_call(value.get("id"), value.get("name"), arguments)
        wire = {"functionCall": {"id": call.id, "name": call.name, "args": arguments}}
        return ReplyPart("call", wire | signed, call=call, is_signed=bool(signed))
    if not isinstance(part.get("text"), str):
        return None
    text = codec.printable(part["text"])
    if part.get("thought") is True:
        return ReplyPart("thought", {"text": text, "thought": True} | signed, text, is_signed=bool(signed))
    return ReplyPart("text", {"text": text} | signed, text, is_signed=bool(signed))


def _ending(candidate: Mapping[str, Any], feedback: Mapping[str, Any]) -> ReplyEnding:
    blocked = as_str(feedback.get("blockReason"))
    if blocked and not candidate:
        message = as_str(feedback.get("blockReasonMessage")) or blocked
        return ReplyEnding("failed", blocked, f"the provider blocked the question: {message}")
    reason = as_str(candidate.get("finishReason")).upper()
    if reason in _FILTERED:
        return ReplyEnding("failed", reason, f"the reply was blocked by the provider's filter ({reason})")
    if reason in _FAILED:
        return ReplyEnding("failed", reason, f"the provider could not take the reply ({reason})")
    if reason == "MAX_TOKENS":
        return ReplyEnding("length", reason)
    return ReplyEnding("stop", reason if reason in _NAMED else "OTHER")


def _usage(value: object) -> Usage:
    usage = as_dict(value)
    total = token_count(usage.get("promptTokenCount")) + token_count(usage.get("toolUsePromptTokenCount"))
    thoughts = token_count(usage.get("thoughtsTokenCount"))
    cached = min(token_count(usage.get("cachedContentTokenCount")), total)
    return Usage(total, token_count(usage.get("candidatesTokenCount")) + thoughts, cached, thoughts)


def _is_base64(value: object) -> bool:
    if not isinstance(value, str) or not _BASE64.fullmatch(value):
        return False
    try:
        base64.urlsafe_b64decode(value.rstrip("=") + "=" * (-len(value.rstrip("=")) % 4))
    except binascii.Error:
        return False
    return True
