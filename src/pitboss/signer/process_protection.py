"""Keeps the memory of the signing process to itself: no core dumps, and no reading by other processes of the same user."""

import ctypes
import resource
import sys

_PR_SET_DUMPABLE = 4


def protect_process() -> bool:
    """Turn off core dumps and, on Linux, debugging and /proc access by the same user. Return whether both were possible."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform != "linux":
        return False
    try:
        return ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
    except (OSError, AttributeError):
        return False
