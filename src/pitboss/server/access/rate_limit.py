"""`RateLimit`: how often something happened under a name within a period. One process serves the app, so it counts in memory."""

from collections.abc import Callable, Mapping
from threading import Lock

from pitboss.core.instant import Instant

MOST_NAMES = 20_000
"""So many names are remembered; with more, all counts begin anew, so that requests are let through rather than refused."""


class RateLimit:
    """Counts of the current period. Used by all threads."""

    def __init__(self, now: Callable[[], Instant], period_ms: int) -> None:
        self._now = now
        self._period_ms = period_ms
        self._lock = Lock()
        self._began_at: Instant = 0
        self._counts: dict[str, int] = {}

    def wait_s(self, limits: Mapping[str, int]) -> int:
        """Count once under each name and return 0. If one of them has reached its limit, count nothing, so that one address that is
        refused uses up no limit of others, and return in how many seconds to come back.
        """
        now = self._now()
        with self._lock:
            if not 0 <= now - self._began_at < self._period_ms or len(self._counts) > MOST_NAMES:
                self._began_at, self._counts = now, {}
            over = any(self._counts.get(name, 0) >= most for name, most in limits.items())
            if not over:
                self._counts.update({name: self._counts.get(name, 0) + 1 for name in limits})
            rest_ms = self._period_ms - (now - self._began_at)
        return max(1, -(-rest_ms // 1_000)) if over else 0

    def forget(self, *names: str) -> None:
        """Begin anew for some names."""
        with self._lock:
            for name in names:
                self._counts.pop(name, None)
