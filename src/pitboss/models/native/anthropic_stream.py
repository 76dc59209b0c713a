"""Joins a stream of Anthropic into the message that its plain reply would be. Only the chat asks for one.

Recordings hold streams, and a proxy may send one. `anthropic_reply` reads the result, so there is one reader of meaning.
"""

from typing import Any

from pitboss.models.failures import Failure, malformed
from pitboss.models.json_body import as_dict
from pitboss.models.native.reply import embedded_error

_FIELDS = {
    "text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature", "input_json_delta": "partial_json",
}  # fmt: skip
_KINDS = {"text": "text", "thinking": "thinking", "signature": "thinking", "partial_json": "tool_use"}


def join_stream(events: list[dict[str, Any]], name: str) -> dict[str, Any] | Failure:
    """The message that the events make. Counts of tokens are running totals: the last ones hold."""
    message: dict[str, Any] | None = None
    blocks: dict[str, dict[str, Any]] = {}
    usage: dict[str, Any] = {}
    for event in events:
        failure = embedded_error(event, "message", name)
        if failure is not None:
            return failure
        kind, index, delta = event.get("type"), str(event.get("index")), as_dict(event.get("delta"))
        if kind == "message_start" and isinstance(event.get("message"), dict):
            message = message or dict(event["message"])
            usage |= _counts(message.get("usage"))
        elif kind == "content_block_start" and isinstance(event.get("content_block"), dict):
            blocks[index] = dict(event["content_block"])
        elif kind == "content_block_delta":
            _extend(blocks, index, delta)
        elif kind == "message_delta" and message is not None:
            message |= {field: value for field, value in delta.items() if value is not None}
            usage |= _counts(event.get("usage"))
    if message is None or not message.get("stop_reason"):
        return malformed(name, "the stream ended in the middle of the reply")
    return message | {"content": [_complete(block) for block in blocks.values()], "usage": usage}


def _extend(blocks: dict[str, dict[str, Any]], index: str, delta: dict[str, Any]) -> None:
    field = _FIELDS.get(str(delta.get("type")))
    if field is None or not isinstance(delta.get(field), str):
        return
    block = blocks.setdefault(index, {"type": _KINDS[field]})
    before = block.get(field)
    block[field] = (before if isinstance(before, str) else "") + delta[field]


def _complete(block: dict[str, Any]) -> dict[str, Any]:
    """A block with its arguments as the text they came as: errors in them are found where arguments are checked."""
    arguments = block.pop("partial_json", "")
    return block | {"input": arguments} if arguments else block


def _counts(usage: object) -> dict[str, Any]:
    return {name: value for name, value in as_dict(usage).items() if value is not None}
