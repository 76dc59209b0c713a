"""The port through which a run tells an outside observer what it is doing: spans and figures.

What is told here never leads back into a decision, a record or a digest: a run with an observer and one without are the
same run. By default nobody observes, and telling nobody costs a fraction of a microsecond. Prompts, answers, arguments
of tools and keys are never told.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol

Value = str | int | float | bool | tuple[str, ...]
Attributes = Mapping[str, Value]

NO_ATTRIBUTES: Attributes = {}


class Span(Protocol):
    """Something that is going on."""

    def set(self, attributes: Attributes) -> None:
        """Say more about it."""
        ...

    def fail(self, kind: str) -> None:
        """Say that it did not work out; `kind` is a short word such as the name of an exception."""
        ...


class Tracer(Protocol):
    """Who is told. `on` is False where nobody listens, so that callers need not gather what nobody reads."""

    @property
    def on(self) -> bool: ...

    def span(self, name: str, attributes: Attributes = NO_ATTRIBUTES) -> AbstractContextManager[Span]:
        """Say that something begins now and ends with the `with` block. An exception that leaves it marks it failed."""
        ...

    def count(self, name: str, amount: float = 1, attributes: Attributes = NO_ATTRIBUTES) -> None:
        """Add to a figure that only grows."""
        ...

    def record(self, name: str, value: float, attributes: Attributes = NO_ATTRIBUTES) -> None:
        """One more observation of a figure whose distribution matters."""
        ...


class _SilentSpan:
    """A span that nobody sees: one object for all of them."""

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


_NOTHING = _SilentSpan()


class SilentTracer:
    """Nobody is told."""

    __slots__ = ()

    on = False

    def span(self, name: str, attributes: Attributes = NO_ATTRIBUTES) -> _SilentSpan:
        return _NOTHING

    def count(self, name: str, amount: float = 1, attributes: Attributes = NO_ATTRIBUTES) -> None:
        return None

    def record(self, name: str, value: float, attributes: Attributes = NO_ATTRIBUTES) -> None:
        return None


SILENT: Tracer = SilentTracer()
"""The tracer of a run that nobody observes."""
