"""OpenTelemetry behind the `Tracer` port: spans and metrics of runs, ticks, model calls and tools.

Off, and not imported, unless the setting `telemetry` names a target. Of an exception only its type is sent, never its
message; text attributes pass the redactor. No global state is changed: a program that embeds pitboss keeps its own
providers.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pitboss import __version__
from pitboss.bootstrap.machine import environment, stopwatch
from pitboss.bootstrap.redact import REDACTOR, Redactor
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.core.plain_http import check_plain_http
from pitboss.core.trace import NO_ATTRIBUTES, SILENT, Attributes, Span, Tracer, Value

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Span as OtelSpan

CONSOLE = "console"
CLOSE_TIMEOUT_MS = 3_000
"""How long a collector that does not answer may delay the end of a command."""

UNITS = {
    "gen_ai.client.operation.duration": "s",
    "pitboss.model.calls": "{call}",
    "pitboss.model.errors": "{call}",
    "pitboss.model.tokens": "{token}",
    "pitboss.model.cost_usd": "USD",
    "pitboss.model.saved_usd": "USD",
    "pitboss.tool.calls": "{call}",
    "pitboss.ticks": "{tick}",
}
SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 45.0, 90.0)


@contextmanager
def telemetry(settings: Settings) -> Iterator[Tracer]:
    """Provide the tracer for the setting `telemetry` inside a block."""
    tracer = start_telemetry(settings.telemetry, settings.http_hosts)
    try:
        yield tracer
    finally:
        stop_telemetry(tracer)


def start_telemetry(target: str, http_hosts: str = "") -> Tracer:
    """Start the tracer for the setting `telemetry`: none, standard error, or the OTLP address of a collector."""
    if not target:
        return SILENT
    if target != CONSOLE:
        _check_address(target)
        keys = [key for key in _headers(environment) if key]
        REDACTOR.add(*keys)
        if keys or "@" in target:
            parts = urlsplit(target)
            check_plain_http(parts.scheme, parts.hostname, "telemetry", http_hosts)
    try:
        _check_variables()
        processor, reader = _console() if target == CONSOLE else _collector(target.rstrip("/"))
        return Telemetry(processor, reader)
    except ImportError as error:
        raise UserError(
            f"telemetry needs a package that is not installed: {error.name}", "pip install 'pitboss[telemetry]'"
        ) from None
    except ValueError as error:  # raised for the library's own environment variables
        raise UserError(f"telemetry cannot start: {error}", "check the environment variables OTEL_…") from None


def _check_variables() -> None:
    """Make the library validate its environment variables before a thread starts that an error would leave running."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

    TracerProvider(shutdown_on_exit=False)
    MeterProvider(shutdown_on_exit=False)


def _check_address(target: str) -> None:
    try:
        parts = urlsplit(target)
        REDACTOR.add(parts.password)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        shown = target if "@" not in target else f"…@{target.rpartition('@')[2]}"
        raise UserError(
            f"telemetry: {shown!r} is not a valid target",
            "empty, `console`, or an address such as http://localhost:4318",
        )


def _headers(environment: Callable[[str], str | None]) -> Iterator[str]:
    """Secrets in the configured OTLP headers: the library repeats headers that it cannot parse in error messages."""
    for kind in ("", "TRACES_", "METRICS_"):
        headers = environment(f"OTEL_EXPORTER_OTLP_{kind}HEADERS") or ""
        for header in headers.split(","):
            _, sign, value = header.partition("=")
            plain = unquote(value if sign else header).strip()
            yield from (header, value, plain, plain.rpartition(" ")[2])


def stop_telemetry(tracer: Tracer) -> None:
    """Send what is not sent yet, within `CLOSE_TIMEOUT_MS`, and close."""
    if isinstance(tracer, Telemetry):
        tracer.close()


def _console() -> "tuple[SpanProcessor, MetricReader]":
    from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
    from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

    return (
        SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr)),
        PeriodicExportingMetricReader(ConsoleMetricExporter(out=sys.stderr)),
    )


