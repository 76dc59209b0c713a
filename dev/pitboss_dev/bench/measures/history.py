"""What a tick costs after a month against after twelve: it must not depend on how much lies behind it.

The long market is the short one over and over again, so both have the same orders in the same places, and only the
amount of history differs. Processor time, not the clock on the wall: a few percent are at stake, and a busy disk or a
neighbour would drown them.
"""

from collections.abc import Iterable
from time import process_time

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import HOUR_MS
from pitboss_dev.bench.market import MarketShape
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import BenchRow, RatioGate
from pitboss_dev.bench.timing import Side, interleave
from pitboss_dev.bench.trial import assembled, model_request, policy_request, replay_seconds, trader, with_model

GATE = RatioGate("at most", 1.10)


def measure(bench: Bench) -> Iterable[BenchRow]:
    """One row for policies, one for models. The short run is done as often as it fits into the long one."""
    month, months = bench.scale.month_days, bench.scale.months
    short, long = MarketShape(month, period=month), MarketShape(month * months, period=month)
    with bench.grounds.workspace(short) as first, bench.grounds.workspace(long) as second:
        sides: dict[str, Side] = {
            "policy short": _policy(first, short, months),
            "policy long": _policy(second, long, 1),
            "model short": _model(first, short, months),
            "model long": _model(second, long, 1),
        }
        taken = {name: seconds * 1e6 for name, seconds in interleave(sides, bench.repeats).items()}
    named = f"{month} days"
    yield BenchRow(
        f"policy tick after {months}×{month} days", taken["policy long"], "µs CPU", named, taken["policy short"], GATE
    )
    yield BenchRow(
        f"model tick after {months}×{month} days", taken["model long"], "µs CPU", named, taken["model short"], GATE
    )


def _policy(workspace: Workspace, shape: MarketShape, rounds: int) -> Side:
    loaded = assembled(workspace, policy_request(shape))
    ticks = len(loaded.script.tick_at)
    return lambda: sum(replay_seconds(workspace, loaded, clock=process_time) for _ in range(rounds)) / rounds / ticks


def _model(workspace: Workspace, shape: MarketShape, rounds: int) -> Side:
    """Asked every four hours, which sees the same year with few calls."""
    loaded = assembled(workspace, model_request(shape, 10**6, "4h", 4 * HOUR_MS))

    def once() -> float:
        model = trader()
        return (replay_seconds(workspace, with_model(loaded, model), clock=process_time) - model.seconds) / model.asked

    return lambda: sum(once() for _ in range(rounds)) / rounds


MEASURE = Measure("history", "cost of a tick after one month against twelve", measure, 40)
