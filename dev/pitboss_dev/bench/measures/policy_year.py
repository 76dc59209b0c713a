"""A policy deciding on every 5m bar of a year, compared with backtesting.py doing the same work in the same run.

Our side is everything a user gets: records in SQLite, digests, funnel, metrics with intervals, baselines. The peer's side is
`Backtest.run()` with its statistics. Interpreter start, imports and reading the bars into memory count for neither side;
the row `from disk` adds our reading of the lake.
"""

import asyncio
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass

from pitboss.bootstrap.workspace import Workspace
from pitboss.runs.run import start
from pitboss.store.runs import Run
from pitboss_dev.bench.backtests import EQUITY_USD, POSITION_PCT, policy_request, prepare, replay_seconds
from pitboss_dev.bench.market import MarketShape, random_walk
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.peers.environment import UnavailablePeer, install
from pitboss_dev.bench.peers.process import Peer, PeerFailed, PeerResult, save_bars
from pitboss_dev.bench.row import BenchRow, RatioGate, skipped
from pitboss_dev.bench.timing import Side, interleave, seconds

GATE = RatioGate("at least", 1.5)
MAIN_PEER = "backtesting"
UNIT = "bars/s"
WHOLE, REPLAY, FUNDED, DISK = (
    "sma_cross year, whole run",
    "sma_cross year, replay only",
    "sma_cross year, hourly funding",
    "sma_cross year, from disk",
)


@dataclass(slots=True)
class _YearRun:
    """A backtest of a year that can be repeated."""

    workspace: Workspace
    shape: MarketShape
    run: Run | None = None

    def run_seconds(self) -> float:
        """Seconds from claim to metrics, by the run's own clock: the bars are in memory when it starts."""
        self.run = asyncio.run(start(self.workspace, policy_request(self.shape)))
        return self.run.wall_s

    def disk_seconds(self) -> float:
        """Seconds of all of `start`, reading the lake included."""
        return seconds(self.run_seconds)


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Rows for the whole run, the replay alone, and the same year with hourly funding."""
    days = bench.scale.year_days
    plain, funded = MarketShape(days), MarketShape(days, funding=True)
    request = policy_request(plain)
    bars = random_walk("SOL", plain)
    with ExitStack() as stack:
        year = _YearRun(stack.enter_context(bench.folder.workspace(plain)), plain)
        funded_year = _YearRun(stack.enter_context(bench.folder.workspace(funded)), funded)
        prepared = prepare(year.workspace, request)
        course = prepared.course()
        sides: dict[str, Side] = {
            WHOLE: year.run_seconds,
            REPLAY: lambda: replay_seconds(year.workspace, prepared, course),
            FUNDED: funded_year.run_seconds,
            DISK: year.disk_seconds,
        }
        results: dict[str, PeerResult] = {}
        unavailable: dict[str, str] = {} if MAIN_PEER in bench.peers else {MAIN_PEER: "peers were not asked for"}
        path = save_bars(bars, bench.folder.path / "bars.npz")
        for name in bench.peers:
            python = install(name, bench.peers_folder, bench.progress)
            if isinstance(python, UnavailablePeer):
                unavailable[name] = python.reason
                continue
            try:
                peer = stack.enter_context(
                    Peer(name, python, path, float(EQUITY_USD), POSITION_PCT, float(request.taker_bps))
                )
                results[name] = peer.run()
            except PeerFailed as error:
                unavailable[name] = str(error)
                continue
            sides[name] = _peer_side(peer)
        durations = interleave(sides, bench.repeats)
        assert year.run is not None
        yield from _rows(len(bars), year.run, durations, results, unavailable)


def _peer_side(peer: Peer) -> Side:
    return lambda: peer.run().seconds


def _rows(
    bars: int, run: Run, durations: dict[str, float], results: dict[str, PeerResult], unavailable: dict[str, str]
) -> Iterable[BenchRow]:
    speed = {name: bars / duration for name, duration in durations.items()}
    peer_speed = speed.get(MAIN_PEER)
    reference = None if peer_speed is None else "backtesting.py"
    note = _agreement(bars, run, results[MAIN_PEER]) if MAIN_PEER in results else f"no peer: {unavailable[MAIN_PEER]}"
    yield BenchRow(WHOLE, speed[WHOLE], UNIT, reference, peer_speed, GATE, note)
    for name, note in (
        (REPLAY, "stored records, without loading and metrics"),
        (FUNDED, "whole run; the peer has no funding to pay"),
        (DISK, "whole run with reading the lake; the peer has its bars"),
    ):
        yield BenchRow(name, speed[name], UNIT, reference, peer_speed, note=note)
    for name in durations:
        if name in results and name != MAIN_PEER:
            note = _agreement(bars, run, results[name])
            yield BenchRow(f"sma_cross year, against {name}", speed[WHOLE], UNIT, name, speed[name], note=note)
    for name, reason in unavailable.items():
        if name != MAIN_PEER:
            yield skipped(f"sma_cross year, against {name}", UNIT, reason, name)


def _agreement(bars: int, run: Run, result: PeerResult) -> str:
    """Whether both sides did the same work, with the figures of each."""
    metrics = run.metrics or {}
    trades, equity = int(metrics["total_trades"]), float(metrics["final_equity_usd"])
    is_close = abs(trades - result.trades) <= 3 and abs(equity / result.final_equity - 1) < 0.01
    judgement = "same work" if bars == result.bars and is_close else "NOT the same work"
    return (
        f"{judgement}: bars {bars:,}/{result.bars:,}, trades {trades:,}/{result.trades:,}, "
        f"final equity {equity:,.0f}/{result.final_equity:,.0f}"
    )


MEASURE = Measure("policy_year", "policy/sma_cross on every 5m bar of a year, against backtesting.py", measure, 10)
