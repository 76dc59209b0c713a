"""The parts of a tick on their own: judging an intent, writing the user message, one exact bar, sealing a record."""

import asyncio
from collections.abc import Iterable
from decimal import Decimal
from itertools import cycle
from statistics import median

from pitboss.core import codec
from pitboss.core.snapshot import Record, seal
from pitboss.core.state import State
from pitboss.sim.replay import replay
from pitboss.sim.request import PreparedRun
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.venues.perp.course import first_state
from pitboss.venues.perp.ports import judge as guard
from pitboss.venues.perp.world import OrderRequest, advance, submit
from pitboss_dev.bench.market import MarketShape
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import LIMIT, BenchRow, RatioGate
from pitboss_dev.bench.timing import each_call, interleave, per_call, percentile
from pitboss_dev.bench.trial import assembled, model_request, trader, with_model

P99_LIMIT_US = 1_000.0
INTENTS = (
    {"action": "open_long", "symbol": "SOL", "size_usd": 20_000, "leverage": 2, "reason": "fits"},
    {"action": "open_short", "symbol": "SOL", "size_usd": 900_000, "leverage": 2, "reason": "far too large"},
    {"action": "open_long", "symbol": "SOL", "size_usd": 5_000, "order_type": "limit", "limit_price": Decimal("120.5"),
     "stop_loss": 90, "take_profit": 190, "reason": "rests"},
    {"action": "close", "symbol": "SOL", "reason": "nothing to close"},
    {"action": "open_long", "symbol": "PEPE", "size_usd": "much", "reason": ["no", "text"]},
    {"action": "no_op", "symbol": "SOL", "reason": "wait"},
)  # fmt: skip
"""Some that pass, some that break a rule, one that breaks the shape."""


def measure(bench: Bench) -> Iterable[BenchRow]:
    """One row each, and one for the slowest verdicts."""
    calls, shape = bench.scale.calls, MarketShape(10)
    with bench.grounds.workspace(shape) as workspace:
        loaded = assembled(workspace, model_request(shape, 1_500))
    script, ports = loaded.script, loaded.script.ports
    state = first_state(script)
    at = int(script.tick_at[0])
    intents = cycle(INTENTS)

    def judge() -> object:
        return guard(ports.limits, ports.terms, state, next(intents), at)

    order = OrderRequest("market", "SOL", 1, Decimal(100), leverage=2)
    waiting, _, _ = submit(state.world, order, at)
    record = _some_record(loaded)
    covered = codec.loads(record.covered)
    extra = codec.loads(record.extra)
    verdicts = each_call(judge, max(100, calls))
    ticks = cycle(script.tick_at[: min(calls, len(script.tick_at))].tolist())

    def write() -> object:
        return ports.context.user(ports.observe(state, next(ticks)))

    taken = interleave(
        {
            "guard": lambda: per_call(judge, calls),
            "message": lambda: per_call(write, calls),
            "step": lambda: per_call(lambda: advance(waiting, ports.terms, script.tape, 0, 1), calls),
            "seal": lambda: per_call(lambda: seal(7, "tick", at, record.prev_digest, covered, extra), calls),
        },
        bench.repeats,
    )
    worst = f"median {median(verdicts) * 1e6:.0f} µs over {len(verdicts):,} verdicts"
    p99 = percentile(verdicts, 0.99) * 1e6
    length = len(ports.context.user(_observation(loaded, state)))
    size = len(record.covered) + len(record.extra)
    yield BenchRow("guard verdict", taken["guard"] * 1e6, "µs", note="allowed, refused and malformed intents in turn")
    yield BenchRow("guard verdict, 99th percentile", p99, "µs", LIMIT, P99_LIMIT_US, RatioGate("at most", 1.0), worst)
    yield BenchRow(
        "user message, warm", taken["message"] * 1e6, "µs", note=f"{length:,} characters, a new bar each time"
    )
    yield BenchRow("world step with a fill", taken["step"] * 1e6, "µs", note="one bar, exact, a market order waiting")
    yield BenchRow("record sealed", taken["seal"] * 1e6, "µs", note=f"canonical JSON and SHA-256 of {size:,} bytes")


def _observation(loaded: PreparedRun, state: State):
    return loaded.script.ports.observe(state, int(loaded.script.tick_at[0]))


def _some_record(loaded: PreparedRun) -> Record:
    """A record as a run makes them."""
    script = with_model(loaded, trader()).script
    journal = MemoryJournal()
    asyncio.run(replay(script, journal, first_state(script), Watch()))
    return next(iter(journal.records(len(script.tick_at) // 2)))


MEASURE = Measure("parts", "verdict, message, world step, record", measure, 50)
