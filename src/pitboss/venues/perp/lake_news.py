"""News and events of a live run: read from the workspace's lake every few minutes, as far as they have arrived by now.

`pitboss data download` (RSS, CryptoPanic, calendars) puts them there, by hand or by a timer of the system; this module downloads
nothing. An item counts from the time at which it was first downloaded, as in a backtest.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.market import CalendarEvent, NewsItem
from pitboss.data.feed import load_events, load_news
from pitboss.data.lake import Lake
from pitboss.data.news_latency import Delay, Latency
from pitboss.venues.perp.live_market import LiveMarket

LOG = logging.getLogger("pitboss.live")
READ_S = 120.0
NEWS_MS = 31 * DAY_MS
"""How far back news are kept: a skill may show those of 30 days."""
_NO_DELAY = Latency(Delay())


class LakeNews:
    """Keeps the news and events of a `LiveMarket` at the state of a lake. `venue` is the data venue of the run.

    News of a generated venue are not read: they are about a market that does not exist.
    """

    def __init__(
        self, find_lake: Callable[[], Lake], venue: str, market: LiveMarket, now: Callable[[], Instant]
    ) -> None:
        self._find_lake = find_lake
        self._venue = venue
        self._market = market
        self._now = now
        self._fingerprint: tuple[object, ...] | None = None
        self._arriving_at: Instant | None = None
        self._logged: set[type[Exception]] = set()
        self.problem = ""
        """Why the newest read failed; empty if it did not."""

    async def run(
        self, every_s: float = READ_S, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> NoReturn:
        """Read again and again."""
        while True:
            await self.refresh()
            await sleep(every_s)

    async def refresh(self) -> None:
        """Read what has changed since the last time, or has arrived since then."""
        self.problem = await self._add_changes()

    async def _add_changes(self) -> str:
        """Return why that failed; empty if it did not."""
        try:
            loaded = await asyncio.to_thread(self._load, self._now())
            if loaded is not None:
                news, events = loaded
                self._market.add_news(news)
                self._market.set_events(events)
        except (UserError, OSError) as error:
            return f"the news of the lake cannot be read: {error}"
        except Exception as error:  # a fault here must not end the news of a live feed
            self._fingerprint = None
            if type(error) not in self._logged:
                self._logged.add(type(error))
                LOG.exception("fault")
            return f"the news of the lake cannot be read: {error!r}"
        return ""

    def _load(self, now: Instant) -> tuple[Sequence[NewsItem], Sequence[CalendarEvent]] | None:
        """Return the items that have arrived by now; None if they are the same as last time."""
        lake = self._find_lake()
        fingerprint = _files(lake)
        has_arrived = self._arriving_at is not None and now >= self._arriving_at
        if fingerprint == self._fingerprint and not has_arrived:
            return None
        if lake.is_synthetic(self._venue):
            return None
        later = now + 2 * DAY_MS  # an item with a date alone arrives at the next midnight
        news, events = load_news(lake, self._venue, later, _NO_DELAY), load_events(lake, self._venue, later)
        arriving = [item.available_at for item in news] + [event.known_at for event in events]
        self._arriving_at = min((at for at in arriving if at > now), default=None)
        self._fingerprint = fingerprint
        return (
            [item for item in news if now - NEWS_MS <= item.available_at <= now],
            [event for event in events if event.known_at <= now],
        )


def _files(lake: Lake) -> tuple[object, ...]:
    """Return what changes with every write of news or events: path, time and size of each file."""
    files = [path for kind in ("news", "events") for series in lake.series_files(kind) for path in series.paths]
    states = [(path, path.stat()) for path in sorted(files)]
    return tuple((str(path), state.st_mtime_ns, state.st_size) for path, state in states)
