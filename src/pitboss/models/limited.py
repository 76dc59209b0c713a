"""`Limited`: asks a provider no faster than it allows, with one `Limiter` for all runs of a process.

Limits belong to a key at a host, whoever uses it, so each such pair has one `Lane`. A lane lets calls through while the
quotas told by the provider (or set by a person) last and its bound of calls at once, which halves when the provider says
it is too much, is not reached; who has to wait is served run by run in turn. It repeats no calls: every try comes through here anew.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from pitboss.core.errors import TransientError
from pitboss.core.instant import SECOND_MS, Instant
from pitboss.core.intent import NO_USAGE, Usage
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.models import failures
from pitboss.models.prices import most_input_tokens
from pitboss.models.providers import MAX_TOKENS
from pitboss.models.quotas import LONGEST_MS, NEVER, FixedQuota, Load, Need, Told, read

MOST_AT_ONCE = 256
TOO_MUCH = frozenset({429, 529})
BYTES_PER_TOKEN = 3
"""Rather few: what is estimated too high only waits a little, what is too low is refused."""
FIRST_OUTPUT = 512
ONE_CALL = Need()

Sleep = Callable[[float], Awaitable[None]]


@dataclass(eq=False, slots=True)
class CallPermit:
    """A call that was let through."""

    lane: "Lane"
    need: Need
    number: int
    attempts: int = 0
    counted: bool = False
    """Whether a reply has told a remainder with this call in it."""


@dataclass(eq=False, slots=True)
class _Waiter:
    need: Need
    turn: "asyncio.Future[CallPermit]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


_CURRENT: ContextVar[CallPermit | None] = ContextVar("pitboss_limited_call", default=None)
"""The call that a reply's headers belong to: clients only know that they got a reply."""


