"""What holds for every test."""

import os

import pytest
from hypothesis import settings

# How long an example takes says more about what else this machine does than about the code; speed is `make bench`.
# Where CI decides over a change the examples are the same every time; by hand every run looks for new ones.
settings.register_profile("pitboss", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("pitboss")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Half as many again as there are processors: much of the suite waits for processes, servers and clocks."""
    del config
    return max(2, (os.cpu_count() or 2) * 3 // 2)
