"""`StandIn`: a deterministic program behind the Model port, for demos and tests. NOT a language model.

It speaks the whole model protocol: reads the prompt text that any model would get, calls tools, gives reasons. How it
decides belongs to the venue. The same request gives the same reply in every process; its results say nothing about the
worth of a strategy.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pitboss.core import codec
from pitboss.core.intent import Usage
from pitboss.core.ports import ModelReply, ModelRequest, ToolCall

NAME = "standin/analyst"
LABEL = "deterministic stand-in for demos and tests; not a language model"
_CHARS_PER_TOKEN = 4

StandInReply = tuple[str, str, Mapping[str, Any]]
"""Its text, the tool it calls (empty for none) and the arguments."""


class StandIn:
    """A function from requests to replies as a model."""

    name = NAME
    label = LABEL

    def __init__(self, answer: Callable[[ModelRequest], StandInReply]) -> None:
        self._answer = answer

    async def complete(self, request: ModelRequest) -> ModelReply:
        """One reply; tokens are estimated from the length of the texts."""
        text, tool, arguments = self._answer(request)
        body = codec.dumps(codec.number_fragments(arguments)).decode() if tool else ""
        calls = (ToolCall(f"standin-{len(request.messages)}", tool, body),) if tool else ()
        chars = len(request.system) + sum(len(message.text) for message in request.messages)
        return ModelReply(
            text=f"[stand-in, not a language model] {text}",
            calls=calls,
            usage=Usage(chars // _CHARS_PER_TOKEN, (len(text) + len(body)) // _CHARS_PER_TOKEN),
            finish_reason="tool_calls" if tool else "stop",
        )
