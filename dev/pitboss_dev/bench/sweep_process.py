"""One process of a timed sweep: `python -m pitboss_dev.bench.sweep_process HOME KIND RUNS DAYS`.

It prints `ready`, waits for a line on standard input, does the work and prints `done`. `workers` takes runs from the queue
as any worker does. `bare` does the same backtests one after the other with a database of its own, without a queue and
independent of other processes.
"""

import asyncio
import os
import sys
from pathlib import Path

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.jobs.worker import Worker
from pitboss.jobs.worker_settings import open_queue, worker_name, worker_settings
from pitboss.runs.run import start
from pitboss_dev.bench.backtests import policy_request
from pitboss_dev.bench.market import MarketShape


def main(home: str, kind: str, runs: str, days: str) -> None:
    """Prepare, wait for the start signal, do the runs."""
    settings = load_settings(Path(home))
    if kind == "bare":
        settings = settings.model_copy(update={"database_url": f"{settings.database_url}-{os.getpid()}"})
    request = policy_request(MarketShape(int(days)))
    with open_workspace(settings) as workspace:
        terms = worker_settings(settings, processes=0, idle_exit_s=0.0, any_build=True)
        worker = Worker(workspace, open_queue(workspace), worker_name(), terms)
        print("ready", flush=True)
        sys.stdin.readline()
        if kind == "workers":
            asyncio.run(worker.run())
        else:
            for _ in range(int(runs)):
                asyncio.run(start(workspace, request))
        print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
