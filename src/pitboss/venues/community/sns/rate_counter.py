"""`RateCounter`: how many requests each credential and each address has made in the current minute.

A process counts in memory. Once a second it adds its counts to those in the database and reads the sums of all processes back: a
write to the database with every request would cost more than most requests. So a limit is exact within a process, and processes
together may exceed it by what they answer within a second.
"""

import threading
from collections.abc import Mapping

from sqlalchemy import text

from pitboss.core.instant import MINUTE_MS, SECOND_MS, Instant
from pitboss.store.database import Database

WINDOW_MS = MINUTE_MS
SHARE_EVERY_MS = SECOND_MS
_ADD = text(
    "INSERT INTO sns_rate_windows (name, started_at, requests) VALUES (:name, :started_at, :requests) "
    "ON CONFLICT (name) DO UPDATE SET requests = CASE WHEN sns_rate_windows.started_at = excluded.started_at "
    "THEN sns_rate_windows.requests + excluded.requests ELSE excluded.requests END, started_at = excluded.started_at "
    "RETURNING requests"
)


class RateCounter:
    """Counts of one process, shared through the database. Used by all threads of the process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._started_at: Instant = 0
        self._shared_at: Instant = 0
        self._new: dict[str, int] = {}
        """Requests that the database does not know yet."""
        self._shared: dict[str, int] = {}
        """Requests of all processes, as the database last said."""

    def is_over(self, limits: Mapping[str, int], now: Instant) -> bool:
        """Count a request under these names in order, up to the first that is over its limit, and say whether there is one.

        So a caller that is over the limit of its address cannot add rows by a new credential in each request.
        """
        with self._lock:
            started_at = now - now % WINDOW_MS
            if started_at != self._started_at:
                self._started_at, self._new, self._shared = started_at, {}, {}
            is_over = False
            for name, most in limits.items():
                self._new[name] = self._new.get(name, 0) + 1
                is_over = self._new[name] + self._shared.get(name, 0) > most
                if is_over:
                    break
            batch = {}
            if not 0 <= now - self._shared_at < SHARE_EVERY_MS:
                self._shared_at = now
                batch, self._new = self._new, {}
                for name, requests in batch.items():
                    self._shared[name] = self._shared.get(name, 0) + requests
        if batch:
            self._share(batch, started_at)
        return is_over

    def _share(self, batch: Mapping[str, int], started_at: Instant) -> None:
        """Add counts to the database. Sorted by name, so that processes do not wait for each other in a circle."""
        with self._database.write() as connection:
            sums = {
                name: int(
                    connection.execute(
                        _ADD, {"name": name, "started_at": started_at, "requests": batch[name]}
                    ).scalar_one()
                )
                for name in sorted(batch)
            }
        with self._lock:
            if self._started_at == started_at:  # sums only grow; a later one may be here already
                self._shared |= {name: max(requests, self._shared.get(name, 0)) for name, requests in sums.items()}
