"""From a halt, and from a command, to the last new order of a live deployment that sends orders without a pause."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable

from pitboss_dev.bench import halt_process
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import LIMIT, BenchRow, RatioGate
from pitboss_dev.bench.timing import percentile

LIMIT_S = 0.25
GATE = RatioGate("at most", 1.0)


def measure(bench: Bench) -> Iterable[BenchRow]:
    """How long after it is stopped the last new order leaves."""
    home = bench.folder.path / f"halt-{time.monotonic_ns()}"
    home.mkdir()
    count = bench.scale.agents
    command = [sys.executable, "-m", halt_process.__name__, str(home), str(count)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(process.stdout)
    for key, name in (("halts", "a stored halt"), ("commands", "a command")):
        seconds: list[float] = result[key]
        after = sum(each > 0 for each in seconds)
        note = f"{count} times, {after} with an order after it, at most {max(seconds):.3f} s; {result['orders']} orders in all"
        yield BenchRow(
            f"live, {name} to the last order, p99", percentile(seconds, 0.99), "s", LIMIT, LIMIT_S, GATE, note
        )


MEASURE = Measure("halt_latency", "a live deployment that is halted while it orders", measure, 63)
