"""The programs of `make demo-live`, each a process of its own with the demo's clock, and the folder that they share."""

import asyncio
import os
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
SECOND_NS = 1_000_000_000


class DemoFailed(Exception):
    """A step of the demo failed; the message says which."""


class DemoClock:
    """The time of the demo's programs: the machine's, plus a shift in a file (`clock/sitecustomize.py`)."""

    def __init__(self, path: Path, start_s: int) -> None:
        self.path = path
        self._shift_ns = start_s * SECOND_NS - time.time_ns()
        path.write_bytes(struct.pack("<q", self._shift_ns))

    def now_s(self) -> float:
        """Seconds since 1970."""
        return (time.time_ns() + self._shift_ns) / SECOND_NS

    def put_forward(self, to_s: float) -> None:
        """Put the clocks of all programs forward to an instant; never back."""
        self._shift_ns += max(0, round((to_s - self.now_s()) * SECOND_NS))
        with self.path.open("r+b") as file:  # in place: the programs have this very file mapped
            file.write(struct.pack("<q", self._shift_ns))


class Programs:
    """Starts programs, each in a process of its own that ends with the demo."""

    def __init__(self, folder: Path, clock: DemoClock) -> None:
        self._folder = folder
        paths = [str(FOLDER / "clock"), os.environ.get("PYTHONPATH", "")]
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "DEMO_CLOCK": str(clock.path),
            "PITBOSS_HOME": str(folder),
        }
        self._processes: list[asyncio.subprocess.Process] = []

    async def start(self, module: str, *words: str, **more: Any) -> asyncio.subprocess.Process:
        """Start a module of pitboss and do not wait for its end."""
        pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE, **more}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, *words, cwd=self._folder, env=self._environment, **pipes
        )
        self._processes.append(process)
        return process

    async def first_line(self, module: str, *words: Any, secrets: Mapping[int, str] | None = None) -> str:
        """Start a module and return the first line that it prints. `secrets`: see `pitboss`."""
        arguments, pipes = _with_pipes(words, secrets)
        process = await self.start(module, *arguments, pass_fds=pipes)
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode().strip()
        if not line:
            assert process.stderr is not None
            raise DemoFailed(f"{module} {' '.join(arguments)}:\n{(await process.stderr.read()).decode()}")
        return line

    async def pitboss(self, *words: Any, secrets: Mapping[int, str] | None = None) -> tuple[int, str, str]:
        """Run a command to its end. `secrets` are texts that it reads from pipes; a number among the words is one of them."""
        arguments, pipes = _with_pipes(words, secrets)
        process = await self.start("pitboss", *arguments, pass_fds=pipes)
        out, err = await process.communicate()
        return process.returncode or 0, out.decode(), err.decode()

    async def run(self, *words: Any, secrets: Mapping[int, str] | None = None) -> str:
        """Run a command that has to succeed, and return its output."""
        code, out, err = await self.pitboss(*words, secrets=secrets)
        if code:
            raise DemoFailed(f"`pitboss {' '.join(map(str, words))}` failed:\n{err}{out}")
        return out

    async def close(self) -> None:
        """End what still runs: each finishes what it is doing."""
        for process in reversed(self._processes):
            if process.returncode is None:
                process.terminate()
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), 15)
            if process.returncode is None:
                process.kill()
                await process.wait()


def _with_pipes(words: Sequence[Any], secrets: Mapping[int, str] | None) -> tuple[list[str], tuple[int, ...]]:
    """The words with the descriptors of pipes that hold the secrets, which are never an argument or a variable."""
    pipes: dict[int, int] = {}
    for number, text in (secrets or {}).items():
        pipes[number], writer = os.pipe()
        os.write(writer, text.encode() + b"\n")
        os.close(writer)
    return [str(pipes.get(word, word) if isinstance(word, int) else word) for word in words], tuple(pipes.values())
