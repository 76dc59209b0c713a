"""Walk-forward: choose on a stretch of the past, look at what the choice does next, move on, choose again.

A window is a stretch to choose on (in sample) and the one after it (out of sample). Every stretch to choose on ends before
what is judged by it begins, so whoever runs the windows in this order cannot have peeked.
"""

from dataclasses import dataclass

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso

MOST_WINDOWS = 1_000


@dataclass(frozen=True, slots=True)
class Window:
    """One step: chosen on `[train_from, train_to)`, judged on `[test_from, test_to)`."""

    train_from: Instant
    train_to: Instant
    test_from: Instant
    test_to: Instant


def windows(
    from_at: Instant,
    to_at: Instant,
    train_ms: int,
    test_ms: int,
    gap_ms: int = 0,
    *,
    anchored: bool = False,
) -> list[Window]:
    """The windows that fit into a range, one judged stretch following the other without a hole.

    `gap_ms` is left out between choosing and judging. With `anchored` every stretch to choose on begins where the range
    does, and grows. What is left at the end and is shorter than a judged stretch is not used.
    """
    if train_ms <= 0 or test_ms <= 0 or gap_ms < 0:
        raise UserError("a walk needs a stretch to choose on and one to judge on", "for example --walk-forward 30d/10d")
    first = from_at + train_ms + gap_ms
    count = (to_at - first) // test_ms
    if count < 1:
        raise UserError(
            f"no window fits between {iso(from_at)} and {iso(to_at)}", "take a longer range or shorter stretches"
        )
    if count > MOST_WINDOWS:
        raise UserError(f"{count} windows are too many", f"at most {MOST_WINDOWS}; take longer stretches")
    starts = [first + test_ms * step for step in range(count)]
    return [
        Window(from_at if anchored else start - gap_ms - train_ms, start - gap_ms, start, start + test_ms)
        for start in starts
    ]
