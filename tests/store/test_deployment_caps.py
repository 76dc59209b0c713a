"""Changes of caps: lower ones at once, a raise when its time has come, and never a raise over a later change."""

import threading
from typing import Any

import pytest

from pitboss.core.errors import UserError
from pitboss.store.deployment_caps import add_changes, cancel_pending, caps_changes, caps_numbers, caps_state
from pitboss.store.deployments import Deployments

LOW, HIGH = {"max_leverage": 1}, {"max_leverage": 2}
HOUR = 3_600_000


@pytest.fixture
def deployment(bench):
    return Deployments(bench.database, bench.now, bench.new_id).create(bench.queued(), "trend", 1, "perp", "paper").id


def state_of(bench, deployment) -> Any:
    return caps_state(bench.database, deployment)


def add(bench, deployment, newest, *changes):
    return add_changes(bench.database, deployment, newest, changes, "news", "kim")


def test_a_change_is_in_effect_when_it_is_due_and_not_before(bench, deployment):
    assert (state_of(bench, deployment).current, caps_numbers(bench.database, [deployment])) == (None, {})
    assert add(bench, deployment, 0, (LOW, 0), (HIGH, HOUR))
    state = state_of(bench, deployment)
    assert (state.current.caps, state.pending.caps, state.newest) == (LOW, HIGH, 2)
    assert caps_numbers(bench.database, [deployment, "other"]) == {deployment: 1}
    bench.at += HOUR
    state = state_of(bench, deployment)
    assert (state.current.caps, state.pending, caps_numbers(bench.database, [deployment])) == (
        HIGH,
        None,
        {deployment: 2},
    )
    assert [each.number for each in caps_changes(bench.database, deployment, 0, 2)] == [1, 2]
    assert [each.number for each in caps_changes(bench.database, deployment, 0, 1)] == [1]


def test_a_further_change_cancels_what_is_pending_and_so_does_a_person(bench, deployment):
    add(bench, deployment, 0, (HIGH, HOUR))
    assert add(bench, deployment, 1, (LOW, 0))
    bench.at += 2 * HOUR
    assert state_of(bench, deployment).current.caps == LOW
    add(bench, deployment, 2, (HIGH, HOUR))
    assert cancel_pending(bench.database, deployment, "anna")
    assert not cancel_pending(bench.database, deployment, "anna")
    bench.at += 2 * HOUR
    assert state_of(bench, deployment).current.caps == LOW
    assert [each.number for each in caps_changes(bench.database, deployment, 0, 9)] == [2]


def test_a_change_that_was_made_from_outdated_caps_is_not_stored(bench, deployment):
    add(bench, deployment, 0, (LOW, 0))
    assert not add(bench, deployment, 0, (HIGH, HOUR))
    assert state_of(bench, deployment).pending is None
    Deployments(bench.database, bench.now, bench.new_id).stop(deployment, "stop", "")
    with pytest.raises(UserError, match="is stopped"):
        add(bench, deployment, 1, (HIGH, HOUR))


def test_of_changes_at_once_one_is_stored_and_the_others_look_again(bench, deployment):
    stored = []
    threads = [
        threading.Thread(target=lambda delay=delay: stored.append(add(bench, deployment, 0, (LOW, delay))))
        for delay in (0, HOUR, 0, HOUR)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(stored) == [False, False, False, True]
    assert state_of(bench, deployment).newest == 1
