"""An MCP server as a child process: exact argv, no shell, exact environment, an empty directory, bounded output.

Messages are one line of JSON each, on standard input and output. `ServerProcess` is the process and `message_streams`
the pair of streams that the protocol library expects. However the connection ends (closed, cancelled, too much output),
the process and its descendants are killed; they are found by process group, session, ancestry and working directory. On
Linux the process is `launcher`, which starts the server and kills it if pitboss itself is killed. Elsewhere a child then
sees the end of its input; one that ignores it is killed by the next pitboss process that starts a child (`kill_orphans`).
"""

import asyncio
import atexit
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from pitboss.tools.mcp.server_entry import ServerLimits

_CHUNK = 65_536
_POLL_S = 0.01
_PROC = "/proc"
_PREFIX = "pitboss-mcp-"


def launcher_command() -> tuple[str, ...]:
    """What is put before a command so that it ends with this process. Isolated: without the user's packages and files."""
    if sys.platform != "linux":
        return ()
    return sys.executable, "-I", "-S", str(Path(__file__).with_name("launcher.py")), str(os.getpid())


class Meter:
    """Counts what a server sends between two requests. Calls `over` with the reason if a limit is exceeded."""

    def __init__(self, limits: ServerLimits, over: Callable[[str], None]) -> None:
        self._limits = limits
        self._over = over
        self.reset()

    def reset(self) -> None:
        """Start counting for a new request."""
        self.bytes = self.brackets = self.messages = self.bad = self.requests = 0

    def read(self, chunk: bytes) -> bool:
        """Count received bytes. False if a limit is exceeded."""
        self.bytes += len(chunk)
        self.brackets += chunk.count(b"{") + chunk.count(b"[")
        return self._within(self.bytes, self._limits.flood_bytes, "bytes to one question") and self._within(
            self.brackets, self._limits.brackets, "objects and lists to one question"
        )

    def message(self) -> bool:
        """Count a message."""
        self.messages += 1
        return self._within(self.messages, self._limits.messages, "messages to one question")

    def bad_line(self) -> bool:
        """Count a line that is not a message."""
        self.bad += 1
        return self._within(self.bad, self._limits.bad_lines, "lines that are not messages")

    def request(self) -> bool:
        """Count an HTTP request to the server."""
        self.requests += 1
        return self._within(self.requests, self._limits.requests, "invitations to come again to one question")

    def line_too_long(self) -> None:
        """Report a message that exceeds the limit."""
        self._over(f"it sent a message of more than {self._limits.line_bytes} bytes")

    def _within(self, count: int, limit: int, unit: str) -> bool:
        if count <= limit:
            return True
        self._over(f"it sent more than {limit} {unit}")
        return False


class ServerProcess:
    """One process and its descendants."""

    def __init__(self, process: asyncio.subprocess.Process, directory: Path, limits: ServerLimits) -> None:
        self._process = process
        self._directory = directory
        self._limits = limits
        self._stderr: deque[bytes] = deque()
        self._stderr_bytes = 0
        self._tasks = [asyncio.create_task(self._read_stderr())]
        self.pid = process.pid
        _RUNNING[self.pid] = directory

    @classmethod
    async def start(cls, argv: Sequence[str], environment: Mapping[str, str], limits: ServerLimits) -> "ServerProcess":
        """Start a process. Raises `OSError` or `ValueError` if it cannot be started."""
        if not argv:
            raise ValueError("there is nothing to start")
        _require_program(argv[0], environment)
        kill_orphans()
        directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        try:
            process = await asyncio.create_subprocess_exec(
                *launcher_command(),
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=dict(environment),
                cwd=directory,
                start_new_session=True,
                limit=_CHUNK,
            )
        except BaseException:
            _remove(directory)
            raise
        return cls(process, directory, limits)

    @property
    def stderr_tail(self) -> str:
        """The end of its standard error."""
        return b"".join(self._stderr).decode("utf-8", "replace").strip()

    async def send(self, line: bytes) -> None:
        """Write one line; waits while the child does not read."""
        assert self._process.stdin
        self._process.stdin.write(line)
        await self._process.stdin.drain()

    async def lines(self, meter: Meter) -> AsyncIterator[bytes]:
        """The lines of its standard output, until it ends or exceeds a limit."""
        assert self._process.stdout
        parts: list[bytes] = []
        part_bytes = 0
        while chunk := await self._process.stdout.read(_CHUNK):
            if not meter.read(chunk):
                return
            *lines, remainder = chunk.split(b"\n")
            for line in lines:
                yield b"".join((*parts, line))
                parts, part_bytes = [], 0
            parts.append(remainder)
            part_bytes += len(remainder)
            if part_bytes > self._limits.line_bytes:
                meter.line_too_long()
                return

    async def close(self, *, grace_s: float) -> None:
        """End the process and its descendants: close the input, then SIGTERM, then SIGKILL. If cancelled, kill at once."""
        try:
            if self._process.stdin:
                self._process.stdin.close()
            if not await self._exited(grace_s):
                self._signal(signal.SIGTERM)
                await self._exited(grace_s)
        finally:
            self._signal(signal.SIGKILL)
            try:
                await self._exited(self._limits.grace_s, with_descendants=True)
                await asyncio.wait(self._tasks, timeout=grace_s)  # drain the pipe, unless another process holds it open
            finally:
                for task in self._tasks:
                    task.cancel()
                # asyncio has no public way to close pipes that an unreachable process may still hold open.
                transport: Any = getattr(self._process, "_transport", None)
                if transport is not None:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        transport.close()
                _RUNNING.pop(self.pid, None)
                _remove(self._directory)

    def _signal(self, number: int) -> int:
        return _kill(self.pid, self._directory, number)

    async def _exited(self, within_s: float, with_descendants: bool = False) -> bool:
        """Whether the process exited in time. Polls, because `wait` also waits for processes that inherited its pipes.

        `with_descendants`: also wait for its descendants, sending SIGKILL again on every poll.
        """
        for _ in range(max(1, round(within_s / _POLL_S))):
            if self._process.returncode is not None and not (with_descendants and self._signal(signal.SIGKILL)):
                return True
            await asyncio.sleep(_POLL_S)
        return self._process.returncode is not None

    async def _read_stderr(self) -> None:
        """Read standard error continuously, so that the child never blocks on it, and keep only its end."""
        assert self._process.stderr
        while chunk := await self._process.stderr.read(_CHUNK):
            self._stderr.append(chunk[-self._limits.stderr_bytes :])
            self._stderr_bytes += len(self._stderr[-1])
            while len(self._stderr) > 1 and self._stderr_bytes - len(self._stderr[0]) >= self._limits.stderr_bytes:
                self._stderr_bytes -= len(self._stderr.popleft())
            await asyncio.sleep(0)  # `read` does not yield while the pipe is full


