"""What an agent or a person may ask about a run's own past: its decisions and what the world answered, before an instant.

Ports and values only. A run keeps the newest of them at hand (`sim.past`); a finished run is read from its records.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Protocol

from pitboss.core.instant import Instant
from pitboss.core.money import ZERO
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt

DECISIONS, RECEIPTS = 200, 400
"""What a run keeps of its own past at hand: enough for every question of a tool."""


@noun
class Decided:
    """One past tick at which somebody was asked. `proposal` is JSON text, empty for a no-op; `text` the model's words."""

    at: Instant
    outcome: str
    code: str = ""
    detail: str = ""
    proposal: str = ""
    text: str = ""
    flags: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    equity_usd: Decimal = ZERO
    cost_usd: Decimal | None = ZERO


class Past(Protocol):
    """Read only. Every question names the instant before which it may look."""

    def decided(self, before: Instant, count: int) -> Sequence[Decided]:
        """The newest decisions made before `before`, newest first."""
        ...

    def receipts(self, before: Instant, count: int) -> Sequence[Receipt]:
        """The newest things that happened before `before`, newest first."""
        ...

    def snapshot(self, at: Instant, before: Instant) -> dict[str, Any] | None:
        """Everything recorded about the tick at `at`, or None if there is none before `before`."""
        ...

    def commands(self, before: Instant, count: int) -> Sequence[str]:
        """What people told the run to do, newest first."""
        ...


class _EmptyPast:
    """The past of a run that has none."""

    def decided(self, before: Instant, count: int) -> Sequence[Decided]:
        del before, count
        return ()

    def receipts(self, before: Instant, count: int) -> Sequence[Receipt]:
        del before, count
        return ()

    def snapshot(self, at: Instant, before: Instant) -> dict[str, Any] | None:
        del at, before

    def commands(self, before: Instant, count: int) -> Sequence[str]:
        del before, count
        return ()


NO_PAST: Past = _EmptyPast()


@noun
class Recording:
    """What a tool outside this program once answered, and when we could have known it. `arguments` is canonical JSON."""

    server: str
    tool: str
    arguments: str
    known_at: Instant
    result: str
    failed: bool = False


class Recordings(Protocol):
    """Recorded answers of outside tools."""

    def latest(self, server: str, tool: str, arguments: str, by: Instant) -> Recording | None:
        """The newest answer to exactly these arguments that was known by `by`."""
        ...


class _NeverRecorded:
    def latest(self, server: str, tool: str, arguments: str, by: Instant) -> Recording | None:
        del server, tool, arguments, by


NO_RECORDINGS: Recordings = _NeverRecorded()
