"""Sessions of the web app, found by the digest of their secret. They end after a while without requests, and after a longer while
in any case.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import delete

from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import sessions

SEEN_EVERY_MS = MINUTE_MS
"""How exactly the time of the last request is stored: a write with every request would cost more than most requests."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session. `digest` is that of the secret in the cookie."""

    digest: str
    user_name: str
    created_at: Instant
    last_seen_at: Instant
    expires_at: Instant


class Sessions:
    """The sessions in a database. `idle_ms` is how long one lasts without requests, `longest_ms` with them."""

    def __init__(self, database: Database, now: Callable[[], Instant], idle_ms: int, longest_ms: int) -> None:
        self._database = database
        self._now = now
        self._idle_ms = idle_ms
        self._longest_ms = longest_ms

    def begin(self, digest: str, user_name: str) -> None:
        """Store a new session, and delete those that have ended."""
        now = self._now()
        row = {
            "digest": digest,
            "user_name": user_name,
            "created_at": now,
            "last_seen_at": now,
            "expires_at": now + self._longest_ms,
        }
        ended = (sessions.c.expires_at <= now) | (sessions.c.last_seen_at <= now - self._idle_ms)
        with self._database.write() as connection:
            connection.execute(delete(sessions).where(ended))
            rows.add(connection, sessions, row)

    def find(self, digest: str) -> StoredSession | None:
        """The session with this digest; None if there is none or it has ended. Finding it counts as a request."""
        with self._database.read() as connection:
            row = rows.fetch(connection, sessions, {"digest": digest})
        if row is None or not rows.intact(sessions, row) or not hmac.compare_digest(row["digest"], digest):
            return None
        session = StoredSession(**{name: row[name] for name in rows.sealed_columns(sessions)})
        now = self._now()
        if now >= session.expires_at or now - session.last_seen_at >= self._idle_ms:
            return None
        if now - session.last_seen_at >= min(SEEN_EVERY_MS, self._idle_ms // 2):
            self._saw(digest, now)
        return session

    def end(self, digest: str) -> None:
        """Delete a session."""
        with self._database.write() as connection:
            connection.execute(delete(sessions).where(sessions.c.digest == digest))

    def end_all(self, user_name: str, besides: str = "") -> None:
        """Delete the sessions of a user, but for one."""
        with self._database.write() as connection:
            own = sessions.c.user_name == user_name
            connection.execute(delete(sessions).where(own, sessions.c.digest != besides))

    def _saw(self, digest: str, now: Instant) -> None:
        with self._database.write() as connection:
            row = rows.fetch(connection, sessions, {"digest": digest}, lock=True)
            if row is not None and row["last_seen_at"] < now:
                rows.change(connection, sessions, row, {"last_seen_at": now})
