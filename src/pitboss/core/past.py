"""Queries over a run's own history before an instant: decisions, receipts, records, and recorded answers of tools.

Ports and values only. A running run keeps its newest decisions and all its receipts in memory (`sim.past`); a finished
run is read from its records.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Protocol

from pitboss.core.instant import Instant
from pitboss.core.money import ZERO
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt

DECISIONS = 200
"""How many decisions a run keeps in memory. It keeps all its receipts, because results are computed from them."""


@noun
class PastDecision:
    """One past tick with a decision. `proposal` is JSON text, empty for a no-op; `text` is the model's text."""

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
    """A run's history, read only. Every query names the instant before which data may be read."""

    def decisions(self, before: Instant, count: int | None = None) -> Sequence[PastDecision]:
        """The newest decisions made before `before`, newest first; all there are without a count."""
        ...

    def receipts(self, before: Instant, count: int | None = None) -> Sequence[Receipt]:
        """The newest receipts from before `before`, newest first; those of the whole run without a count."""
        ...

    def snapshot(self, at: Instant, before: Instant) -> dict[str, Any] | None:
        """Everything recorded about the tick at `at`, or None if there is none before `before`."""
        ...

    def commands(self, before: Instant, count: int) -> Sequence[str]:
        """The operator's commands to the run, newest first."""
        ...


class _EmptyPast:
    """A history without entries."""

    def decisions(self, before: Instant, count: int | None = None) -> Sequence[PastDecision]:
        del before, count
        return ()

    def receipts(self, before: Instant, count: int | None = None) -> Sequence[Receipt]:
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
    """A recorded answer of an external tool and the instant from which it was known. `arguments` is canonical JSON."""

    server: str
    tool: str
    arguments: str
    known_at: Instant
    result: str
    failed: bool = False


class Recordings(Protocol):
    """Recorded answers of external tools."""

    def latest(self, server: str, tool: str, arguments: str, by: Instant) -> Recording | None:
        """The newest answer to exactly these arguments that was known by `by`."""
        ...


class _EmptyRecordings:
    def latest(self, server: str, tool: str, arguments: str, by: Instant) -> Recording | None:
        del server, tool, arguments, by


NO_RECORDINGS: Recordings = _EmptyRecordings()
