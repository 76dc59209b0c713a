"""`Traced`: a span, counters and a log line for each call of a model.

A failure is logged as a warning if its tick is skipped and the call before succeeded; one that ends the run is reported by its caller.

The outermost wrapper, so that replies from the cache are traced too. Names follow OpenTelemetry's conventions for
generative models (`chat <model>`, `gen_ai.usage.*`). No content is exported: no prompt, no reply, no argument of a call,
and of an error only its type.
"""

import logging
from typing import Any

from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.core.trace import Attributes, Span, Tracer, Value
from pitboss.models.call import CallContext, CallResult, ModelClient

LOG = logging.getLogger("pitboss.models")
SETTINGS = ("temperature", "max_tokens", "seed")


class Traced(ModelClient):
    """`inner`, observed: a span, counters and a log line for each call."""

    def __init__(self, inner: ModelClient, tracer: Tracer) -> None:
        self.inner = inner
        self.tracer = tracer
        self.name = inner.name
        self._failing = False
        """Whether the last call failed: of several failures in a row only the first is a warning."""

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        """Make the call and report what it took."""
        try:
            result = await (self._observed if self.tracer.on else self.inner.call)(request, context)
        except Exception as error:
            LOG.warning("model call failed", extra=_line(self.name, {"error": type(error).__name__}))
            raise
        if result.reply is None:
            level = logging.WARNING if result.is_transient and not self._failing else logging.INFO
            LOG.log(level, "model call failed", extra=_line(self.name, {"error": _error_name(result)}))
        elif LOG.isEnabledFor(logging.DEBUG):
            LOG.debug("model call", extra=_line(self.name, _reply_attributes(result.reply)))
        self._failing = result.reply is None
        return result

    async def _observed(self, request: ModelRequest, context: CallContext) -> CallResult:
        provider, _, model = self.name.partition("/")
        about: dict[str, Value] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model or provider,
        }
        with self.tracer.span(f"chat {model or provider}", about | _request_attributes(request)) as span:
            try:
                result = await self.inner.call(request, context)
            except Exception as error:
                self._report_error(span, about, type(error).__name__)
                raise
            if result.reply is None:
                self._report_error(span, about, _error_name(result))
            else:
                self._report_reply(span, about, result.reply)
        return result

    def _report_error(self, span: Span, about: Attributes, name: str) -> None:
        span.fail(name)
        self.tracer.count("pitboss.model.errors", 1, {**about, "error.type": name})

    def _report_reply(self, span: Span, about: Attributes, reply: ModelReply) -> None:
        span.set(_reply_attributes(reply))
        self.tracer.count("pitboss.model.calls", 1, about)
        self.tracer.count("pitboss.model.tokens", reply.usage.input_tokens, {**about, "gen_ai.token.type": "input"})
        self.tracer.count("pitboss.model.tokens", reply.usage.output_tokens, {**about, "gen_ai.token.type": "output"})
        if reply.cost_usd is not None:
            self.tracer.count("pitboss.model.cost_usd", float(reply.cost_usd), about)
        self.tracer.count("pitboss.model.saved_usd", float(reply.saved_usd), about)
        self.tracer.record("gen_ai.client.operation.duration", reply.latency_ms / 1_000, about)


def _line(model: str, fields: Attributes) -> dict[str, Any]:
    return {"fields": {"model": model, **fields}}


def _request_attributes(request: ModelRequest) -> dict[str, Value]:
    """The kind of a request."""
    about: dict[str, Value] = {"pitboss.turns": len(request.messages), "pitboss.answer": request.answer}
    if request.must_call is not None:
        about["pitboss.must_call"] = request.must_call
    for name in SETTINGS:
        value: Any = request.settings.get(name)
        if isinstance(value, int | float):
            about[f"gen_ai.request.{name}"] = value
    return about


def _reply_attributes(reply: ModelReply) -> dict[str, Value]:
    """What a reply took. An unknown cost is left out, because it is not 0."""
    usage = reply.usage
    about: dict[str, Value] = {
        "gen_ai.response.finish_reasons": (reply.finish_reason,),
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        "pitboss.saved_usd": float(reply.saved_usd),
        "pitboss.tool_calls": len(reply.calls),
        "pitboss.problem": bool(reply.problem),
        "pitboss.latency_ms": round(reply.latency_ms, 3),
    }
    if reply.cost_usd is not None:
        about["pitboss.cost_usd"] = float(reply.cost_usd)
    if reply.model:
        about["gen_ai.response.model"] = reply.model
    if reply.provider_id:
        about["gen_ai.response.id"] = reply.provider_id
    return about


def _error_name(result: CallResult) -> str:
    """The name of the exception that the failure becomes at the public port."""
    return "" if result.failure is None else type(result.failure.error()).__name__
