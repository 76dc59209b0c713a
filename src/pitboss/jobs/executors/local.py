"""Workers on this machine: started when runs are queued, as many as there is work for; they exit when there is none.

`python -m pitboss.jobs.executors.local HOME NUMBER LOCK` is one worker. There is no service: a process that enqueues runs or
waits for them calls `ensure`, and the workers it starts are independent of it.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from pitboss.bootstrap.child_settings import program, surroundings
from pitboss.bootstrap.logs import start_logs
from pitboss.bootstrap.machine import let_threads_alternate
from pitboss.bootstrap.settings import Settings, load_settings
from pitboss.bootstrap.telemetry import telemetry
from pitboss.core.errors import UserError
from pitboss.jobs.capacity import LocalWorkerSlot, WorkerSlots, worker_limit, worker_target
from pitboss.jobs.worker import Worker
from pitboss.jobs.worker_settings import open_queue, wait_for_workspace, worker_name, worker_settings
from pitboss.store.queue import Queue

_started: "list[subprocess.Popen[bytes]]" = []
"""Workers started by this process, to be reaped when they exit before it does."""


def ensure(settings: Settings, queue: Queue, any_build: bool = False) -> int:
    """Start workers until there is one for each run, up to the limit. Returns how many were started; safe to call at any time."""
    if settings.sqlite_processes == "one" and "://" not in settings.database_url:
        raise UserError(
            "workers cannot share a database that one process has for itself", "set sqlite_processes to several"
        )
    _reap()
    limit, slots = worker_limit(settings), WorkerSlots(settings.home)
    started = 0
    with slots.lock():
        missing = worker_target(queue.depth(), limit) - len(slots.occupied(limit))
        for number in range(limit):
            descriptor = slots.acquire(number) if started < missing else None
            if descriptor is not None:
                _start(settings, slots, number, descriptor, any_build)
                started += 1
    return started


def _start(settings: Settings, slots: WorkerSlots, number: int, descriptor: int, any_build: bool) -> None:
    """Start one worker that inherits the lock of its slot, so that the slot is never free in between."""
    arguments = [str(settings.home), str(number), str(descriptor), *(["any"] if any_build else [])]
    try:
        with slots.log_path(number).open("wb") as log:
            process = subprocess.Popen(
                program("pitboss.jobs.executors.local", *arguments),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=surroundings(settings),
                pass_fds=(descriptor,),
                start_new_session=True,  # Ctrl-C is for the process that enqueues, not for the workers
            )
    finally:
        os.close(descriptor)
    _started.append(process)


def _reap() -> None:
    _started[:] = [process for process in _started if process.poll() is None]


def main(home: str, number: str, descriptor: str, build: str = "") -> int:
    """Run the worker of a slot."""
    settings = load_settings(Path(home))
    os.nice(settings.worker_nice)
    let_threads_alternate()
    start_logs(settings.log_level, settings.log_file)
    with asyncio.run(wait_for_workspace(settings)) as workspace, telemetry(settings) as tracer:
        queue = open_queue(workspace)
        slots, limit = WorkerSlots(workspace.home), worker_limit(settings)
        slot = LocalWorkerSlot(slots, int(number), int(descriptor), queue, limit)
        terms = worker_settings(settings, idle_exit_s=settings.worker_idle_s, any_build=build == "any")
        worker = Worker(workspace, queue, worker_name(), terms, slot, tracer)
        with stopped_by_signals(worker):
            asyncio.run(worker.run())
        slot.close()
    return 0


@contextmanager
def stopped_by_signals(worker: Worker) -> Iterator[list[int]]:
    """Stop a worker on SIGTERM or SIGINT; the second signal does not wait for ticks, the third ends the process.

    Gives the list of the signals received so far. Uses signal handlers and not those of the event loop: a run that computes
    blocks the loop, and must still be stopped.
    """
    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        received.append(number)
        worker.stop()
        if len(received) >= 2:
            signal.signal(number, signal.SIG_DFL)

    previous = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
