"""What the streams of an account have reported and no reply has confirmed yet.

A message changes nothing by itself: it says what has to be read now. Fills are identified by the exchange's trade id, so that one
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
        self._seen_ids: dict[int, None] = {}
        self._unread: dict[int, Instant] = {}
        self._statuses: dict[str, str] = {}
        self._is_new = asyncio.Event()
        self.everything = 0
        """Counts the reasons to read everything: connections that began or ended, and events that are not fills."""
        self.fills = 0
        """Fills that the streams have reported, each counted once."""
        self.news_at: Instant = -1
        """When the newest news arrived."""

    def add_fills(self, ids: Iterable[int]) -> None:
        """Add the trade ids of reported fills."""
        new = [fill_id for fill_id in dict.fromkeys(ids) if fill_id not in self._seen_ids]
        self._remember(new)
        self.fills += len(new)
        if new:
            self._announce()
            self._unread.update(dict.fromkeys(new, self.news_at))

    def add_snapshot(self, ids: Iterable[int]) -> None:
        """Add the fills with which a connection begins: they are old, and what happened before it has to be read."""
        self._remember(ids)
        self.want_everything()

    def add_statuses(self, statuses: Mapping[str, str]) -> None:
        """Add the statuses of orders by client id. An order that has just been placed is no news."""
        self._statuses.update(statuses)
        for cloid in list(self._statuses)[:-MOST_IDS]:
            del self._statuses[cloid]
        if any(status != "open" for status in statuses.values()):
            self._announce()

    def want_everything(self) -> None:
        """Ask for a read of everything: messages may be missing, or something has happened that no fill shows."""
        self.everything += 1
        self._announce()

    def take_statuses(self) -> Mapping[str, str]:
        """Return the statuses that were reported since the last call."""
        statuses, self._statuses = self._statuses, {}
        return statuses

    def on_fills_read(self, ids: Iterable[int]) -> None:
        """Confirm the fills of a reply; a stream that reports them afterwards brings no news."""
        confirmed_ids = list(ids)
        self._remember(confirmed_ids)
        for fill_id in confirmed_ids:
            self._unread.pop(fill_id, None)

    def has_unread_fills(self) -> bool:
        """Return whether a stream has reported a fill that no reply has contained yet."""
        now = self._now()
        self._unread = {one: at for one, at in self._unread.items() if 0 <= now - at < UNCONFIRMED_MS}
        return bool(self._unread)

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

    def _announce(self) -> None:
        self.news_at = self._now()
        self._is_new.set()

    def _remember(self, ids: Iterable[int]) -> None:
        self._seen_ids.update(dict.fromkeys(ids))
        for fill_id in list(self._seen_ids)[: max(0, len(self._seen_ids) - MOST_IDS)]:
            del self._seen_ids[fill_id]
