"""What people approved of tools that live in other programs: the digest, and the very text that it stands for.

A tool is offered only while its server says exactly what was approved here. The text is kept too, so that a simulation
can show it without asking the server, and so that a change can be shown as a difference. What a definition means is not
known here: it is canonical JSON.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pitboss.core.instant import Instant
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import approvals


@dataclass(frozen=True, slots=True)
class Approval:
    """One approved tool. `definition` is canonical JSON of everything that was approved."""

    server: str
    tool: str
    digest: str
    definition: bytes
    approved_at: Instant


class Approvals:
    """The approvals in a database. One for each tool of a server: a new one takes the place of the old."""

    def __init__(self, database: Database, now: Callable[[], Instant]) -> None:
        self._database = database
        self._now = now

    def of(self, server: str) -> dict[str, Approval]:
        """What is approved of a server, by tool. Raises `ReplayMismatch` if a row was changed after it was written."""
        query = rows.raw(approvals).where(approvals.c.server == server).order_by(approvals.c.tool)
        with self._database.read() as connection:
            found = rows.fetch_all(connection, query)
        return {row["tool"]: _approval(row) for row in found}

    def approve(self, server: str, tool: str, digest: str, definition: bytes) -> bool:
        """Keep an approval for good; whether anything is new about it."""
        key = {"server": server, "tool": tool}
        values = {"digest": digest, "definition": definition, "approved_at": self._now()}
        with self._database.write() as connection:
            self._database.alone(connection, f"approval/{server}/{tool}")
            row = rows.fetch(connection, approvals, key, lock=True)
            if row is None:
                rows.add(connection, approvals, key | values)
                return True
            if (row["digest"], row["definition"]) == (digest, definition):
                rows.require_intact(approvals, row)
                return False
            rows.change(connection, approvals, row, values)
            return True


def _approval(row: Mapping[str, Any]) -> Approval:
    rows.require_intact(approvals, row)
    return Approval(row["server"], row["tool"], row["digest"], row["definition"], row["approved_at"])
