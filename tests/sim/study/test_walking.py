"""Walk-forward: the shape of its windows, and that no choice depends on what comes after it."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.sim.study.choice import best, score
from pitboss.sim.study.trial import FixedTrials, Trial, WalkForward, numbered_trials
from pitboss.sim.study.walk import windows

POINTS = tuple({"risk.max_leverage": str(value)} for value in range(1, 5))


@given(
    st.integers(0, 10**6),
    st.integers(1, 1_000),
    st.integers(1, 500),
    st.integers(1, 300),
    st.integers(0, 50),
    st.booleans(),
)
def test_out_of_sample_periods_follow_their_in_sample_period_and_never_overlap(
    start: int, length: int, train: int, test: int, gap: int, anchored: bool
):
    if train + gap + test > length:
        with pytest.raises(UserError):
            windows(start, start + length, train, test, gap, anchored=anchored)
        return
    found = windows(start, start + length, train, test, gap, anchored=anchored)
    assert found[0].train_from == start
    for one in found:
        assert start <= one.train_from < one.train_to
        assert one.train_to + gap == one.test_from
        assert one.test_to - one.test_from == test
        assert one.test_to <= start + length
        assert one.train_from == start if anchored else one.train_to - one.train_from == train
    for one, after in pairwise(found):
        assert one.test_to == after.test_from
    assert start + length - found[-1].test_to < test, "as many as fit"


def test_invalid_periods_are_refused():
    for train, test, gap in ((0, 1, 0), (1, 0, 0), (1, 1, -1)):
        with pytest.raises(UserError, match="an in-sample and an out-of-sample period"):
            windows(0, 100, train, test, gap)
    with pytest.raises(UserError, match="too many"):
        windows(0, 10**9, 1, 1)


def worked(forward: WalkForward, market: Mapping[int, float]) -> tuple[dict[Trial, list[dict[str, Any]]], list[Trial]]:
    """A whole walk over a market of one number an hour; a point's figure is made of what it lives through, and no more."""
    results: dict[Trial, list[dict[str, Any]]] = {}
    made: list[Trial] = []
    while wanted := forward.ask(results):
        for trial in wanted:
            made.append(trial)
            lived = [market[hour] for hour in range(trial.from_at, trial.to_at)]
            results[trial] = [{"sharpe": sum(lived) * (int(trial.point[0][1]) - 2.5)}]
    return results, made


@given(st.integers(0, 2**32), st.integers(0, 99), st.booleans())
def test_no_choice_depends_on_later_data(seed: int, cut: int, anchored: bool):
    import random

    rng = random.Random(seed)
    market = {hour: rng.uniform(-1, 1) for hour in range(100)}
    other = {hour: value if hour < cut else rng.uniform(-1, 1) for hour, value in market.items()}
    forward = WalkForward(POINTS, tuple(windows(0, 100, 20, 10, anchored=anchored)), "sharpe")
    first, made = worked(forward, market)
    second, _ = worked(forward, other)
    for place, window in enumerate(forward.windows):
        if window.train_to <= cut:
            one, another = forward.out_of_sample_trial(place, first), forward.out_of_sample_trial(place, second)
            assert one is not None
            assert one == another
    judged = [trial for trial in made if trial.role == "out"]
    assert len(judged) == len(forward.windows)
    assert len(made) == len(set(made)) == len(forward.windows) * (len(POINTS) + 1)


def test_a_window_is_tested_only_after_all_its_in_sample_trials():
    forward = WalkForward(POINTS, tuple(windows(0, 40, 20, 10)), "sharpe")
    asked = forward.ask({})
    assert {trial.role for trial in asked} == {"in"}
    results = {trial: [{"sharpe": 1.0}] for trial in asked[:-1]}
    wanted = forward.ask(results)
    assert [(trial.role, trial.window) for trial in wanted] == [("in", 1), ("out", 0)]


def test_a_window_without_the_metric_is_not_tested():
    forward = WalkForward(POINTS, tuple(windows(0, 30, 20, 10)), "sharpe")
    results = {trial: [{"sharpe": None}] for trial in forward.ask({})}
    assert forward.ask(results) == []


class CountedPoints(tuple[dict[str, str], ...]):
    """Points that count how often they are gone through."""

    passes = 0

    def __iter__(self):
        self.passes += 1
        return super().__iter__()


def test_the_work_of_asking_grows_with_the_windows_and_not_with_their_square():
    points = CountedPoints(POINTS)
    forward = WalkForward(points, tuple(windows(0, 120, 20, 10)), "sharpe")
    forward.ask({})
    assert points.passes <= 2 * len(forward.windows)


def test_a_fixed_study_continues_with_its_missing_trials():
    trials = numbered_trials(POINTS, 0, 10)
    assert FixedTrials(trials).ask({trials[1]: []}) == [trials[0], *trials[2:]]


def test_some_metrics_are_minimised_and_the_first_of_equal_trials_wins():
    drawdowns = [[{"max_drawdown_pct": value}] for value in (9.0, 3.0, 3.0, 12.0)]
    assert best(drawdowns, "max_drawdown_pct") == 1
    assert best([[{"sharpe": value}] for value in (-3.0, -1.0, None, -1.0)], "sharpe") == 1
    assert best([[{"sharpe": None}], []], "sharpe") is None


def test_a_trial_scores_the_mean_of_its_repeats_and_none_if_a_repeat_lacks_the_metric():
    assert score([{"sharpe": 1.0}, {"sharpe": 3}], "sharpe") == 2.0
    assert score([{"sharpe": 1.0}, {"sharpe": None}], "sharpe") is None
    assert score([{"sharpe": float("nan")}], "sharpe") is None


def test_nested_scores_of_forecasts_are_found_and_minimised():
    trials = [[{"scores": {"all": {"brier": value}}}] for value in (0.25, 0.2, None)]
    assert best(trials, "brier") == 1
    assert score([{"sharpe": 1.0}], "brier") is None
