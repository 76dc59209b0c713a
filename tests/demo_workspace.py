"""The workspace that `pitboss demo` leaves, made once for all workers of a test run."""

import os
from pathlib import Path

import pytest
from filelock import FileLock

from forked_process import ForkedProcess


def demo_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder. Copy it before writing to it."""
    root = tmp_path_factory.getbasetemp()
    shared = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    home = shared / "demo-workspace"
    with FileLock(f"{home}.lock"):
        if not (home / "reports").is_dir():
            demo = ForkedProcess("-m", "pitboss", "demo", "--home", home)
            output, errors = demo.communicate()
            assert demo.returncode == 0, errors
            output_of(home).write_text(output, "utf-8")
    return home


def output_of(home: Path) -> Path:
    """The file with what the demo printed."""
    return home.with_name(f"{home.name}.txt")
