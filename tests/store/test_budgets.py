"""Budgets: concurrent reservations never exceed the limit, and what is not spent is returned (E5, Q6)."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from forked_process import ForkedProcess
from pitboss.core.errors import BudgetExceeded, InvariantError
from pitboss.core.instant import DAY_MS
from pitboss.core.ports import ModelReply
from pitboss.store.answers import Answers
from pitboss.store.budgets import OWN, Budgets
from pitboss.store.database import open_database
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.queue import MOST_REQUEUES, STALE_MS
from pitboss.store.retry import Unreachable
from pitboss.store.schema import reservations
from pitboss.store.uncertain_charges import UncertainCharges
from saved_figures import save_figures

FIVE, CENT = Decimal(5), Decimal("0.01")


def pay(bench, run_id, usd, key="a"):
    reply = ModelReply("", (), finish_reason="stop")
    answers = Answers(bench.database, bench.now)
    asyncio.run(answers.put(key * 64, "m", run_id, None if usd is None else Decimal(usd), reply))


def budget_of(bench, owner="ada"):
    budget = Budgets(bench.database).get(owner)
    open_rows = select(reservations.c.amount_usd).where(
        reservations.c.owner == owner, reservations.c.day_at == budget.day_at
    )
    with bench.database.read() as connection:
        assert budget.reserved_usd == sum(map(Decimal, connection.execute(open_rows).scalars()))
    return budget.reserved_usd, budget.spent_usd


def test_what_is_reserved_is_gone_until_it_is_settled(bench):
    budgets = Budgets(bench.database)
    budgets.reserve("ada", "r1", OWN, Decimal(3), FIVE)

    with pytest.raises(BudgetExceeded, match=r"ada may spend \$5 a day: \$0 is spent, \$3 is reserved, .* \$2\.01"):
        budgets.reserve("ada", "r2", OWN, Decimal("2.01"), FIVE)
    budgets.reserve("bob", "r3", OWN, FIVE, FIVE)
    budgets.reserve("ada", "r2", OWN, Decimal(2), FIVE)
    assert budget_of(bench) == (5, 0)

    assert budgets.settle("r1", OWN, Decimal("0.50"))
    assert not budgets.settle("r1", OWN, Decimal("0.50")), "once"
    assert budget_of(bench) == (2, Decimal("0.5"))
    budgets.reserve("ada", "r4", OWN, Decimal("2.50"), FIVE)
    with pytest.raises(BudgetExceeded):
        budgets.reserve("ada", "r5", OWN, CENT, FIVE)


def test_a_new_day_begins_with_nothing_spent_and_an_old_reservation_is_settled_on_its_own_day(bench):
    budgets, day_at = Budgets(bench.database), bench.at
    budgets.reserve("ada", "r1", OWN, FIVE, FIVE)
    bench.at += DAY_MS
    budgets.reserve("ada", "r2", OWN, FIVE, FIVE)

    budgets.settle("r1", OWN, Decimal(1))

    assert budget_of(bench) == (5, 0)
    before = budgets.get("ada", day_at)
    assert (before.reserved_usd, before.spent_usd) == (0, 1)


def test_more_than_was_reserved_is_counted_as_spent_because_it_was(bench):
    budgets = Budgets(bench.database)
    budgets.reserve("ada", "r1", OWN, Decimal(1), FIVE)
    budgets.settle("r1", OWN, Decimal(9))

    assert budget_of(bench) == (0, 9)
    with pytest.raises(BudgetExceeded):
        budgets.reserve("ada", "r2", OWN, CENT, FIVE)


@pytest.mark.parametrize("usd", ["-1", "NaN", "Infinity"])
def test_an_amount_that_is_none_is_refused(bench, usd):
    with pytest.raises(InvariantError, match="cannot be reserved"):
        Budgets(bench.database).reserve("ada", "r1", OWN, Decimal(usd), FIVE)


@pytest.mark.parametrize("end", ["complete", "error", "cancelled", "never begun", "lost for good", "deleted"])
def test_the_end_of_a_run_settles_what_it_reserved_at_what_it_paid(bench, end):
    (run_id,) = bench.queue.enqueue([bench.job(owner="ada", reserve_usd=Decimal(2))], FIVE)
    assert budget_of(bench) == (2, 0)
    if end == "never begun":
        bench.runs.request_cancel(run_id)
        assert budget_of(bench) == (0, 0)
        return
    lease = bench.queue.claim("w", into="running")
    pay(bench, run_id, "0.25")
    UncertainCharges(bench.database, run_id, lease.epoch).note(Decimal("0.125"))
    assert budget_of(bench) == (2, 0), "until it ends"
    if end == "complete":
        bench.runs.set_status(run_id, "computing_metrics", lease.epoch)
        bench.runs.finish(run_id, lease.epoch, digest="0" * 64, metrics={}, baselines={})
    elif end == "error":
        bench.runs.fail(run_id, lease.epoch, "why")
    elif end == "cancelled":
        bench.runs.set_status(run_id, "cancelled", lease.epoch)
    elif end == "deleted":
        bench.runs.delete(run_id, force=True)
    else:
        for _ in range(MOST_REQUEUES + 1):
            bench.at += STALE_MS + 1
            bench.queue.sweep()
            bench.queue.claim("w")
        assert bench.runs.get(run_id).status == "error"

    assert budget_of(bench) == (0, Decimal("0.375"))


def test_an_unknown_price_settles_at_the_worst_case(bench):
    (run_id,) = bench.queue.enqueue([bench.job(owner="ada", reserve_usd=Decimal(2))], FIVE)
    lease = bench.queue.claim("w")
    pay(bench, run_id, None)
    bench.runs.fail(run_id, lease.epoch, "why")

    assert budget_of(bench) == (0, 2)


def test_a_run_that_goes_on_reserves_anew_and_pays_nothing_twice(bench):
    (run_id,) = bench.queue.enqueue([bench.job(owner="ada", reserve_usd=Decimal(2))], FIVE)
    lease = bench.queue.claim("w")
    pay(bench, run_id, "1.5")
    bench.runs.fail(run_id, lease.epoch, "budget")
    with pytest.raises(BudgetExceeded):
        bench.queue.enqueue_again(run_id, Decimal(4), FIVE)
    assert bench.runs.get(run_id).status == "error"

    bench.queue.enqueue_again(run_id, Decimal(3), FIVE)
    assert budget_of(bench) == (3, Decimal("1.5"))
    lease = bench.queue.claim("w")
    pay(bench, run_id, "0.25", key="b")
    bench.runs.fail(run_id, lease.epoch, "again")

    assert budget_of(bench) == (0, Decimal("1.75"))


@pytest.mark.parametrize("how", ["a person", "the queue"])
def test_what_a_dead_worker_had_reserved_comes_back_when_its_lease_is_taken_over(bench, how):
    budgets = Budgets(bench.database)
    (run_id,) = bench.queue.enqueue([bench.job(owner="ada")])
    lease = bench.queue.claim("w1")
    budgets.reserve("ada", run_id, lease.epoch, Decimal(2), FIVE)
    budgets.reserve("ada", run_id, lease.epoch, Decimal(1), FIVE)
    pay(bench, run_id, "0.75")
    bench.at += STALE_MS + 1
    assert budget_of(bench) == (3, 0)

    if how == "a person":
        bench.runs.claim(run_id)
    else:
        bench.queue.sweep()

    assert budget_of(bench) == (0, Decimal("0.75"))
    with pytest.raises(LeaseLost):
        budgets.reserve("ada", run_id, lease.epoch, CENT, FIVE)
    assert not budgets.settle(run_id, lease.epoch, Decimal(3))
    assert budget_of(bench) == (0, Decimal("0.75"))


def test_a_run_reserves_for_itself_or_under_a_lease_but_not_both(bench):
    (run_id,) = bench.queue.enqueue([bench.job(owner="ada", reserve_usd=Decimal(2))], FIVE)
    lease = bench.queue.claim("w1")

    with pytest.raises(InvariantError, match="not both"):
        Budgets(bench.database).reserve("ada", run_id, lease.epoch, CENT, FIVE)
    assert budget_of(bench) == (2, 0)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["reserve", "settle", "release"]),
            st.integers(0, 4),
            st.decimals(0, 4, places=2, allow_nan=False),
        ),
        max_size=25,
    )
)
def test_whatever_is_reserved_and_settled_the_sum_is_exact_and_never_above_the_limit(file_bench, steps):
    bench = file_bench
    bench.at += DAY_MS  # every example has a day of its own
    budgets, held, spent = Budgets(bench.database), {}, Decimal(0)
    for what, number, usd in steps:
        holder = f"r{bench.at}{number}"
        if what == "reserve":
            try:
                budgets.reserve("ada", holder, OWN, usd, FIVE)
                held[holder] = held.get(holder, Decimal(0)) + usd
            except BudgetExceeded:
                assert sum(held.values()) + spent + usd > FIVE
        else:
            actual = min(usd, held.get(holder, Decimal(0))) if what == "settle" else Decimal(0)
            assert budgets.settle(holder, OWN, actual) == (holder in held)
            if held.pop(holder, None) is not None:
                spent += actual
        assert budget_of(bench) == (sum(held.values()), spent)
        assert sum(held.values()) + spent <= FIVE


SPENDER = """
import sys, json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pitboss.core.errors import BudgetExceeded
from pitboss.store.budgets import Budgets, OWN
from pitboss.store.database import open_database
from pitboss.store.retry import Unreachable
address, name, usd, rounds, threads = sys.argv[1], sys.argv[2], Decimal(sys.argv[3]), *map(int, sys.argv[4:])
got = []
def spend(thread):
    number = 0
    while number < rounds:
        try:
            budgets.reserve(f"o{number}", f"{name}-{thread}-{number}", OWN, usd, Decimal(5))
            got.append(number)
        except BudgetExceeded:
            pass
        except Unreachable:
            continue  # a file that others kept busy for ten seconds
        number += 1
