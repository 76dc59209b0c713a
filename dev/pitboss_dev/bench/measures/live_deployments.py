"""Many deployments on paper in one process, with a model that answers after a second: how late ticks begin, and memory.

All deployments tick at the same instant, which is the hardest case. The exchange is the fake one, in a process of its own; the clocks
of both are set forward by the same time, so that a tick falls into the measurement, and run at their usual speed.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pitboss_dev.bench import live_process, shifted_program
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.measures.model_calls import fake_provider
from pitboss_dev.bench.row import LIMIT, BenchRow, RatioGate
from pitboss_dev.bench.timing import percentile

LATENCY_MS, SHORT_LATENCY_MS = 1_000, 5
PERIOD_MS = 300_000
OPENING_MS, EACH_MS = 12_000, 200
"""Time until the tick: so much for the exchange and the host to start, and so much for each deployment."""
LATE_LIMIT_S, MEMORY_LIMIT_MB = 1.0, 20.0
GATE = RatioGate("at most", 1.0)


def measure(bench: Bench) -> Iterable[BenchRow]:
    """How late the ticks of all deployments began, and the memory of one more."""
    count = bench.scale.agents
    latency_ms = LATENCY_MS if count > 10 else SHORT_LATENCY_MS
    half, whole = (_hosted(bench, number, latency_ms) for number in (max(1, count // 2), count))
    begun = percentile([ms / 1_000 for ms in whole["begun"]], 0.99)
    decided = percentile([ms / 1_000 for ms in whole["decided"]], 0.99)
    asked = percentile([ms / 1_000 for ms in whole["asked"]], 0.99)
    note = f"one tick of all at the same instant; deciders asked within {asked:.1f} s, {whole['calls']} calls of {latency_ms} ms, decided within {decided:.1f} s (p99)"
    name = f"live, {count} deployments on paper, late at p99"
    yield BenchRow(name, begun, "s", LIMIT, LATE_LIMIT_S, GATE, note)
    each = (whole["resident_mb"] - half["resident_mb"]) / max(1, count - max(1, count // 2))
    note = f"{whole['resident_mb']:.0f} MB with {count}, {half['resident_mb']:.0f} MB with half of them"
    yield BenchRow("live, memory of one more deployment", each, "MB", LIMIT, MEMORY_LIMIT_MB, GATE, note)


def _hosted(bench: Bench, count: int, latency_ms: int) -> dict[str, Any]:
    home = bench.folder.path / f"live-{count}-{time.monotonic_ns()}"
    home.mkdir()
    now_ms = time.time_ns() // 1_000_000
    tick_ms = now_ms + OPENING_MS + EACH_MS * count
    shift_ms = -(-tick_ms // PERIOD_MS) * PERIOD_MS - tick_ms
    with _exchange(shift_ms) as url, fake_provider(latency_ms, "propose_order") as model_url:
        command = [sys.executable, "-m", live_process.__name__, str(home), url, str(count), str(shift_ms)]
        environment = {**os.environ, "LLM_BASE_URL": model_url, "LLM_API_KEY": "bench-key"}
        process = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(process.stdout)


@contextmanager
def _exchange(shift_ms: int) -> Iterator[str]:
    """The fake exchange in a process of its own; gives its address."""
    words = ["pitboss.testing.hyperliquid", "--symbols", "BTC", "--history-days", "7"]
    command = [sys.executable, "-m", shifted_program.__name__, str(shift_ms), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()


MEASURE = Measure("live_deployments", "200 deployments on paper in one process", measure, 62)
