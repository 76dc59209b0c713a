"""The exchange's time as this process knows it, and how far the machine's clock is from it.

Measured by requests: the exchange's time lies between sending and receiving. It is kept against the monotonic clock, so a
step of the machine's clock shows at once and does not move the exchange's time.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from pitboss.core.instant import MINUTE_MS, SECOND_MS, Instant

MOST_SKEW_MS = SECOND_MS
"""Above this difference nothing may be opened."""
KEPT_SAMPLES = 8
OLDEST_SAMPLE_MS = 10 * MINUTE_MS
TOLERANCE_MS = 250
"""Two measurements that differ by more than their uncertainty and this mean that one of the clocks has jumped."""


class ClockSample(NamedTuple):
    """One measurement: exchange time minus monotonic time, and half of the round trip, all in milliseconds."""

    taken_ms: float
    offset_ms: float
    uncertainty_ms: float


class ExchangeClock:
    """`now` is the machine's clock, `elapsed` the monotonic one in seconds."""

    def __init__(self, now: Callable[[], Instant], elapsed: Callable[[], float]) -> None:
        self._now = now
        self._elapsed = elapsed
        self._samples: deque[ClockSample] = deque(maxlen=KEPT_SAMPLES)

    def monotonic_ms(self) -> float:
        """Return the monotonic time in milliseconds."""
        return self._elapsed() * SECOND_MS

    def measure(self, sent_ms: float, received_ms: float, exchange_at: Instant) -> None:
        """Add the answer to a request: the exchange's time lies between sending and receiving."""
        half = max(0.0, received_ms - sent_ms) / 2
        sample = ClockSample(received_ms, exchange_at - (sent_ms + half), half)
        best = self._best()
        if best is not None:
            apart = abs(best.offset_ms - sample.offset_ms)
            if apart > best.uncertainty_ms + sample.uncertainty_ms + TOLERANCE_MS:
                self._samples.clear()
        self._samples.append(sample)

    def is_contradicted_by(self, exchange_at: Instant) -> bool:
        """Whether a message just received is from the future of the measured time: it has to be measured again."""
        best = self._best()
        if best is None:
            return True
        latest = self.monotonic_ms() + best.offset_ms + best.uncertainty_ms + TOLERANCE_MS
        return exchange_at > latest

    def is_measured(self) -> bool:
        """Whether there is any measurement."""
        return bool(self._samples)

    def now(self) -> Instant:
        """Return the exchange's time; the machine's if it was never measured."""
        return self.at(self.monotonic_ms())

    def at(self, monotonic_ms: float) -> Instant:
        """Return the exchange's time at an instant of the monotonic clock."""
        best = self._best()
        if best is None:
            return self._now() - round(self.monotonic_ms() - monotonic_ms)
        return round(monotonic_ms + best.offset_ms)

    def skew_ms(self) -> int:
        """Return the machine's time minus the exchange's; 0 if it was never measured."""
        return self._now() - self.now() if self._samples else 0

    def is_skewed(self) -> bool:
        """Whether the machine's clock is off by more than `MOST_SKEW_MS`, beyond the uncertainty of the measurement."""
        best = self._best()
        return best is not None and abs(self.skew_ms()) - best.uncertainty_ms > MOST_SKEW_MS

    def _best(self) -> ClockSample | None:
        newest = self.monotonic_ms()
        while len(self._samples) > 1 and newest - self._samples[0].taken_ms > OLDEST_SAMPLE_MS:
            self._samples.popleft()
        return min(self._samples, key=lambda sample: sample.uncertainty_ms, default=None)
