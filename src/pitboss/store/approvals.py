"""Approvals of tools of MCP servers: the digest of an approved definition, and the definition itself.

A tool is offered only while its server reports exactly the approved definition. The text is stored too, so that a simulation
can show it without calling the server, and a change can be shown as a difference. Definitions are opaque canonical JSON here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete

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
    """The approvals in a database. One for each tool of a server: a new one replaces the old."""

    def __init__(self, database: Database, now: Callable[[], Instant]) -> None:
        self._database = database
        self._now = now

    def of(self, server: str) -> dict[str, Approval]:
        """The approvals of a server, by tool. Raises `ReplayMismatch` if a row was changed after it was written."""
        query = rows.raw(approvals).where(approvals.c.server == server).order_by(approvals.c.tool)
        with self._database.read() as connection:
            return {row["tool"]: _approval(row) for row in rows.fetch_all(connection, query)}

    def approve(self, server: str, tool: str, digest: str, definition: bytes) -> bool:
        """Store an approval; returns whether it is new or changed."""
        key = {"server": server, "tool": tool}
        values = {"digest": digest, "definition": definition, "approved_at": self._now()}
        with self._database.write() as connection:
            self._database.lock_name(connection, f"approval/{server}/{tool}")
            row = rows.fetch(connection, approvals, key, lock=True)
            if row is None:
                rows.add(connection, approvals, key | values)
                return True
            if (row["digest"], row["definition"]) == (digest, definition):
                rows.require_intact(approvals, row)
                return False
            rows.change(connection, approvals, row, values)
            return True

    def withdraw(self, server: str, tool: str) -> bool:
        """Delete an approval; returns whether there was one."""
        is_this = approvals.c.server == server, approvals.c.tool == tool
        with self._database.write() as connection:
            self._database.lock_name(connection, f"approval/{server}/{tool}")
            return connection.execute(delete(approvals).where(*is_this)).rowcount > 0


def _approval(row: Mapping[str, Any]) -> Approval:
    rows.require_intact(approvals, row)
    return Approval(row["server"], row["tool"], row["digest"], row["definition"], row["approved_at"])
