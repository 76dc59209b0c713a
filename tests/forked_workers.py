"""Runs the tests in worker processes that are forked from this one when all tests are collected.

The workers of pytest-xdist are new interpreters, each of which imports and collects every test again, and they send three
reports for each test: together a tenth of the processor time of the suite. Forked workers have the collected tests, and send
one report for each passed test. They have the names and environment variables of xdist's workers. Each starts with its own
part of the tests in order; a worker that has finished takes half of the remaining tests of another. A worker that dies
fails its current test, and another one replaces it.

Collecting takes many seconds on one processor. Meanwhile another process starts the servers that many tests share.

`-n auto`, the default, starts them on Linux. With `-n NUMBER`, and on other systems, xdist's own workers run the tests.
"""

import atexit
import fcntl
import mmap
import os
import pickle
import selectors
import shutil
import signal
import struct
import sys
import traceback
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import cache_from_source
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from forked_process import exit_process

AVAILABLE = sys.platform == "linux"
_LENGTH = struct.Struct("!I")
_READ = 1 << 16


class Shares:
    """Which tests each worker has yet to begin, in memory that all of them share."""

    def __init__(self, tests: int, workers: int) -> None:
        self._workers = range(workers)
        self._file = os.memfd_create("shares")
        os.ftruncate(self._file, 3 * 8 * workers)
        # Next test, end of the share, and the test that runs now, of every worker
        self._table = memoryview(mmap.mmap(self._file, 3 * 8 * workers)).cast("q")
        for worker in self._workers:
            bounds = tests * worker // workers, tests * (worker + 1) // workers
            self._table[3 * worker : 3 * worker + 3] = memoryview(struct.pack("qqq", *bounds, -1)).cast("q")

    def take(self, worker: int) -> int | None:
        """The next test of a worker: of its own share, or else of the later half of the largest one; None at the end."""
        with self._locked():
            largest = worker if self._left(worker) else max(self._workers, key=self._left)
            if not self._left(largest):
                return None
            if largest != worker:
                start, end = self._table[3 * largest], self._table[3 * largest + 1]
                middle = (start + end) // 2
                self._table[3 * largest + 1] = self._table[3 * worker] = middle
                self._table[3 * worker + 1] = end
            self._table[3 * worker] += 1
            return self._table[3 * worker] - 1

    def begin(self, worker: int, test: int) -> None:
        """Note that a worker runs a test."""
        self._table[3 * worker + 2] = test

    def release(self, worker: int) -> int | None:
        """The test that a dead worker was running, if any; whatever else it took is to be taken again."""
        with self._locked():
            running, self._table[3 * worker + 2] = self._table[3 * worker + 2], -1
            if 0 <= running != self._table[3 * worker] - 1:
                self._table[3 * worker] -= 1
            return None if running < 0 else running

    def stop(self) -> None:
        """Leave nothing to take."""
        with self._locked():
            for worker in self._workers:
                self._table[3 * worker + 1] = self._table[3 * worker]

    def close(self) -> None:
        """Free the memory in this process."""
        os.close(self._file)

    def _left(self, worker: int) -> int:
        return self._table[3 * worker + 1] - self._table[3 * worker]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.lockf(self._file, fcntl.LOCK_EX)  # the lock of a process that dies is free again
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)


@dataclass(eq=False)
class _Worker:
    """A worker as the process that started it sees it."""

    number: int
    pid: int
    pipe: int
    received: bytearray = field(default_factory=bytearray)

    @property
    def gateway(self) -> SimpleNamespace:
        """Where pytest and xdist read the name of a worker."""
        return SimpleNamespace(id=f"gw{self.number}")

    @property
    def workerinfo(self) -> dict[str, object]:
        """What they print about the worker of a test that failed."""
        versions = {"version_info": tuple(sys.version_info), "sysplatform": sys.platform}
        return {"id": self.gateway.id, "executable": sys.executable, **versions}

    def messages(self) -> Iterator[Any]:
        """What has arrived completely."""
        while len(self.received) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self.received)
            end = _LENGTH.size + length
            if len(self.received) < end:
                return
            yield pickle.loads(self.received[_LENGTH.size : end])
            del self.received[:end]


