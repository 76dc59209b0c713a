"""A unique mark for each process that runs tests of this package: they are forked after this module was imported."""

import os
import time

import pytest

from tools.mcp.mcp_connections import MARK


@pytest.fixture(autouse=True, scope="session")
def unique_process_mark() -> None:
    """Keeps leftover processes of other test processes out of the checks of this one."""
    MARK["PITBOSS_TEST_MARK"] = f"mark-{os.getpid()}-{time.monotonic_ns()}"
