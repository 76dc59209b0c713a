"""The parts of a tick on their own: a verdict, the user message, one exact step of the world, a sealed record."""

import asyncio
from collections.abc import Iterable
from decimal import Decimal
from itertools import cycle
from statistics import median

from pitboss.core import codec
from pitboss.core.snapshot import Record, seal
from pitboss.sim.connections import Connections
from pitboss.sim.replay import replay
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.venues.perp.assembly import PerpRun, prepare
from pitboss.venues.perp.course import first_state
from pitboss.venues.perp.testing import judge
from pitboss.venues.perp.world import OrderRequest, advance, submit
from pitboss_dev.bench.backtests import model_request, trading_model
from pitboss_dev.bench.market import MarketShape
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import LIMIT, BenchRow, RatioGate
from pitboss_dev.bench.timing import each_call, interleave, per_call, percentile

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
"""Some that pass, some that break a rule, one that is malformed."""
WORST_LIMIT_US = 10_000.0
WORST_INTENTS = (
    {"action": "open_long", "symbol": "SOL", "reason": "x" * 100_000, "size_usd": Decimal("1e2000000")},
    {f"key{number}": number for number in range(2_000)},
    {"action": "open_long", "symbol": "SOL", "reason": "x", "size_usd": 10**5000, "leverage": Decimal("1e-999999")},
)
"""Long texts, many keys, huge numbers: what a hostile model could send to take time."""


def measure(bench: Bench) -> Iterable[BenchRow]:
    """One row for each part, and one for the slowest verdicts."""
    calls, shape = bench.scale.calls, MarketShape(10)
    with bench.folder.workspace(shape) as workspace:
        prepared = prepare(model_request(shape, bench.scale.model_ticks), workspace.lake, workspace.settings)
    course = prepared.course()
    ports, state, at = course.ports, first_state(course), int(course.tick_at[0])
    intents = cycle(INTENTS)

    def verdict() -> object:
        return judge(ports.limits, ports.terms, state, next(intents), at)

    order = OrderRequest("market", "SOL", 1, Decimal(100), leverage=2)
    world_with_order, _, _ = submit(state.world, order, at)
    record = _record(prepared)
    covered = codec.loads(record.covered)
    extra = codec.loads(record.extra)
    verdict_s = each_call(verdict, max(100, calls))
    ticks = cycle(course.tick_at[:calls].tolist())

    def message() -> str:
        return ports.context.user(ports.observe(state, next(ticks)))

    call_s = interleave(
        {
            "guard": lambda: per_call(verdict, calls),
            "message": lambda: per_call(message, calls),
            "step": lambda: per_call(lambda: advance(world_with_order, ports.terms, course.tape, 0, 1), calls),
            "seal": lambda: per_call(lambda: seal(7, "tick", at, record.prev_digest, covered, extra), calls),
        },
        bench.repeats,
    )
    us = {name: value * 1e6 for name, value in call_s.items()}
    p99 = percentile(verdict_s, 0.99) * 1e6
    p99_note = f"median {median(verdict_s) * 1e6:.0f} µs over {len(verdict_s):,} verdicts"
    length = len(ports.context.user(ports.observe(state, at)))
    size = len(record.covered) + len(record.extra)
    yield BenchRow("guard verdict", us["guard"], "µs", note="allowed, refused and malformed intents in turn")
    yield BenchRow(
        "guard verdict, 99th percentile", p99, "µs", LIMIT, P99_LIMIT_US, RatioGate("at most", 1.0), p99_note
    )
    worst = max(
        median(each_call(lambda intent=intent: judge(ports.limits, ports.terms, state, intent, at), 20))
        for intent in WORST_INTENTS
    )
    yield BenchRow(
        "guard verdict, worst input", worst * 1e6, "µs", LIMIT, WORST_LIMIT_US, RatioGate("at most", 1.0),
        "the slowest of long texts, many keys and huge numbers",
    )  # fmt: skip
    yield BenchRow("user message, warm", us["message"], "µs", note=f"{length:,} characters, a new bar each time")
    yield BenchRow("world step with a fill", us["step"], "µs", note="one bar, exact, a market order waiting")
    yield BenchRow("record sealed", us["seal"], "µs", note=f"canonical JSON and SHA-256 of {size:,} bytes")


def _record(prepared: PerpRun) -> Record:
    """A record from the middle of a run."""
    course = prepared.course(Connections(model=trading_model()))
    journal = MemoryJournal()
    asyncio.run(replay(course, journal, first_state(course), Watch()))
    return next(iter(journal.records(len(prepared.tick_at) // 2)))


MEASURE = Measure("parts", "verdict, message, world step, record", measure, 50)
