"""The installed program as its own process, the way a person runs it."""

import io
import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from forked import Forked
from pitboss.cli.main import main

PATIENCE_S = 60
ENVIRONMENT = dict(os.environ)


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


def here(*words: object, code: int = 0, **environment: str) -> Told:
    """Run a command in the test's own process, which saves starting one; it must end with this code."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in environment.items():
            patch.setenv(name, value)
        found = main([str(word) for word in words])
    assert found == code, err.getvalue()
    return Told(code, out.getvalue(), err.getvalue())


def begin(*words: object, **environment: str) -> subprocess.Popen[str]:
    """Start a command and do not wait for it; in a new interpreter if that is to start in a certain way."""
    variables = {**ENVIRONMENT, **environment}
    if not any(name.startswith("PYTHON") for name in environment):
        return Forked("-m", "pitboss", *words, env=variables)
    return subprocess.Popen(
        [sys.executable, "-m", "pitboss", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=variables,
    )


def end(process: subprocess.Popen[str]) -> Told:
    """Wait for a command."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return Told(process.returncode, out, err)


def tell(*words: object, **environment: str) -> Told:
    """Run a command that must succeed."""
    result = end(begin(*words, **environment))
    assert result.code == 0, result.err
    return result


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
        query = """SELECT runs.id FROM runs JOIN records ON records.run_id = runs.id
                   WHERE runs.status = 'running' GROUP BY runs.id HAVING count(*) >= ?"""
        found: Sequence[str] | None = connection.execute(query, (least,)).fetchone()
    except sqlite3.OperationalError:
        return None  # not made yet, or busy
    finally:
        connection.close()
    return found[0] if found else None
