"""The pulse of a worker, beside what `test_jobs_worker.py` shows of it: nobody who stands still keeps the file from all others."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from yard import Yard

HOLDER = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
os.kill(os.getpid(), signal.SIGSTOP)
connection.execute("COMMIT")
"""


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux says who has a file locked")
def test_a_worker_wakes_one_who_was_stopped_with_the_file_locked_and_does_its_run(yard: Yard) -> None:
    (run_id,) = yard.put(1)
    with subprocess.Popen([sys.executable, "-c", HOLDER, yard.workspace.database.where]) as holder:
        try:
            assert os.waitid(os.P_PID, holder.pid, os.WSTOPPED | os.WNOWAIT) is not None
            asyncio.run(yard.worker().run())
            assert holder.wait(10) == 0
        finally:
            holder.send_signal(signal.SIGKILL)

    assert yard.status(run_id) == "complete"
