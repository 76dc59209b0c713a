"""What the streams of an account have told and no reply has confirmed yet.

A message changes nothing by itself: it says what has to be read now. Fills are told apart by the exchange's trade id, so that one
that is sent twice, on two streams or out of order counts once.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from pitboss.core.instant import MINUTE_MS, Instant

UNCONFIRMED_MS = MINUTE_MS
"""A fill that no reply contains after so long is not waited for any more: sizes and fills of replies agree without it."""
MOST_IDS = 10_000
"""How many ids of fills are remembered; the exchange repeats at most its last 2,000."""


class AccountNews:
    """The news of one account, on one event loop."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self._told: dict[int, None] = {}
        self._unread: dict[int, Instant] = {}
        self._statuses: dict[str, str] = {}
        self._is_new = asyncio.Event()
        self.everything = 0
        """Counts what demands that everything is read: connections that began or ended, and events that are not fills."""
        self.fills = 0
        """Fills that were told, each counted once."""
        self.told_at: Instant = -1
        """When the newest news arrived."""

    def add_fills(self, ids: Iterable[int]) -> None:
        """Take the trade ids of fills."""
        new = [fill_id for fill_id in dict.fromkeys(ids) if fill_id not in self._told]
        self._remember(new)
        self.fills += len(new)
        if new:
            self._tell()
            self._unread.update(dict.fromkeys(new, self.told_at))

    def add_snapshot(self, ids: Iterable[int]) -> None:
        """Take the fills with which a connection begins: they are old, and what happened before it has to be read."""
        self._remember(ids)
        self.want_everything()

    def add_statuses(self, statuses: Mapping[str, str]) -> None:
        """Take the statuses of orders by client id. An order that has just been placed is no news."""
        self._statuses.update(statuses)
        for cloid in list(self._statuses)[:-MOST_IDS]:
            del self._statuses[cloid]
        if any(status != "open" for status in statuses.values()):
            self._tell()

    def want_everything(self) -> None:
        """Take that messages may be missing, or that something has happened that no fill tells."""
        self.everything += 1
        self._tell()

    def take_statuses(self) -> Mapping[str, str]:
        """Return the statuses that were told since the last call."""
        statuses, self._statuses = self._statuses, {}
        return statuses

    def on_fills_read(self, ids: Iterable[int]) -> None:
        """Take the fills of a reply: they are confirmed, and no news if they are told afterwards."""
        read = list(ids)
        self._remember(read)
        for fill_id in read:
            self._unread.pop(fill_id, None)

    def has_unread_fills(self) -> bool:
        """Return whether a fill was told that no reply has contained yet."""
        now = self._now()
        self._unread = {one: at for one, at in self._unread.items() if 0 <= now - at < UNCONFIRMED_MS}
        return bool(self._unread)

    def is_told(self) -> bool:
        """Return whether there is news that was not taken yet."""
        return self._is_new.is_set()

    async def wait(self) -> None:
        """Return when there is news."""
        await self._is_new.wait()

    def take(self) -> bool:
        """Return whether there was news since the last call."""
        is_new = self._is_new.is_set()
        self._is_new.clear()
        return is_new

    def repeat(self) -> None:
        """Put news back that could not be acted on."""
        self._is_new.set()

    def _tell(self) -> None:
        self.told_at = self._now()
        self._is_new.set()

    def _remember(self, ids: Iterable[int]) -> None:
        self._told.update(dict.fromkeys(ids))
        for fill_id in list(self._told)[: max(0, len(self._told) - MOST_IDS)]:
            del self._told[fill_id]
