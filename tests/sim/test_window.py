"""The window of speculation: `sim.window` by itself, without a model."""

import math
from collections.abc import Sequence
from itertools import islice, repeat
from random import Random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.sim.speculation_window import MAX_WINDOW, NO_PAST, PRIOR_TICKS, HoldPrior, Holds, best_window

rates = st.lists(st.floats(0, 1), min_size=MAX_WINDOW, max_size=MAX_WINDOW)


rooms, ends = st.floats(0, 300), st.integers(1, 300)


@given(rates=rates, room=rooms, ahead=ends)
def test_what_the_chosen_window_is_expected_to_waste_fits_into_the_room(
    rates: list[float], room: float, ahead: int
) -> None:
    window = best_window(rates, room, ahead)
    assert 0 <= window <= MAX_WINDOW
    used = sum(math.prod(rates[:place]) for place in range(window + 1))
    assert (window + 1 - used) * max(1.0, ahead / used) <= room + 1e-6


@given(rates=rates, room=rooms, ahead=ends, more=st.floats(0, 300))
def test_more_room_or_fewer_ticks_to_come_never_make_the_window_smaller(
    rates: list[float], room: float, ahead: int, more: float
) -> None:
    assert best_window(rates, room, ahead) <= best_window(rates, room + more, ahead)
    assert best_window(rates, room, ahead + int(more)) <= best_window(rates, room, ahead)


def test_the_window_of_known_shares_is_what_the_sums_say() -> None:
    windows = [best_window(repeat(rate), 100, 288) for rate in (0.0, 0.5, 0.9, 0.95, 0.98, 1.0)]
    assert windows == [0, 1, 5, 10, 23, MAX_WINDOW]
    assert best_window(repeat(1.0), 0, 288) == 0, "however sure it is, without room nothing is guessed"


def walk(orders: Sequence[bool], cap: float = 35.0, prior: HoldPrior = NO_PAST) -> tuple[int, int]:
    """The windows that these ticks take, and the guesses that are wasted."""
    holds, here, wasted, windows = Holds(prior), 0, 0, 0
    while here < len(orders):
        left = len(orders) - here
        room = cap / 100 * len(orders) - wasted
        window = min(best_window(holds.rates(), room, left), int(room), left - 1)
        asked = orders[here : here + window + 1]
        used = asked.index(True) + 1 if True in asked else len(asked)
        for ordered in asked[:used]:
            holds.add(not ordered)
        here, wasted, windows = here + used, wasted + len(asked) - used, windows + 1
    return windows, wasted


@given(
    orders=st.lists(st.booleans(), min_size=200, max_size=200),
    cap=st.sampled_from([10.0, 35.0, 50.0]),
    holds=st.integers(0, 1_000),
    acts=st.integers(0, 1_000),
)
def test_windows_kept_up_to_the_end_stay_within_the_room(orders: list[bool], cap: float, holds: int, acts: int) -> None:
    _, wasted = walk(orders, cap, NO_PAST.with_past(holds, acts))
    assert wasted * 100 <= cap * len(orders)


def test_an_agent_that_always_acts_is_recognised_in_the_first_windows_and_holders_stay_as_fast() -> None:
    always = [True] * 288
    assert walk(always)[1] <= 0.05 * len(always)
    assert walk([True] * 756)[1] <= 0.02 * 756
    rng = Random(3)
    for share, cap, speed in ((0.10, 50.0, 5.0), (0.05, 35.0, 8.0), (0.02, 35.0, 11.0)):
        windows: list[int] = []
        while len(windows) < 60:
            orders = [rng.random() < share for _ in range(288)]
            if abs(sum(orders) / 288 - share) <= 0.01:
                windows.append(walk(orders, cap)[0])
        assert 288 / median(windows) >= speed


def test_the_past_of_a_skill_decides_the_first_window_and_what_is_seen_the_later_ones() -> None:
    acting, holding = NO_PAST.with_past(0, 288), NO_PAST.with_past(288, 0)
    assert walk([True] * 288, prior=acting)[1] == 0
    assert best_window(Holds(holding).rates(), 100, 288) > best_window(Holds().rates(), 100, 288) > 0
    assert walk([False] * 288, prior=acting)[0] < 288 / 4, "it is not held to its past"
    assert [holding.ticks, acting.ticks] == pytest.approx([PRIOR_TICKS] * 2)
    assert NO_PAST.with_past(0, 0) == NO_PAST


def first_rate(holds: Holds) -> float:
    return next(holds.rates())


def test_belief_follows_what_is_seen() -> None:
    holds = Holds()
    assert 0.9 < first_rate(holds) < 0.97
    for _ in range(40):
        holds.add(False)
    assert first_rate(holds) < 0.3
    for _ in range(600):
        holds.add(True)
    assert first_rate(holds) > 0.95


def test_orders_at_a_fixed_distance_are_learnt() -> None:
    holds = Holds()
    for tick in range(200):
        holds.add(tick % 10 != 9)
    assert best_window(holds.rates(), 50, 100) == 9
    for _ in range(4):
        holds.add(True)
    assert best_window(holds.rates(), 50, 100) == 5


@given(
    seen=st.lists(st.sampled_from([True, True, True, True, False]), max_size=60),
    held=st.integers(0, 30),
)
def test_holds_that_are_known_and_not_walked_yet_count_as_seen(seen: list[bool], held: int) -> None:
    behind, ahead = Holds(), Holds()
    for kept in seen:
        behind.add(kept)
        ahead.add(kept)
    before = list(islice(behind.rates(), 40))
    for _ in range(held):
        ahead.add(True)
    assert list(islice(behind.after(held).rates(), 40)) == list(islice(ahead.rates(), 40))
    assert list(islice(behind.rates(), 40)) == before
