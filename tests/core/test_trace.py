"""The default tracer does nothing: it changes no result and hides no error."""

import pytest

from pitboss.core.trace import SILENT


def test_a_silent_span_takes_everything_and_swallows_no_error() -> None:
    assert SILENT.on is False
    with SILENT.span("pitboss.tick", {"a": 1}) as span:
        span.set({"b": 2.0})
        span.fail("Nothing")
    SILENT.count("pitboss.ticks")
    SILENT.record("gen_ai.client.operation.duration", 0.5, {"a": "b"})
    with pytest.raises(KeyError, match="through"), SILENT.span("pitboss.run"):
        raise KeyError("through")


def test_silent_spans_can_be_nested_because_they_are_all_the_same_one() -> None:
    with SILENT.span("outer") as outer, SILENT.span("inner") as inner:
        assert outer is inner
