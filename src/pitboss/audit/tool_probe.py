"""`ToolProbe`: a model that first calls the audited tools with random arguments and then lets another model decide.

The calls go through the agent loop of the run like those of any model, so their results are in the record of the tick.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.core import codec
from pitboss.core.ports import Model, ModelReply, ModelRequest, ToolCall

CALL = "audit-"
"""How the ids of its calls begin."""


class ToolProbe:
    """Calls tools at the ticks at which it is armed."""

    def __init__(self, inner: Model) -> None:
        self.name = inner.name
        self.is_armed = False
        self.calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
        self._inner = inner

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Call the tools in the first reply of an armed tick; every other request goes to the other model."""
        is_first = all(message.role == "user" for message in request.messages)
        if self.is_armed and is_first and request.must_call is None:
            offered = {tool.name for tool in request.tools}
            calls = [
                ToolCall(f"{CALL}{number}", name, codec.dumps(codec.number_fragments(arguments)).decode())
                for number, (name, arguments) in enumerate(self.calls)
                if name in offered
            ]
            if calls:
                return ModelReply(calls=tuple(calls), finish_reason="tool_calls")
        return await self._inner.complete(_without_probes(request))


def _without_probes(request: ModelRequest) -> ModelRequest:
    """The request without the calls of the probe and their results."""
    messages = [
        message
        for message in request.messages
        if not message.call_id.startswith(CALL) and not any(call.id.startswith(CALL) for call in message.calls)
    ]
    return ModelRequest(
        request.system, tuple(messages), request.tools, request.must_call, request.settings, request.answer
    )
