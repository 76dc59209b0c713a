"""How many workers there should be, and which places for them on this machine are taken.

A place is a lock on a file that a worker holds as long as it lives, whatever ends it. Whoever wants to start one takes the
lock first and hands it over, so that two who do so at once never fill a place twice.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.store.queue import Depth, Queue


def most_workers(settings: Settings) -> int:
    """How many workers this machine may have."""
    return settings.max_workers or os.cpu_count() or 1


def wanted(depth: Depth, most: int) -> int:
    """As many workers as there are runs to do or being done, up to a limit."""
    return min(most, depth.ready + depth.working)


class Places:
    """The places for workers of one workspace on this machine."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "workers"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only one who looks which places are taken: to look at a lock is to take it for a moment."""
        handle = self._open("places.lock")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def take(self, number: int) -> int | None:
        """The open lock of a place, or None if somebody is there. To be called while `alone`."""
        handle = self._open(f"{number}.lock")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        return handle

    def taken(self, most: int) -> list[int]:
        """The places that are taken, of the first so many. To be called while `alone`."""
        found: list[int] = []
        for number in range(most):
            handle = self.take(number)
            if handle is None:
                found.append(number)
            else:
                os.close(handle)
        return found

    def _open(self, name: str) -> int:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            return os.open(self._folder / name, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise UserError(
                f"cannot start workers in {self._folder}: {error.strerror}", "is it yours to write?"
            ) from None

    def log(self, number: int) -> Path:
        """Where the worker of a place writes what it has to say."""
        return self._folder / f"{number}.log"


class WorkerSlot:
    """The place of one worker, as it sees it: a `Post`."""

    def __init__(self, places: Places, number: int, handle: int, queue: Queue, most: int) -> None:
        self._places = places
        self._number = number
        self._handle: int | None = handle
        self._queue = queue
        self._most = most

    def leave(self) -> bool:
        """Give it up, unless a run comes later, or there would be too few left to notice the loss of one at work."""
        depth = self._queue.depth()
        if depth.later:
            return False
        if depth.working:
            with self._places.alone():
                if len(self._places.taken(self._most)) <= 2:
                    return False
        self.close()
        return True

    def stay(self) -> None:
        """Take it again, if nobody else has it by now; else this worker is one too many until it leaves."""
        if self._handle is None:
            with self._places.alone():
                self._handle = self._places.take(self._number)

    def close(self) -> None:
        """Give it up."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
