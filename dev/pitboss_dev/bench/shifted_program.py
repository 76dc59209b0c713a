"""A program with a clock that is set forward, so that a tick of five minutes falls into a measurement. Time passes as usual.

python -m pitboss_dev.bench.shifted_program SHIFT_MS MODULE ARGUMENTS
"""

import runpy
import sys
import time


def shift_clock(shift_ms: int) -> None:
    """Set the time of day of this process forward."""
    time_ns = time.time_ns
    time.time_ns = lambda: time_ns() + shift_ms * 1_000_000


if __name__ == "__main__":
    shift_clock(int(sys.argv[1]))
    sys.argv = sys.argv[2:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
