"""Forks a worker for each line of standard input: `python worker_forks.py HOME CONCURRENCY PROCESSES`.

All modules are imported once and every worker is a fork of this process, so that workers start at once. Prints the process
id of each worker. At the end of standard input it sends SIGTERM to the workers and waits for them.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from pitboss.bootstrap.settings import load_settings
from pitboss.jobs.executors.local import stopped_by_signals
from pitboss.jobs.worker import Worker
from pitboss.jobs.worker_settings import open_queue, wait_for_workspace, worker_name, worker_settings
from pitboss.venues.perp import assembly as perp_assembly

assert perp_assembly  # imported here, so that no worker has to


def run_worker(home: Path, concurrency: int, processes: int) -> None:
    """Work until SIGTERM."""
    settings = load_settings(home)
    with asyncio.run(wait_for_workspace(settings)) as workspace:  # it may start while the database is unreachable
        terms = worker_settings(settings, concurrency=concurrency, processes=processes, any_build=True)
        worker = Worker(workspace, open_queue(workspace), worker_name(), terms)
        with stopped_by_signals(worker):
            asyncio.run(worker.run())


def main(home: str, concurrency: str, processes: str) -> None:
    """Fork workers, stop them at the end of standard input."""
    workers: list[int] = []
    for _ in sys.stdin:
        pid = os.fork()
        if not pid:
            sys.stdin.close()
            try:
                run_worker(Path(home), int(concurrency), int(processes))
                os._exit(0)
            except BaseException as error:  # noqa: BLE001 - a fork must not go on as its parent
                sys.stderr.write(f"worker {os.getpid()}: {error!r}\n")
                sys.stderr.flush()
                os._exit(70)
        workers.append(pid)
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        workers = [one for one in workers if not _gone(one)]
    for pid in workers:
        os.kill(pid, signal.SIGTERM)
    for pid in workers:
        os.waitpid(pid, 0)


def _gone(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG)[0] == pid


if __name__ == "__main__":
    main(*sys.argv[1:])
