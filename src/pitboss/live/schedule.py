"""When a live tick is due: at multiples of the period counted from 1970, once each, and never before its time.

Pure: the clock is read by whoever asks. A slot that was slept through, or that the machine was too busy for, is passed
over and counted, not made up for; after a clock was set back nothing is due until it has caught up. No jitter.
"""

from pitboss.core.instant import SECOND_MS, Instant
from pitboss.core.noun import noun

MOST_LATE_MS = 5 * SECOND_MS


@noun
class Due:
    """What an instant asks for: a tick at slot `at`, or with None a wait of `wait_ms`.

    `missed` slots were passed over, the last of them `passed_at`: they count as done once that has been told. `back_ms`
    is how far the clock lies before the slot that was done last.
    """

    at: Instant | None
    wait_ms: int = 0
    missed: int = 0
    passed_at: Instant | None = None
    back_ms: int = 0


@noun
class TickSchedule:
    """Slots of a period. A tick may begin up to `grace_ms` after its slot; later it is no longer that slot's tick."""

    period_ms: int
    grace_ms: int

    def before(self, now: Instant) -> Instant:
        """The slot to count as done when a run begins: its first tick is the first slot from now on."""
        return -(-now // self.period_ms) * self.period_ms - self.period_ms

    def look(self, now: Instant, last: Instant) -> Due:
        """What is due now, where `last` is the slot that was ticked or passed over last."""
        period = self.period_ms
        following = last // period * period + period
        if now < following:
            return Due(None, following - now, back_ms=max(0, last - now))
        newest = now // period * period
        passed = (newest - following) // period
        if now - newest <= self.grace_ms:
            return Due(newest, 0, passed, newest - period if passed else None)
        return Due(None, newest + period - now, passed + 1, newest)


def schedule(period_ms: int) -> TickSchedule:
    """The schedule of a period: a tick may be late by a quarter of it, and by five seconds at most."""
    return TickSchedule(period_ms, min(MOST_LATE_MS, period_ms // 4))
