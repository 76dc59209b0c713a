"""The streams of an account: its fills, events and orders, on a connection of its own, turned into `AccountNews`.

Messages about orders and events do not name their account, so one connection carries one account. Nothing of a message is
believed; what it says is read by request.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import Any, NoReturn, Self, cast

from pitboss.venues.perp.hyperliquid.account_news import AccountNews
from pitboss.venues.perp.hyperliquid.exchange_stream import ExchangeStream, Subscription
from pitboss.venues.perp.hyperliquid.market_messages import MalformedMessage
from pitboss.venues.perp.hyperliquid.universe import is_listed_here
from pitboss.venues.perp.hyperliquid.ws_connection import Connect

ACCOUNT_STREAMS = ("userFills", "userEvents", "orderUpdates")
EVENTS_CHANNEL = "user"
"""The channel of `userEvents`."""


class AccountStream:
    """Follows one account. `user` is the address that owns it, never that of an agent."""

    def __init__(
        self,
        connect: Connect,
        user: str,
        news: AccountNews,
        *,
        elapsed: Callable[[], float],
        random: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.news = news
        self.foreign_messages = 0
        """Messages about the fills of another account."""
        self._user = user.lower()
        self._tasks: list[asyncio.Future[NoReturn]] = []
        self._stream = ExchangeStream(
            connect, self._on_message, news.want_everything, elapsed=elapsed, random=random, sleep=sleep, silent_s=inf
        )

    @property
    def problem(self) -> str:
        """Why messages do not arrive; empty if they do. The account is read every second all the same."""
        return f"account: {self._stream.problem}" if self._stream.problem else ""

    def has_failed(self) -> bool:
        """Whether a task has ended for good, which only a fault of this program does."""
        return any(task.done() for task in self._tasks)

    @asynccontextmanager
    async def followed(self, *more: Awaitable[NoReturn]) -> AsyncIterator[Self]:
        """Follow the account for the duration of the block, with further endless tasks beside."""
        await self._stream.subscribe(Subscription(kind, user=self._user) for kind in ACCOUNT_STREAMS)
        self._tasks = [asyncio.ensure_future(each) for each in (self._stream.run(), *more)]
        try:
            yield self
        finally:
            tasks, self._tasks = self._tasks, []
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _on_message(self, channel: str, data: Any) -> None:
        if channel == "userFills":
            self._on_fills(_object(data))
        elif channel == EVENTS_CHANNEL:
            self._on_event(_object(data))
        elif channel == "orderUpdates":
            self.news.add_statuses(dict(_status(row) for row in _rows(data)))

    def _on_fills(self, data: Mapping[str, Any]) -> None:
        user = data.get("user")
        if not isinstance(user, str) or user.lower() != self._user:
            self.foreign_messages += 1
            return
        ids = _fill_ids(data.get("fills"))
        if data.get("isSnapshot") is True:
            self.news.add_snapshot(ids)
        else:
            self.news.add_fills(ids)

    def _on_event(self, data: Mapping[str, Any]) -> None:
        """Take an event: fills, or else a funding payment, a liquidation or a cancel by the exchange."""
        if "fills" in data:
            self.news.add_fills(_fill_ids(data["fills"]))
        else:
            self.news.want_everything()


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise MalformedMessage("a message of an account is not an object")
    return cast("Mapping[str, Any]", value)


def _rows(value: Any) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        raise MalformedMessage("a message of an account has no rows")
    return [_object(row) for row in cast("list[Any]", value)]


def _fill_ids(value: Any) -> list[int]:
    """Return the trade ids of fills. Those of other markets are in no reply that is read, and are no news."""
    ids = [row.get("tid") for row in _rows(value) if is_listed_here(str(row.get("coin")))]
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in ids):
        raise MalformedMessage("a fill has no trade id")
    return cast("list[int]", ids)


def _status(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the client id and the status of an order; the id is empty for one that has none, which is not ours."""
    cloid, status = _object(row.get("order")).get("cloid"), row.get("status")
    if not isinstance(status, str):
        raise MalformedMessage("an order has no status")
    return cloid if isinstance(cloid, str) else "", status