def _collector(address: str) -> "tuple[SpanProcessor, MetricReader]":
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # pyright: ignore[reportMissingImports]
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # pyright: ignore[reportMissingImports]
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    seconds = CLOSE_TIMEOUT_MS / 1_000
    return (
        BatchSpanProcessor(
            OTLPSpanExporter(endpoint=f"{address}/v1/traces", timeout=seconds), schedule_delay_millis=1_000
        ),
        PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=f"{address}/v1/metrics", timeout=seconds)),
    )


class Telemetry:
    """A tracer that reports to OpenTelemetry."""

    on = True

    def __init__(self, processor: "SpanProcessor", reader: "MetricReader", redactor: Redactor = REDACTOR) -> None:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider

        resource = Resource.create({"service.name": "pitboss", "service.version": __version__})
        self._traces = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._traces.add_span_processor(processor)
        self._metrics = MeterProvider(metric_readers=[reader], resource=resource, shutdown_on_exit=False)
        self._tracer = self._traces.get_tracer("pitboss", __version__)
        self._meter = self._metrics.get_meter("pitboss", __version__)
        self._redactor = redactor
        self._instruments: dict[str, Any] = {}

    @contextmanager
    def span(self, name: str, attributes: Attributes = NO_ATTRIBUTES) -> Iterator[Span]:
        """Open a span below the current one."""
        with self._tracer.start_as_current_span(
            name, attributes=self._clean(attributes), record_exception=False, set_status_on_exception=False
        ) as span:
            traced = _TracedSpan(span, self)
            try:
                yield traced
            except BaseException as error:
                traced.fail(type(error).__name__)
                raise

    def count(self, name: str, amount: float = 1, attributes: Attributes = NO_ATTRIBUTES) -> None:
        """Add to a counter."""
        if name not in self._instruments:
            self._instruments[name] = self._meter.create_counter(name, unit=UNITS.get(name, ""))
        self._instruments[name].add(amount, self._clean(attributes))

    def record(self, name: str, value: float, attributes: Attributes = NO_ATTRIBUTES) -> None:
        """Add a value to a histogram."""
        if name not in self._instruments:
            unit = UNITS.get(name, "")
            bounds = SECONDS if unit == "s" else None
            self._instruments[name] = self._meter.create_histogram(
                name, unit=unit, explicit_bucket_boundaries_advisory=bounds
            )
        self._instruments[name].record(value, self._clean(attributes))

    def close(self) -> None:
        """Send what is not sent yet and close.

        Traces and metrics are flushed concurrently, so that the timeout applies only once.
        """
        endings = [Thread(target=end, daemon=True) for end in (self._end_traces, self._end_metrics)]
        for ending in endings:
            ending.start()
        until = stopwatch() + CLOSE_TIMEOUT_MS / 1_000
        for ending in endings:
            ending.join(max(0.0, until - stopwatch()))

    def _end_traces(self) -> None:
        with suppress(Exception):  # a failing collector must not fail work that is already done
            self._traces.force_flush(CLOSE_TIMEOUT_MS)
            self._traces.shutdown()

    def _end_metrics(self) -> None:
        with suppress(Exception):
            self._metrics.shutdown(CLOSE_TIMEOUT_MS)

    def _clean(self, attributes: Attributes) -> dict[str, Any]:
        return {name: self._redacted(value) for name, value in attributes.items()}

    def _redacted(self, value: Value) -> Any:
        if isinstance(value, str):
            return self._redactor.redact(value)
        return [self._redactor.redact(text) for text in value] if isinstance(value, tuple) else value


class _TracedSpan:
    """A span that is exported."""

    __slots__ = ("_owner", "_span")

    def __init__(self, span: "OtelSpan", owner: Telemetry) -> None:
        self._span = span
        self._owner = owner

    def set(self, attributes: Attributes) -> None:
        self._span.set_attributes(self._owner._clean(attributes))

    def fail(self, kind: str) -> None:
        from opentelemetry.trace import StatusCode

        self._span.set_attribute("error.type", kind)
        self._span.set_status(StatusCode.ERROR)
