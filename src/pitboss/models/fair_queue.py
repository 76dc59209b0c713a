"""`FairQueue`: calls that wait for their turn, served run by run, so that a run with many calls does not starve others."""

import asyncio
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from pitboss.models.quota_ledger import CallPermit
from pitboss.models.quotas import QuotaNeed


@dataclass(eq=False, slots=True)
class WaitingCall:
    """A call that waits. `turn` receives its permit."""

    run_id: str
    need: QuotaNeed
    turn: "asyncio.Future[CallPermit]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class FairQueue:
    """One queue per run; the run whose call was served goes to the end of the line."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[WaitingCall]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def __bool__(self) -> bool:
        return bool(self._queues)

    def add(self, call: WaitingCall) -> None:
        """Put a call at the end of its run's queue."""
        self._queues.setdefault(call.run_id, deque()).append(call)

    def first(self) -> WaitingCall:
        """The call whose turn it is."""
        return next(iter(self._queues.values()))[0]

    def pop(self) -> None:
        """Remove the first call; the next turn is another run's."""
        run_id = next(iter(self._queues))
        queue = self._queues.pop(run_id)
        queue.popleft()
        if queue:
            self._queues[run_id] = queue

    def remove(self, call: WaitingCall) -> None:
        """Remove a call that no longer waits."""
        queue = self._queues.get(call.run_id)
        if queue is not None and call in queue:
            queue.remove(call)
            if not queue:
                del self._queues[call.run_id]

    def drain(self) -> Iterator[WaitingCall]:
        """Empty the queue and return what was in it."""
        queues, self._queues = self._queues, {}
        return (call for queue in queues.values() for call in queue)
