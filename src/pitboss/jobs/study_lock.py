"""Who works on a study in this process's way on this machine: one at a time, by a lock that ends with whoever holds it.

Runs that a foreground process works on have no worker that anybody watches. Whoever has the helm knows that no other process
is at work on them, so those that look as if they were belong to one that was killed.
"""

import fcntl
import os
from pathlib import Path


class Helm:
    """The helm of one study. `take` may be asked again and again."""

    def __init__(self, home: Path, study_id: str) -> None:
        self._path = home / "studies" / f"{study_id}.lock"
        self._handle: int | None = None

    def take(self) -> bool:
        """Whether it is ours, now or already."""
        if self._handle is not None:
            return True
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return False  # a folder that cannot be written: nobody can be known to be gone
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return False
        self._handle = handle
        return True

    def __enter__(self) -> "Helm":
        return self

    def __exit__(self, *error: object) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
