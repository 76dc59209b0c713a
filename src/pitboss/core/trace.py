"""The tracing port: spans and metrics of a run for an external collector.

Tracing never affects a decision, a record or a digest: a run has the same records with and without a collector. By
default there is none, and each call costs a fraction of a microsecond. Prompts, replies, tool arguments and keys are
never part of a span or a metric.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol

Value = str | int | float | bool | tuple[str, ...]
Attributes = Mapping[str, Value]

NO_ATTRIBUTES: Attributes = {}


class Span(Protocol):
    """An operation in progress."""

    def set(self, attributes: Attributes) -> None:
        """Add attributes."""
        ...

    def fail(self, kind: str) -> None:
        """Mark the operation as failed; `kind` is a short word such as the name of an exception."""
        ...


class Tracer(Protocol):
    """Receives spans and metrics. `on` is False without a collector, so that callers can skip computing attributes."""

    @property
    def on(self) -> bool: ...

    def span(self, name: str, attributes: Attributes = NO_ATTRIBUTES) -> AbstractContextManager[Span]:
        """A span that lasts as long as the `with` block. An exception that leaves the block marks it failed."""
        ...

    def count(self, name: str, amount: float = 1, attributes: Attributes = NO_ATTRIBUTES) -> None:
        """Add to a counter."""
        ...

    def record(self, name: str, value: float, attributes: Attributes = NO_ATTRIBUTES) -> None:
        """Add one observation to a histogram."""
        ...


class _SilentSpan:
    """A span that does nothing; one instance serves all calls."""

    __slots__ = ()

    def __enter__(self) -> "_SilentSpan":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        return None

    def set(self, attributes: Attributes) -> None:
        return None

    def fail(self, kind: str) -> None:
        return None


_SILENT_SPAN = _SilentSpan()


class SilentTracer:
    """A tracer that does nothing."""

    __slots__ = ()

    on = False

    def span(self, name: str, attributes: Attributes = NO_ATTRIBUTES) -> _SilentSpan:
        return _SILENT_SPAN

    def count(self, name: str, amount: float = 1, attributes: Attributes = NO_ATTRIBUTES) -> None:
        return None

    def record(self, name: str, value: float, attributes: Attributes = NO_ATTRIBUTES) -> None:
        return None


SILENT: Tracer = SilentTracer()
"""The tracer of a run without a collector."""
