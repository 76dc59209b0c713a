"""The rate budget: no minute exceeds it, and calls that reduce risk never wait for others."""

from collections import deque

import pytest

from pitboss.testing.hyperliquid.seeded import SeededNumbers
from pitboss.venues.perp.hyperliquid.rate_budget import (
    BUDGET,
    EXCHANGE_WEIGHT,
    SHARES,
    RateBudget,
    RequestClass,
    action_weight,
    info_weight,
)

CLASSES: tuple[RequestClass, ...] = ("open", "read", "resolve", "reduce")


def send_random_requests(count: int, seed: int) -> tuple[int, list[int]]:
    """Send random requests as fast as the budget allows; the heaviest minute, and how long cancels waited after a 429."""
    numbers = SeededNumbers(seed, "budget")
    budget = RateBudget(lambda: numbers.below(1_000) / 1_000)
    sent: deque[tuple[int, int]] = deque()
    now = used = heaviest = 0
    waits: list[int] = []
    for _ in range(count):
        now += numbers.below(40)
        kind = CLASSES[numbers.below(3)] if numbers.below(60) else "reduce"
        weight = (1, 2, 20)[numbers.below(3)] if kind != "reduce" else 1
        is_storm = numbers.chance(0.02)
        if is_storm:
            budget.on_refusal(now)
        wait = budget.wait_ms(kind, weight, now)
        if kind == "reduce" and is_storm:
            waits.append(wait)
        if wait > 2_000:
            continue
        now += wait
        budget.spend(weight, now)
        sent.append((now, weight))
        used += weight
        while sent[0][0] <= now - 60_000:
            used -= sent.popleft()[1]
        heaviest = max(heaviest, used)
        if numbers.chance(0.5):
            budget.on_success()
    return heaviest, waits


def test_no_minute_is_above_four_fifths_of_the_limit():
    heaviest, waits = send_random_requests(20_000, 1)
    assert SHARES["resolve"] * 9 // 10 < heaviest <= BUDGET <= EXCHANGE_WEIGHT * 8 // 10
    assert waits
    assert sorted(waits)[len(waits) * 99 // 100] <= 2_000


@pytest.mark.proof
def test_a_million_requests_keep_the_budget():
    for seed in range(10):
        heaviest, waits = send_random_requests(100_000, seed)
        assert heaviest <= BUDGET
        assert sorted(waits)[len(waits) * 99 // 100] <= 2_000


def test_a_fifth_of_the_budget_is_kept_for_what_reduces_risk():
    budget = RateBudget(lambda: 0.5)
    while not budget.wait_ms("resolve", 20, 0):
        budget.spend(20, 0)
    assert budget.used <= BUDGET * 8 // 10 == SHARES["resolve"]
    assert budget.wait_ms("open", 1, 0) == 60_000
    assert budget.wait_ms("reduce", 20, 0) == 0
    assert budget.wait_ms("read", 20, 60_000) == 0


def test_after_the_clock_was_set_back_a_minute_is_a_minute_and_a_backoff_ends():
    start = 3_600_000
    budget = RateBudget(lambda: 1.0)
    while not budget.wait_ms("cancel", 20, start):
        budget.spend(20, start)
    budget.on_refusal(start)
    budget.on_success()
    assert budget.wait_ms("cancel", 20, 0) == 60_000
    assert budget.open_problem(0)
    assert not budget.open_problem(1_000)
    assert budget.wait_ms("open", 20, 60_000) == 0


def test_backoff_is_full_jitter_that_doubles_and_ends_with_a_success():
    draws = iter([1.0, 1.0] * 3 + [0.0, 0.0])
    budget = RateBudget(lambda: next(draws))
    waits: list[int] = []
    for turn in range(4):
        budget.on_refusal(turn * 100_000)
        waits.append(budget.wait_ms("read", 2, turn * 100_000))
    assert waits == [500, 1_000, 2_000, 0]
    assert budget.open_problem(400_000)
    budget.on_success()
    assert not budget.open_problem(400_000)


@pytest.mark.parametrize(
    ("kind", "rows", "weight"),
    [("clearinghouseState", 0, 2), ("orderStatus", 0, 2), ("userFillsByTime", 100, 25), ("meta", 0, 20),
     ("userRole", 0, 60), ("candleSnapshot", 61, 22)],
)  # fmt: skip
def test_weights_are_the_documented_ones(kind: str, rows: int, weight: int):
    assert info_weight(kind, rows) == weight


def test_a_batch_weighs_one_more_for_every_forty_orders():
    assert [action_weight(count) for count in (1, 39, 40, 80)] == [1, 1, 2, 3]
