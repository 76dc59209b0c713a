"""Reads a streamed chat completion, from the whole text of its events, like the same reply in one piece.

The pieces are joined into the body of a plain reply, which `reply` reads, so there is one reader of meaning. What is
special about streams is here: pieces, errors after a good status, and streams that end too early, which are failures
unless the finish reason had already arrived.
"""

from collections.abc import Sequence
from typing import Any

from pitboss.core.ports import ModelReply
from pitboss.models.chat import reply as replies
from pitboss.models.chat.call_pieces import StreamedCalls, integer
from pitboss.models.failures import NO_HEADERS, Failure, malformed
from pitboss.models.json_body import parse_body
from pitboss.models.server_events import DONE, events, is_stream


def read(
    text: str | bytes, name: str = "the provider", keeps: Sequence[str] = replies.KEPT, first_call: int = 0
) -> ModelReply | Failure:
    """Read a whole stream. A plain reply with the content type of a stream is read as a plain reply."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if not is_stream(text) and text.strip():
        return replies.read(parse_body(text), name, keeps, first_call)
    pieces = _Pieces()
    for event, data in events(text):
        if not data.strip():
            continue  # a keep-alive
        if data.strip() == DONE:
            pieces.is_done = True
            break
        chunk = parse_body(data)
        if not isinstance(chunk, dict):
            pieces.is_broken = True
            continue
        pieces.add(event, chunk)
    return pieces.reply(name, keeps, first_call)


class _Pieces:
    """What has arrived so far."""

    def __init__(self) -> None:
        self.is_done = False
        self.is_broken = False
        self.chunks = 0
        self.error: dict[str, Any] | None = None
        self.usage: Any = None
        self.top: dict[str, str] = {}
        self.finish: str | None = None
        self.texts: dict[str, list[str]] = {}
        self.parts: list[Any] = []
        self.details: list[Any] = []
        self.extras: dict[str, Any] = {}
        self.calls = StreamedCalls()

    def add(self, event: str, chunk: dict[str, Any]) -> None:
        """Take one event."""
        self.chunks += 1
        groq = chunk.get("x_groq")
        groq = groq if isinstance(groq, dict) else {}
        error = chunk.get("error") or groq.get("error")
        if error or event == "error":
            inner = error if isinstance(error, dict) else {"message": error} if isinstance(error, str) else chunk
            self.error = self.error or {"error": inner}
        usage = chunk.get("usage") or groq.get("usage")
        self.usage = usage if isinstance(usage, dict) else self.usage
        for key in ("id", "model"):
            if isinstance(chunk.get(key), str) and chunk[key]:
                self.top.setdefault(key, chunk[key])  # some change it with every piece
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and not integer(choice.get("index")):
                self._add_choice(choice)

    def _add_choice(self, choice: dict[str, Any]) -> None:
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish = self.finish or reason
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, dict):
            delta = {"content": choice.get("text")}
        for key in ("reasoning", "reasoning_content", "refusal"):
            text = delta.get(key)
            if isinstance(text, str):
                self.texts.setdefault(key, []).append(text)
        content = delta.get("content")
        if isinstance(content, str):
            self.texts.setdefault("content", []).append(content)
            if content:
                self._add_part({"type": "text", "text": content})
        elif isinstance(content, list):
            for part in content:
                self._add_part(part)
            self.texts.setdefault("content", []).append(_text_of(content))
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            self.details += details
        for key in ("extra_content", "thought_signature"):
            if delta.get(key):
                self.extras[key] = delta[key]
        calls = delta.get("tool_calls")
        if isinstance(delta.get("function_call"), dict) and not calls:
            calls = [{"index": 0, "function": delta["function_call"]}]
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict):
                self.calls.add(call)

    def _add_part(self, part: object) -> None:
        """Join a part of a content with the previous one where both are of the same kind."""
        if not isinstance(part, dict):
            return
        last = self.parts[-1] if self.parts else {}
        if part.get("type") == "text" and last.get("type") == "text" and isinstance(part.get("text"), str):
            last["text"] = str(last.get("text", "")) + part["text"]
            return
        thoughts = part.get("thinking")
        if part.get("type") == "thinking" and last.get("type") == "thinking" and isinstance(thoughts, list):
            last["thinking"] = [{"type": "text", "text": _text_of(last.get("thinking")) + _text_of(thoughts)}]
            return
        self.parts.append(dict(part))

    def reply(self, name: str, keeps: Sequence[str], first_call: int) -> ModelReply | Failure:
        """The reply that all pieces make."""
        if self.error is not None and self.finish in (None, "error"):
            outcome = replies.read_error(200, self.error, NO_HEADERS, name, first_call)
            return replies.with_usage(outcome, self.usage) if isinstance(outcome, ModelReply) else outcome
        if self.is_broken:
            return malformed(name, "a piece of the stream is not JSON")
        if not self.chunks:
            return malformed(name, "the stream is empty")
        if self.finish is None and not self.is_done:
            return malformed(name, "the stream ended in the middle of the reply")
        message: dict[str, Any] = {key: "".join(texts) for key, texts in self.texts.items()} | self.extras
        if any(part.get("type") != "text" for part in self.parts):
            message["content"] = self.parts
        if self.details:
            message["reasoning_details"] = self.details
        if self.calls.calls:
            message["tool_calls"] = [call.plain() for call in self.calls.calls]
        body = {**self.top, "choices": [{"message": message, "finish_reason": self.finish}], "usage": self.usage}
        return replies.read(body, name, keeps, first_call)


def _text_of(parts: object) -> str:
    if not isinstance(parts, list):
        return ""
    return "".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))
