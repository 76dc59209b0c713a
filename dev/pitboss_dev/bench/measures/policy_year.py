"""A policy deciding on every 5m bar of a year, against backtesting.py doing the same work in the same run.

Ours is everything a user gets: records in SQLite, digests, funnel, metrics with intervals, baselines. Theirs is
`Backtest.run()` with its statistics. Interpreter start, imports and reading the bars into memory count for neither
side; `from disk` adds our reading of the lake.
"""

import asyncio
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter

from pitboss.bootstrap.workspace import Workspace
from pitboss.runs.run import start
from pitboss.store.runs import Run
from pitboss_dev.bench.market import MarketShape, walk
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.peers.environment import Missing, prepare
from pitboss_dev.bench.peers.process import Peer, PeerFailed, PeerResult, save_bars
from pitboss_dev.bench.row import BenchRow, RatioGate, skipped
from pitboss_dev.bench.timing import Side, interleave
from pitboss_dev.bench.trial import EQUITY_USD, POSITION_PCT, assembled, policy_request, replay_seconds

GATE = RatioGate("at least", 1.5)
CHIEF = "backtesting"
UNIT = "bars/s"
WHOLE, REPLAY, FUNDED, DISK = (
    "sma_cross year, whole run",
    "sma_cross year, replay only",
    "sma_cross year, hourly funding",
    "sma_cross year, from disk",
)


@dataclass(slots=True)
class _Ours:
    """A year of ours, run again and again."""

    workspace: Workspace
    shape: MarketShape
    run: Run | None = None

    def whole(self) -> float:
        """A run from claim to metrics, by its own clock: the bars are in memory when it starts."""
        self.run = asyncio.run(start(self.workspace, policy_request(self.shape)))
        return self.run.wall_s

    def from_disk(self) -> float:
        """`start` from beginning to end, reading the lake included."""
        began = perf_counter()
        self.run = asyncio.run(start(self.workspace, policy_request(self.shape)))
        return perf_counter() - began


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Rows for the whole run, the replay alone, and the same year with funding every hour."""
    days = bench.scale.year_days
    plain, funded = MarketShape(days), MarketShape(days, funding=True)
    request = policy_request(plain)
    bars = walk("SOL", plain)
    count = len(bars)
    with ExitStack() as stack:
        ours = _Ours(stack.enter_context(bench.grounds.workspace(plain)), plain)
        paying = _Ours(stack.enter_context(bench.grounds.workspace(funded)), funded)
        loaded = assembled(ours.workspace, request)
        sides: dict[str, Side] = {
            WHOLE: ours.whole,
            REPLAY: lambda: replay_seconds(ours.workspace, loaded),
            FUNDED: paying.whole,
            DISK: ours.from_disk,
        }
        answers: dict[str, PeerResult] = {}
        missing: dict[str, str] = {} if CHIEF in bench.peers else {CHIEF: "peers were not asked for"}
        path = save_bars(bars, bench.grounds.folder / "bars.npz")
        for name in bench.peers:
            python = prepare(name, bench.peers_folder, bench.say)
            if isinstance(python, Missing):
                missing[name] = python.reason
                continue
            try:
                peer = stack.enter_context(
                    Peer(name, python, path, float(EQUITY_USD), POSITION_PCT, float(request.taker_bps))
                )
                answers[name] = peer.run()
            except PeerFailed as error:
                missing[name] = str(error)
                continue
            sides[name] = _asking(peer)
        taken = interleave(sides, bench.repeats)
        assert ours.run is not None
        yield from _rows(count, ours.run, taken, answers, missing)


def _asking(peer: Peer) -> Side:
    return lambda: peer.run().seconds


def _rows(
    count: int, run: Run, taken: dict[str, float], answers: dict[str, PeerResult], missing: dict[str, str]
) -> Iterable[BenchRow]:
    speed = {name: count / seconds for name, seconds in taken.items()}
    chief = speed.get(CHIEF)
    reference = None if chief is None else "backtesting.py"
    note = _agreement(count, run, answers[CHIEF]) if CHIEF in answers else f"no peer: {missing[CHIEF]}"
    yield BenchRow(WHOLE, speed[WHOLE], UNIT, reference, chief, GATE, note)
    yield BenchRow(REPLAY, speed[REPLAY], UNIT, reference, chief, note="stored records, without loading and metrics")
    yield BenchRow(FUNDED, speed[FUNDED], UNIT, reference, chief, note="whole run; the peer has no funding to pay")
    yield BenchRow(
        DISK, speed[DISK], UNIT, reference, chief, note="whole run with reading the lake; the peer has its bars"
    )
    for name, seconds in taken.items():
        if name in answers and name != CHIEF:
            note = _agreement(count, run, answers[name])
            yield BenchRow(f"sma_cross year, against {name}", speed[WHOLE], UNIT, name, count / seconds, note=note)
    for name, reason in missing.items():
        if name != CHIEF:
            yield skipped(f"sma_cross year, against {name}", UNIT, reason, name)


def _agreement(count: int, run: Run, answer: PeerResult) -> str:
    """Whether both sides did the same work, in their own numbers."""
    metrics = run.metrics or {}
    trades, equity = int(metrics["total_trades"]), float(metrics["final_equity_usd"])
    close = abs(trades - answer.trades) <= 3 and abs(equity / answer.final_equity - 1) < 0.01
    judgement = "same work" if count == answer.bars and close else "NOT the same work"
    return (
        f"{judgement}: bars {count:,}/{answer.bars:,}, trades {trades:,}/{answer.trades:,}, "
        f"final equity {equity:,.0f}/{answer.final_equity:,.0f}"
    )


MEASURE = Measure("policy_year", "policy/sma_cross on every 5m bar of a year, against backtesting.py", measure, 10)
