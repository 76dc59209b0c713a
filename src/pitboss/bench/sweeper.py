"""One process of a sweep to be timed: `python -m pitboss.bench.sweeper HOME KIND RUNS DAYS`. Says when it is ready, and done.

`workers` takes runs from the queue as any worker does. `bare` does as many of the same backtests one after the other, with
records in a database of its own, and knows nothing of queues or of the other process.
"""

import asyncio
import os
import sys
from pathlib import Path

from pitboss.bench.market import MarketShape
from pitboss.bench.trial import policy_request
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.jobs.worker import Worker
from pitboss.jobs.worker_settings import open_queue, worker_name, worker_settings
from pitboss.runs.run import start


def main(home: str, kind: str, runs: str, days: str) -> None:
    """Do it when told to."""
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
