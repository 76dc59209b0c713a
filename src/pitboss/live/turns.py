"""Turns on an event loop: tasks with much to compute run one after the other, and timers are served in between.

The deployments of a process tick at the same instants. Without turns all that became ready together would build their prompts
in one go, and a tick whose timer is due a millisecond later would begin after the last of them. It orders nothing else.
"""

import asyncio
from collections import deque
from weakref import WeakKeyDictionary


class Turns:
    """Lets one task go on in each iteration of an event loop, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Return when it is this task's turn."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        if len(self._waiting) == 1:
            loop.call_soon(self._give, loop)
        await turn

    def _give(self, loop: asyncio.AbstractEventLoop) -> None:
        turn = self._waiting[0]
        if not turn.done():  # else its task was cancelled
            turn.set_result(None)
        self._waiting.popleft()
        if self._waiting:
            loop.call_soon(self._give, loop)


_TURNS: "WeakKeyDictionary[asyncio.AbstractEventLoop, Turns]" = WeakKeyDictionary()


async def next_turn() -> None:
    """Return when it is this task's turn on the running event loop."""
    loop = asyncio.get_running_loop()
    turns = _TURNS.get(loop)
    if turns is None:
        turns = _TURNS[loop] = Turns()
    await turns.take()