_RUNNING: dict[int, Path] = {}
"""Children that are not closed yet, killed at exit if the program ends without closing them."""


@atexit.register
def _kill_all_at_exit() -> None:
    for pid, directory in list(_RUNNING.items()):
        _kill(pid, directory, signal.SIGKILL)
        _remove(directory)


def _kill(leader: int, directory: Path, number: int) -> int:
    """Send a signal to a child and its descendants; returns how many processes there were."""
    pids = processes_of(leader, directory)  # before the leader is gone, by which descendants are found
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return len(pids)


def processes_of(leader: int, directory: Path) -> set[int]:
    """The processes of a child: those of its group, session, ancestry or directory. Linux only; elsewhere none."""
    parents: dict[int, int] = {}
    pids: set[int] = set()
    for name in os.listdir(_PROC) if os.path.isdir(_PROC) else ():  # `Path` takes twice as long over hundreds of files
        if not name.isdigit() or int(name) == os.getpid():
            continue  # never this process: all its descendants would follow
        pid = int(name)
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"{_PROC}/{name}/stat", "rb", 0) as stat:
            # The process name in parentheses may itself hold parentheses and spaces.
            state, parent, group, session = stat.read().rpartition(b")")[2].split()[:4]
            if state == b"Z":
                continue
            parents[pid] = int(parent)
            if (leader and leader in (int(group), int(session))) or os.readlink(f"{_PROC}/{name}/cwd") == str(
                directory
            ):
                pids.add(pid)
    while children := {
        pid for pid, parent in parents.items() if pid not in pids and (parent in pids or parent == (leader or -1))
    }:
        pids |= children
    return pids


@cache
def kill_orphans() -> None:
    """Kill the children that a killed pitboss process left behind, and remove their directories. Once per process."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = directory.name.removeprefix(_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            is_ours = directory.lstat().st_uid == os.geteuid() and directory.is_dir() and not directory.is_symlink()
            if is_ours and owner.isdigit() and not _is_running(int(owner)):
                for pid in processes_of(0, directory):
                    os.kill(pid, signal.SIGKILL)
                _remove(directory)


def _require_program(program: str, environment: Mapping[str, str]) -> None:
    """Raise `OSError` for a program that cannot be run: the launcher could only say so with its exit status."""
    if shutil.which(program, path=environment.get("PATH", os.defpath)) is None:
        is_there = os.path.sep in program and Path(program).exists()
        raise PermissionError(program) if is_there else FileNotFoundError(program)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


@asynccontextmanager
async def message_streams(
    child: ServerProcess, meter: Meter, ended: Callable[[str], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """The pair of streams that a session reads and writes. `ended` is called with the reason if the child stops."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    incoming_writer, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, outgoing_reader = anyio.create_memory_object_stream[Any](0)

    async def receive() -> None:
        async with incoming_writer:
            async for line in child.lines(meter):
                if not line.strip():
                    if not meter.message():
                        return
                    continue
                try:
                    message = jsonrpc_message_adapter.validate_python(orjson.loads(line), by_name=False)
                except (ValueError, RecursionError):
                    if not meter.bad_line():
                        return
                    continue
                try:
                    await incoming_writer.send(SessionMessage(message))
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    return
        ended("it closed the connection")

    async def send() -> None:
        async with outgoing_reader:
            async for item in outgoing_reader:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await child.send(text.encode("utf-8", "replace") + b"\n")
                except (OSError, RuntimeError):
                    ended("it closed the connection")
                    return

    tasks = [asyncio.create_task(receive()), asyncio.create_task(send())]
    try:
        yield incoming, outgoing
    finally:
        for task in tasks:
            task.cancel()
        for stream in (incoming_writer, incoming, outgoing, outgoing_reader):
            stream.close()
        await asyncio.gather(*tasks, return_exceptions=True)
