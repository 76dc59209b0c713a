"""Workers: many runs that wait for a model on one event loop, and runs that compute in several processes.

Sixteen runs against a server that answers after 100 ms, in one process, against one of them alone: what they add is what our
own work costs. And a sweep of a policy by two workers of this machine against one, held against the scaling that two bare
processes show with the same work in the same minute: a machine whose cores are busy scales nobody.
"""

import asyncio
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from statistics import median
from time import perf_counter

from pitboss.bootstrap.child_settings import program, surroundings
from pitboss.bootstrap.machine import lend, new_id
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import InvariantError
from pitboss.jobs.worker import Worker, WorkerSettings
from pitboss.jobs.worker_settings import open_queue
from pitboss.runs.run import job_of
from pitboss.venues.perp.assembly import PerpRequest
from pitboss.venues.perp.intents import TERMINAL
from pitboss_dev.bench.market import MarketShape
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import BenchRow, RatioGate
from pitboss_dev.bench.trial import Grounds, model_request, policy_request

RUNS, TICKS, LATENCY_MS = 16, 288, 100
SHORT_LATENCY_MS = 5
WAITING = "jobs, 16 runs of 288 ticks on one loop"
COMPUTING = "jobs, two workers on a policy sweep"
MODEL_GATE, SCALE_GATE = RatioGate("at most", 1.3), RatioGate("at least", 0.85)
SWEEP_RUNS = 12


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Both rows."""
    yield _waiting(bench)
    yield _computing(bench)


def _waiting(bench: Bench) -> BenchRow:
    full = bench.scale.model_ticks >= TICKS
    ticks, latency_ms = (TICKS, LATENCY_MS) if full else (bench.scale.model_ticks, SHORT_LATENCY_MS)
    shape = MarketShape(8)
    alone: list[float] = []
    together: list[float] = []
    with _server(latency_ms) as url, bench.grounds.workspace(shape, "one") as workspace:
        lend({"LLM_BASE_URL": url, "LLM_API_KEY": "bench-key"})
        request = replace(
            model_request(shape, ticks), model="llm/canned", speculate="0", price_in=Decimal(1), price_out=Decimal(1)
        )
        repeat = 0
        for _ in range(max(1, bench.repeats // 2)):
            for count, taken in ((1, alone), (RUNS, together)):
                asked = [replace(request, repeat=repeat + number) for number in range(count)]
                repeat += count  # no run finds the answers of another
                taken.append(_work(workspace, asked, count))
    note = f"{latency_ms} ms a call, {RUNS * ticks} calls; one run alone took {median(alone):.1f} s"
    return BenchRow(WAITING, median(together), "s", "one run", median(alone), MODEL_GATE, note)


@contextmanager
def _server(latency_ms: int) -> Iterator[str]:
    """The fake provider in a process of its own, which holds whatever it is asked; gives its address."""
    words = program("pitboss.testing.provider", "--latency-ms", str(latency_ms), "--canned", TERMINAL)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(10)


def _work(workspace: Workspace, requests: list[PerpRequest], concurrency: int) -> float:
    """How long one worker takes for these runs, loading and metrics included."""
    queue = open_queue(workspace)
    ids = queue.enqueue([job_of(workspace, request) for request in requests])
    worker = Worker(workspace, queue, f"bench:{new_id()}", WorkerSettings(concurrency, idle_exit_s=0.0))
    began = perf_counter()
    asyncio.run(worker.run())
    taken = perf_counter() - began
    _all_complete(workspace, ids)
    return taken


def _computing(bench: Bench) -> BenchRow:
    shape = MarketShape(bench.scale.year_days)
    each = max(2, SWEEP_RUNS if bench.scale.model_ticks >= TICKS else 2)
    scaling: dict[str, list[float]] = {"workers": [], "bare": []}
    for _ in range(max(1, bench.repeats // 2)):
        for kind, found in scaling.items():
            one = _sweep(bench.grounds, shape, kind, 1, each)
            two = _sweep(bench.grounds, shape, kind, 2, 2 * each)
            found.append(2 * one / two)
    ours, bare = median(scaling["workers"]), median(scaling["bare"])
    note = f"{each} runs of a {shape.days}-day policy for each process; two workers do {ours:.2f}× the work of one"
    return BenchRow(COMPUTING, ours, "×", "two bare processes", bare, SCALE_GATE, note)


def _sweep(grounds: Grounds, shape: MarketShape, kind: str, processes: int, runs: int) -> float:
    """Seconds from the moment that all processes are ready until the last is done: starting Python is not what scales."""
    with grounds.workspace(shape) as workspace:
        queue = open_queue(workspace)
        request = policy_request(shape)
        ids: list[str] = []
        if kind == "workers":
            job = job_of(workspace, request)
            ids = queue.enqueue([job] * runs)
        words = [str(workspace.home), kind, str(runs // processes), str(shape.days)]
        variables = surroundings(workspace.settings)
        crew = [
            subprocess.Popen(
                program("pitboss_dev.bench.sweeper", *words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=variables,
            )
            for _ in range(processes)
        ]
        try:
            for one in crew:
                _line(one)
            began = perf_counter()
            for one in crew:
                assert one.stdin is not None
                one.stdin.write("go\n")
                one.stdin.flush()
            for one in crew:
                _line(one)
            taken = perf_counter() - began
        finally:
            for one in crew:
                one.communicate()
        _all_complete(workspace, ids)
    return taken


def _line(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    if not process.stdout.readline():
        raise InvariantError("a process of the sweep ended before its time")


def _all_complete(workspace: Workspace, ids: list[str]) -> None:
    runs = [workspace.runs.get(run_id) for run_id in ids]
    if any(run.status != "complete" for run in runs):
        raise InvariantError("a run of the benchmark did not complete")


MEASURE = Measure("jobs", "workers: runs that wait and runs that compute", measure, place=60)
