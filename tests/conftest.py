"""Configuration of all tests: caches, temporary folders in memory, forked workers, Hypothesis, options."""

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

import argument_cache
import database_template
import example_counts
import forked_process
import forked_workers
import market_cache
import parquet_cache
import postgres_server
import signal_handlers
import statement_cache
from demo_workspace import demo_workspace

# Compiled bytecode is shared. Without it every worker, and every program that a test starts, would compile the libraries
# again, which takes longer than most tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Thousands of small databases would wait for the disk at every commit. Temporary files are in memory where there is enough of
# it and programs may be executed from there; a killed process leaves the same files in memory as on a disk.
MEMORY, ENOUGH = Path("/dev/shm"), 4 << 30
if (
    os.access(MEMORY, os.W_OK)
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    and shutil.disk_usage(MEMORY).free > ENOUGH
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    if "PYTEST_XDIST_WORKER" not in os.environ and "TMPDIR" not in os.environ:  # workers inherit what is set here
        os.environ["TEST_PACKAGES_DIR"] = tempfile.gettempdir()  # installed once, for later runs too
        os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="pitboss-tests-", dir=MEMORY)
        atexit.register(shutil.rmtree, tempfile.tempdir, ignore_errors=True)

# Workers share the processors. Libraries that start a thread per processor in every worker, and in every program that a test
# starts, spend more processor time on these threads than they save on inputs as small as those of tests.
for name in ("OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(name, "1")

# A shell that starts a job in the background makes it ignore Ctrl-C, and every program it starts inherits that. Tests that
# send Ctrl-C to a program need the ordinary reaction.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: the time of an example depends on the load of the machine. In CI the examples are the same every time, by hand
# they are random. `max_examples` is for properties that set none; `example_counts` scales it.
settings.register_profile("pitboss", deadline=None, derandomize=bool(os.environ.get("CI")), max_examples=40)
settings.load_profile("pitboss")


# Collecting creates half a million objects that stay until the end. The garbage collector is off until the first test and
# then leaves them out.
gc.disable()


def pytest_collection_finish() -> None:
    """Enable the garbage collector for objects of tests, with a higher threshold than the default."""
    gc.freeze()
    gc.set_threshold(50_000)  # as `pitboss` does; at 10,000 collections take two percent of the processor time
    gc.enable()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """1.5 workers per processor: much of the suite waits for processes, servers and clocks."""
    count = max(2, (os.cpu_count() or 2) * 3 // 2)
    if not forked_workers.AVAILABLE:
        return count
    config.pluginmanager.register(forked_workers.ForkedWorkers(count, _prepare))
    return 0  # no workers of xdist


def _prepare(config: pytest.Config) -> None:
    """Start the servers and create the workspace that many tests share."""
    forked_process.keep_server()
    demo_workspace(config._tmp_path_factory)
    postgres_server.server()


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "how many times the examples that a property names it is tried with"
    parser.addoption("--examples", type=float, default=example_counts.QUICK, metavar="FACTOR", help=text)
    text = "where tests of the browser keep pictures of pages; otherwise in the temporary folder of the test run"
    parser.addoption("--screenshots", default="", metavar="FOLDER", help=text)


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace as `pitboss demo` leaves it. Copy it before writing to it."""
    return demo_workspace(tmp_path_factory)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests: all workers must have the same order."""
    items.sort(key=lambda item: item.path)
    example_counts.scale(items, config.getoption("examples"))


argument_cache.install()
database_template.install()
parquet_cache.install()
market_cache.install()
signal_handlers.install()
statement_cache.install()
