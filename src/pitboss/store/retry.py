"""A database that cannot be reached just now, and trying again until it can.

It is still a `UserError`: whoever does not wait shows it to a person as it is. A worker waits, because a database that
restarts is back in seconds. What it tries again must be safe to do twice, for a connection that breaks during a commit
does not say whether the commit was made.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pitboss.core.errors import UserError

T = TypeVar("T")
PATIENCE_S = 60.0
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0


class Unreachable(UserError):
    """The database is away, starting, or kept busy by another; the same thing may work in a moment."""


async def patiently(do: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """Do something that is safe to do twice, again and again while the database is away, for so long at most."""
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + patience_s, FIRST_PAUSE_S
    while True:
        try:
            return do()
        except Unreachable:
            if loop.time() + pause > until:
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
