"""A model that returns the replies of a script and records the requests. For tests."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pitboss.core import codec
from pitboss.core.errors import InvariantError
from pitboss.core.ports import ModelReply, ModelRequest, ToolCall

Line = ModelReply | Exception
"""One entry of a script: a reply, or an exception to raise in its place."""


class ScriptedModel:
    """Returns the lines of a script in order, or calls a function for every reply."""

    def __init__(self, replies: Sequence[Line] | Callable[[ModelRequest], Line], name: str = "scripted/model") -> None:
        self.name = name
        self.requests: list[ModelRequest] = []
        self._replies = replies

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The next line of the script; an exception in it is raised."""
        self.requests.append(request)
        line = self._replies(request) if callable(self._replies) else self._next(self._replies)
        if isinstance(line, Exception):
            raise line
        return line

    def _next(self, replies: Sequence[Line]) -> Line:
        number = len(self.requests)
        if number > len(replies):
            raise InvariantError(f"the script has {len(replies)} replies and was asked for number {number}")
        return replies[number - 1]


def says(text: str) -> ModelReply:
    """A reply of text without calls."""
    return ModelReply(text)


def calls(name: str, /, **arguments: Any) -> ModelReply:
    """A reply that calls one tool. Decimals are written as JSON numbers."""
    return calls_text(name, codec.dumps(codec.number_fragments(arguments)).decode())


def calls_text(name: str, arguments: str) -> ModelReply:
    """A reply that calls one tool with raw text for arguments, which need not be JSON."""
    return ModelReply(calls=(ToolCall("call-1", name, arguments),), finish_reason="tool_calls")


def together(*replies: ModelReply) -> ModelReply:
    """Several replies joined into one with all their calls, each with its own id."""
    calls_ = [call for reply in replies for call in reply.calls]
    return ModelReply(
        "\n".join(reply.text for reply in replies if reply.text),
        tuple(replace(call, id=f"call-{number}") for number, call in enumerate(calls_, 1)),
        finish_reason="tool_calls" if calls_ else "stop",
    )
