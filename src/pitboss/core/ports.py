"""Everything that is not pure, as narrow protocols. Concrete ones are named in `bootstrap` only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol

from pitboss.core.instant import Instant
from pitboss.core.intent import NO_USAGE, FinishReason, Usage
from pitboss.core.noun import noun
from pitboss.core.snapshot import Record
from pitboss.core.state import State


class Clock(Protocol):
    """What time it is."""

    def now(self) -> Instant: ...


@noun
class ToolSpec:
    """A tool as a model sees it. `schema` is JSON Schema of the arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


@noun
class ToolCall:
    """A model's wish to call a tool. `arguments` is the raw JSON text: nothing untrusted is parsed before its use."""

    id: str
    name: str
    arguments: str


@noun
class Message:
    """One turn of the conversation inside a tick."""

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""


@noun
class ModelRequest:
    """One question to a model. `must_call` names the only tool it may and must call now."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    must_call: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


@noun
class ModelReply:
    """What a model answered."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = NO_USAGE
    finish_reason: FinishReason = "stop"
    latency_ms: float = 0.0
    provider_id: str = ""


class Model(Protocol):
    """Something that answers a question. Raises `TransientError` when it cannot, after its own retries."""

    name: str

    async def complete(self, request: ModelRequest) -> ModelReply: ...


class Tool(Protocol):
    """Something a model may look at. Never changes anything. Raises `ToolFailed` with text for the model."""

    spec: ToolSpec

    async def call(self, arguments: Any) -> str: ...


class Journal(Protocol):
    """Where records go. One call is one transaction: all of it is there afterwards, or none."""

    async def commit(self, batch: Sequence[Record], state: State, progress: float) -> None: ...

    def records(self) -> Iterable[Record]: ...
