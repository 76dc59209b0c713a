"""A mark of its own for each process that runs tests of this package: they are forked after this module was imported."""

import os
import time

import pytest

from tools.mcp.mcp_connections import MARK


@pytest.fixture(autouse=True, scope="session")
def unique_process_mark() -> None:
    """What is left over of another process is not left over here."""
    MARK["PITBOSS_TEST_MARK"] = f"mark-{os.getpid()}-{time.monotonic_ns()}"
