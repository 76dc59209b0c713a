"""How much may still be requested of a provider: quotas that its replies report, and limits that a person has set.

Pure bookkeeping in milliseconds. `quota_headers` reads the reports; which call goes next is decided in `lane`.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator

from pitboss.core.instant import MINUTE_MS, SECOND_MS, Instant
from pitboss.core.noun import noun
from pitboss.models.quota_headers import QuotaReading

LONGEST_MS = 5 * MINUTE_MS
"""A quota that is full again later than this is probed with one call then: most refill gradually, and clocks differ."""
LATE: Instant = 10**15
"""An instant after every wait: it is unknown when the quota is full again."""
NEVER = math.inf
"""Only the end of a call under way can help."""


@noun
class QuotaNeed:
    """What one call takes from a quota. Tokens are estimates until the call is over."""

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 1

    def of(self: "QuotaNeed | QuotaLoad", unit: str) -> int:
        """The amount in the unit of a quota."""
        if unit == "requests":
            return self.calls
        if unit == "input-tokens":
            return self.input_tokens
        return self.output_tokens if unit == "output-tokens" else self.input_tokens + self.output_tokens


class QuotaLoad:
    """The sum of what several calls take."""

    __slots__ = ("calls", "input_tokens", "output_tokens")

    def __init__(self) -> None:
        self.calls = self.input_tokens = self.output_tokens = 0

    def add(self, need: QuotaNeed, times: int = 1) -> None:
        """Add a call; with `times` -1, remove it."""
        self.calls += times * need.calls
        self.input_tokens += times * need.input_tokens
        self.output_tokens += times * need.output_tokens

    of = QuotaNeed.of


class ReportedQuota:
    """A quota that the provider reports with its replies.

    Each reading bounds what may be let through until the instant it names. All readings that still apply count, because
    replies overtake each other, and calls under way are added, because no reading need include them. So no more is let
    through than the provider has left, whether it counts in windows or refills gradually.
    """

    __slots__ = ("_bounds", "_probing", "_span_ms", "limit", "unit")

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.limit: int | None = None
        self._bounds: list[tuple[Instant, int, Instant]] = []
        """(applies until, remaining, full again at). The first two ascend: a lower and longer bound replaces others."""
        self._probing = False
        self._span_ms = MINUTE_MS
        """The longest reported time until the quota is full, and at least a minute."""

    def learn(self, reading: QuotaReading, now: Instant) -> None:
        """Take the reading of a reply."""
        self._expire(now)
        self._probing = False
        self.limit = self.limit if reading.limit is None else reading.limit
        full_at = now + MINUTE_MS if reading.reset_at is None else reading.reset_at
        self._span_ms = max(self._span_ms, min(full_at - now, LONGEST_MS))
        self._add_bound(reading.remaining, full_at, now)

    def end_unreported(self, amount: int, now: Instant) -> None:
        """Count a call whose reply did not report the quota. It may also have delayed when the quota is full again."""
        self._expire(now)
        if self._bounds:
            self._bounds = [(until, max(remaining - amount, 0), LATE) for until, remaining, _ in self._bounds]
        elif self.limit is not None:
            remaining = 0 if self._probing else max(self.limit - amount, 0)
            self._add_bound(remaining, LATE, now, self._span_ms + SECOND_MS)

    def wait_ms(self, need: int, under_way: int, now: Instant) -> float:
        """How long until a call of this size may begin; 0 is now."""
        self._expire(now)
        if self.limit is not None:
            need = min(need, max(self.limit, 1))  # larger than the quota: it goes alone, and the provider decides
        if self._bounds:
            return max((until - now for until, remaining, _ in self._bounds if need + under_way > remaining), default=0)
        if not under_way:
            return 0
        is_free = not self._probing and (self.limit is None or need + under_way <= self.limit)
        return 0 if is_free else NEVER

    def _add_bound(self, remaining: int, full_at: Instant, now: Instant, most_ms: int = LONGEST_MS) -> None:
        until = max(min(full_at, now + most_ms), now + 1)
        if any(later >= until and lower <= remaining for later, lower, _ in self._bounds):
            return
        bounds = [entry for entry in self._bounds if not (entry[0] <= until and entry[1] >= remaining)]
        self._bounds = sorted([*bounds, (until, remaining, full_at)])

    def _expire(self, now: Instant) -> None:
        while self._bounds and self._bounds[0][0] <= now:
            self._probing = self._bounds.pop(0)[2] > now  # not full yet: one call at a time, each reports more


class FixedQuota:
    """A limit that a person has set: at most `limit` in any window of `window_ms`, wherever the window begins.

    A call counts from its start to one window after its end, because it is unknown when the provider counts it.
    """

    __slots__ = ("_ended_calls", "_sum", "limit", "unit", "window_ms")

    def __init__(self, unit: str, limit: int, window_ms: int = MINUTE_MS) -> None:
        self.unit = unit
        self.limit = limit
        self.window_ms = window_ms
        self._ended_calls: deque[tuple[Instant, int]] = deque()
        """(counts until, amount), in order of time."""
        self._sum = 0

    def end(self, amount: int, now: Instant) -> None:
        """Count a call that has ended."""
        self._ended_calls.append((now + self.window_ms, amount))
        self._sum += amount

    def wait_ms(self, need: int, under_way: int, now: Instant) -> float:
        """How long until a call of this size may begin; 0 is now."""
        while self._ended_calls and self._ended_calls[0][0] <= now:
            self._sum -= self._ended_calls.popleft()[1]
        excess = self._sum + under_way + min(need, self.limit) - self.limit
        if excess <= 0:
            return 0
        return next((at - now for at, freed in _freed(self._ended_calls) if freed >= excess), NEVER)


def _freed(ended_calls: Iterable[tuple[Instant, int]]) -> Iterator[tuple[Instant, int]]:
    """Each instant at which a call stops counting, with the amount freed by then."""
    total = 0
    for at, amount in ended_calls:
        total += amount
        yield at, total
