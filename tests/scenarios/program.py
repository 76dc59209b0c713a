"""The installed program as its own process, the way a person runs it."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class Told:
    """Exit code and both outputs."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on standard output."""
        return json.loads(self.out)


def begin(*words: object, **environment: str) -> subprocess.Popen[str]:
    """Start a command and do not wait for it."""
    return subprocess.Popen(
        [sys.executable, "-m", "pitboss", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def end(process: subprocess.Popen[str]) -> Told:
    """Wait for a command."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return Told(process.returncode, out, err)


def tell(*words: object, **environment: str) -> Told:
    """Run a command that must succeed."""
    told = end(begin(*words, **environment))
    assert told.code == 0, told.err
    return told


def wait_for_records(process: subprocess.Popen[str], home: Path, least: int) -> str:
    """Wait until a run that is being worked on has committed this many records, and give its id."""
    pause = threading.Event()
    for _ in range(PATIENCE_S * 100):
        assert process.poll() is None, f"it ended before it could be stopped: {process.communicate()}"
        run_id = _committed(home, least)
        if run_id:
            return run_id
        pause.wait(0.01)
    raise AssertionError("the run never got there")


def _committed(home: Path, least: int) -> str | None:
    file = home / "pitboss.db"
    if not file.exists():
        return None
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        query = "SELECT run_id FROM records GROUP BY run_id HAVING count(*) >= ? ORDER BY max(rowid) DESC"
        found: Sequence[str] | None = connection.execute(query, (least,)).fetchone()
    except sqlite3.OperationalError:
        return None  # not made yet, or busy
    finally:
        connection.close()
    return found[0] if found else None
