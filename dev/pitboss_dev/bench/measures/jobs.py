"""Workers: many runs that wait for a model on one event loop, and runs that compute in several processes.

Sixteen runs in one process with a server that answers after 100 ms, compared with one of them alone: the difference is our
own work. And a sweep of a policy by two workers on this machine compared with one, relative to the scaling of two bare
processes with the same work in the same minute: on a machine with busy cores nothing scales.
"""

import asyncio
import subprocess
from collections.abc import Iterable, Sequence
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
from pitboss.sim.request import BacktestRequest
from pitboss_dev.bench import sweep_process
from pitboss_dev.bench.backtests import BenchFolder, model_request, policy_request
from pitboss_dev.bench.market import MarketShape
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.measures.model_calls import fake_provider
from pitboss_dev.bench.row import BenchRow, RatioGate

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
    is_full = bench.scale.model_ticks >= TICKS
    ticks, latency_ms = (TICKS, LATENCY_MS) if is_full else (bench.scale.model_ticks, SHORT_LATENCY_MS)
    shape = MarketShape(8)
    durations: dict[int, list[float]] = {1: [], RUNS: []}
    with (
        fake_provider(latency_ms, "propose_order") as url,
        bench.folder.workspace(shape, "one") as workspace,
    ):
        lend({"LLM_BASE_URL": url, "LLM_API_KEY": "bench-key"})
        request = replace(
            model_request(shape, ticks), model="llm/canned", speculate="0", price_in=Decimal(1), price_out=Decimal(1)
        )
        repeat = 0
        for _ in range(max(1, bench.repeats // 2)):
            for count, values in durations.items():
                requests = [replace(request, repeat=repeat + number) for number in range(count)]
                repeat += count  # no run uses the cached replies of another
                values.append(_worker_seconds(workspace, requests, count))
    alone_s, together_s = median(durations[1]), median(durations[RUNS])
    note = f"{latency_ms} ms a call, {RUNS * ticks} calls; one run alone took {alone_s:.1f} s"
    return BenchRow(WAITING, together_s, "s", "one run", alone_s, MODEL_GATE, note)


def _worker_seconds(workspace: Workspace, requests: Sequence[BacktestRequest], concurrency: int) -> float:
    """How long one worker takes for these runs, loading and metrics included."""
    queue = open_queue(workspace)
    ids = queue.enqueue([job_of(workspace, request) for request in requests])
    worker = Worker(workspace, queue, f"bench:{new_id()}", WorkerSettings(concurrency, idle_exit_s=0.0))
    start = perf_counter()
    asyncio.run(worker.run())
    duration = perf_counter() - start
    _check_complete(workspace, ids)
    return duration


def _computing(bench: Bench) -> BenchRow:
    shape = MarketShape(bench.scale.year_days)
    runs = SWEEP_RUNS if bench.scale.model_ticks >= TICKS else 2
    scaling: dict[str, list[float]] = {"workers": [], "bare": []}
    for _ in range(max(1, bench.repeats // 2)):
        for kind, factors in scaling.items():
            one_process_s = _sweep_seconds(bench.folder, shape, kind, 1, runs)
            two_processes_s = _sweep_seconds(bench.folder, shape, kind, 2, 2 * runs)
            factors.append(2 * one_process_s / two_processes_s)
    workers, bare = median(scaling["workers"]), median(scaling["bare"])
    note = f"{runs} runs of a {shape.days}-day policy for each process; two workers do {workers:.2f}× the work of one"
    return BenchRow(COMPUTING, workers, "×", "two bare processes", bare, SCALE_GATE, note)


def _sweep_seconds(folder: BenchFolder, shape: MarketShape, kind: str, processes: int, runs: int) -> float:
    """Seconds from when all processes are ready until the last is done; starting Python does not count."""
    with folder.workspace(shape) as workspace:
        ids: list[str] = []
        if kind == "workers":
            ids = open_queue(workspace).enqueue([job_of(workspace, policy_request(shape))] * runs)
        arguments = [str(workspace.home), kind, str(runs // processes), str(shape.days)]
        started = [
            subprocess.Popen(
                program(sweep_process.__name__, *arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=surroundings(workspace.settings),
            )
            for _ in range(processes)
        ]
        try:
            for process in started:
                _read_line(process)
            start = perf_counter()
            for process in started:
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
            for process in started:
                _read_line(process)
            duration = perf_counter() - start
        finally:
            for process in started:
                process.communicate()
        _check_complete(workspace, ids)
    return duration


def _read_line(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    if not process.stdout.readline():
        raise InvariantError("a process of the sweep ended early")


def _check_complete(workspace: Workspace, ids: list[str]) -> None:
    runs = [workspace.runs.get(run_id) for run_id in ids]
    if any(run.status != "complete" for run in runs):
        raise InvariantError("a run of the benchmark did not complete")


MEASURE = Measure("jobs", "workers: runs that wait and runs that compute", measure, 60)
