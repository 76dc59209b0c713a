"""Workers on this machine: started when a run is queued, as many as there is work for, gone when there is none.

`python -m pitboss.jobs.executors.local HOME NUMBER LOCK` is one of them. There is no service: whoever queues or waits calls
`ensure`, and what it started lives on its own.
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
from pitboss.bootstrap.settings import Settings, load_settings
from pitboss.bootstrap.telemetry import telemetry
from pitboss.core.errors import UserError
from pitboss.jobs.capacity import Places, WorkerSlot, most_workers, wanted
from pitboss.jobs.worker import Worker
from pitboss.jobs.worker_settings import open_queue, terms_of, wait_for_workspace, worker_name
from pitboss.store.queue import Queue

_started: "list[subprocess.Popen[bytes]]" = []
"""Workers that this process has started and must not leave behind as zombies when they end before it does."""


def ensure(settings: Settings, queue: Queue, any_build: bool = False) -> int:
    """Start workers until there are as many as there is work for. Gives how many were started; safe to call at any time."""
    if settings.sqlite_processes == "one" and "://" not in settings.database_url:
        raise UserError(
            "workers cannot share a database that one process has for itself", "set sqlite_processes to several"
        )
    _reap()
    most, places = most_workers(settings), Places(settings.home)
    started = 0
    with places.alone():
        missing = wanted(queue.depth(), most) - len(places.taken(most))
        for number in range(most):
            handle = places.take(number) if started < missing else None
            if handle is not None:
                _start(settings, places, number, handle, any_build)
                started += 1
    return started


def _start(settings: Settings, places: Places, number: int, handle: int, any_build: bool) -> None:
    """Start one worker that inherits the lock of its place: from the first moment on it is taken by it."""
    words = [str(settings.home), str(number), str(handle), *(["any"] if any_build else [])]
    try:
        with places.log(number).open("wb") as log:
            process = subprocess.Popen(
                program("pitboss.jobs.executors.local", *words),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=surroundings(settings),
                pass_fds=(handle,),
                start_new_session=True,  # Ctrl-C is for whoever queued, not for those who work
            )
    finally:
        os.close(handle)
    _started.append(process)


def _reap() -> None:
    _started[:] = [process for process in _started if process.poll() is None]


def main(home: str, number: str, handle: str, build: str = "") -> int:
    """Be the worker of a place."""
    settings = load_settings(Path(home))
    start_logs(settings.log_level, settings.log_file)
    with asyncio.run(wait_for_workspace(settings)) as workspace, telemetry(settings.telemetry) as tracer:
        queue = open_queue(workspace)
        place = WorkerSlot(Places(workspace.home), int(number), int(handle), queue, most_workers(settings))
        terms = terms_of(settings, idle_exit_s=settings.worker_idle_s, any_build=build == "any")
        worker = Worker(workspace, queue, worker_name(), terms, place, tracer)
        with stopped_by_signals(worker):
            asyncio.run(worker.run())
        place.close()
    return 0


@contextmanager
def stopped_by_signals(worker: Worker) -> Iterator[None]:
    """Let SIGTERM and SIGINT ask a worker to leave; the second one does not wait, the third ends the process.

    Handlers and not those of the event loop: a run that computes keeps the loop, and must see the mark all the same.
    """
    seen = 0

    def leave(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        del frame
        seen += 1
        worker.stop()
        if seen >= 2:
            signal.signal(number, signal.SIG_DFL)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
