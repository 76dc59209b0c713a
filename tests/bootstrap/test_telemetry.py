"""Telemetry: off by default, on standard error or at a collector, without messages and keys."""

import builtins
import json
import subprocess
import sys
import threading
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pitboss.bootstrap import telemetry
from pitboss.bootstrap.redact import REDACTOR, Redactor
from pitboss.bootstrap.telemetry import Telemetry, start_telemetry, stop_telemetry
from pitboss.core.errors import UserError
from pitboss.core.trace import SILENT

KEY = "sk-canary-0123456789"


class InMemoryTelemetry:
    """A tracer whose spans and metrics stay in memory."""

    def __init__(self) -> None:
        self._spans, self._reader, redactor = InMemorySpanExporter(), InMemoryMetricReader(), Redactor()
        redactor.add(KEY)
        self.tracer = Telemetry(SimpleSpanProcessor(self._spans), self._reader, redactor)

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._spans.get_finished_spans()}

    def metrics(self) -> dict[str, list[Any]]:
        data = self._reader.get_metrics_data()
        assert data is not None
        return {
            metric.name: list(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def test_spans_nest_as_the_work_does() -> None:
    bench = InMemoryTelemetry()
    with bench.tracer.span("pitboss.run"), bench.tracer.span("pitboss.tick", {"pitboss.tick": 3}) as span:
        span.set({"pitboss.flags": ("no_decision",), "pitboss.cost_usd": 0.25})
    run, tick = bench.spans["pitboss.run"], bench.spans["pitboss.tick"]
    assert run.parent is None
    assert tick.parent is not None
    assert run.context is not None
    assert tick.parent.span_id == run.context.span_id
    assert dict(tick.attributes or {}) == {
        "pitboss.tick": 3,
        "pitboss.flags": ("no_decision",),
        "pitboss.cost_usd": 0.25,
    }
    assert run.resource.attributes["service.name"] == "pitboss"


def test_an_exception_marks_its_spans_by_kind_and_goes_through() -> None:
    bench = InMemoryTelemetry()
    with pytest.raises(ValueError), bench.tracer.span("pitboss.run"):
        raise ValueError("what the prompt said")
    span = bench.spans["pitboss.run"]
    assert not span.status.is_ok
    assert (span.attributes or {})["error.type"] == "ValueError"
    assert span.events == ()
    assert "what the prompt said" not in span.to_json()


def test_keys_are_taken_out_of_attributes() -> None:
    bench = InMemoryTelemetry()
    with bench.tracer.span("chat x", {"gen_ai.response.id": f"id-{KEY}"}) as span:
        span.set({"gen_ai.response.finish_reasons": (KEY,)})
    bench.tracer.count("pitboss.model.calls", 1, {"gen_ai.request.model": KEY})
    assert KEY not in bench.spans["chat x"].to_json()
    assert bench.metrics()["pitboss.model.calls"][0].attributes == {"gen_ai.request.model": "***"}


def test_figures_add_up_and_latencies_are_a_histogram() -> None:
    bench = InMemoryTelemetry()
    for amount in (2, 3):
        bench.tracer.count("pitboss.model.tokens", amount, {"gen_ai.token.type": "input"})
        bench.tracer.record("gen_ai.client.operation.duration", amount / 10)
    found = bench.metrics()
    assert found["pitboss.model.tokens"][0].value == 5
    (latency,) = found["gen_ai.client.operation.duration"]
    assert (latency.count, latency.sum, latency.max) == (2, 0.5, 0.3)


def test_off_means_silent() -> None:
    assert start_telemetry("") is SILENT
    stop_telemetry(SILENT)


def test_off_does_not_even_import_it() -> None:
    program = (
        "import sys; from pitboss.bootstrap.telemetry import start_telemetry; start_telemetry(''); "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_the_console_is_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    tracer = start_telemetry("console")
    with tracer.span("pitboss.run", {"pitboss.run_id": "abc"}):
        tracer.count("pitboss.ticks", 4)
    stop_telemetry(tracer)
    said = capfd.readouterr()
    assert said.out == ""
    span, end = json.JSONDecoder().raw_decode(said.err)
    assert (span["name"], span["attributes"]) == ("pitboss.run", {"pitboss.run_id": "abc"})
    assert '"name": "pitboss.ticks"' in said.err[end:]


@pytest.mark.parametrize(
    "target",
    [
        "localhost:4318",
        "ftp://host",
        "http://",
        "yes",
        "http://[::1",
        "http://host:port",
        "http://me:hunter2@host:port",
    ],
)
def test_a_place_that_is_none_is_the_persons_mistake(target: str) -> None:
    with pytest.raises(UserError, match="telemetry") as caught:
        start_telemetry(target)
    assert "console" in caught.value.hint
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize("name", ["OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_METRICS_EXEMPLAR_FILTER"])
def test_a_variable_of_the_library_that_is_wrong_is_the_persons_mistake(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before = set(threading.enumerate())
    monkeypatch.setenv(name, "many")
    with pytest.raises(UserError, match="telemetry cannot start") as caught:
        start_telemetry("console")
    assert "OTEL_" in caught.value.hint
    assert set(threading.enumerate()) <= before  # a reader left alone warns in whatever runs a minute later


def test_a_key_for_a_collector_is_not_sent_over_plain_http_to_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match=r"^telemetry: http:// to host is refused"):
        start_telemetry("http://me:secret-four-123@host:4318")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret-two-123")
    with pytest.raises(UserError, match=r"^telemetry: http:// to host is refused"):
        start_telemetry("http://host:4318", "other")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace.export", None)
    with pytest.raises(UserError, match="not installed"):
        start_telemetry("http://host:4318", "host")
    REDACTOR.forget()


def test_secrets_in_the_headers_and_in_the_address_of_a_collector_are_known_to_the_redactor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret-one-123,x-key=secret-two-123")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "secret-three-123")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace.export", None)
    with pytest.raises(UserError, match="not installed"):
        start_telemetry("http://me:secret-four-123@localhost:4318")
    said = REDACTOR.redact("Bearer secret-one-123, secret-two-123, secret-three-123, me:secret-four-123@localhost")
    REDACTOR.forget()
    assert "secret-" not in said


class HangingSpanProcessor(SpanProcessor):
    """A span processor whose shutdown does not return until it is released."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()

    def shutdown(self) -> None:
        self.begun.set()
        self.released.wait()


class FailingExporter(SpanExporter):
    """An exporter every method of which raises."""

    def export(self, spans: Any) -> SpanExportResult:
        raise OSError("the collector is gone")

    def shutdown(self) -> None:
        raise OSError("the collector is gone")


def test_the_end_is_not_delayed_by_a_collector_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "CLOSE_TIMEOUT_MS", 50)
    processor = HangingSpanProcessor()
    Telemetry(processor, InMemoryMetricReader()).close()
    assert processor.begun.wait(60)  # it was told to stop, and `close` returned while it still hangs
    assert not processor.released.is_set()
    processor.released.set()


def test_an_exporter_that_fails_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    tracer = Telemetry(SimpleSpanProcessor(FailingExporter()), InMemoryMetricReader())
    with tracer.span("pitboss.run") as span:
        span.set({"pitboss.ticks": 1})
        tracer.count("pitboss.ticks", 4)
    tracer.close()
    assert "Exception while exporting" in caplog.text


@pytest.mark.parametrize("target", ["console", "http://localhost:4318"])
def test_a_missing_package_is_one_line_with_what_to_install(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match="not installed") as caught:
        start_telemetry(target)
    assert caught.value.hint == "pip install 'pitboss[telemetry]'"


def test_a_collector_gets_spans_and_figures() -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the OTLP exporter is not installed")
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    got: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        tracer = start_telemetry(f"http://127.0.0.1:{server.server_port}/")
        with tracer.span("pitboss.run"):
            tracer.count("pitboss.ticks", 4)
        stop_telemetry(tracer)
        server.shutdown()
    assert sorted(path for path, _ in got) == ["/v1/metrics", "/v1/traces"]
