"""A peer in a process of its own. It does one run per request, so that our runs can take turns with it."""

import json
import subprocess
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from pitboss.core.market import Bars
from pitboss_dev.bench.peers import program


class PeerFailed(Exception):
    """The peer's process ended, or printed something that is not a result."""


@dataclass(frozen=True, slots=True)
class PeerResult:
    """The result of one run of a peer."""

    seconds: float
    bars: int
    trades: int
    final_equity: float


class Peer:
    """A running peer. A context manager: leaving it ends the process."""

    def __init__(
        self, name: str, python: Path, bars: Path, equity_usd: float, position_pct: float, fee_bps: float
    ) -> None:
        self.name = name
        self._files = ExitStack()
        self._errors = self._files.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))  # noqa: SIM115 – closed by the stack
        arguments = [name, str(bars), str(equity_usd), str(position_pct), str(fee_bps)]
        self._process = subprocess.Popen(
            [str(python), "-I", program.__file__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        try:
            self._read()
        except PeerFailed:
            self.close()
            raise

    def run(self) -> PeerResult:
        """One run."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("run\n")
            self._process.stdin.flush()
        except OSError:
            raise PeerFailed(self._last_error()) from None
        return PeerResult(**self._read())

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._files.close()

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        try:
            return json.loads(line)
        except ValueError:
            raise PeerFailed(self._last_error()) from None

    def _last_error(self) -> str:
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().splitlines() if line.strip()]
        return f"{self.name} stopped: {lines[-1][:300] if lines else 'it printed no error'}"


def save_bars(bars: Bars, path: Path) -> Path:
    """Write bars to a file that every environment with numpy can read."""
    np.savez(
        path,
        open_at=bars.open_at,
        open=bars.open,
        high=bars.high,
        low=bars.low,
        close=bars.close,
        volume=bars.volume,
    )
    return path
