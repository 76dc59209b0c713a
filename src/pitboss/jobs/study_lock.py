"""A file lock that lets one process per machine drive a study; released when that process exits.

Runs of a foreground process have no worker with a heartbeat. The holder of the lock knows that no other process of this
machine works on them, so runs that look active were left behind by a process that was killed.
"""

from pathlib import Path

from filelock import FileLock


class StudyLock:
    """The lock of one study."""

    def __init__(self, home: Path, study_id: str) -> None:
        self._lock = FileLock(home / "studies" / f"{study_id}.lock", mode=0o600, blocking=False, fallback_to_soft=False)

    def acquire(self) -> bool:
        """Whether this process holds the lock, now or already. False too where the folder cannot be written."""
        if not self._lock.is_locked:
            try:
                Path(self._lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
                self._lock.acquire()
            except OSError:  # a `Timeout` is one
                return False
        return True

    def __enter__(self) -> "StudyLock":
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.release()
