"""Peak memory of a process that does nothing but one run, market and interpreter included."""

import json
import subprocess
import sys
from collections.abc import Iterable

from pitboss_dev.bench import lone
from pitboss_dev.bench.market import SYMBOLS, MarketShape
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import LIMIT, BenchRow, RatioGate, skipped

LIMIT_MB = 400.0
GATE = RatioGate("at most", 1.0)


def measure(bench: Bench) -> Iterable[BenchRow]:
    """A year of policies on eight symbols, and the stand-in with its prompts on part of the same year."""
    scale = bench.scale
    shape = MarketShape(scale.year_days, SYMBOLS[: scale.memory_symbols], funding=True)
    home = bench.grounds.market(shape)
    for name, model, ticks in (
        (f"memory, {len(shape.symbols)} symbols, a year of 5m, policy", "policy/sma_cross", 0),
        (
            f"memory, {len(shape.symbols)} symbols, stand-in, {scale.memory_ticks:,} ticks",
            "standin/analyst",
            scale.memory_ticks,
        ),
    ):
        command = [sys.executable, "-m", lone.__name__, str(home), model, str(ticks), json.dumps(_plain(shape))]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            reason = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
            yield skipped(name, "MB", reason, LIMIT, GATE)
            continue
        found = json.loads(ended.stdout)
        note = f"{found['ticks']:,} ticks; {found['before_mb']:.0f} MB of it before the run (imports)"
        yield BenchRow(name, found["peak_mb"], "MB", LIMIT, LIMIT_MB, GATE, note)


def _plain(shape: MarketShape) -> dict[str, object]:
    return {"days": shape.days, "symbols": list(shape.symbols), "funding": shape.funding}


MEASURE = Measure("memory", "peak memory of a year of 5m bars of eight symbols", measure, 30)
