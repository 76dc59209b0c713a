"""Workers that are killed, suspended or disconnected: no run is lost, duplicated or stuck, no write under an old lease.

At the level of the store: a run is a chain of records. Real runs under the same faults are in `tests/crash`.
"""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from forked_process import ForkedProcess
from history_check import check
from pitboss.store import events
from pitboss.store.database import open_database
from pitboss.store.journal import StoredJournal
from pitboss.store.verify import verify_run
from pitboss.testing.journal import chained

WORKER = Path(__file__).with_name("queue_worker.py")


def started(address, name, stale_ms, records):
    return ForkedProcess(WORKER, address, name, stale_ms, records, 5)


def cut_connections(address):
    import psycopg
    from sqlalchemy import make_url

    import postgres_server

    with psycopg.connect(postgres_server.server(), autocommit=True) as connection:
        name = make_url(address).database
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))


@pytest.mark.parametrize(
    ("workers", "jobs", "records", "faults", "stale_ms"),
    [
        pytest.param(2, 10, 4, 3, 600, id="small"),
        pytest.param(8, 1_200, 6, 120, 800, id="long", marks=pytest.mark.chaos),
    ],
)
def test_after_faults_of_workers_every_run_is_complete_exactly_once(
    address, make_bench, workers, jobs, records, faults, stale_ms
):
    """E1, E2, E3."""
    rng = random.Random(jobs)
    with open_database(address) as database:
        bench = make_bench(database)
        database.clock = None if database.journal_mode is None else (lambda: time.time_ns() // 1_000_000)
        ids = bench.queue.enqueue([bench.job() for _ in range(jobs)])
        alive = [started(address, f"w{n}", stale_ms, records) for n in range(workers)]
        killed: list[ForkedProcess] = []
        stopped: list[tuple[float, ForkedProcess]] = []
        number = workers
        _until(lambda: any(event.kind == "committed" for event in events.read_events(database)))
        fault_count = 0
        for _ in range(faults):
            victim = rng.randrange(len(alive))
            if alive[victim].poll() is not None:
                break  # no work is left, so the workers have exited
            fault_count += 1
            fault = rng.choice(["kill", "stop"] if database.journal_mode else ["kill", "stop", "cut"])
            if fault == "cut":
                cut_connections(address)
            elif fault == "stop":
                os.kill(alive[victim].pid, signal.SIGSTOP)
                stopped.append((time.monotonic() + 2 * stale_ms / 1_000, alive[victim]))
            else:
                alive[victim].kill()
                killed.append(alive[victim])
                alive[victim] = started(address, f"w{number}", stale_ms, records)
                number += 1
            _pass(rng.uniform(0.05, 0.4))
            stopped = _continue(stopped, time.monotonic())
        _continue(stopped, float("inf"))
        assert fault_count > faults // 10, "hardly any fault was injected"
        outputs = [process.communicate(timeout=600) for process in alive]
        for process in killed:
            process.communicate()

        # The driver warns about closed connections; a worker that failed prints more.
        assert [(out, error) for out, error in outputs if out or "Traceback" in error] == []
        assert [process.returncode for process in alive] == [0] * workers
        log = check(events.read_events(database), ids, stale_ms=stale_ms, most=50)
        assert log.violations == []
        assert log.ends == {"complete": jobs}
        chain = chained(records)
        for run_id in ids:
            assert bench.runs.get(run_id).digest == chain[-1].digest
            assert list(StoredJournal(database, run_id, 0).records()) == chain
            assert verify_run(database, run_id) == []


def _continue(stopped, now):
    for until, process in stopped:
        if until <= now and process.poll() is None:
            os.kill(process.pid, signal.SIGCONT)
    return [(until, process) for until, process in stopped if until > now]


def _until(holds):
    for _ in range(3_000):
        if holds():
            return
        _pass(0.02)
    raise AssertionError("no worker has started")


def _pass(seconds):
    time.sleep(seconds)  # real time: the workers are processes
