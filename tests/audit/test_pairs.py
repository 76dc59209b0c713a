"""Open against blind runs: a real difference is found, no difference is claimed without one, and days are paired correctly."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.audit.blind_comparison import MAIN, ComparedDays, DailyResults, compare, split
from pitboss.audit.conclusions import conclusions, overall
from pitboss.audit.memorisation import MemorisationReport, MemorisationRequest
from pitboss.core.instant import DAY_MS
from pitboss.models.cutoffs import Cutoff
from pitboss.sim.statistics.returns import sharpe
from pitboss.venues.perp.assembly import PerpRequest

FIRST = 19_000


def daily_results(returns: np.ndarray, trades: tuple[tuple[int, bool], ...] = ()) -> list[DailyResults]:
    day = FIRST + np.arange(returns.shape[1])
    return [DailyResults(f"run{place}", day, row, trades) for place, row in enumerate(returns)]


def compare_random_runs(seed: int, days: int, repeats: int, edge: float = 0.0) -> ComparedDays:
    """Both sides live through the same market and have luck of their own; the open one has an edge each day."""
    random = np.random.default_rng(seed)
    market = random.normal(0, 0.02, days)
    mine, theirs = (0.5 * market + random.normal(0, 0.005, (repeats, days)) for _ in range(2))
    found = compare(daily_results(mine + edge), daily_results(theirs), seed)
    assert found is not None
    return found


def test_the_figures_are_plain_means_of_the_runs_own() -> None:
    random = np.random.default_rng(3)
    mine, theirs = random.normal(0, 0.01, (2, 3, 40))
    found = compare(daily_results(mine), daily_results(theirs))
    assert found is not None
    total = found.figures["total_return_pct"]
    assert total.open.mean == pytest.approx(np.mean([np.prod(1 + row) - 1 for row in mine]) * 100)
    sharpes = [sharpe(row.tolist()) or 0.0 for row in theirs]
    assert found.figures["sharpe"].blind.mean == pytest.approx(np.mean(sharpes))
    main = found.figures[MAIN]
    assert main.difference.mean == pytest.approx((mine.mean() - theirs.mean()) * 1e4)
    assert main.repeats.mean == pytest.approx(main.difference.mean)
    assert (found.days, found.repeats) == (40, 3)


def test_the_same_runs_twice_differ_by_nothing_with_certainty() -> None:
    mine = np.random.default_rng(1).normal(0, 0.01, (3, 30))
    found = compare(daily_results(mine), daily_results(mine.copy()))
    assert found is not None
    assert found.identical
    assert found.figures[MAIN].difference.interval == (0.0, 0.0)
    assert found.direction == 0


def test_an_edge_is_found_and_its_opposite_too() -> None:
    assert compare_random_runs(5, 60, 3, edge=0.01).direction == 1
    assert compare_random_runs(5, 60, 3, edge=-0.01).direction == -1
    assert compare_random_runs(5, 60, 3).direction == 0


def false_alarms(trials: int, days: int, repeats: int) -> int:
    return sum(compare_random_runs(seed, days, repeats).direction != 0 for seed in range(trials))


def test_luck_is_seldom_taken_for_an_edge() -> None:
    assert false_alarms(40, 30, 3) <= 6  # at 5 % each, more than 6 of 40 come once in a hundred times


@pytest.mark.proof
@pytest.mark.parametrize(("days", "repeats"), [(20, 3), (60, 2), (60, 5), (180, 3)])
def test_luck_is_taken_for_an_edge_in_at_most_one_of_twenty(days: int, repeats: int) -> None:
    assert false_alarms(400, days, repeats) <= 400 * 0.05 + 3 * np.sqrt(400 * 0.05 * 0.95)


@pytest.mark.proof
def test_the_interval_over_days_holds_the_truth_as_often_as_it_says() -> None:
    """One repeat, days that are independent: the interval covers the days alone."""
    held = 0
    for seed in range(400):
        main = compare_random_runs(seed, 60, 1, edge=0.001).figures[MAIN].difference
        assert main.interval is not None
        held += main.interval[0] <= 10 <= main.interval[1]
    assert held / 400 >= 0.91


def test_one_pair_alone_and_few_days_cannot_tell() -> None:
    alone = compare_random_runs(2, 60, 1, edge=0.05)
    assert alone.figures[MAIN].difference.side == 1
    assert alone.figures[MAIN].repeats.interval is None
    assert alone.direction == 0
    short = compare_random_runs(2, 10, 3, edge=0.05)
    assert short.figures[MAIN].difference.interval is None
    assert short.direction == 0


def test_no_pair_no_day_no_answer() -> None:
    assert compare([], []) is None
    empty = daily_results(np.zeros((2, 0)))
    assert compare(empty, empty) is None
    with pytest.raises(ValueError, match="same days"):
        compare(daily_results(np.zeros((1, 3))), daily_results(np.zeros((1, 4))))


@settings(max_examples=15)
@given(st.integers(1, 30), st.integers(-5, 40), st.integers(1, 3))
def test_a_split_puts_every_day_and_every_trade_on_one_side(days: int, cut: int, repeats: int) -> None:
    random = np.random.default_rng(days)
    ends = tuple((int(FIRST + day) * DAY_MS + DAY_MS, bool(day % 2)) for day in range(days))
    mine, theirs = (daily_results(random.normal(0, 0.01, (repeats, days)), ends) for _ in range(2))
    found = split(mine, theirs, (FIRST + cut) * DAY_MS)
    before, after = (0 if side is None else side.days for side in (found.before, found.after))
    assert (before, after) == (min(max(cut, 0), days), days - min(max(cut, 0), days))
    trades = [0 if side is None else side.open_wins.of for side in (found.before, found.after)]
    assert trades == [before * repeats, after * repeats]
    if found.before is not None and found.after is not None:
        growth = [1 + (one.returns[:cut]).tolist()[0] for one in mine] if cut == 1 else None
        if growth:
            assert found.before.figures["total_return_pct"].open.mean == pytest.approx((np.mean(growth) - 1) * 100)


def test_the_same_seed_gives_the_same_digits() -> None:
    assert compare_random_runs(4, 40, 2).figures == compare_random_runs(4, 40, 2).figures


def test_runs_that_never_had_a_position_show_nothing() -> None:
    still = np.zeros((2, 30))
    idle = compare(daily_results(still), daily_results(still.copy()))
    assert idle is not None
    assert idle.idle
    report = MemorisationReport(
        MemorisationRequest(PerpRequest({}, 0, DAY_MS), windows=0, repeats=2), Cutoff("llm/fake"), comparison=idle
    )
    (said,) = [one for one in conclusions(report) if one.about == "pairs"]
    assert (said.finding, overall(report)) == ("cannot_tell", "cannot_tell")
    assert "no run ever had a position" in said.text
    moved = still.copy()
    moved[0, 3] = 0.01
    traded = compare(daily_results(moved), daily_results(moved.copy()))
    assert traded is not None
    assert not traded.idle
    (said,) = [one for one in conclusions(replace(report, comparison=traded)) if one.about == "pairs"]
    assert said.finding == "no_sign"
