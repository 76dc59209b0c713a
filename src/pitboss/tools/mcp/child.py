"""A server as a child process: exact argv, no shell, exact environment, an empty directory, bounded in all it says.

It speaks one JSON message a line on standard output and hears the same on standard input. `ServerProcess` is the process and
`speak` the pair of streams that the protocol library wants. However the connection ends (closed, cancelled, flooded), the
process and every process it started are gone afterwards: they are found by group, session, ancestry and working
directory. Not found is a descendant that left all four behind. If this program itself is killed hard, a child is told by
the end of its input; one that does not care is ended by the next program that starts a child here (`sweep`).
"""

import asyncio
import atexit
import contextlib
import os
import shutil
import signal
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
_PROC = Path("/proc")
_PREFIX = "pitboss-mcp-"


class Meter:
    """Counts what a server sends between two questions of ours. `over` is called once, with why it was too much."""

    def __init__(self, limits: ServerLimits, over: Callable[[str], None]) -> None:
        self._limits = limits
        self._over = over
        self.reset()

    def reset(self) -> None:
        """We asked something: a new account."""
        self.bytes = self.brackets = self.messages = self.bad = self.requests = 0

    def read(self, chunk: bytes) -> bool:
        """Bytes came. False when it is too much."""
        self.bytes += len(chunk)
        self.brackets += chunk.count(b"{") + chunk.count(b"[")
        return self._within(self.bytes, self._limits.flood_bytes, "bytes to one question") and self._within(
            self.brackets, self._limits.brackets, "objects and lists to one question"
        )

    def message(self) -> bool:
        """A message came."""
        self.messages += 1
        return self._within(self.messages, self._limits.messages, "messages to one question")

    def bad_line(self) -> bool:
        """Something came that is no message."""
        self.bad += 1
        return self._within(self.bad, self._limits.bad_lines, "lines that are not messages")

    def request(self) -> bool:
        """We are about to visit its address."""
        self.requests += 1
        return self._within(self.requests, self._limits.requests, "invitations to come again to one question")

    def line_too_long(self) -> None:
        """One message did not end."""
        self._over(f"it sent a message of more than {self._limits.line_bytes} bytes")

    def _within(self, count: int, limit: int, what: str) -> bool:
        if count <= limit:
            return True
        self._over(f"it sent more than {limit} {what}")
        return False


