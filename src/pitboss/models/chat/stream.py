"""A streamed chat completion, as the whole text of its events → the same reply as if it had come in one piece.

The pieces are put together into the body that a plain reply would have had, and `reply` reads that; so there is one
reader of meaning. What is special about streams is here: pieces of calls, errors after a good status, and ends that
come too early, which are failures unless the model had already said that it was done.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pitboss.core.ports import ModelReply
from pitboss.models.chat import reply as replies
from pitboss.models.failures import NOTHING, Failure, malformed

DONE = "[DONE]"
_FIELDS = ("data:", "event:", "id:", "retry:", ":")


def events(text: str) -> Iterator[tuple[str, str]]:
    """Name and data of every server-sent event. Comments are keep-alives; the last event may lack its blank line."""
    name, data = "", list[str]()
    for line in text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff").split("\n"):
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
    if data:
        yield name, "\n".join(data)


def is_stream(text: str) -> bool:
    """Whether a text is one of events, whatever its sender called it."""
    return text.removeprefix("\ufeff").lstrip().startswith(_FIELDS)


def read(
    text: str | bytes, asked: str = "the provider", keeps: Sequence[str] = replies.KEPT, first_call: int = 0
) -> ModelReply | Failure:
    """Read a whole stream. A plain reply that was only called one is read as what it is."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if not is_stream(text) and text.strip():
        return replies.read(replies.parse(text), asked, keeps, first_call)
    pieces = _Pieces()
    for name, data in events(text):
        if not data.strip():
            continue  # a keep-alive
        if data.strip() == DONE:
            pieces.done = True
            break
        chunk = replies.parse(data)
        if not isinstance(chunk, dict):
            pieces.broken = True
            continue
        pieces.take(name, chunk)
    return pieces.reply(asked, keeps, first_call)


class _Pieces:
    """What has come so far."""

    def __init__(self) -> None:
        self.done = False
        self.broken = False
        self.chunks = 0
        self.error: dict[str, Any] | None = None
        self.usage: Any = None
        self.top: dict[str, str] = {}
        self.finish: str | None = None
        self.texts: dict[str, list[str]] = {}
        self.parts: list[Any] = []
        self.details: list[Any] = []
        self.extras: dict[str, Any] = {}
        self.calls: list[_Call] = []

    def take(self, name: str, chunk: dict[str, Any]) -> None:
        """Take one event in."""
        self.chunks += 1
        groq = chunk.get("x_groq")
        groq = groq if isinstance(groq, dict) else {}
        error = chunk.get("error") or groq.get("error")
        if error or name == "error":
            inner = error if isinstance(error, dict) else {"message": error} if isinstance(error, str) else chunk
            self.error = self.error or {"error": inner}
        usage = chunk.get("usage") or groq.get("usage")
        self.usage = usage if isinstance(usage, dict) else self.usage
        for key in ("id", "model"):
            if isinstance(chunk.get(key), str) and chunk[key]:
                self.top.setdefault(key, chunk[key])  # some change it with every piece
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and not _whole_number(choice.get("index")):
                self._take_choice(choice)

    def _take_choice(self, choice: dict[str, Any]) -> None:
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish = self.finish or reason
        delta = choice.get("delta") or choice.get("message")
        if not isinstance(delta, dict):
            delta = {"content": choice.get("text")}
        for key in ("reasoning", "reasoning_content", "refusal"):
            words = delta.get(key)
            if isinstance(words, str):
                self.texts.setdefault(key, []).append(words)
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
        wishes = delta.get("tool_calls")
        if isinstance(delta.get("function_call"), dict) and not wishes:
            wishes = [{"index": 0, "function": delta["function_call"]}]
        for wish in wishes if isinstance(wishes, list) else ():
            if isinstance(wish, dict):
                self._take_call(wish)

    def _add_part(self, part: object) -> None:
        """Join a part of a content with the one before it when both are the same kind of thing."""
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

    def _take_call(self, wish: dict[str, Any]) -> None:
        function = wish.get("function")
        function = function if isinstance(function, dict) else {}
        index, id_, name = wish.get("index"), wish.get("id"), function.get("name")
        id_ = id_ if isinstance(id_, str) else ""
        name = name if isinstance(name, str) else ""
        arguments = function.get("arguments")
        call = self._slot(_whole_number(index), id_, name, bool(arguments))
        call.id = call.id or id_
        if name and name != call.name and not call.arguments:
            call.name += name
        if isinstance(arguments, str):
            call.arguments.append(arguments)
        elif arguments is not None:
            call.arguments.append(replies.as_text(arguments))
        if wish.get("extra_content"):
            call.extra = wish["extra_content"]

    def _slot(self, index: int | None, id_: str, name: str, says_more: bool) -> "_Call":
        """The call that a piece belongs to: by index, unless a new id or a name says that it is another one."""
        if index is None:
            found = next((call for call in self.calls if id_ and call.id == id_), None)
            if found is None and self.calls and not id_ and not (name and self.calls[-1].arguments):
                found = self.calls[-1]
        else:
            found = next((call for call in reversed(self.calls) if call.index == index), None)
            if found is not None and name and found.begins_anew(id_, name, says_more):
                found = None
        if found is None:
            found = _Call(index)
            self.calls.append(found)
        return found

    def reply(self, asked: str, keeps: Sequence[str], first_call: int) -> ModelReply | Failure:
        """What all of it amounts to."""
        if self.error is not None and self.finish in (None, "error"):
            found = replies.read_error(200, self.error, NOTHING, asked, first_call)
            return replies.with_usage(found, self.usage) if isinstance(found, ModelReply) else found
        if self.broken:
            return malformed(asked, "a piece of the stream is not JSON")
        if not self.chunks:
            return malformed(asked, "the stream is empty")
        if self.finish is None and not self.done:
            return malformed(asked, "the stream ended in the middle of the reply")
        message: dict[str, Any] = {key: "".join(texts) for key, texts in self.texts.items()} | self.extras
        if any(part.get("type") != "text" for part in self.parts):
            message["content"] = self.parts
        if self.details:
            message["reasoning_details"] = self.details
        if self.calls:
            message["tool_calls"] = [call.plain() for call in self.calls]
        body = {**self.top, "choices": [{"message": message, "finish_reason": self.finish}], "usage": self.usage}
        return replies.read(body, asked, keeps, first_call)


class _Call:
    """A call as it grows."""

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.extra: Any = None

    def begins_anew(self, id_: str, name: str, says_more: bool) -> bool:
        """Whether a piece with a name is the first one of another call, of a server that numbers all of them alike.

        Others repeat the name, or even draw a new id, with every piece of one call.
        """
        other_id = bool(id_ and self.id and id_ != self.id)
        if not self.name or (id_ and id_ == self.id):
            return other_id
        arguments = "".join(self.arguments)
        if name != self.name:
            return other_id or bool(arguments)
        if not arguments:
            return other_id
        return (other_id or says_more) and isinstance(replies.parse(arguments), dict)

    def plain(self) -> dict[str, Any]:
        """As a plain reply would have it."""
        function = {"name": self.name, "arguments": "".join(self.arguments)}
        plain: dict[str, Any] = {"id": self.id, "function": function}
        return plain | ({"extra_content": self.extra} if self.extra else {})


def _whole_number(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return value if isinstance(value, int) else None


def _text_of(parts: object) -> str:
    if not isinstance(parts, list):
        return ""
    return "".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))
