"""The audit log: who has changed what, and when. Each row is sealed, so that a changed one is noticed. Nothing is changed; only
entries beyond the age that a setting allows are deleted, the oldest first, and an entry tells how many.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select

from pitboss.core.instant import Instant, iso
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import audit_log

LONGEST = 1_000
BATCH = 1_000
"""Entries deleted in one transaction: requests can be entered in between."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry. `intact` is whether its row is unchanged since it was written."""

    id: int
    at: Instant
    user_name: str
    address: str
    action: str
    object: str
    detail: str
    intact: bool = True


class AuditLog:
    """The audit log of a database."""

    def __init__(self, database: Database, now: Callable[[], Instant]) -> None:
        self._database = database
        self._now = now

    def append(self, user_name: str, address: str, action: str, object_: str = "", detail: str = "") -> None:
        """Add an entry. Texts are shortened and reduced to printable characters: they may come from any client."""
        row = {
            "at": self._now(),
            "user_name": _line(user_name, 64),
            "address": _line(address, 64),
            "action": _line(action, 160),
            "object": _line(object_, LONGEST),
            "detail": _line(detail, LONGEST),
        }
        with self._database.write() as connection:
            rows.add(connection, audit_log, row)

    def prune(self, before_at: Instant) -> int:
        """Delete the entries from before an instant and return how many there were."""
        count = 0
        while ids := self._oldest(before_at):
            with self._database.write() as connection:
                count += connection.execute(delete(audit_log).where(audit_log.c.id.in_(ids))).rowcount
        if count:
            self.append("local", "server", "audit prune", "", f"{count} entries from before {iso(before_at)}")
        return count

    def _oldest(self, before_at: Instant) -> list[int]:
        query = select(audit_log.c.id, audit_log.c.at).order_by(audit_log.c.id).limit(BATCH)
        with self._database.read() as connection:
            return [id_ for id_, at in connection.execute(query) if at < before_at]

    def listing(self, limit: int = 100, before: int | None = None, user_name: str = "") -> Sequence[AuditEntry]:
        """Entries, newest first; with `before` those older than the entry of this id."""
        query = rows.raw(audit_log)
        if before is not None:
            query = query.where(audit_log.c.id < before)
        if user_name:
            query = query.where(audit_log.c.user_name == user_name)
        with self._database.read() as connection:
            stored = rows.fetch_all(connection, query.order_by(audit_log.c.id.desc()).limit(limit))
        names = rows.sealed_columns(audit_log)
        return [
            AuditEntry(row["id"], **{name: row[name] for name in names}, intact=rows.intact(audit_log, row))
            for row in stored
        ]


def _line(text: str, longest: int) -> str:
    clean = "".join(char if char.isprintable() else " " for char in text)
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"
