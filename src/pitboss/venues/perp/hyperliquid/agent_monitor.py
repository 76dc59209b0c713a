"""Tells a person when the account gets another agent: a key that can trade it and that its signing processes do not hold.

Agents are approved with the master key, which is on no machine of pitboss. Those that are there when a process begins are taken as
known. The exchange lists agents that have a name, and not the one without.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NoReturn

from pitboss.core.errors import TransientError
from pitboss.venues.perp.hyperliquid.account_reader import AccountReader

LOOK_S = 300.0
"""How often the agents are read."""


class AgentMonitor:
    """Compares the agents of one account with those that were there before. `alarm` tells a person."""

    def __init__(
        self,
        reader: AccountReader,
        alarm: Callable[[str], None],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._reader = reader
        self._alarm = alarm
        self._sleep = sleep
        self._known: frozenset[str] | None = None

    async def run(self) -> NoReturn:
        """Look again and again."""
        while True:
            with suppress(TransientError):
                await self.look()
            await self._sleep(LOOK_S)

    async def look(self) -> None:
        """Read the agents, and raise the alarm for each that is new. One that is missing stays known: it may be a lost row."""
        agents = await self._reader.agents()
        if self._known is None:
            self._known = agents
        for address in sorted(agents - self._known):
            self._alarm(f"the account has a new agent, {address}, which can trade it")
        self._known |= agents
