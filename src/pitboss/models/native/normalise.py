"""A vendor's plain reply, as parsed from somebody else's bytes → the same reply in the shape that its provider documents.

Only what we use is kept: text, thoughts with their signatures, calls of our tools, the ending and the counts of tokens.
What a provider ran on its own side (searches, code) is never asked for and is no call of ours, so it is left out. A body
that is no reply, or an error that came with a good status, raises `Stopped`. Nothing is judged here beyond that.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from pitboss.models.native.errors import Stopped

NO_NAME = "unknown"
"""Stands for the name of a call that came without one: there is no such tool, which the model is told."""
MOST_TOKENS = 10**12

_STATUS = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504,
    "overloaded_error": 529,
}  # fmt: skip
"""What Anthropic's errors stand for when they come inside a reply that began well."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")

# Anthropic ----------------------------------------------------------------------------------------------------------

_INTO = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def anthropic(body: object) -> dict[str, Any]:
    """A message of Anthropic's."""
    if not isinstance(body, dict):
        raise Stopped("the reply is not a message")
    stop_on_error(body, "content")
    if "content" not in body:
        raise Stopped("the reply holds no content")
    content = body["content"]
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    usage = _dict(body.get("usage"))
    details = _dict(body.get("stop_details"))
    return {
        "id": _text(body.get("id")),
        "type": "message",
        "role": "assistant",
        "model": _text(body.get("model")),
        "content": [
            block for one in (content if isinstance(content, list) else ()) if (block := _block(_dict(one))) is not None
        ],
        "stop_reason": _text(body.get("stop_reason")) or None,
        "stop_sequence": _text(body.get("stop_sequence")) or None,
        "stop_details": {"type": "refusal"} | {name: _text(details.get(name)) or None for name in _WHY} if details else None,
        "usage": {name: count(usage.get(name)) for name in (*_INTO, "output_tokens")}
        | {"output_tokens_details": {"thinking_tokens": count(_dict(usage.get("output_tokens_details")).get("thinking_tokens"))}},
    }  # fmt: skip


_WHY = ("explanation", "category")


def _block(block: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return {"type": kind, "text": block["text"]}
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        return {"type": kind, "thinking": block["thinking"], "signature": _text(block.get("signature"))}
    if kind == "redacted_thinking" and isinstance(block.get("data"), str):
        return {"type": kind, "data": block["data"]}
    if kind == "tool_use":
        wish = block.get("input")
        name = _text(block.get("name")) or NO_NAME
        return {"type": kind, "id": _text(block.get("id")), "name": name, "input": {} if wish is None else wish}
    return None


# Google -------------------------------------------------------------------------------------------------------------

_COUNTS = (
    "promptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
    "cachedContentTokenCount",
    "totalTokenCount",
)
_ENDINGS = frozenset({
    "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
    "MALFORMED_FUNCTION_CALL", "IMAGE_SAFETY", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE",
})  # fmt: skip
"""Reasons that Google's client knows; it complains of any other."""
_BLOCKS = frozenset({
    "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK",
})  # fmt: skip
_REPLY = ("candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId")


def google(body: object) -> dict[str, Any]:
    """A reply of generateContent."""
    if isinstance(body, list):
        body = _joined(body)  # what a stream is without `alt=sse`
    if not isinstance(body, dict):
        raise Stopped("the reply is not of generateContent")
    stop_on_error(body, "candidates")
    if not any(name in body for name in _REPLY):
        raise Stopped("the reply holds no candidates")
    candidates = body.get("candidates")
    first = _dict(candidates[0]) if isinstance(candidates, list) and candidates else {}
    parts = _dict(first.get("content")).get("parts")
    usage = _dict(body.get("usageMetadata"))
    finish = _text(first.get("finishReason")).upper()
    written: dict[str, Any] = {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        part
                        for one in (parts if isinstance(parts, list) else ())
                        if (part := _part(_dict(one))) is not None
                    ],
                },
                **({"finishReason": finish if finish in _ENDINGS else "OTHER"} if finish else {}),
            }
        ],
        "usageMetadata": {name: count(usage[name]) for name in _COUNTS if name in usage},
    }
    for name in ("modelVersion", "responseId"):
        if _text(body.get(name)):
            written[name] = body[name]
    feedback = _dict(body.get("promptFeedback"))
    why = _text(feedback.get("blockReason"))
    if why and not first:
        told = _text(feedback.get("blockReasonMessage")) or why
        known = why if why in _BLOCKS else "OTHER"
        written |= {"candidates": [], "promptFeedback": {"blockReason": known, "blockReasonMessage": told}}
    return written


def _part(part: Mapping[str, Any]) -> dict[str, Any] | None:
    call = part.get("functionCall", part.get("function_call"))
    if isinstance(call, dict):
        written: dict[str, Any] = {"functionCall": _function_call(call)}
    elif isinstance(part.get("text"), str):
        written = {"text": part["text"]} | ({"thought": True} if part.get("thought") is True else {})
    else:
        return None
    signature = part.get("thoughtSignature", part.get("thought_signature"))
    return written | ({"thoughtSignature": signature} if _is_base64(signature) else {})


def _function_call(call: Mapping[str, Any]) -> dict[str, Any]:
    if call.get("willContinue") or call.get("partialArgs"):
        raise Stopped("a call came in pieces, which nobody asked for")
    wish = call.get("args")
    if wish is None:
        wish = {}
    elif not isinstance(wish, dict):
        wish = {"arguments": wish}  # no tool takes this, and the model is told so
    written: dict[str, Any] = {"name": _text(call.get("name")) or NO_NAME, "args": wish}
    return written | ({"id": call["id"]} if _text(call.get("id")) else {})


def _is_base64(value: object) -> bool:
    if not isinstance(value, str) or not _BASE64.fullmatch(value):
        return False
    try:
        base64.urlsafe_b64decode(value.rstrip("=") + "=" * (-len(value.rstrip("=")) % 4))
    except binascii.Error:
        return False
    return True


def _joined(pieces: list[Any]) -> dict[str, Any]:
    """The pieces of a stream as one reply: parts in their order, counts and ending as last told."""
    whole: dict[str, Any] = {}
    parts: list[Any] = []
    usage: dict[str, Any] = {}
    finish = ""
    for piece in map(_dict, pieces):
        stop_on_error(piece, "candidates")
        candidates = piece.get("candidates")
        first = _dict(candidates[0]) if isinstance(candidates, list) and candidates else {}
        some = _dict(first.get("content")).get("parts")
        parts += some if isinstance(some, list) else []
        finish = _text(first.get("finishReason")) or finish
        usage |= _dict(piece.get("usageMetadata"))
        whole = piece | whole
    if not finish and not _text(_dict(whole.get("promptFeedback")).get("blockReason")):
        raise Stopped("the stream ended in the middle of the reply")
    if finish:
        whole["candidates"] = [{"content": {"role": "model", "parts": parts}, "finishReason": finish}]
    return whole | {"usageMetadata": usage}


# Both ---------------------------------------------------------------------------------------------------------------


def stop_on_error(body: Mapping[str, Any], reply: str) -> None:
    """Stop at an error that came where a reply should be; `reply` is the field that only a reply has."""
    error = body.get("error")
    if error and reply not in body:
        kind = error.get("type") if isinstance(error, dict) else None
        raise Stopped(status=_STATUS.get(kind, 200) if isinstance(kind, str) else 200, body=body)


def count(value: object) -> int:
    """A number of tokens; 0 for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return 0
    return int(value)


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
