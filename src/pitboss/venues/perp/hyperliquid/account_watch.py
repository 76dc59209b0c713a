"""Protects positions when a stream reports a change, and at intervals while no pass of reconciliation runs.

A pass runs between two steps of a deployment. While an agent decides there is none for minutes, and an order that rests can be
filled meanwhile: this task reads the sizes and places the stops then. It changes neither the world nor its records; it wakes
the deployment, whose next pass does.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from decimal import localcontext
from typing import NoReturn

from pitboss.core.errors import TransientError
from pitboss.core.instant import SECOND_MS, Instant
from pitboss.core.money import CONTEXT
from pitboss.venues.perp.hyperliquid.reconcile import Reconciler

WATCH_MS = SECOND_MS * 3 // 2
"""Sizes that were read longer ago are read again; between ticks the passes are more frequent."""
RETRY_S = 0.25


class AccountWatch:
    """Watches one account. `wake` ends the wait of its deployment."""

    def __init__(
        self,
        reconciler: Reconciler,
        wake: Callable[[], None],
        now: Callable[[], Instant],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._reconciler = reconciler
        self._wake = wake
        self._now = now
        self._sleep = sleep

    async def run(self) -> NoReturn:
        """Watch."""
        with localcontext(CONTEXT):
            while True:
                await self._look()

    async def _look(self) -> None:
        news = self._reconciler.news
        with suppress(TimeoutError):
            async with asyncio.timeout(WATCH_MS / SECOND_MS):
                await news.wait()
        is_news = news.take()
        try:
            await self._reconciler.protect(news.news_at if is_news else self._now() - WATCH_MS)
        except TransientError:
            if is_news:
                news.repeat()
            await self._sleep(RETRY_S)
            return
        if is_news:
            self._wake()
