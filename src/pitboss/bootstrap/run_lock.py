"""A file lock for each run that a process of this machine executes itself, released by the system when that process ends.

Such a run has no worker with a heartbeat: only the lock tells whether its process still lives.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

FOLDER = "executing"


@contextmanager
def executing(home: Path, run_id: str) -> Iterator[bool]:
    """Hold the lock of a run inside the block; yields whether it was acquired. False: another process executes the run."""
    path = home / FOLDER / f"{run_id}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, mode=0o600, blocking=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):
            path.unlink()
        lock.release()


def is_lost(worker: str) -> bool:
    """Whether a worker, named `host:process id:…`, was a process of this machine that has ended."""
    host, _, rest = worker.partition(":")
    number = rest.partition(":")[0]
    if host != socket.gethostname() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
