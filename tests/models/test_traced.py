"""A traced model gives the replies of the inner model; spans have all figures and no message text."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from pitboss.core.errors import BudgetExceeded, TransientError, UserError
from pitboss.core.intent import Usage
from pitboss.core.ports import Message, ModelReply, ModelRequest, ToolCall
from pitboss.core.trace import NO_ATTRIBUTES, SILENT, Attributes
from pitboss.models.call import CallContext, DirectClient
from pitboss.models.traced import Traced

WORD = "a-word-of-the-conversation"
REQUEST = ModelRequest(
    WORD,
    (Message("user", WORD),),
    (),
    "propose_order",
    {"temperature": 0.5, "max_tokens": 100, "seed": 7, "other": WORD},
)
REPLY = ModelReply(
    text=WORD,
    calls=(ToolCall("1", "propose_order", WORD),),
    usage=Usage(1_000, 200, 300, 40, 50),
    finish_reason="tool_calls",
    latency_ms=250.0,
    provider_id="chatcmpl-1",
    model="llama-3.3",
    state=WORD,
    problem=WORD,
    cost_usd=Decimal("0.0125"),
    saved_usd=Decimal("0.5"),
)


@dataclass
class InnerModel:
    """Gives one reply, or raises."""

    outcome: ModelReply | Exception
    name: str = "groq/openai/gpt-oss-120b"

    async def complete(self, request: ModelRequest) -> ModelReply:
        assert request is REQUEST
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@dataclass
class RecordedSpan:
    """A span as the tracer received it."""

    name: str
    about: dict[str, Any]
    failed: str = ""

    def set(self, attributes: Attributes) -> None:
        self.about |= attributes

    def fail(self, kind: str) -> None:
        self.failed = kind


@dataclass
class RecordingTracer:
    """A tracer that keeps its spans, counts and records in memory."""

    on: bool = True
    spans: list[RecordedSpan] = field(default_factory=list)
    counts: list[tuple[str, float, Mapping[str, Any]]] = field(default_factory=list)
    records: list[tuple[str, float]] = field(default_factory=list)

    @contextmanager
    def span(self, name: str, attributes: Attributes = NO_ATTRIBUTES) -> Iterator[RecordedSpan]:
        self.spans.append(RecordedSpan(name, dict(attributes)))
        yield self.spans[-1]

    def count(self, name: str, amount: float = 1, attributes: Attributes = NO_ATTRIBUTES) -> None:
        self.counts.append((name, amount, attributes))

    def record(self, name: str, value: float, attributes: Attributes = NO_ATTRIBUTES) -> None:
        self.records.append((name, value))


def ask(within: InnerModel, observer: Any) -> ModelReply:
    return asyncio.run(Traced(DirectClient(within), observer).complete(REQUEST))


def test_the_reply_is_the_very_one_of_the_model_within() -> None:
    assert ask(InnerModel(REPLY), RecordingTracer()) is REPLY
    assert ask(InnerModel(REPLY), SILENT) is REPLY
    assert Traced(DirectClient(InnerModel(REPLY)), SILENT).name == "groq/openai/gpt-oss-120b"


def test_a_call_is_a_span_with_its_tokens_cost_and_settings() -> None:
    observer = RecordingTracer()
    ask(InnerModel(REPLY), observer)
    (span,) = observer.spans
    assert span.name == "chat openai/gpt-oss-120b"
    assert span.failed == ""
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "groq",
        "gen_ai.request.model": "openai/gpt-oss-120b",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.request.seed": 7,
        "gen_ai.response.model": "llama-3.3",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 1_000,
        "gen_ai.usage.output_tokens": 200,
        "gen_ai.usage.cache_read.input_tokens": 300,
        "gen_ai.usage.reasoning.output_tokens": 40,
        "gen_ai.usage.cache_creation.input_tokens": 50,
        "pitboss.cost_usd": 0.0125,
        "pitboss.saved_usd": 0.5,
    }
    assert {name: span.about[name] for name in expected} == expected


def test_calls_tokens_cost_and_latency_are_counted() -> None:
    observer = RecordingTracer()
    ask(InnerModel(REPLY), observer)
    counted = [(name, amount, about.get("gen_ai.token.type")) for name, amount, about in observer.counts]
    assert counted == [
        ("pitboss.model.calls", 1, None),
        ("pitboss.model.tokens", 1_000, "input"),
        ("pitboss.model.tokens", 200, "output"),
        ("pitboss.model.cost_usd", 0.0125, None),
        ("pitboss.model.saved_usd", 0.5, None),
    ]
    assert observer.records == [("gen_ai.client.operation.duration", 0.25)]


def test_a_cost_that_is_unknown_is_not_shown_as_zero() -> None:
    observer = RecordingTracer()
    ask(InnerModel(ModelReply(cost_usd=None)), observer)
    assert "pitboss.cost_usd" not in observer.spans[0].about
    assert "pitboss.model.cost_usd" not in [name for name, *_ in observer.counts]


@pytest.mark.parametrize("error", [TransientError(WORD), UserError(WORD, WORD), BudgetExceeded(WORD)])
def test_an_error_goes_through_and_only_its_kind_is_reported(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    observer = RecordingTracer()
    with caplog.at_level(logging.INFO, "pitboss.models"), pytest.raises(type(error)) as raised:
        ask(InnerModel(error), observer)
    assert str(raised.value) == WORD
    kind = type(error).__name__
    assert observer.spans[0].failed == kind
    assert [(name, amount, about["error.type"]) for name, amount, about in observer.counts] == [
        ("pitboss.model.errors", 1, kind)
    ]
    (line,) = caplog.records
    level = (
        "WARNING" if isinstance(error, TransientError) else "INFO"
    )  # what ends a run is reported once, by its caller
    assert (line.levelname, line.__dict__["fields"]["error"]) == (level, kind)
    assert WORD not in repr(line.__dict__["fields"]) + line.getMessage()


def test_of_failures_in_a_row_only_the_first_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    results: list[Any] = [TransientError("busy"), TransientError("busy"), ModelReply("at last"), TransientError("busy")]

    async def story() -> None:
        inner = InnerModel(REPLY)
        model = Traced(DirectClient(inner), SILENT)
        for inner.outcome in results:
            await model.call(REQUEST, CallContext())

    asyncio.run(story())
    assert [line.levelname for line in caplog.records] == ["WARNING", "WARNING"]


def test_no_text_of_the_conversation_is_exported(caplog: pytest.LogCaptureFixture) -> None:
    observer = RecordingTracer()
    with caplog.at_level(logging.DEBUG, "pitboss.models"):
        ask(InnerModel(REPLY), observer)
    assert WORD not in repr(observer)
    assert [line.getMessage() for line in caplog.records] == ["model call"]
    assert WORD not in repr([line.__dict__ for line in caplog.records])


def test_without_a_listener_nothing_is_collected() -> None:
    observer = RecordingTracer(on=False)
    ask(InnerModel(REPLY), observer)
    assert (observer.spans, observer.counts, observer.records) == ([], [], [])
