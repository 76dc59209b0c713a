"""`Lane`: lets the calls of one key at one host through, no faster than the provider allows.

Calls go through while the quotas last and fewer calls are under way than the concurrency limit, which halves when the provider
reports overload and grows again with successful replies. Waiting calls are served run by run. A lane repeats no calls:
every attempt comes through it anew. `Limiter` holds the lanes of a process, `Limited` uses one of them for a run.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from pitboss.core.errors import TransientError
from pitboss.core.instant import SECOND_MS, Instant
from pitboss.core.intent import NO_USAGE, Usage
from pitboss.core.ports import ModelRequest
from pitboss.models.fair_queue import FairQueue, WaitingCall
from pitboss.models.quota_ledger import ONE_CALL, CallPermit, QuotaLedger
from pitboss.models.quotas import LONGEST_MS, NEVER, QuotaNeed
from pitboss.models.retry_after import retry_after_s

MOST_AT_ONCE = 256
OVERLOAD = frozenset({429, 529})

Sleep = Callable[[float], Awaitable[None]]


class Lane:
    """Everything that uses one key at one host. Belongs to one event loop at a time."""

    def __init__(
        self,
        name: str,
        now: Callable[[], Instant],
        sleep: Sleep,
        *,
        rpm: int | None = None,
        tpm: int | None = None,
        most: int = MOST_AT_ONCE,
        patience_ms: int = LONGEST_MS,
    ) -> None:
        self.name = name
        self._now, self._sleep = now, sleep
        self._ledger = QuotaLedger(rpm, tpm)
        self._queue = FairQueue()
        self._most = most
        self._concurrency_limit = float(most)
        self._patience_ms = patience_ms
        self._paused_until: Instant = 0
        self._timer: asyncio.Task[None] | None = None
        self._wake_at: Instant = 0
        self._halved_at = 0

    @property
    def concurrency_limit(self) -> int:
        """How many calls may be under way at once now."""
        return int(self._concurrency_limit)

    @property
    def under_way(self) -> int:
        """How many calls are under way."""
        return self._ledger.under_way

    @property
    def waiting(self) -> int:
        """How many calls wait for their turn."""
        return len(self._queue)

    def need(self, request: ModelRequest) -> QuotaNeed:
        """What a request will probably take from the quotas."""
        return self._ledger.need(request)

    async def acquire(self, run_id: str, need: QuotaNeed = ONE_CALL) -> CallPermit:
        """Wait for this run's turn. Raises `TransientError` where the provider asks for a longer pause than is waited for."""
        if not self._queue and self._wait_ms(need, self._now()) == 0:
            return self._ledger.admit(need)
        call = WaitingCall(run_id, need)
        self._queue.add(call)
        self._serve()
        try:
            return await call.turn
        except asyncio.CancelledError:
            if call.turn.done() and not call.turn.cancelled() and call.turn.exception() is None:
                self._ledger.cancel(call.turn.result())  # let through and cancelled at the same moment: never sent
            else:
                self._queue.remove(call)
            self._serve()
            raise

    def release(self, permit: CallPermit, usage: Usage = NO_USAGE, attempts: int = 1) -> None:
        """End a call, successful or not."""
        if self._ledger.end(permit, usage, attempts, self._now()):
            self._serve()

    def learn(self, headers: Mapping[str, str], status: int = 200, permit: CallPermit | None = None) -> None:
        """Take what a response, good or bad, reports about limits. `permit` is the call that it answers."""
        now = self._now()
        self._ledger.learn(headers, permit, now)
        if status >= 400:
            self._slow_down(headers, status, permit, now)
        else:
            self._concurrency_limit = min(self._concurrency_limit + 1 / self._concurrency_limit, self._most)
        self._serve()

    def _slow_down(self, headers: Mapping[str, str], status: int, permit: CallPermit | None, now: Instant) -> None:
        # Only for errors: some providers send retry-after with good replies.
        wait_s = retry_after_s(None, headers) if status in OVERLOAD or status >= 500 or status == 408 else None
        if wait_s is not None:
            self._paused_until = max(self._paused_until, now + int(wait_s * SECOND_MS))
        # One halving per overload: calls that were let through before the last halving report nothing new.
        if status in OVERLOAD and (permit is None or permit.number > self._halved_at):
            self._concurrency_limit = max(min(self._concurrency_limit, max(self.under_way, 1)) / 2, 1.0)
            self._halved_at = self._ledger.issued

    def _wait_ms(self, need: QuotaNeed, now: Instant) -> float:
        if self.under_way >= self.concurrency_limit:
            return NEVER
        return max(self._paused_until - now, 0, self._ledger.wait_ms(need, now))

    def _serve(self) -> None:
        """Let through the calls that may go now, one of each waiting run in turn, and set a timer for the next."""
        while self._queue:
            now = self._now()
            if self._paused_until - now > self._patience_ms:
                self._refuse(self._paused_until - now)
                return
            call = self._queue.first()
            # Strictly in turn: if smaller calls could pass a large one, it might wait for ever.
            wait = 0 if call.turn.done() else self._wait_ms(call.need, now)
            if wait == NEVER:
                return
            if wait:
                self._wake(now + int(wait))
                return
            self._queue.pop()
            if not call.turn.done():
                call.turn.set_result(self._ledger.admit(call.need))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, left_ms: int) -> None:
        message = f"{self.name}: no more calls for {left_ms // SECOND_MS} s, says the provider"
        for call in self._queue.drain():
            if not call.turn.done():
                call.turn.set_exception(TransientError(message))

    def _wake(self, at: Instant) -> None:
        if self._timer is not None and not self._timer.done():
            if self._wake_at <= at:
                return  # the timer serves the queue earlier
            self._timer.cancel()
        self._wake_at = at
        self._timer = asyncio.get_running_loop().create_task(self._serve_later(at))

    async def _serve_later(self, at: Instant) -> None:
        await self._sleep(max(at - self._now(), 1) / SECOND_MS)
        self._timer = None
        self._serve()
