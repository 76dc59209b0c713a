"""Runs one MCP server and makes sure that nothing of it outlives pitboss. A program of its own, on Linux only.

`server_process` starts it in place of the server: `python -I -S launcher.py PID ARGV…`, where PID is that of pitboss. It
starts the server with the same standard streams, environment and directory, and exits when the server and everything that
it started have ended. The kernel tells it when pitboss ends, however that happens; it then kills all of them. It adopts
processes whose parent ended, so that none escapes by changing its group or session. If it is killed itself, the kernel
kills the server. A launcher rather than `preexec_fn`, which is not safe in a process with threads. It starts with every
server and therefore imports little, not even `pathlib`.
"""

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_PARENT_ENDED = signal.SIGUSR1
_CANNOT_START = 127


def main(parent: int, argv: list[str]) -> int:
    """Run the server; returns its exit status."""
    libc = ctypes.CDLL(None, use_errno=True)
    signal.signal(_PARENT_ENDED, _kill_all)
    signal.signal(signal.SIGTERM, lambda *_: None)  # meant for the server; this process ends after it
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(_PR_SET_PDEATHSIG, _PARENT_ENDED, 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel was asked to tell
        return 1
    # As it was given: the interpreter adds LC_CTYPE to its own copy.
    entries = (entry.partition(b"=") for entry in _read("/proc/self/environ").split(b"\0") if entry)
    environment = {name: value for name, _, value in entries}
    launcher = os.getpid()
    server = os.fork()
    if not server:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        _become(argv, environment, launcher)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # the server alone holds them, so that their end is seen
        os.dup2(nothing, stream)
    status = 0
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, ended = os.wait()
            if pid == server:
                status = os.waitstatus_to_exitcode(ended)
    return status if status >= 0 else 128 - status


def _become(argv: list[str], environment: dict[bytes, bytes], launcher: int) -> None:
    """Replace this process, a copy of the launcher, by the server."""
    try:
        for name in (_PARENT_ENDED, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(name, signal.SIG_DFL)
        if os.getppid() == launcher:
            os.execvpe(argv[0], argv, environment)
    except OSError as error:
        os.write(2, f"{argv[0]} cannot be started: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(_CANNOT_START)


def _kill_all(*_: object) -> None:
    """Kill every descendant, and those that are started meanwhile, then exit."""
    while descendants := _descendants():
        for pid in descendants:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)
    os._exit(1)


def _descendants() -> set[int]:
    """The processes below this one, without those that have ended."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                state, parent = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()[:2]
                if state != b"Z":
                    parents[int(name)] = int(parent)
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if pid not in family and parent in family}:
        family |= more
    return family - {os.getpid()}


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
