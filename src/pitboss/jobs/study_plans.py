"""From the options of a command to a plan and its method: the four kinds of sweeps, and the arena."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.instant import parse_duration
from pitboss.jobs.arena import entrants
from pitboss.jobs.plan import OF_RUN, RANGE, StudyPlan, check_run_axis
from pitboss.jobs.search import Search
from pitboss.report.metric import checked_metric
from pitboss.runs.venues import venue_of
from pitboss.sim.request import BacktestRequest
from pitboss.sim.study.axis import Axis, Point
from pitboss.sim.study.grid import grid
from pitboss.sim.study.random import random_points
from pitboss.sim.study.trial import FixedTrials, Method, Trial, WalkForward, numbered_trials
from pitboss.sim.study.walk import windows
from pitboss.store.schema import LOCAL

MOST_REPEATS = 1_000


@dataclass(frozen=True, slots=True)
class BuiltPlan:
    """A plan, its method, and the trials that can be predicted before the first run: the basis of an estimate."""

    plan: StudyPlan
    method: Method
    expected_trials: tuple[Trial, ...]


def sweep_plan(
    request: BacktestRequest,
    axes: Sequence[Axis],
    *,
    repeats: int = 1,
    by: str = "",
    name: str = "",
    random: int | None = None,
    search: int | None = None,
    walk: str = "",
    anchored: bool = False,
    owner: str = LOCAL,
) -> BuiltPlan:
    """A sweep over axes: all points, `random` of them, `search` of them, and with `walk` as a walk-forward.

    `by` is the metric that ranks trials; the default of the venue if none is named.
    """
    _check(repeats)
    if random is not None and search is not None:
        raise UserError("--random and --search are two ways to choose points", "give one of them")
    venue = venue_of(request.skill)
    by = checked_metric(
        by or venue.judged_by, venue.metrics(), venue.study_metrics(), venue.name, has_account=venue.has_account
    )
    if walk and not venue.has_account:
        raise UserError(
            f"a walk-forward joins returns, which runs of the {venue.name} venue do not have",
            "leave --walk-forward out",
        )
    axes = tuple(axes)
    if not axes and not walk and search is None and repeats == 1:
        raise UserError(
            "nothing is varied, so there is one run",
            "give --vary, such as --vary risk.max_leverage=1,2,5; or use `pitboss backtest`",
        )
    for axis in axes:
        if axis.name.startswith(OF_RUN):
            check_run_axis(request, axis)
    span = request.from_at, request.to_at
    if search is not None:
        if walk:
            raise UserError("a search cannot walk forward", "choose among --random points in each window instead")
        method: dict[str, Any] = {"search": search, "seed": request.seed}
        plan = StudyPlan("search", request, axes, method, repeats, by, name, owner)
        method_search = Search(axes, search, request.seed, by, *span)
        first = method_search.ask({})
        return BuiltPlan(plan, method_search, tuple(first[number % len(first)] for number in range(search)))
    points: list[Point] = grid(axes) if random is None else random_points(axes, random, request.seed)
    method = {} if random is None else {"random": random, "seed": request.seed}
    if walk:
        if any(axis.name == RANGE for axis in axes):
            raise UserError("a walk-forward has its own ranges", "leave --vary range out")
        train, test, gap = _lengths(walk)
        forward = WalkForward(tuple(points), tuple(windows(*span, train, test, gap, anchored=anchored)), by)
        method |= {"train_ms": train, "test_ms": test, "gap_ms": gap, "anchored": anchored}
        inside = [trial for trials in forward.in_sample_trials() for trial in trials]
        outside = [
            Trial(-1 - number, trials[0].point, window.test_from, window.test_to, "out", number)
            for number, (trials, window) in enumerate(zip(forward.in_sample_trials(), forward.windows, strict=True))
        ]
        return BuiltPlan(
            StudyPlan("walk", request, axes, method, repeats, by, name, owner), forward, (*inside, *outside)
        )
    trials = numbered_trials(points, *span)
    kind = "grid" if random is None else "random"
    return BuiltPlan(StudyPlan(kind, request, axes, method, repeats, by, name, owner), FixedTrials(trials), trials)


def arena_plan(
    request: BacktestRequest,
    models: Sequence[str],
    baselines: Sequence[str] | None = None,
    repeats: int = 3,
    name: str = "",
    owner: str = LOCAL,
) -> BuiltPlan:
    """An arena of models."""
    _check(repeats)
    venue = venue_of(request.skill)
    axis = entrants(models, baselines, venue.baseline_models())
    by = "total_return_pct" if venue.has_account else venue.judged_by
    trials = numbered_trials(grid([axis]), request.from_at, request.to_at)
    plan = StudyPlan("arena", request, (axis,), {}, repeats, by, name, owner)
    return BuiltPlan(plan, FixedTrials(trials), trials)


def _lengths(text: str) -> tuple[int, int, int]:
    """`30d/10d` or `30d/10d/1d` → the lengths of training, test and the gap between them."""
    parts = text.split("/")
    if len(parts) not in (2, 3):
        raise UserError(f"--walk-forward: {text!r} is not two lengths", "for example --walk-forward 30d/10d")
    try:
        lengths = [parse_duration(part) for part in parts]
    except UserError as error:
        raise UserError(f"--walk-forward: {error.message}", "for example --walk-forward 30d/10d") from None
    return lengths[0], lengths[1], lengths[2] if len(lengths) == 3 else 0


def _check(repeats: int) -> None:
    if not 1 <= repeats <= MOST_REPEATS:
        raise UserError(f"--repeats: {repeats} is not from 1 to {MOST_REPEATS}", "for example --repeats 3")
