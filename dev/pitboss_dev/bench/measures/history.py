"""The cost of a tick after one month of history and after twelve: it must not grow with the length of the run.

The long market repeats the short one, so both have the same orders in the same places and only the amount of history
differs. Measured in processor time instead of wall-clock time: the gate is about a few percent, less than a busy disk or
other processes add.
"""

from collections.abc import Iterable
from time import process_time

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import HOUR_MS
from pitboss_dev.bench.backtests import (
    model_course,
    model_request,
    policy_request,
    prepare,
    replay_seconds,
    trading_model,
)
from pitboss_dev.bench.market import MarketShape
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import BenchRow, RatioGate
from pitboss_dev.bench.timing import Side, interleave

GATE = RatioGate("at most", 1.10)


def measure(bench: Bench) -> Iterable[BenchRow]:
    """One row for policies, one for models. The short run is repeated until it has as many ticks as the long one."""
    month, months = bench.scale.month_days, bench.scale.months
    short, long = MarketShape(month, period=month), MarketShape(month * months, period=month)
    with bench.folder.workspace(short) as short_workspace, bench.folder.workspace(long) as long_workspace:
        sides: dict[str, Side] = {
            "policy short": _policy_tick(short_workspace, short, months),
            "policy long": _policy_tick(long_workspace, long, 1),
            "model short": _model_tick(short_workspace, short, months),
            "model long": _model_tick(long_workspace, long, 1),
        }
        tick_us = {name: seconds * 1e6 for name, seconds in interleave(sides, bench.repeats).items()}
    reference = f"{month} days"
    for kind in ("policy", "model"):
        name = f"{kind} tick after {months}×{month} days"
        yield BenchRow(name, tick_us[f"{kind} long"], "µs CPU", reference, tick_us[f"{kind} short"], GATE)


def _policy_tick(workspace: Workspace, shape: MarketShape, rounds: int) -> Side:
    prepared = prepare(workspace, policy_request(shape))
    course = prepared.course()

    def run() -> float:
        return replay_seconds(workspace, prepared, course, clock=process_time)

    return lambda: sum(run() for _ in range(rounds)) / rounds / len(prepared.tick_at)


def _model_tick(workspace: Workspace, shape: MarketShape, rounds: int) -> Side:
    """A tick every four hours: the whole year with few model calls."""
    prepared = prepare(workspace, model_request(shape, 10**6, "4h", 4 * HOUR_MS))

    def run() -> float:
        model = trading_model()
        duration = replay_seconds(workspace, prepared, model_course(prepared, model), clock=process_time)
        return (duration - model.seconds) / model.requests

    return lambda: sum(run() for _ in range(rounds)) / rounds


MEASURE = Measure("history", "the cost of a tick after one month and after twelve", measure, 40)
