"""The error for a database that is unreachable or busy at the moment, and retrying while it is.

It is a `UserError`: a command shows it to the user as it is. A worker retries, because a database that restarts is back in
seconds. Retried calls must be safe to execute twice: a connection that breaks during a commit does not tell whether the
commit was made.
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
    """The database is unreachable, starting, or locked by another process; the same call may succeed in a moment."""


async def retry_while_unreachable(call: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """Execute a call, which must be safe to execute twice; retry while it raises `Unreachable`, for `patience_s` at most."""
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + patience_s, FIRST_PAUSE_S
    while True:
        try:
            return call()
        except Unreachable:
            if loop.time() + pause > until:
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_S)
