"""A process that is stopped with the database file locked is woken by whoever waits; one that has nothing locked is not."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pitboss.store.rouse import rousing, stopped_lockers

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux says who has a file locked")

HOLDER = """
import sqlite3, sys
path, mode, *statements = sys.argv[1:]
connection = sqlite3.connect(path, isolation_level=None)
connection.execute(f"PRAGMA journal_mode={mode}")
connection.execute("CREATE TABLE IF NOT EXISTS t (a)")
for statement in statements:
    connection.execute(statement).fetchall()
print("ready", flush=True)
sys.stdin.readline()
if connection.in_transaction:
    connection.execute("COMMIT")
print("done", flush=True)
sys.stdin.readline()
"""
WRITING = ("BEGIN IMMEDIATE", "INSERT INTO t VALUES (1)")
READING = ("BEGIN", "SELECT * FROM t")


@contextmanager
def holder(path: Path, mode: str, statements: tuple[str, ...]) -> Iterator["subprocess.Popen[str]"]:
    """A process that has begun a transaction, and is stopped in it; what it is to do next is already said."""
    words = [sys.executable, "-c", HOLDER, str(path), mode, *statements]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        process.stdin.write("go on\n")
        process.stdin.flush()
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("mode", ["truncate", "wal"])
def test_one_that_is_stopped_while_it_writes_is_woken_and_the_next_can_write(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "pitboss.db"
    with holder(path, mode, WRITING) as process:
        assert stopped_lockers(path) == {process.pid}
        with rousing(str(path), look_s=0.02):
            connection = sqlite3.connect(path, timeout=20, isolation_level=None)
            connection.execute("BEGIN IMMEDIATE")
            assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]  # it came to its end first
            connection.execute("ROLLBACK")
            connection.close()
        assert stopped_lockers(path) == frozenset()


def test_one_that_is_stopped_while_it_only_reads_is_woken_where_that_keeps_writers_out(tmp_path: Path) -> None:
    path = tmp_path / "pitboss.db"
    with holder(path, "truncate", READING) as process:
        assert stopped_lockers(path) == {process.pid}
        with rousing(f"sqlite:///{path}", look_s=0.02):
            connection = sqlite3.connect(path, timeout=20, isolation_level=None)
            connection.execute("INSERT INTO t VALUES (2)")
            connection.close()


@pytest.mark.parametrize(("mode", "statements"), [("truncate", ()), ("wal", ()), ("wal", READING)])
def test_one_that_is_stopped_and_in_nobodys_way_stays_stopped(
    tmp_path: Path, mode: str, statements: tuple[str, ...]
) -> None:
    path, other = tmp_path / "pitboss.db", tmp_path / "other.db"
    with holder(path, mode, statements) as idle, holder(other, mode, WRITING) as elsewhere:
        assert stopped_lockers(path) == frozenset()
        with holder(path, mode, WRITING) as process, rousing(str(path), look_s=0.02):
            assert process.stdout is not None
            assert process.stdout.readline() == "done\n"
        for one in (idle, elsewhere):
            assert os.waitid(os.P_PID, one.pid, os.WCONTINUED | os.WNOHANG) is None


def test_one_that_is_at_work_is_nobodys_business(tmp_path: Path) -> None:
    path = tmp_path / "pitboss.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN EXCLUSIVE")
    try:
        assert stopped_lockers(path) == frozenset()
    finally:
        connection.close()


def test_a_server_and_a_file_that_is_not_there_are_left_alone(tmp_path: Path) -> None:
    for where in ("postgresql://user@host/name", str(tmp_path / "none.db")):
        with rousing(where, look_s=0.01):
            pass
    assert stopped_lockers(tmp_path / "none.db") == frozenset()


@pytest.mark.parametrize(
    "line",
    [
        "1: -> POSIX  ADVISORY  WRITE {pid} 00:01:{inode} 0 EOF",  # only waits for it
        "1: FLOCK  ADVISORY  WRITE {pid} 00:01:{inode} 0 EOF",
        "1: POSIX  ADVISORY  WRITE -1 00:01:{inode} 0 EOF",  # on another machine
        "1: POSIX  ADVISORY  WRITE {pid} 00:01:{inode} 0 EOF",  # of a process that does not have our file open
        "",
    ],
)
def test_lines_that_do_not_say_that_somebody_has_our_file_locked_are_passed_over(tmp_path: Path, line: str) -> None:
    path, proc = tmp_path / "pitboss.db", tmp_path / "proc"
    path.write_bytes(b"")
    (proc / "77" / "fd").mkdir(parents=True)
    (proc / "77" / "stat").write_text("77 (a ) T name) T 1 77")
    (proc / "locks").write_text(line.format(pid=77, inode=path.stat().st_ino) + "\n")
    assert stopped_lockers(path, proc) == frozenset()

    (proc / "77" / "fd" / "3").symlink_to(path)
    (proc / "locks").write_text(f"1: POSIX  ADVISORY  WRITE 77 00:01:{path.stat().st_ino} 0 EOF\n")
    assert stopped_lockers(path, proc) == {77}
