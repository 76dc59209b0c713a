"""Joins a stream of Google into one reply: parts in their order, tokens and ending as last reported."""

from collections.abc import Mapping
from typing import Any

from pitboss.models.failures import Failure, malformed
from pitboss.models.json_body import as_dict, as_str
from pitboss.models.native.reply import embedded_error


def join_stream(pieces: list[dict[str, Any]], name: str) -> dict[str, Any] | Failure:
    """The reply that the pieces make."""
    reply: dict[str, Any] = {}
    parts: list[Any] = []
    usage: dict[str, Any] = {}
    reason = ""
    for piece in pieces:
        failure = embedded_error(piece, "candidates", name)
        if failure is not None:
            return failure
        candidate = first_candidate(piece)
        values = as_dict(candidate.get("content")).get("parts")
        parts += values if isinstance(values, list) else []
        reason = as_str(candidate.get("finishReason")) or reason
        usage |= as_dict(piece.get("usageMetadata"))
        reply = piece | reply
    if not reason and not as_str(as_dict(reply.get("promptFeedback")).get("blockReason")):
        return malformed(name, "the stream ended in the middle of the reply")
    if reason:
        reply["candidates"] = [{"content": {"role": "model", "parts": parts}, "finishReason": reason}]
    return reply | {"usageMetadata": usage}


def first_candidate(body: Mapping[str, Any]) -> dict[str, Any]:
    """The first candidate of a reply; empty where there is none."""
    candidates = body.get("candidates")
    return as_dict(candidates[0]) if isinstance(candidates, list) and candidates else {}
