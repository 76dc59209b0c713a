"""How many workers there should be, and which worker slots of this machine are in use.

A slot is a file lock that a worker holds until its process ends, however it ends. The process that starts a worker acquires
the lock and passes the open file on to it, so two processes that start workers at once never fill a slot twice.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, lock_descriptor

from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.store.queue import Queue, QueueDepth


def worker_limit(settings: Settings) -> int:
    """How many workers this machine may have."""
    return settings.max_workers or os.cpu_count() or 1


def worker_target(depth: QueueDepth, limit: int) -> int:
    """One worker for each run that is ready or being worked on, up to a limit."""
    return min(limit, depth.ready + depth.working)


class WorkerSlots:
    """The worker slots of one workspace on this machine."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "workers"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Exclude other processes from inspecting slots: the only way to inspect a slot is to lock it for a moment."""
        with self._explained():
            lock = FileLock(self._folder / "places.lock", mode=0o600, fallback_to_soft=False).acquire()
        with lock:
            yield

    def acquire(self, number: int) -> int | None:
        """The open, locked file of a slot, or None if the slot is in use. To be called under `lock`."""
        with self._explained():
            descriptor = os.open(self._folder / f"{number}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        if lock_descriptor(descriptor, blocking=False):
            return descriptor
        os.close(descriptor)
        return None

    def occupied(self, limit: int) -> list[int]:
        """Which of the first `limit` slots are in use. To be called under `lock`."""
        numbers: list[int] = []
        for number in range(limit):
            descriptor = self.acquire(number)
            if descriptor is None:
                numbers.append(number)
            else:
                os.close(descriptor)
        return numbers

    def log_path(self, number: int) -> Path:
        """The file for the output of the worker in a slot."""
        return self._folder / f"{number}.log"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            yield
        except OSError as error:
            raise UserError(
                f"cannot start workers in {self._folder}: {error.strerror}", "check that you may write this folder"
            ) from None


class LocalWorkerSlot:
    """The `WorkerSlot` of a worker on this machine."""

    def __init__(self, slots: WorkerSlots, number: int, descriptor: int, queue: Queue, limit: int) -> None:
        self._slots = slots
        self._number = number
        self._descriptor: int | None = descriptor
        self._queue = queue
        self._limit = limit

    def try_release(self) -> bool:
        """Release the slot unless a run becomes ready later, or fewer than two idle workers would remain to detect the
        loss of one that is working.
        """
        depth = self._queue.depth()
        if depth.later:
            return False
        if depth.working:
            with self._slots.lock():
                if len(self._slots.occupied(self._limit)) <= 2:
                    return False
        self.close()
        return True

    def reacquire(self) -> None:
        """Take the slot again if it is free; otherwise this worker exceeds the limit until it exits."""
        if self._descriptor is None:
            with self._slots.lock():
                self._descriptor = self._slots.acquire(self._number)

    def close(self) -> None:
        """Release the slot."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
