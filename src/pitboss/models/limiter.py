"""`Limiter`: the lanes of a process, one for each key at each host, because that is how providers count."""

import asyncio
import hashlib
from collections.abc import Callable

from pitboss.core.instant import Instant
from pitboss.models.lane import MOST_AT_ONCE, Lane, Sleep


class Limiter:
    """The lanes of a process."""

    def __init__(
        self,
        now: Callable[[], Instant],
        sleep: Sleep = asyncio.sleep,
        *,
        rpm: int | None = None,
        tpm: int | None = None,
        most: int = MOST_AT_ONCE,
    ) -> None:
        self._now, self._sleep = now, sleep
        self._rpm, self._tpm, self._most = rpm, tpm, most
        self._lanes: dict[tuple[str, str], Lane] = {}

    def lane(self, host: str, key: str = "") -> Lane:
        """The lane of a key (its `fingerprint`, never the key itself) at a host, shared by all runs."""
        lane = self._lanes.get((host, key))
        if lane is None:
            lane = Lane(host, self._now, self._sleep, rpm=self._rpm, tpm=self._tpm, most=self._most)
            self._lanes[(host, key)] = lane
        return lane


def fingerprint(key: str) -> str:
    """An identifier of a key that reveals nothing about it."""
    return hashlib.sha256(b"pitboss lane\0" + key.encode()).hexdigest()[:16]
