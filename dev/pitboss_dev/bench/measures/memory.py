"""Peak memory of a process that does one run and nothing else, market and interpreter included."""

import json
import subprocess
import sys
from collections.abc import Iterable

from pitboss_dev.bench import memory_process
from pitboss_dev.bench.market import SYMBOLS, MarketShape
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import LIMIT, BenchRow, RatioGate, skipped

LIMIT_MB = 400.0
GATE = RatioGate("at most", 1.0)


def measure(bench: Bench) -> Iterable[BenchRow]:
    """A policy on eight symbols for a year, and the stand-in with its prompts on part of the same year."""
    scale = bench.scale
    shape = MarketShape(scale.year_days, SYMBOLS[: scale.memory_symbols], funding=True)
    shape_text = json.dumps({"days": shape.days, "symbols": shape.symbols, "funding": shape.funding})
    home, symbols = bench.folder.market(shape), f"memory, {len(shape.symbols)} symbols"
    for name, model, ticks in (
        (f"{symbols}, a year of 5m, policy", "policy/sma_cross", 0),
        (f"{symbols}, stand-in, {scale.memory_ticks:,} ticks", "standin/analyst", scale.memory_ticks),
    ):
        command = [sys.executable, "-m", memory_process.__name__, str(home), model, str(ticks), shape_text]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode:
            reason = (process.stderr.strip().splitlines() or ["the process printed no error"])[-1]
            yield skipped(name, "MB", reason, LIMIT, GATE)
            continue
        result = json.loads(process.stdout)
        note = f"{result['ticks']:,} ticks; {result['before_mb']:.0f} MB of it before the run (imports)"
        yield BenchRow(name, result["peak_mb"], "MB", LIMIT, LIMIT_MB, GATE, note)


MEASURE = Measure("memory", "peak memory of a year of 5m bars of eight symbols", measure, 30)
