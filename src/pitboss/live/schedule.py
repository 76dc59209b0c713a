"""The schedule of live ticks: at multiples of the period counted from 1970, once each, never early.

Pure: the caller passes the time. A slot missed because the machine was asleep or busy is skipped and counted, not made
up for; after the clock was set back nothing is due until it has caught up. No jitter.
"""

from pitboss.core.instant import SECOND_MS, Instant
from pitboss.core.noun import noun

MAX_GRACE_MS = 5 * SECOND_MS


@noun
class Due:
    """What is due at an instant: a tick at slot `at`, or, if None, a wait of `wait_ms`.

    `missed_slots` were skipped, the last of them at `passed_at`; they count as done once they are recorded. `back_ms` is
    how far the clock is before the slot that was done last.
    """

    at: Instant | None
    wait_ms: int = 0
    missed_slots: int = 0
    passed_at: Instant | None = None
    back_ms: int = 0


@noun
class TickSchedule:
    """Slots of a period. A tick may begin up to `grace_ms` after its slot; after that the slot is missed."""

    period_ms: int
    grace_ms: int

    def before(self, now: Instant) -> Instant:
        """The slot that counts as done when a run begins, so that its first tick is the next slot."""
        return -(-now // self.period_ms) * self.period_ms - self.period_ms

    def look(self, now: Instant, last: Instant) -> Due:
        """What is due now, where `last` is the newest slot that was ticked or skipped."""
        period = self.period_ms
        following = last // period * period + period
        if now < following:
            return Due(None, following - now, back_ms=max(0, last - now))
        newest = now // period * period
        skipped = (newest - following) // period
        if now - newest <= self.grace_ms:
            return Due(newest, 0, skipped, newest - period if skipped else None)
        return Due(None, newest + period - now, skipped + 1, newest)


def schedule(period_ms: int) -> TickSchedule:
    """The schedule of a period: a tick may be late by a quarter of it, at most by five seconds."""
    return TickSchedule(period_ms, min(MAX_GRACE_MS, period_ms // 4))
