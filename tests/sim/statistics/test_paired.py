"""Paired differences against an obvious reference; intervals that hold for all pairs; tiers that follow from them."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.errors import InvariantError
from pitboss.sim.statistics.bootstrap import stationary_days
from pitboss.sim.statistics.paired import PairedDifference, differences, log_growth, resampled_log_growth
from pitboss.sim.statistics.tiers import tiers

DRAWS = 200


def history(days: int, seed: int, drift: float = 0.0, wild: float = 0.02) -> list[float]:
    return (np.random.default_rng(seed).normal(drift, wild, days)).tolist()


def obvious(entries: Sequence[Sequence[Sequence[float]]], draws: int, seed: int) -> list[list[float]]:
    """Every draw by itself, day by day and repeat by repeat."""
    days = len(entries[0][0])
    sequences = [day.copy() % days for day in stationary_days(days, draws, seed)]
    most = max(len(entry) for entry in entries)
    random = np.random.Generator(np.random.PCG64([seed, 1]))
    repeats = (random.random((most, draws)) * most).astype(int)
    means: list[list[float]] = []
    for entry in entries:
        means.append([])
        for draw in range(draws):
            totals: list[float] = []
            for turn in range(most):
                growth = 1.0
                for day in sequences:
                    growth *= 1 + entry[repeats[turn][draw] % len(entry)][day[draw]]
                totals.append(math.log(growth))
            base = 0.0
            for turn in range(most):
                growth = 1.0
                for day in sequences:
                    growth *= 1 + entry[turn % len(entry)][day[draw]]
                base += math.log(growth) / most
            wider = math.sqrt(most / (most - 1)) if most > 1 else 1
            means[-1].append(base + wider * (sum(totals) / most - base))
    return means


@settings(max_examples=10, deadline=None)
@given(st.integers(2, 3), st.integers(1, 3), st.integers(20, 30), st.integers(0, 99))
def test_resampling_agrees_with_the_definition(count: int, repeats: int, days: int, seed: int):
    entries = [[history(days, 10 * place + turn) for turn in range(repeats)] for place in range(count)]
    entries[0] = entries[0][:1]  # one that was run once is compared with those that were run more often
    found = resampled_log_growth(entries, 40, seed)
    for got, expected in zip(found, obvious(entries, 40, seed), strict=True):
        assert got == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_difference_is_relative_final_equity_and_reverses_with_the_pair():
    one, other = [history(40, 1), history(40, 2)], [history(40, 3), history(40, 4)]
    (found,) = differences([one, other], DRAWS)
    (turned,) = differences([other, one], DRAWS)
    ratio = math.exp((sum(map(log_growth, one)) - sum(map(log_growth, other))) / 2)
    assert found.percent == pytest.approx(100 * (ratio - 1))
    assert turned.percent == pytest.approx(100 * (1 / ratio - 1))
    assert found.together is not None
    assert turned.together is not None
    low, high = (1 / (1 + value / 100) for value in turned.together)
    assert found.together == pytest.approx((100 * (high - 1), 100 * (low - 1)))


def test_twice_the_final_equity_is_a_difference_of_a_hundred_percent():
    (found,) = differences([[[1.0, *[0.0] * 30]], [[0.0] * 31]], DRAWS)
    assert found.percent == pytest.approx(100)


def test_an_entry_that_lost_everything_is_compared_like_any_other():
    (found,) = differences([[history(30, 1)], [[-1.0, *[0.0] * 29]]], DRAWS)
    assert math.isfinite(found.percent)
    assert found.percent > 1_000


def test_common_movements_cancel_in_the_difference():
    market = history(60, 1, wild=0.05)
    better = [value + 0.002 for value in market]
    (found,) = differences([[better], [market]])
    assert found.side == 1
    assert found.p is not None
    assert found.p < 0.01
    (unpaired,) = differences([[better], [history(60, 2, wild=0.05)]])
    assert unpaired.side == 0


def test_an_entry_and_its_copy_do_not_differ():
    same = [history(30, 1)]
    (found,) = differences([same, same])
    assert (found.percent, found.together, found.p, found.side) == (0.0, (0.0, 0.0), 1.0, 0)


def test_more_comparisons_make_every_interval_wider():
    entries = [[history(60, seed)] for seed in range(8)]
    few, many = differences(entries[:2])[0], differences(entries)[0]
    assert few.percent == many.percent
    assert few.together is not None
    assert many.together is not None
    assert many.together[1] - many.together[0] > few.together[1] - few.together[0]
    assert few.alone == pytest.approx(many.alone)


@pytest.mark.parametrize("days", [25, 90])
def test_entries_without_skill_rarely_have_a_significant_pair(days: int):
    together = alone = 0
    for world in range(60):
        found = differences([[history(days, 1_000 * world + place)] for place in range(6)], 200, world)
        together += any(one.side for one in found)
        alone += any(one.alone is not None and not one.alone[0] <= 0 <= one.alone[1] for one in found)
    assert together <= 9, "3 of 60 are expected"
    assert alone > 15, "which is what the correction for many comparisons is for"


def test_repeats_that_differ_widen_the_interval():
    market = history(60, 1)
    steady = [[value + 0.001 for value in market]] * 4
    moody = [[value + shift for value in market] for shift in (-0.001, 0.003, -0.002, 0.004)]
    firm, loose = differences([steady, [market]])[0], differences([moody, [market]])[0]
    assert (firm.side, loose.side) == (1, 0)
    assert firm.percent == pytest.approx(loose.percent, rel=0.1)


def test_fewer_than_twenty_days_have_a_difference_but_no_interval():
    (found,) = differences([[history(19, 1)], [history(19, 2)]])
    assert math.isfinite(found.percent)
    assert (found.alone, found.together, found.p, found.side) == (None, None, None, 0)


def test_equal_seeds_give_equal_digits_and_different_seeds_different_ones():
    entries = [[history(40, seed)] for seed in range(3)]
    assert differences(entries, DRAWS, 5) == differences(entries, DRAWS, 5)
    assert differences(entries, DRAWS, 5) != differences(entries, DRAWS, 6)


def test_entries_over_different_days_cannot_be_compared():
    with pytest.raises(InvariantError):
        differences([[history(30, 1)], [history(31, 1)]])


def difference(first: int, second: int, side: int) -> PairedDifference:
    around = {1: (1.0, 2.0), 0: (-1.0, 1.0), -1: (-2.0, -1.0)}[side]
    return PairedDifference(first, second, sum(around) / 2, around, around, 0.5)


def test_entries_without_significant_differences_share_a_tier():
    found = tiers([3.0, 2.0, 1.0], [difference(0, 1, 0), difference(0, 2, 0), difference(1, 2, 0)])
    assert [(one.entry, one.tier, one.best_rank, one.worst_rank) for one in found] == [
        (0, 1, 1, 3),
        (1, 1, 1, 3),
        (2, 1, 1, 3),
    ]


def test_an_entry_that_differs_from_the_first_only_starts_a_tier_and_keeps_its_range_of_ranks():
    found = tiers([3.0, 2.0, 1.0], [difference(0, 1, 0), difference(0, 2, 1), difference(1, 2, 0)])
    assert [(one.entry, one.tier, one.best_rank, one.worst_rank) for one in found] == [
        (0, 1, 1, 2),
        (1, 1, 1, 3),
        (2, 2, 2, 3),
    ]


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=7), st.data())
def test_tiers_are_ordered_and_contain_no_entry_significantly_below_their_first(
    scores: list[float], data: st.DataObject
):
    # Nobody is surely better than one with a higher score: the interval surrounds the difference of the scores.
    order = sorted(range(len(scores)), key=lambda entry: (-scores[entry], entry))
    above = {entry: place for place, entry in enumerate(order)}
    found: list[PairedDifference] = []
    for first in range(len(scores)):
        for second in range(first + 1, len(scores)):
            sure = data.draw(st.booleans())
            found.append(difference(first, second, (1 if above[first] < above[second] else -1) if sure else 0))
    places = tiers(scores, found)
    sides = {(one.first, one.second): one.side for one in found}
    assert [one.entry for one in places] == order
    leader = places[0]
    assert leader.tier == 1
    for one in places[1:]:
        side = sides.get((leader.entry, one.entry), -sides.get((one.entry, leader.entry), 0))
        assert one.tier == leader.tier + (side > 0)
        if side > 0:
            leader = one
    for place, one in enumerate(places, 1):
        assert one.best_rank <= place <= one.worst_rank
