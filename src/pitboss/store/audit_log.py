"""The audit log: who has changed what, and when. Append only; each row is sealed, so that a changed one is noticed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pitboss.core.instant import Instant
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import audit_log

LONGEST = 1_000


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
        """Add an entry. Texts are shortened and reduced to printable characters: they may be of anybody."""
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