with open_database(address) as database, ThreadPoolExecutor(threads) as pool:
    budgets = Budgets(database)
    list(pool.map(spend, range(threads)))
print(json.dumps(got))
"""


def race(address, processes, threads, usd, rounds):
    """How many reservations each of `rounds` budgets granted, when all threads of all processes want one of each."""
    arguments = [address, "{}", usd, str(rounds), str(threads)]
    started = [ForkedProcess("-c", SPENDER, *[one.format(f"p{n}") for one in arguments]) for n in range(processes)]
    granted = [0] * rounds
    for process in started:
        for number in json.loads(process.communicate(timeout=3_000)[0]):
            granted[number] += 1
        assert process.returncode == 0
    return granted


def test_processes_that_reserve_from_one_budget_at_once_never_pass_it(address):
    """$5, $2 each: two fit, whoever comes first."""
    assert race(address, processes=3, threads=1, usd="2", rounds=20) == [2] * 20


def test_threads_that_reserve_from_one_budget_at_once_never_pass_it(bench):
    """E5: 64 at once; a round of the long one."""

    def reserve(number):
        try:
            Budgets(bench.database).reserve("ada", f"r{number}", OWN, Decimal("0.7"), FIVE)
        except BudgetExceeded:
            return 0
        return 1

    with ThreadPoolExecutor(32) as pool:
        assert sum(pool.map(reserve, range(64))) == 7
    assert budget_of(bench) == (Decimal("4.9"), 0)


@pytest.mark.proof
def test_sixty_four_at_once_a_thousand_times_never_pass_a_budget(address):
    """E5: 16 processes of 4 threads, 1,000 budgets."""
    granted = race(address, processes=16, threads=4, usd="0.7", rounds=1_000)
    save_figures(
        f"budget_race_{'postgres' if '://' in address else 'sqlite'}",
        {
            "at_once": 64,
            "budgets": len(granted),
            "asked": 64_000,
            "granted": sum(granted),
            "most_usd": max(granted) * 0.7,
        },
    )
    assert granted == [7] * 1_000


@pytest.mark.proof
def test_what_comes_back_is_raced_for_too_and_no_budget_is_passed(bench):
    """64 at once who reserve, look, and settle at less."""

    def insist(do):
        while True:
            try:
                return do()
            except Unreachable:  # a file that others kept busy for ten seconds
                continue

    def turn(holder, cost):
        try:
            insist(lambda: budgets.reserve("ada", holder, OWN, Decimal("0.7"), FIVE))
        except BudgetExceeded:
            return
        now = insist(lambda: budgets.get("ada"))
        assert now.reserved_usd + now.spent_usd <= FIVE
        insist(lambda: budgets.settle(holder, OWN, cost))

    budgets = Budgets(bench.database)
    with ThreadPoolExecutor(64) as pool:
        for number in range(30):
            list(pool.map(lambda n, r=number: turn(f"r{r}-{n}", CENT * (n % 3)), range(64)))
            assert budget_of(bench)[0] == 0
            assert budget_of(bench)[1] <= FIVE
            bench.at += DAY_MS


def test_the_budget_of_a_day_is_there_for_another_process(bench, address):
    Budgets(bench.database).reserve("ada", "r1", OWN, Decimal(1), FIVE)
    with open_database(address) as other:
        other.clock = bench.now
        assert Budgets(other).get("ada").reserved_usd == 1
