"""`Pace`: the timing of a live run: its slots, and how long each part of a tick may take. Pure."""

from dataclasses import dataclass

from pitboss.core.errors import InvariantError
from pitboss.core.instant import SECOND_MS
from pitboss.live.schedule import TickSchedule

MAX_FEED_MS = 5 * SECOND_MS


@dataclass(frozen=True, slots=True)
class Pace:
    """Timing: the slots, the time limits of a decision and of the feed, and the interval of updates between ticks.

    Without `update_ms` the world is only updated at ticks. A tick begins `settle_ms` after its slot, when the bar that closes
    there has arrived.
    """

    schedule: TickSchedule
    deadline_ms: int
    feed_ms: int
    update_ms: int | None
    settle_ms: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.settle_ms + self.feed_ms + self.deadline_ms < self.schedule.period_ms:
            raise InvariantError("the time limits of a tick must be shorter than the period")


def pace(schedule: TickSchedule, update_ms: int | None, settle_ms: int = 0) -> Pace:
    """Three quarters of the period for a decision and an eighth for the feed; the rest is reserve and settling."""
    period = schedule.period_ms
    update_ms = None if update_ms is None else min(update_ms, period)
    return Pace(schedule, period * 3 // 4, min(MAX_FEED_MS, period // 8), update_ms, min(settle_ms, period // 16))
