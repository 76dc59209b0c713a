"""Calls under way that several runs may wait for: equal requests made at the same time share one call.

`Cached` starts and joins them. Runs that store their replies in the same place share one `SharedCalls`; calls of other
processes are not seen.
"""

import asyncio
from dataclasses import dataclass

from pitboss.models.call import CallContext, CallResult


@dataclass(slots=True, eq=False)
class SharedCall:
    """A call under way. `owner` pays for it; `waiting` counts the owner's own callers, who alone decide about its end."""

    task: asyncio.Task[CallResult]
    context: CallContext
    owner: object
    owner_run_id: str
    waiting: int = 0
    has_reply: bool = False


class SharedCalls:
    """The calls under way of all runs that share their replies, by request key."""

    def __init__(self) -> None:
        self._under_way: dict[str, SharedCall] = {}

    def find(self, key: str) -> SharedCall | None:
        """The call under way for a request. A call that has ended or belongs to another event loop is not returned."""
        call = self._under_way.get(key)
        if call is None or call.task.done() or call.task.get_loop() is not asyncio.get_running_loop():
            return None
        return call

    def begin(self, key: str, call: SharedCall) -> None:
        """Make a call visible to others."""
        self._under_way[key] = call

    def end(self, key: str, call: SharedCall) -> None:
        """Remove a call that is over or abandoned, unless a later one has replaced it."""
        if self._under_way.get(key) is call:
            del self._under_way[key]
