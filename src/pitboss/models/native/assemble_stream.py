"""A vendor's stream, as the whole text of its events → the body that its plain reply would have had.

We never ask for a stream, but recordings hold them and a proxy may send one. `tidy` looks at what comes out, as at every
plain reply, so there is one reader of meaning.
"""

from typing import Any

from pitboss.models.chat import reply as bodies
from pitboss.models.chat.stream import DONE, events
from pitboss.models.native.errors import Stopped
from pitboss.models.native.normalise import stop_on_error

_GROWS = {
    "text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature", "input_json_delta": "partial_json",
}  # fmt: skip
_KIND = {"text": "text", "thinking": "thinking", "signature": "thinking", "partial_json": "tool_use"}


def google(text: str) -> list[Any]:
    """The pieces of a stream of Google's; each has the shape of a whole reply."""
    return _pieces(text)


def anthropic(text: str) -> dict[str, Any]:
    """The message that Anthropic's events make. Counts are running totals: the last ones hold."""
    message: dict[str, Any] | None = None
    blocks: dict[Any, dict[str, Any]] = {}
    usage: dict[str, Any] = {}
    for event in _pieces(text):
        stop_on_error(event, "message")
        kind, index = event.get("type"), str(event.get("index"))
        delta = event.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        if kind == "message_start" and isinstance(event.get("message"), dict):
            message = message or dict(event["message"])
            usage |= _counted(message.get("usage"))
        elif kind == "content_block_start" and isinstance(event.get("content_block"), dict):
            blocks[index] = dict(event["content_block"])
        elif kind == "content_block_delta":
            _grow(blocks, index, delta)
        elif kind == "message_delta" and message is not None:
            message |= {name: value for name, value in delta.items() if value is not None}
            usage |= _counted(event.get("usage"))
    if message is None or not message.get("stop_reason"):
        raise Stopped("the stream ended in the middle of the reply")
    return message | {"content": [_done(block) for block in blocks.values()], "usage": usage}


def _pieces(text: str) -> list[Any]:
    found: list[Any] = []
    for _, data in events(text):
        if data.strip() in ("", DONE):
            continue
        piece = bodies.parse(data)
        if not isinstance(piece, dict):
            raise Stopped("a piece of the stream is not JSON")
        found.append(piece)
    return found


def _grow(blocks: dict[Any, dict[str, Any]], index: str, delta: dict[str, Any]) -> None:
    field = _GROWS.get(str(delta.get("type")))
    if field is None or not isinstance(delta.get(field), str):
        return
    block = blocks.setdefault(index, {"type": _KIND[field]})
    before = block.get(field)
    block[field] = (before if isinstance(before, str) else "") + delta[field]


def _done(block: dict[str, Any]) -> dict[str, Any]:
    """A call's arguments stay the text they came as: what is wrong with them is for whoever checks arguments."""
    arguments = block.pop("partial_json", "")
    return block | {"input": arguments} if arguments else block


def _counted(usage: object) -> dict[str, Any]:
    return {name: value for name, value in usage.items() if value is not None} if isinstance(usage, dict) else {}
