"""The windows of a walk-forward: choose on a period in sample, test the choice on the period that follows, then move on.

Every in-sample period ends before its out-of-sample period begins, so a choice cannot depend on the data that tests it.
"""

from dataclasses import dataclass

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso

MAX_WINDOWS = 1_000


@dataclass(frozen=True, slots=True)
class Window:
    """One step: in sample `[train_from, train_to)`, out of sample `[test_from, test_to)`."""

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
    """The windows that fit into a range; their out-of-sample periods follow each other without gaps.

    `gap_ms` is omitted between the two periods of a window. With `anchored` every in-sample period begins at the start of the
    range and grows. A remainder shorter than an out-of-sample period is not used.
    """
    if train_ms <= 0 or test_ms <= 0 or gap_ms < 0:
        raise UserError(
            "a walk-forward needs an in-sample and an out-of-sample period", "for example --walk-forward 30d/10d"
        )
    first = from_at + train_ms + gap_ms
    count = (to_at - first) // test_ms
    if count < 1:
        raise UserError(
            f"no window fits between {iso(from_at)} and {iso(to_at)}", "use a longer range or shorter periods"
        )
    if count > MAX_WINDOWS:
        raise UserError(f"{count} windows are too many", f"at most {MAX_WINDOWS}; use longer periods")
    starts = [first + test_ms * step for step in range(count)]
    return [
        Window(from_at if anchored else start - gap_ms - train_ms, start - gap_ms, start, start + test_ms)
        for start in starts
    ]