class ForkedWorkers:
    """The plugin: runs the tests of a session in at most `count` workers. `prepare` starts what many of all tests share."""

    def __init__(self, count: int, prepare: Callable[[pytest.Config], None] | None = None) -> None:
        self._count = count
        self._prepare = prepare
        self._preparer: _Preparer | None = None
        self._compiler: int | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> None:
        """Before all tests are collected, let another process prepare for them.

        If no test is compiled yet, it collects them too instead, in the opposite order: each compiles a half.
        """
        os.environ["PYTEST_XDIST_TESTRUNUID"] = uuid.uuid4().hex
        if session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
            return
        if not _are_compiled():
            process = _fork()
            if not process:
                _compile(session)
            self._compiler = process
        elif self._prepare is not None and not session.config.option.collectonly:
            session.config._tmp_path_factory.getbasetemp()
            self._preparer = _Preparer.start(session.config, self._prepare)

    def pytest_collection_finish(self) -> None:
        """End the process that compiles: all is compiled."""
        if self._compiler is not None:
            os.kill(self._compiler, signal.SIGKILL)
            os.waitpid(self._compiler, 0)

    def pytest_unconfigure(self) -> None:
        """Let go of what was prepared."""
        if self._preparer is not None:
            self._preparer.end()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run all tests; None where they are not to be run, or in this process."""
        if session.testsfailed or session.config.option.collectonly or len(session.items) < 2:
            return None
        count = min(self._count, len(session.items))
        session.config._tmp_path_factory.getbasetemp()  # the folder that those of the workers are in
        os.environ["PYTEST_XDIST_WORKER_COUNT"] = str(count)
        _Run(session, Shares(len(session.items), count)).execute(count)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True


@dataclass(frozen=True)
class _Preparer:
    """A process that prepares for the tests, and then holds what it started until the test run ends."""

    pid: int
    pipe: int

    @classmethod
    def start(cls, config: pytest.Config, prepare: Callable[[pytest.Config], None]) -> "_Preparer":
        reading, writing = os.pipe()
        pid = _fork()
        if not pid:
            os.close(writing)
            try:
                atexit.unregister(shutil.rmtree)
                _silence(config)
                # A test that lacks something starts it itself, and reports why it cannot.
                with suppress(Exception, pytest.skip.Exception):
                    prepare(config)
                os.read(reading, 1)
            finally:
                exit_process(0)
        os.close(reading)
        return cls(pid, writing)

    def end(self) -> None:
        with suppress(BrokenPipeError):  # it was interrupted
            os.write(self.pipe, b".")
        os.close(self.pipe)
        os.waitpid(self.pid, 0)


class _Run:
    """One run of the tests of a session."""

    def __init__(self, session: pytest.Session, shares: Shares) -> None:
        self._session = session
        self._config = session.config
        self._shares = shares
        self._selector = selectors.DefaultSelector()

    def execute(self, count: int) -> None:
        """Start workers and report what they send until the last one has ended."""
        for number in range(count):
            self._start(number)
        try:
            while self._selector.get_map():
                for key, _ in self._selector.select():
                    self._read(key.data)
        finally:
            self._shares.stop()  # if this was interrupted
            for key in list(self._selector.get_map().values()):
                os.close(key.data.pipe)
                os.waitpid(key.data.pid, 0)
            self._selector.close()
            self._shares.close()

    def _start(self, number: int) -> None:
        reading, writing = os.pipe()
        pid = _fork()
        if not pid:
            for other in (reading, *self._selector.get_map()):  # so that a pipe without a reader is a broken one
                os.close(other)
            _work(self._session, self._shares, number, writing)
        os.close(writing)
        self._selector.register(reading, selectors.EVENT_READ, _Worker(number, pid, reading))

    def _read(self, worker: _Worker) -> None:
        data = os.read(worker.pipe, _READ)
        if not data:
            self._end(worker)
            return
        worker.received += data
        for message in worker.messages():
            if message is None:  # a process that a test left behind may keep the pipe open
                self._end(worker)
                return
            report = self._config.hook.pytest_report_from_serializable(config=self._config, data=message)
            self._log(worker, report)

    def _end(self, worker: _Worker) -> None:
        self._selector.unregister(worker.pipe)
        os.close(worker.pipe)
        code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if not code:
            return
        test = self._shares.release(worker.number)
        if test is None:
            raise RuntimeError(f"worker gw{worker.number} ended with {code} before it ran a test")
        item = self._session.items[test]
        text = f"worker gw{worker.number} ended with {code} while it ran {item.nodeid}"
        self._log(worker, pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call"))
        self._start(worker.number)

    def _log(self, worker: _Worker, report: pytest.TestReport) -> None:
        report.node = worker
        self._config.hook.pytest_runtest_logreport(report=report)
        if self._session.shouldfail or self._session.shouldstop:
            self._shares.stop()


class _Sender:
    """The plugin of a worker: sends reports to the process that started it."""

    def __init__(self, config: pytest.Config, pipe: int) -> None:
        self._config = config
        self._pipe = pipe
        self._sends_all = bool(config.getoption("durations") or config.getoption("xmlpath"))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report, except that of a set-up or tear-down that passed: nothing shows it."""
        if self._sends_all or report.when == "call" or not report.passed:
            self.send(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def send(self, message: dict[str, Any] | None) -> None:
        """Send a report, or None after the last one."""
        data = pickle.dumps(message)
        rest = memoryview(_LENGTH.pack(len(data)) + data)
        while rest:
            rest = rest[os.write(self._pipe, rest) :]


def _fork() -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # libraries have started threads, which hold no locks
        return os.fork()


def _are_compiled() -> bool:
    cache = Path(cache_from_source(__file__)).parent
    return any(cache.glob("test_*-pytest-*.pyc"))


def _compile(session: pytest.Session) -> NoReturn:
    """Collect all tests from the last to the first, and do nothing else."""
    try:
        _silence(session.config)
        session.config.args[:] = sorted(map(str, Path(__file__).parent.glob("*/")), reverse=True)
        session.perform_collect()
    finally:
        os._exit(0)


def _work(session: pytest.Session, shares: Shares, number: int, pipe: int) -> NoReturn:
    """Run tests until none is left; what a worker does."""
    code = 1
    try:
        config = session.config
        _set_apart(config, f"gw{number}")
        sender = _Sender(config, pipe)
        config.pluginmanager.register(sender)
        test = shares.take(number)
        while test is not None:
            shares.begin(number, test)
            following = shares.take(number)
            next_item = None if following is None else session.items[following]
            config.hook.pytest_runtest_protocol(item=session.items[test], nextitem=next_item)
            test = following
        sender.send(None)
        code = 0
    except (KeyboardInterrupt, BrokenPipeError):  # interrupted, or the reader of the reports has ended
        session._setupstate.teardown_exact(None)
    except BaseException:  # noqa: BLE001  nothing may get out into the code of the process that forked
        traceback.print_exc(file=sys.__stderr__)
    finally:
        exit_process(code)


def _set_apart(config: pytest.Config, name: str) -> None:
    """Give a worker a name and a temporary folder of its own."""
    os.environ["PYTEST_XDIST_WORKER"] = name
    atexit.unregister(shutil.rmtree)  # folders of the process that started it
    factory = config._tmp_path_factory
    factory._basetemp = Path(factory.getbasetemp()) / name
    factory._basetemp.mkdir(exist_ok=True)  # that of a worker that died
    _silence(config)


def _silence(config: pytest.Config) -> None:
    """Let a forked process print nothing, and give it files of its own for captured output."""
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture(in_=True)
    reporter = config.pluginmanager.getplugin("terminalreporter")
    config.pluginmanager.unregister(reporter)
    reporter._tw._file = open(os.devnull, "w")  # noqa: SIM115  until the end
    config.pluginmanager.register(SimpleNamespace(_tw=reporter._tw), "terminalreporter")