class Lane:
    """Everything that uses one key at one host. Belongs to one event loop at a time."""

    def __init__(
        self,
        where: str,
        now: Callable[[], Instant],
        sleep: Sleep,
        *,
        rpm: int | None = None,
        tpm: int | None = None,
        most: int = MOST_AT_ONCE,
        patience_ms: int = LONGEST_MS,
    ) -> None:
        self.where = where
        self._now, self._sleep = now, sleep
        self._fixed = [
            FixedQuota(unit, limit) for unit, limit in (("requests", rpm), ("tokens", tpm)) if limit is not None
        ]
        self._told: dict[str, Told] = {}
        self._most = most
        self._bound = float(most)
        self._patience_ms = patience_ms
        self._paused_until: Instant = 0
        self._flying: set[CallPermit] = set()
        self._load, self._uncounted = Load(), Load()
        self._queues: dict[str, deque[_Waiter]] = {}
        self._timer: asyncio.Task[None] | None = None
        self._wake_at: Instant = 0
        self._issued = 0
        self._halved_at = 0
        self._output = FIRST_OUTPUT

    @property
    def bound(self) -> int:
        """How many calls may be under way at once now."""
        return int(self._bound)

    @property
    def under_way(self) -> int:
        """How many calls are."""
        return len(self._flying)

    @property
    def waiting(self) -> int:
        """How many calls wait for their turn."""
        return sum(map(len, self._queues.values()))

    def need(self, request: ModelRequest, max_tokens: int) -> Need:
        """What a request will probably take. Nothing is estimated while no quota counts tokens."""
        if not any(quota.unit != "requests" for quota in (*self._fixed, *self._told.values())):
            return ONE_CALL
        return Need(most_input_tokens(request) // BYTES_PER_TOKEN, min(self._output, max_tokens))

    async def acquire(self, run_id: str, need: Need = ONE_CALL) -> CallPermit:
        """Wait for this run's turn. Raises `TransientError` where the provider wants to be left alone for too long."""
        if not self._queues and self._wait_ms(need, self._now()) == 0:
            return self._admit(need)
        waiter = _Waiter(need)
        self._queues.setdefault(run_id, deque()).append(waiter)
        self._serve()
        try:
            return await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.done() and not waiter.turn.cancelled() and waiter.turn.exception() is None:
                self._land(waiter.turn.result())  # let through and cancelled at the same moment: never sent
            else:
                self._leave(run_id, waiter)
            self._serve()
            raise

    def release(self, ticket: CallPermit, usage: Usage = NO_USAGE) -> None:
        """A call is over, well or not."""
        if ticket not in self._flying:
            return
        self._land(ticket)
        now = self._now()
        took = ticket.need
        if usage != NO_USAGE:
            took = Need(usage.input_tokens, usage.output_tokens)
            self._output = max(usage.output_tokens, self._output * 31 // 32, 1)
        took = Need(took.input_tokens, took.output_tokens, max(ticket.attempts, 1))
        for quota in self._fixed:
            quota.ended(took.of(quota.unit), now)
        if not ticket.counted:
            for quota in self._told.values():
                quota.unheard(took.of(quota.unit), now)
        self._serve()

    def learn(self, headers: Mapping[str, str], usage: Usage | None = None, status: int = 200) -> None:
        """Take what a reply, good or bad, says about limits. The clients call this once for every reply they get."""
        now = self._now()
        ticket = _CURRENT.get()
        ticket = ticket if ticket is not None and ticket.lane is self else None
        readings = read(headers, now)
        for reading in readings:
            self._told.setdefault(reading.name, Told(reading.unit)).learn(reading, now)
        if ticket is not None:
            ticket.attempts += 1
            if readings and not ticket.counted:
                ticket.counted = True
                if ticket in self._flying:
                    self._uncounted.add(ticket.need, -1)
        if status >= 400:
            self._failed(headers, status, ticket, now)
        else:
            self._bound = min(self._bound + 1 / self._bound, self._most)
        self._serve()

    def _failed(self, headers: Mapping[str, str], status: int, ticket: CallPermit | None, now: Instant) -> None:
        # Only errors: some providers send retry-after with answers that are perfectly good.
        wait_s = failures.delay(None, headers) if status in TOO_MUCH or status >= 500 or status == 408 else None
        if wait_s is not None:
            self._paused_until = max(self._paused_until, now + int(wait_s * SECOND_MS))
        # One halving for one storm: calls that were let through before the last one say nothing new.
        if status in TOO_MUCH and (ticket is None or ticket.number > self._halved_at):
            self._bound = max(min(self._bound, max(len(self._flying), 1)) / 2, 1.0)
            self._halved_at = self._issued

    def _admit(self, need: Need) -> CallPermit:
        self._issued += 1
        ticket = CallPermit(self, need, self._issued)
        self._flying.add(ticket)
        self._load.add(need)
        self._uncounted.add(need)
        return ticket

    def _land(self, ticket: CallPermit) -> None:
        self._flying.discard(ticket)
        self._load.add(ticket.need, -1)
        if not ticket.counted:
            self._uncounted.add(ticket.need, -1)

    def _wait_ms(self, need: Need, now: Instant) -> float:
        if len(self._flying) >= int(self._bound):
            return NEVER
        wait: float = max(self._paused_until - now, 0)
        for quota in self._fixed:
            wait = max(wait, quota.wait_ms(need.of(quota.unit), self._load.of(quota.unit), now))
        for quota in self._told.values():
            wait = max(wait, quota.wait_ms(need.of(quota.unit), self._uncounted.of(quota.unit), now))
        return wait

    def _serve(self) -> None:
        """Let through whoever may go now, one of each waiting run in turn, and see to it that the next is not forgotten."""
        while self._queues:
            now = self._now()
            if self._paused_until - now > self._patience_ms:
                self._refuse(self._paused_until - now)
                return
            run_id = next(iter(self._queues))
            waiter = self._queues[run_id][0]
            # Strictly in turn: were smaller calls let past a large one, it might wait for ever.
            wait = 0 if waiter.turn.done() else self._wait_ms(waiter.need, now)
            if wait == NEVER:
                return
            if wait:
                self._wake(now + int(wait))
                return
            queue = self._queues.pop(run_id)
            queue.popleft()
            if queue:
                self._queues[run_id] = queue
            if not waiter.turn.done():
                waiter.turn.set_result(self._admit(waiter.need))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, left_ms: int) -> None:
        queues, self._queues = self._queues, {}
        for waiter in (waiter for queue in queues.values() for waiter in queue):
            if not waiter.turn.done():
                words = f"{self.where}: no more calls for {left_ms // SECOND_MS} s, says the provider"
                waiter.turn.set_exception(TransientError(words))

    def _leave(self, run_id: str, waiter: _Waiter) -> None:
        queue = self._queues.get(run_id)
        if queue is not None and waiter in queue:
            queue.remove(waiter)
            if not queue:
                del self._queues[run_id]

    def _wake(self, at: Instant) -> None:
        if self._timer is not None and not self._timer.done():
            if self._wake_at <= at:
                return  # it looks again then
            self._timer.cancel()
        self._wake_at = at
        self._timer = asyncio.get_running_loop().create_task(self._later(at))

    async def _later(self, at: Instant) -> None:
        await self._sleep(max(at - self._now(), 1) / SECOND_MS)
        self._timer = None
        self._serve()


class Limiter:
    """The lanes of a process."""

    def __init__(
        self,
        now: Callable[[], Instant],
        sleep: Sleep = asyncio.sleep,
        *,
        rpm: int | None = None,
        tpm: int | None = None,
        most: int = MOST_AT_ONCE,
    ) -> None:
        self._now, self._sleep = now, sleep
        self._rpm, self._tpm, self._most = rpm, tpm, most
        self._lanes: dict[tuple[str, str], Lane] = {}

    def lane(self, host: str, key: str = "") -> Lane:
        """The lane of a key (its `fingerprint`, never the key itself) at a host; the same one for everybody."""
        found = self._lanes.get((host, key))
        if found is None:
            found = Lane(host, self._now, self._sleep, rpm=self._rpm, tpm=self._tpm, most=self._most)
            self._lanes[(host, key)] = found
        return found


def fingerprint(key: str) -> str:
    """A name for a key that says nothing about it."""
    return hashlib.sha256(b"pitboss lane\0" + key.encode()).hexdigest()[:16]


class Limited:
    """Asks when the lane lets this run's call through."""

    def __init__(self, inner: Model, lane: Lane, run_id: str, *, max_tokens: int = MAX_TOKENS) -> None:
        self.name = inner.name
        self.inner = inner
        self.lane = lane
        self.run_id = run_id
        self._max_tokens = max_tokens

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Wait, ask, and make room for the next."""
        asked = request.settings.get("max_tokens")
        bound = asked if isinstance(asked, int) and asked > 0 else self._max_tokens
        try:
            ticket = await self.lane.acquire(self.run_id, self.lane.need(request, bound))
        except BaseException as error:
            setattr(error, "charged", False)  # noqa: B010 – for the budget: turned away or given up, it was never sent
            raise
        mark = _CURRENT.set(ticket)
        usage = NO_USAGE
        try:
            reply = await self.inner.complete(request)
            usage = reply.usage
            return reply
        finally:
            _CURRENT.reset(mark)
            self.lane.release(ticket, usage)
