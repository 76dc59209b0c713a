"""The clock of the programs of `make demo-live`: the machine's clock, plus a number of nanoseconds that the demo changes.

Python imports a module of this name at its start, because the demo puts this folder first in `PYTHONPATH`. The number is in a
file that all programs have mapped, so the exchange, the signer and the host see a change at the same moment. The stopwatch moves
with the time of day; the timers of event loops and sockets do not.
"""

import mmap
import os
import struct
import time
from pathlib import Path

FILE = os.environ.get("DEMO_CLOCK", "")

if FILE:
    with Path(FILE).open("rb") as _file:
        _shift = mmap.mmap(_file.fileno(), 8, access=mmap.ACCESS_READ)
    _time_ns, _perf_counter, _first_ns = time.time_ns, time.perf_counter, struct.unpack("<q", _shift[:8])[0]

    def _shift_ns() -> int:
        return struct.unpack("<q", _shift[:8])[0]

    def _shifted_ns() -> int:
        return _time_ns() + _shift_ns()

    def _shifted() -> float:
        return _shifted_ns() / 1e9

    def _stopwatch() -> float:
        return _perf_counter() + (_shift_ns() - _first_ns) / 1e9

    time.time_ns = _shifted_ns
    time.time = _shifted
    time.perf_counter = _stopwatch
