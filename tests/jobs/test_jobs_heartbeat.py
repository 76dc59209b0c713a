"""A process that is stopped while it has the SQLite file locked: others time out with one line, and workers keep trying."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from job_workspace import JobWorkspace

from pitboss.jobs.worker_settings import open_queue
from pitboss.store import sqlite
from pitboss.store.retry import Unreachable

HOLDER = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
os.kill(os.getpid(), signal.SIGSTOP)
connection.execute("COMMIT")
"""


@pytest.fixture(autouse=True)
def short_busy_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 20)


@contextmanager
def stopped_holder(path: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that is stopped inside a transaction."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, path]) as holder:
        try:
            assert os.waitid(os.P_PID, holder.pid, os.WSTOPPED | os.WNOWAIT) is not None
            yield holder
        finally:
            holder.kill()


class ContinueOnMessage(logging.Handler):
    """Continues the stopped process as soon as a message has been logged a few times."""

    def __init__(self, holder: "subprocess.Popen[bytes]", message: str) -> None:
        super().__init__()
        self.holder, self.message, self.count = holder, message, 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += record.getMessage() == self.message
        if self.count:
            self.holder.send_signal(signal.SIGCONT)


def test_a_command_reports_a_file_that_a_stopped_process_has_locked_in_one_line_and_does_not_touch_that_process(
    job_workspace: JobWorkspace,
) -> None:
    with stopped_holder(job_workspace.workspace.database.location) as holder:
        with pytest.raises(Unreachable, match="is busy") as busy:
            open_queue(job_workspace.workspace).depth()
        assert "\n" not in busy.value.message
        assert "stopped" in busy.value.hint
        assert os.waitid(os.P_PID, holder.pid, os.WCONTINUED | os.WNOHANG) is None


def test_a_worker_keeps_trying_until_the_process_that_has_the_file_locked_goes_on(job_workspace: JobWorkspace) -> None:
    (run_id,) = job_workspace.enqueue(1)
    log = logging.getLogger("pitboss.jobs")
    with stopped_holder(job_workspace.workspace.database.location) as holder:
        handler = ContinueOnMessage(holder, "the database is unreachable")
        log.addHandler(handler)
        try:
            asyncio.run(job_workspace.worker().run())
        finally:
            log.removeHandler(handler)
        assert holder.wait(10) == 0

    assert handler.count
    assert job_workspace.status(run_id) == "complete"