class ServerProcess:
    """One process and everything it may have started."""

    def __init__(self, process: asyncio.subprocess.Process, directory: Path, limits: ServerLimits) -> None:
        self._process = process
        self._directory = directory
        self._limits = limits
        self._said: deque[bytes] = deque()
        self._said_bytes = 0
        self._tasks = [asyncio.create_task(self._listen_to_errors())]
        self.pid = process.pid
        _LIVING[self.pid] = directory

    @classmethod
    async def start(cls, argv: Sequence[str], environment: Mapping[str, str], limits: ServerLimits) -> "ServerProcess":
        """Start it. `OSError` or `ValueError` where it cannot be started."""
        if not argv:
            raise ValueError("there is nothing to start")
        sweep()
        directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        try:
            process = await asyncio.create_subprocess_exec(
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
    def last_words(self) -> str:
        """The end of what it wrote to standard error."""
        return b"".join(self._said).decode("utf-8", "replace").strip()

    async def send(self, line: bytes) -> None:
        """Write one line; waits while the child does not read."""
        assert self._process.stdin
        self._process.stdin.write(line)
        await self._process.stdin.drain()

    async def lines(self, meter: Meter) -> AsyncIterator[bytes]:
        """Every line it writes, until it ends or says too much."""
        assert self._process.stdout
        parts: list[bytes] = []
        held = 0
        while chunk := await self._process.stdout.read(_CHUNK):
            if not meter.read(chunk):
                return
            *whole, rest = chunk.split(b"\n")
            for line in whole:
                yield b"".join((*parts, line))
                parts, held = [], 0
            parts.append(rest)
            held += len(rest)
            if held > self._limits.line_bytes:
                meter.line_too_long()
                return

    async def close(self, *, grace_s: float) -> None:
        """End it: input closed, then SIGTERM, then SIGKILL, to all that is left of it. Cancelled, it kills at once."""
        try:
            if self._process.stdin:
                self._process.stdin.close()
            if not await self._gone(grace_s):
                self._signal(signal.SIGTERM)
                await self._gone(grace_s)
        finally:
            self._signal(signal.SIGKILL)
            try:
                await self._gone(self._limits.grace_s, all_of_it=True)
                await asyncio.wait(self._tasks, timeout=grace_s)  # what is in the pipe still, unless somebody holds it
            finally:
                for task in self._tasks:
                    task.cancel()
                # Nothing public closes the pipes that a process out of our reach may still hold open.
                transport: Any = getattr(self._process, "_transport", None)
                if transport is not None:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        transport.close()
                _LIVING.pop(self.pid, None)
                _remove(self._directory)

    def _signal(self, number: int) -> int:
        return _kill(self.pid, self._directory, number)

    async def _gone(self, within_s: float, all_of_it: bool = False) -> bool:
        """Whether it ended in time. Polls: waiting for it would also wait for whoever inherited its pipes.

        `all_of_it`: with everything it started, each of them killed again until it is gone.
        """
        for _ in range(max(1, round(within_s / _POLL_S))):
            if self._process.returncode is not None and not (all_of_it and self._signal(signal.SIGKILL)):
                return True
            await asyncio.sleep(_POLL_S)
        return self._process.returncode is not None

    async def _listen_to_errors(self) -> None:
        """Standard error is read for ever, so that the child never waits for us, and kept only at its end."""
        assert self._process.stderr
        while chunk := await self._process.stderr.read(_CHUNK):
            self._said.append(chunk[-self._limits.stderr_bytes :])
            self._said_bytes += len(self._said[-1])
            while len(self._said) > 1 and self._said_bytes - len(self._said[0]) >= self._limits.stderr_bytes:
                self._said_bytes -= len(self._said.popleft())
            await asyncio.sleep(0)  # a full pipe never makes `read` wait


_LIVING: dict[int, Path] = {}
"""Children that are not closed yet, for the way out of a program that was not left in an orderly way."""


@atexit.register
def _leave_nothing() -> None:
    for pid, directory in list(_LIVING.items()):
        _kill(pid, directory, signal.SIGKILL)
        _remove(directory)


def _kill(leader: int, directory: Path, number: int) -> int:
    """Signal all of a child's processes; how many there were."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
    found = family(leader, directory)
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return len(found)


def family(leader: int, directory: Path) -> set[int]:
    """Processes that belong to a child: of its group, its session, its descent or its directory. Linux; else none."""
    parents: dict[int, int] = {}
    found: set[int] = set()
    for place in _PROC.iterdir() if _PROC.is_dir() else ():
        if not place.name.isdigit() or int(place.name) == os.getpid():
            continue  # ourselves never: all that we started would follow
        pid = int(place.name)
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name in brackets may hold anything, brackets and spaces included.
            state, parent, group, session = (place / "stat").read_bytes().rpartition(b")")[2].split()[:4]
            if state == b"Z":
                continue
            parents[pid] = int(parent)
            if (leader and leader in (int(group), int(session))) or place.joinpath("cwd").readlink() == directory:
                found.add(pid)
    while more := {
        pid for pid, parent in parents.items() if pid not in found and (parent in found or parent == (leader or -1))
    }:
        found |= more
    return found


@cache
def sweep() -> None:
    """Once in a program: end what a program that was killed hard has left in the directories it made."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = directory.name.removeprefix(_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            ours = directory.lstat().st_uid == os.geteuid() and directory.is_dir() and not directory.is_symlink()
            if ours and owner.isdigit() and not _runs(int(owner)):
                for pid in family(0, directory):
                    os.kill(pid, signal.SIGKILL)
                _remove(directory)


def _runs(pid: int) -> bool:
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
async def speak(child: ServerProcess, meter: Meter, ended: Callable[[str], None]) -> AsyncIterator[tuple[Any, Any]]:
    """The child as the pair of streams that a session reads and writes. `ended` hears why it stopped, if it did."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    heard_in, heard = anyio.create_memory_object_stream[Any](0)
    told, told_out = anyio.create_memory_object_stream[Any](0)

    async def hear() -> None:
        async with heard_in:
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
                    await heard_in.send(SessionMessage(message))
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    return
        ended("it closed the connection")

    async def tell() -> None:
        async with told_out:
            async for item in told_out:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await child.send(text.encode("utf-8", "replace") + b"\n")
                except (OSError, RuntimeError):
                    ended("it closed the connection")
                    return

    tasks = [asyncio.create_task(hear()), asyncio.create_task(tell())]
    try:
        yield heard, told
    finally:
        for task in tasks:
            task.cancel()
        for stream in (heard_in, heard, told, told_out):
            stream.close()
        await asyncio.gather(*tasks, return_exceptions=True)
