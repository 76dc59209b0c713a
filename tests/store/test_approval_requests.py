"""Requests for approval: decided once, used once, for one action of one run, until they expire."""

import itertools
import threading

import pytest
from sqlalchemy import text

from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.store.approval_requests import LASTS_MS, ApprovalRequests
from pitboss.store.database import open_database
from pitboss.store.prune import prune

KEY, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def requests(bench):
    return ApprovalRequests(bench.database, bench.now)


def ask(requests, key=KEY, run_id="r1", **given):
    return requests.ask(key, run_id, "community", "alpha", b'{"value_wei":"5"}', **given)


def test_asking_again_counts_and_changes_nothing_else(bench, requests):
    first = ask(requests)
    bench.at += 1_000
    second = ask(requests)

    assert (first.state, first.times_asked, first.asked_at, first.expires_at) == (
        "pending",
        1,
        bench.at - 1_000,
        bench.at - 1_000 + LASTS_MS,
    )
    assert (second.id, second.times_asked, second.expires_at) == (first.id, 2, first.expires_at)
    assert [request.id for request in requests.listing()] == [first.id]
    assert requests.approved("r1") == ()
    assert not requests.use(KEY, "r1")


def test_an_approval_is_for_one_use_of_one_action_in_one_run(requests):
    request = ask(requests)
    ask(requests, OTHER)
    ask(requests, run_id="r2")
    requests.decide(request.id[:12], approve=True)

    assert (requests.approved("r1"), requests.approved("r2")) == ((KEY,), ())
    assert [requests.use(OTHER, "r1"), requests.use(KEY, "r2")] == [False, False]
    assert [requests.use(KEY, "r1"), requests.use(KEY, "r1")] == [True, False]
    assert requests.approved("r1") == ()


def test_a_used_action_may_be_asked_for_again_and_the_first_request_stays_in_the_history(requests):
    request = ask(requests)
    requests.decide(request.id, approve=True)
    requests.use(KEY, "r1")
    again = ask(requests)

    assert (again.state, again.number) == ("pending", 2)
    assert again.id != request.id
    assert not requests.use(KEY, "r1")
    assert {one.id: one.state for one in requests.listing(every=True)} == {request.id: "used", again.id: "pending"}


def test_a_denial_holds_until_it_expires_however_often_it_is_asked(bench, requests):
    request = ask(requests, lasts_ms=1_000)
    bench.at += 500
    denied = requests.decide(request.id, approve=False)
    bench.at += 999

    assert denied.expires_at == bench.at + 1
    assert ask(requests, lasts_ms=1_000).state == "denied"
    assert not requests.use(KEY, "r1")
    bench.at += 1
    assert ask(requests).state == "pending"


def test_an_approval_expires(bench, requests):
    requests.decide(ask(requests).id, approve=True)
    bench.at += LASTS_MS - 1
    assert requests.approved("r1") == (KEY,)
    bench.at += 1

    assert requests.approved("r1") == ()
    assert not requests.use(KEY, "r1")
    assert ask(requests).state == "pending"


def test_an_approval_can_be_withdrawn_before_it_is_used_and_nothing_else_is_decided_twice(bench, requests):
    request = ask(requests)
    requests.decide(request.id, approve=True)
    with pytest.raises(UserError, match="already approved"):
        requests.decide(request.id, approve=True)
    assert requests.decide(request.id, approve=False).state == "denied"
    assert not requests.use(KEY, "r1")
    for approve in (True, False):
        with pytest.raises(UserError, match="already denied"):
            requests.decide(request.id, approve=approve)

    used = ask(requests, OTHER)
    requests.decide(used.id, approve=True)
    requests.use(OTHER, "r1")
    with pytest.raises(UserError, match="already used"):
        requests.decide(used.id, approve=False)

    late = ask(requests, "c" * 64)
    bench.at += LASTS_MS
    with pytest.raises(UserError, match="has expired"):
        requests.decide(late.id, approve=True)
    assert requests.listing() == ()
    ask(requests, "c" * 64)
    with pytest.raises(UserError, match="has expired"):
        requests.decide(late.id, approve=True)


def test_ids_are_given_by_any_unique_beginning(requests):
    ids = sorted(ask(requests, f"{number:064d}").id for number in range(20))
    common = next(one[0] for one, other in itertools.pairwise(ids) if one[0] == other[0])

    assert requests.find(ids[0]).id == ids[0]
    for prefix, problem in ((common, "more than one"), ("zz", "there is no request"), ("", "there is no request")):
        with pytest.raises(UserError, match=problem):
            requests.decide(prefix, approve=True)


def test_of_several_users_of_an_approval_exactly_one_gets_it(bench, requests, address):
    for round_ in range(3):
        key = f"{round_:064d}"
        requests.decide(ask(requests, key).id, approve=True)
        results: list[bool] = []
        start = threading.Barrier(4)

        def take(key=key, results=results, start=start):
            with open_database(address) as database:
                own = ApprovalRequests(database, bench.now)
                start.wait()
                results.append(own.use(key, "r1"))

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == [False, False, False, True]


def test_a_changed_row_is_noticed(bench, requests):
    request = ask(requests)
    with bench.database.write() as connection:
        connection.execute(text("UPDATE approval_requests SET state = 'approved'"))

    for call in (lambda: requests.approved("r1"), lambda: requests.use(KEY, "r1"), lambda: ask(requests)):
        with pytest.raises(ReplayMismatch, match="approval_requests"):
            call()
    with pytest.raises(ReplayMismatch):
        requests.decide(request.id, approve=False)


def test_the_requests_of_a_deleted_run_are_deleted_with_it(bench, requests):
    run_id, _ = bench.complete()
    ask(requests, run_id=run_id)
    ask(requests)

    prune(bench.database, [run_id])
    assert [request.run_id for request in requests.listing()] == ["r1"]
