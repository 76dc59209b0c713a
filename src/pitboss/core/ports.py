"""Everything that is not pure, as narrow protocols. Concrete ones are named in `bootstrap` only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any, Literal, Protocol

from pitboss.core.instant import Instant
from pitboss.core.intent import NO_USAGE, FinishReason, Usage
from pitboss.core.money import ZERO
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
    state: str = ""
    """What the provider wants to have back with its own turn (signatures of its reasoning); opaque to us."""


@noun
class ModelRequest:
    """One question to a model. `must_call` names the only tool it may and must call now.

    With `answer` "schema" no tool is called: the reply's text must be JSON of that tool's arguments, for providers that
    cannot be made to call one.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    must_call: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    answer: Literal["call", "schema"] = "call"


@noun
class ModelReply:
    """What a model answered.

    `problem` says why a reply is no answer (refused, blocked, cut off, a call that the provider itself rejected), in words
    that the model can be told. `cost_usd` is None where nobody knows; `saved_usd` is what a cached answer once cost.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = NO_USAGE
    finish_reason: FinishReason = "stop"
    latency_ms: float = 0.0
    provider_id: str = ""
    model: str = ""
    state: str = ""
    problem: str = ""
    cost_usd: Decimal | None = ZERO
    saved_usd: Decimal = ZERO


class Model(Protocol):
    """Something that answers a question.

    Raises `TransientError` when it cannot, after its own retries; `UserError` when a person must act (a bad key, an
    unknown model); `BudgetExceeded` before a call that could pass a spending limit.
    """

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
