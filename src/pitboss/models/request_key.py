"""The cache key of a model request: a digest of everything that can change the reply, and of nothing else.

Call ids, which providers invent, are numbered in order of appearance; a provider's opaque state and everything about time
is left out. The bytes that are hashed must never change: stored replies are found by this key.
"""

import hashlib
import json
from functools import lru_cache

from pitboss.core import codec
from pitboss.core.ports import Message, ModelRequest, ToolSpec
from pitboss.models.identity_cache import IdentityCache


def request_key(model: str, request: ModelRequest, repeat: int = 0) -> str:
    """The digest of a request. `repeat` separates the repetitions of a model that replies differently each time."""
    plain = {
        "model": model,
        "repeat": repeat,
        "settings": dict(request.settings),
        "system": _text_sha256(request.system),
        "messages": _messages(request.messages),
        "tools": [_tool_sha256(tool) for tool in request.tools],
        "must_call": request.must_call,
        "answer": request.answer,
    }
    return hashlib.sha256(_bytes(plain)).hexdigest()


def _messages(messages: tuple[Message, ...]) -> list[dict[str, object]]:
    """Messages with their call ids replaced by numbers; a result belongs to the latest call of its id."""
    numbers: dict[str, int] = {}
    rows: list[dict[str, object]] = []
    count = 0
    for message in messages:
        row: dict[str, object] = {"role": message.role, "text": message.text}
        if message.calls:
            calls: list[tuple[int, str, str]] = []
            for call in message.calls:
                count += 1
                numbers[call.id] = count
                calls.append((count, call.name, call.arguments))
            row["calls"] = calls
        if message.call_id or message.name:
            row["call"] = numbers.get(message.call_id, message.call_id)
            row["name"] = message.name
        rows.append(row)
    return rows


def _bytes(plain: object) -> bytes:
    try:
        return codec.dumps(plain)
    except TypeError:  # half a surrogate pair, which JSON can express and UTF-8 cannot
        return json.dumps(plain, sort_keys=True, separators=(",", ":"), default=str).encode()


@lru_cache(maxsize=64)
def _text_sha256(text: str) -> str:
    """The system prompt is the same at every tick, so it is hashed once."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@IdentityCache
def _tool_sha256(tool: ToolSpec) -> str:
    """A tool's schema is larger than most prompts and never changes."""
    plain = {"name": tool.name, "description": tool.description, "schema": tool.schema}
    return hashlib.sha256(_bytes(plain)).hexdigest()
