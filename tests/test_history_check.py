"""The history checker finds every kind of violation, and none in a history that is in order."""

import pytest

from history_check import check
from pitboss.store.events import RunEvent

GOOD = [
    ("a", 0, "enqueued", 0, ""),
    ("a", 1, "claimed", 10, ""),
    ("a", 1, "committed", 20, "0-3"),
    ("a", 1, "requeued", 20_050, "20030 ms: silent"),
    ("a", 3, "claimed", 21_000, ""),
    ("a", 1, "refused", 21_005, "commit 3-4"),
    ("a", 3, "committed", 21_010, "3-5"),
    ("a", 3, "released", 21_020, "drained"),
    ("a", 5, "claimed", 21_030, ""),
    ("a", 5, "committed", 21_040, "5-6"),
    ("a", 5, "complete", 21_050, "digest"),
]


def log(steps):
    return [
        RunEvent(number, run_id, epoch, kind, at, "w", detail)
        for number, (run_id, epoch, kind, at, detail) in enumerate(steps, 1)
    ]


def violations(steps, **how):
    return check(log(steps), **{"expected": ["a"], "stale_ms": 20_000, "reclaim_ms": 30_000, **how}).violations


def with_removed(number):
    return [*GOOD[:number], *GOOD[number + 1 :]]


def with_inserted(number, step):
    return [*GOOD[:number], step, *GOOD[number:]]


def with_replaced(number, step):
    return [*GOOD[:number], step, *GOOD[number + 1 :]]


def test_a_history_in_order_has_no_violations_and_is_counted():
    result = check(log(GOOD), ["a"], stale_ms=20_000)

    assert result.violations == []
    assert (result.runs, result.claims, result.commits, result.requeues, result.refused) == (1, 3, 3, 1, 1)
    assert result.ends == {"complete": 1}
    assert result.longest_reclaim_ms == 21_000 - 20


@pytest.mark.parametrize(
    ("steps", "how", "message"),
    [
        (GOOD, {"expected": ["a", "b"]}, "run b is lost"),
        (GOOD[:-1], {}, "run a is stuck: held"),
        (GOOD[:4], {}, "run a is stuck: queued"),
        ([*GOOD, ("a", 5, "complete", 21_060, "")], {}, "it ended twice"),
        ([*GOOD, ("a", 6, "error", 21_060, "")], {}, "it ended twice"),
        (
            with_inserted(6, ("a", 1, "committed", 21_006, "3-4")),
            {},
            "a write under the old epoch 1 was made, and the lease is 3",
        ),
        (
            with_inserted(4, ("a", 1, "committed", 20_060, "3-4")),
            {},
            "a write under the old epoch 1 was made, and it is queued",
        ),
        ([*GOOD, ("a", 5, "committed", 21_060, "6-7")], {}, "a write under the old epoch 5 was made, and it is ended"),
        (with_inserted(5, ("a", 4, "claimed", 21_001, "")), {}, "two leases at once: 3 and 4"),
        (with_replaced(4, ("a", 2, "claimed", 21_000, "")), {}, "the epoch did not rise: 2, then 2"),
        (with_replaced(6, ("a", 3, "committed", 21_010, "2-5")), {}, "records doubled"),
        (with_replaced(6, ("a", 3, "committed", 21_010, "4-5")), {}, "records lost"),
        (with_replaced(6, ("a", 3, "committed", 21_010, "some")), {}, "a commit says 'some' of itself"),
        (with_replaced(3, ("a", 1, "requeued", 10_000, "9980 ms: silent")), {}, "given up after 9980 ms, before 20000"),
        (GOOD, {"most": 0}, "requeued 1 times, more than 0"),
        (GOOD, {"reclaim_ms": 20_000}, "waited 20980 ms to be claimed again"),
        (with_inserted(7, ("a", 3, "cancel", 21_015, "")), {}, "requeued after a cancel request"),
        (
            with_inserted(6, ("a", 3, "refused", 21_008, "note")),
            {},
            "a write under the lease that holds (3) was refused",
        ),
        (with_inserted(5, ("a", 3, "enqueued", 21_001, "")), {}, "it was queued while it was held"),
        ([*GOOD, ("a", 6, "enqueued", 21_060, "")], {"ended": False}, "it was queued after it was complete"),
        ([*GOOD, ("a", 6, "taken", 21_060, "")], {"ended": False}, "it was taken after it was complete"),
        (with_removed(0), {}, "it was claimed while it was unknown"),
        (
            with_replaced(10, ("a", 3, "complete", 21_050, "")),
            {},
            "ended (complete) under the old epoch 3; the lease is 5",
        ),
        (with_replaced(8, ("a", 4, "complete", 21_030, "")), {"ended": False}, "ended (complete) without a lease"),
        (with_inserted(10, ("a", 5, "committed", 5_000, "6-6")), {}, "time went back by 16040 ms"),
        (with_inserted(10, ("a", 5, "slept", 21_045, "")), {}, "unknown kind of event 'slept'"),
    ],
)
def test_a_violation_is_found_and_named(steps, how, message):
    assert any(message in finding for finding in violations(steps, **how)), violations(steps, **how)


def test_events_out_of_order_are_found():
    steps = log(GOOD)

    assert any("comes after" in finding for finding in check([steps[1], steps[0], *steps[2:]]).violations)


def test_a_run_that_a_person_takes_and_one_that_is_cancelled_in_the_queue_are_in_order():
    claims = [
        ("a", 1, "taken", 0, ""),
        ("a", 2, "taken", 5, ""),
        ("a", 2, "error", 9, "why"),
        ("a", 3, "enqueued", 9, ""),
    ]
    cancelled = [("b", 0, "enqueued", 0, ""), ("b", 0, "cancelled", 1, "")]

    assert check(log([*claims, ("a", 3, "cancelled", 10, ""), *cancelled])).violations == []
