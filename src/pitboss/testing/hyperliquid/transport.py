"""`InProcessTransport`: requests to a fake exchange without sockets, in virtual time.

One signature takes about a fifth of a millisecond to verify, more than the rest of a request. `VenueRules.verify_every` decides how many are:
every one by default; long tests verify a sample (`verify_every=50`), and what is not verified counts as signed by the ready agent.
"""

import asyncio
import selectors
from collections import Counter
from collections.abc import Callable, Coroutine
from math import ceil
from typing import Any, NamedTuple, TypeVar

from pitboss.core.instant import Instant
from pitboss.testing.hyperliquid.exchange import START, FakeExchange
from pitboss.testing.hyperliquid.faults import FaultPlan
from pitboss.testing.hyperliquid.gateway import Gateway
from pitboss.testing.hyperliquid.seeded import SeededNumbers

T = TypeVar("T")


class TransportReply(NamedTuple):
    """The HTTP status and the text of the body."""

    status: int
    text: str


class VirtualClock:
    """Time that passes only when a task waits. `now` and `sleep` are what a client under test is given."""

    def __init__(self, start: Instant = START) -> None:
        self.micros = start * 1_000
        self.is_in_loop = False
        self._followers: list[Callable[[Instant], None]] = []

    def now(self) -> Instant:
        """Milliseconds since 1970."""
        return self.micros // 1_000

    async def sleep(self, seconds: float) -> None:
        """Let time pass: for all tasks under `run_in_virtual_time`, otherwise at once."""
        if self.is_in_loop:
            await asyncio.sleep(seconds)
        else:
            self.move(seconds)

    def move(self, seconds: float) -> None:
        """Let time pass without waiting."""
        self.micros += ceil(max(seconds, 0) * 1_000_000)
        for follow in self._followers:
            follow(self.now())

    def follow(self, advance: Callable[[Instant], None]) -> None:
        """Call a function with the time whenever it moves."""
        self._followers.append(advance)


class InProcessTransport:
    """Posts to a fake exchange. Its latency is seeded; its faults are those of the plan."""

    def __init__(
        self,
        exchange: FakeExchange,
        clock: VirtualClock,
        plan: FaultPlan | None = None,
        latency_ms: tuple[int, int] = (20, 120),
    ) -> None:
        self.exchange = exchange
        self.clock = clock
        self.gateway = Gateway(exchange, plan)
        self.sent: Counter[str] = Counter()
        """Requests by the type of what they ask for or do."""
        self._latency = latency_ms
        self._numbers = SeededNumbers(exchange.seed, "latency")
        exchange.advance(clock.now())
        clock.follow(exchange.advance)

    async def post(self, path: str, body: dict[str, Any], timeout_s: float) -> TransportReply:
        """Send one request; TimeoutError after `timeout_s` of virtual time, ConnectionError where the connection fails."""
        self.sent[str((body.get("action") or body)["type"])] += 1
        there, back = self._numbers.between(*self._latency) / 2_000, self._numbers.between(*self._latency) / 2_000
        await self.clock.sleep(there)
        delivery = self.gateway.handle(path, body)
        if delivery.lost == "connection":
            await self.clock.sleep(back)
            raise ConnectionError("the connection to the exchange failed")
        waited = there + back + delivery.delay_ms / 1_000
        if delivery.lost == "timeout" or waited > timeout_s:
            await self.clock.sleep(max(timeout_s - there, 0))
            raise TimeoutError(f"no answer of the exchange in {timeout_s} s")
        await self.clock.sleep(waited - there)
        return TransportReply(delivery.status, delivery.text)


class _JumpingSelector(selectors.DefaultSelector):
    """Where a loop would wait for its next timer, this moves the clock instead."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            return super().select(None)
        if not ready and timeout:
            self._clock.move(timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is a `VirtualClock`. Only for tasks without real sockets."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(_JumpingSelector(clock))
        self._virtual_clock = clock
        self._origin = clock.micros
        self._clock_resolution = 1e-6  # of the clock; timers that are due within it are run

    def time(self) -> float:
        """Seconds of the virtual clock since the loop began: small numbers, so that no microsecond is lost to rounding."""
        return (self._virtual_clock.micros - self._origin) / 1_000_000


def run_in_virtual_time(clock: VirtualClock, main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, and the tasks it starts, in virtual time; `asyncio.sleep` and `asyncio.timeout` take none of the real one."""
    clock.is_in_loop = True
    try:
        with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(clock)) as runner:
            return runner.run(main)
    finally:
        clock.is_in_loop = False
