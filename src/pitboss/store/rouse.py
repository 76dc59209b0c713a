"""Waking a process that was stopped while it had a SQLite file locked.

A file has no server that takes its locks back. A process that is stopped (SIGSTOP, Ctrl-Z) in the middle of a transaction, be
it one that only reads, keeps everybody else out for as long as it stands still. Whoever waits asks the system who has the
file locked, and tells one that stands still to go on: its transaction takes milliseconds, and while it has the file nobody
can have taken its runs. A process that is stopped and has nothing locked is left as it is, and nothing is ever killed.

Linux only: elsewhere nobody can be asked. It knows nothing of the database but the path, so that a process that cannot even
open it can do this too.
"""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOG = logging.getLogger("pitboss.store")
LOOK_S = 1.0
"""How often somebody looks; one who stands still at two looks is woken."""
_PROC = Path("/proc")
_BESIDE = ("", "-shm")
"""Where locks are: on the file itself, and with a write-ahead log on the memory that its users share."""


def stopped_lockers(file: Path, proc: Path = _PROC) -> frozenset[int]:
    """The processes that have a database file locked and stand still."""
    return frozenset(pid for pid in _lockers(file, proc) if _stands_still(pid, proc))


def wake(pids: frozenset[int]) -> None:
    """Tell processes to go on. One that is not stopped does not notice."""
    for pid in sorted(pids):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGCONT)
            LOG.warning("woke a process that had the database locked", extra={"fields": {"pid": pid}})


@contextmanager
def rousing(where: str, look_s: float = LOOK_S) -> Iterator[None]:
    """As long as this lasts, nobody who is stopped keeps a file locked for long. Does nothing for a server's address."""
    if "://" in where.removeprefix("sqlite:///") or not (_PROC / "locks").exists():
        yield
        return
    done = threading.Event()
    file = Path(where.removeprefix("sqlite:///"))
    thread = threading.Thread(target=_look, args=(file, look_s, done), name="rouse", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _look(file: Path, look_s: float, done: threading.Event) -> None:
    before: frozenset[int] = frozenset()
    while not done.wait(look_s):
        now = stopped_lockers(file)
        wake(before & now)
        before = now


def _lockers(file: Path, proc: Path) -> Iterator[int]:
    """Everybody but us whose lock on the file, or on what lies beside it, keeps others out.

    With a write-ahead log whoever has the database open holds locks for reading that are in nobody's way.
    """
    in_the_way = ("WRITE",) if file.with_name(file.name + "-shm").exists() else ("READ", "WRITE")
    stats = [stat for stat in (_stat(file.with_name(file.name + more)) for more in _BESIDE) if stat is not None]
    numbers = {str(stat.st_ino) for stat in stats}
    try:
        lines = (proc / "locks").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        # 1: POSIX  ADVISORY  WRITE 6121 fe:00:2556513 128 128   (one that only waits: 1: -> POSIX …)
        words = line.split()
        if (
            len(words) == 8
            and words[1] == "POSIX"
            and words[3] in in_the_way
            and words[5].rpartition(":")[2] in numbers
        ):
            pid = int(words[4])
            if pid > 0 and pid != os.getpid() and _has_open(pid, stats, proc):
                yield pid


def _has_open(pid: int, stats: list[os.stat_result], proc: Path) -> bool:
    """Whether it is our file: numbers of files are the same on different disks, and disks go by several numbers."""
    try:
        open_files = list((proc / str(pid) / "fd").iterdir())
    except OSError:  # gone, or somebody else's
        return False
    return any(os.path.samestat(found, stat) for link in open_files if (found := _stat(link)) for stat in stats)


def _stands_still(pid: int, proc: Path) -> bool:
    try:
        said = (proc / str(pid) / "stat").read_text()
    except OSError:
        return False
    return said.rpartition(")")[2].split()[:1] == ["T"]


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None
