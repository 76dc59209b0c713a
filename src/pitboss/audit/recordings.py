"""Recorded answers of external tools as the audit gives them to a run: all of them, or only those known by an instant.

A tool without any recording gets a synthetic answer for every hour, so that it has something to return.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pitboss.core.instant import HOUR_MS, Instant
from pitboss.core.past import Recording
from pitboss.store.recordings import StoredRecordings


@dataclass(slots=True)
class AuditRecordings:
    """`core.past.Recordings`. With `until`, what was recorded later is missing; with `changed`, it is another answer."""

    stored: StoredRecordings
    until: Instant | None = None
    changed: bool = False
    _rows: dict[tuple[str, str], list[Recording]] = field(default_factory=dict[tuple[str, str], list[Recording]])

    def cut(self, at: Instant, changed: bool) -> "AuditRecordings":
        """The recordings known by an instant, or these with another future."""
        return AuditRecordings(self.stored, at, changed, self._rows)

    def of(self, server: str, tool: str) -> Sequence[Recording]:
        """All stored recordings of a tool."""
        key = (server, tool)
        if key not in self._rows:
            self._rows[key] = [row.recording for row in self.stored.of(server, tool)]
        return self._rows[key]

    def latest(self, server: str, tool: str, arguments: str, by: Instant) -> Recording | None:
        """The newest answer to exactly these arguments that was known by `by`."""
        stored = self.of(server, tool)
        if self.until is None:
            return (
                self.stored.latest(server, tool, arguments, by) if stored else _synthetic(server, tool, arguments, by)
            )
        if self.changed and by > self.until:
            return Recording(server, tool, arguments, self.until + 1, "planted: recorded just after")
        until = min(by, self.until)
        if not stored:
            return _synthetic(server, tool, arguments, until)
        answers = [row for row in stored if row.arguments == arguments and row.known_at <= until]
        return max(answers, key=lambda row: row.known_at, default=None)

    def count(self, server: str, tool: str, by: Instant) -> int:
        """How many answers of a tool, to any arguments, were known by `by`."""
        if self.until is None:
            return self.stored.count(server, tool, by)
        return sum(row.known_at <= min(by, self.until) for row in self.of(server, tool))


def _synthetic(server: str, tool: str, arguments: str, by: Instant) -> Recording:
    at = by // HOUR_MS * HOUR_MS
    return Recording(server, tool, arguments, at, f"made up for the audit: answer of {at}")
