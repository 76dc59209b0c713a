"""The child processes of a worker: started on demand, reused, and ended with it. Their program is `child.py`.

A child that dies (killed, out of memory, a crash of a library) affects only its own run.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import orjson

from pitboss.bootstrap.child_settings import program, surroundings
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import RunCancelled
from pitboss.jobs.placement import SUSPECT_LOSSES
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.queue import Lease
from pitboss.store.retry import Unreachable

LINE_BYTES = 65_536


class ChildDied(Exception):
    """A child exited without reporting the outcome of its run. The lease is left to expire, so that the loss is counted."""


class WorkerChild:
    """One child process, which executes one run at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, settings: Settings, worker: str) -> "WorkerChild":
        """Start a child for the workspace of these settings."""
        process = await asyncio.create_subprocess_exec(
            *program("pitboss.jobs.child", str(settings.home), worker),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=surroundings(settings),
            limit=LINE_BYTES,
        )
        return cls(process)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process is running, so that it can take another run."""
        return self._process.returncode is None

    async def work(self, lease: Lease) -> None:
        """Execute a run. Raises what the work itself would raise; a cancelled call leaves the child unusable."""
        self._send({"run_id": lease.run_id, "epoch": lease.epoch})
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        outcome = orjson.loads(line)["outcome"] if line.endswith(b"\n") else None
        if outcome == "done":
            return
        if outcome == "stopped":
            raise RunCancelled
        if outcome == "lost":
            raise LeaseLost(lease.run_id)
        if outcome == "unreachable":
            raise Unreachable("the database cannot be reached")
        await self.end()
        raise ChildDied(f"its process ended with {self._process.returncode}")

    def stop(self) -> None:
        """Stop the run at its next tick."""
        self._send({"stop": True})

    async def end(self) -> None:
        """Kill the process: everything that matters has been committed."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    def _send(self, line: dict[str, object]) -> None:
        assert self._process.stdin is not None
        with suppress(ConnectionError, RuntimeError):  # it has exited; the missing reply shows it
            self._process.stdin.write(orjson.dumps(line) + b"\n")


class Children:
    """The children of a worker: one for each run that is executed in a child at the same time."""

    def __init__(self, settings: Settings, worker: str) -> None:
        self._settings = settings
        self._worker = worker
        self._free: list[WorkerChild] = []
        self.busy: dict[str, WorkerChild] = {}

    async def work(self, lease: Lease, stopped: Callable[[], bool]) -> None:
        """Execute a run in a child, unless a stop is requested before the child has started."""
        child = self._free.pop() if self._free else await WorkerChild.start(self._settings, self._worker)
        self.busy[lease.run_id] = child
        try:
            if stopped():
                raise RunCancelled
            await child.work(lease)
        except asyncio.CancelledError:
            await child.end()
            raise
        finally:
            if self.busy.get(lease.run_id) is child:  # else it was requeued and claimed again for another child
                del self.busy[lease.run_id]
            # A run that was requeued may have damaged its process; the next run gets a new one.
            if child.alive and lease.run.requeues < SUSPECT_LOSSES:
                self._free.append(child)
            elif child.alive:
                await child.end()

    def stop(self, run_id: str) -> None:
        """Stop a run at its next tick."""
        if run_id in self.busy:
            self.busy[run_id].stop()

    async def close(self) -> None:
        """End all children."""
        for child in (*self._free, *self.busy.values()):
            await child.end()
        self._free.clear()
