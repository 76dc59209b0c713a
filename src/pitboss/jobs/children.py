"""The child processes of a worker: started when first needed, used again, and gone with it. What they do is `child.py`.

A child that ends without a word (killed, out of memory, a crash of a library) takes nothing along but its own run.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import orjson

from pitboss.bootstrap.child_settings import program, surroundings
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import RunCancelled
from pitboss.jobs.placement import SUSPECT
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.queue import Lease
from pitboss.store.retry import Unreachable

LINE_BYTES = 65_536


class ChildDied(Exception):
    """A child ended without saying how its run went. The lease is left to run out, so that this is counted."""


class WorkerChild:
    """One child process. One run at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, settings: Settings, worker: str) -> "WorkerChild":
        """A new child for the workspace of these settings."""
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
        """The number of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can be given another run."""
        return self._process.returncode is None

    async def work(self, lease: Lease) -> None:
        """Have a run done. Raises what the work itself would raise; a cancelled call leaves the child unusable."""
        self._say({"run_id": lease.run_id, "epoch": lease.epoch})
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        word = orjson.loads(line)["word"] if line.endswith(b"\n") else None
        if word == "done":
            return
        if word == "stopped":
            raise RunCancelled
        if word == "lost":
            raise LeaseLost(lease.run_id)
        if word == "away":
            raise Unreachable("the database cannot be reached")
        await self.end()
        raise ChildDied(f"its process ended with {self._process.returncode}")

    def stop(self) -> None:
        """Ask for the run to stop at its next tick."""
        self._say({"stop": True})

    async def end(self) -> None:
        """Kill it: all that counts has been committed."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    def _say(self, line: dict[str, object]) -> None:
        assert self._process.stdin is not None
        with suppress(ConnectionError, RuntimeError):  # it is gone, which the missing answer will say
            self._process.stdin.write(orjson.dumps(line) + b"\n")


class Children:
    """The children of a worker. How many there are is how many runs it has done by them at once."""

    def __init__(self, settings: Settings, worker: str) -> None:
        self._settings = settings
        self._worker = worker
        self._free: list[WorkerChild] = []
        self.busy: dict[str, WorkerChild] = {}

    async def work(self, lease: Lease, stopped: Callable[[], bool]) -> None:
        """Have a run done by a child, unless somebody has asked for it to stop before there is one."""
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
            if self.busy.get(lease.run_id) is child:  # or it was put back, claimed again, and is with another by now
                del self.busy[lease.run_id]
            # A child that did a run which was put back may have been hurt by it; the next run deserves a new one.
            if child.alive and lease.run.requeues < SUSPECT:
                self._free.append(child)
            elif child.alive:
                await child.end()

    def stop(self, run_id: str) -> None:
        """Ask a run to stop at its next tick."""
        if run_id in self.busy:
            self.busy[run_id].stop()

    async def close(self) -> None:
        """End all children."""
        for child in (*self._free, *self.busy.values()):
            await child.end()
        self._free.clear()
