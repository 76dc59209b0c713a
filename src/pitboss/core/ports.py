"""The ports: narrow protocols for everything that is not pure, and their values. Implementations are chosen in `bootstrap`."""

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
    """The current time."""

    def now(self) -> Instant: ...


@noun
class ToolSpec:
    """A tool as a model sees it. `schema` is JSON Schema of the arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


@noun
class ToolCall:
    """A tool call requested by a model. `arguments` is raw JSON text: untrusted input is parsed only where it is used."""

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
    """Opaque data that the provider expects back with its own turn (signatures of its reasoning)."""


@noun
class ModelRequest:
    """One request to a model. `must_call` names the only tool that the model may and must call.

    With `answer` "schema" no tool is called: the reply's text must be JSON of that tool's arguments, for providers that
    cannot be forced to call a tool.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    must_call: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    answer: Literal["call", "schema"] = "call"


@noun
class ModelReply:
    """A model's reply.

    `problem` says why a reply cannot be used (refused, blocked, cut off, a call that the provider itself rejected), in
    text that may be shown to the model. `cost_usd` is None if unknown; `saved_usd` is the original cost of a cached reply.
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
    rejected_settings: tuple[str, ...] = ()
    """Settings that the provider does not accept, and that were left out of the request or replaced."""


class Model(Protocol):
    """A language model.

    Raises `TransientError` if a request fails after its own retries; `UserError` if the user must act (a bad key, an
    unknown model); `BudgetExceeded` before a call that could exceed a spending limit.
    """

    name: str

    async def complete(self, request: ModelRequest) -> ModelReply: ...


class Tool(Protocol):
    """A read-only tool that a model may call. Raises `ToolFailed` with text for the model."""

    spec: ToolSpec

    async def call(self, arguments: Any) -> str: ...


class Journal(Protocol):
    """The store of a run's records. One `commit` is one transaction."""

    async def commit(self, batch: Sequence[Record], state: State, progress: float) -> None: ...

    def records(self) -> Iterable[Record]: ...
