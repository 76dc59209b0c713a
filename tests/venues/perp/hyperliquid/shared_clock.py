"""A clock that several processes share: the machine's, plus a shift in a mapped file that any of them may increase."""

import mmap
import struct
import time
from pathlib import Path

from pitboss.core.instant import Instant

MS_NS = 1_000_000


class SharedClock:
    """The shifted time of day, and with `install` that of the whole process. Timers of event loops are not shifted."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(8))
        with path.open("r+b") as file:
            self._shift = mmap.mmap(file.fileno(), 8)
        self._time_ns, self._perf_counter = time.time_ns, time.perf_counter
        self._first_ns = self.shift_ns

    @property
    def shift_ns(self) -> int:
        return struct.unpack("<q", self._shift[:8])[0]

    def now(self) -> Instant:
        return self.time_ns() // MS_NS

    def time_ns(self) -> int:
        return self._time_ns() + self.shift_ns

    def put_forward(self, ms: int) -> None:
        """Let time pass at once, for all processes."""
        self._shift[:8] = struct.pack("<q", self.shift_ns + max(0, ms) * MS_NS)

    def install(self) -> None:
        """Replace the clocks of this process; the stopwatch moves with the time of day."""
        time.time_ns = self.time_ns
        time.time = lambda: self.time_ns() / 1e9
        time.perf_counter = lambda: self._perf_counter() + (self.shift_ns - self._first_ns) / 1e9
