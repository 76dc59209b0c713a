"""Runs the installed program in a process of its own, or in the process of the test."""

import io
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from cli.run_command import CommandResult
from forked_process import ForkedProcess
from pitboss.cli.main import main
from pitboss.testing.provider import FakeProvider

PATIENCE_S = 60
ENVIRONMENT = dict(os.environ)


def provider_environment(server: FakeProvider, **more: str) -> dict[str, str]:
    """The variables by which a command finds the provider of a test."""
    return {"LLM_BASE_URL": server.url, "LLM_API_KEY": "test-key-123456", "LLM_MODEL": "fake", **more}


def run_in_process(*words: object, code: int = 0, **environment: str) -> CommandResult:
    """Run a command in the process of the test, which is faster; it must end with this exit code."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in environment.items():
            patch.setenv(name, value)
        exit_code = main([str(word) for word in words])
    assert exit_code == code, err.getvalue()
    return CommandResult(code, out.getvalue(), err.getvalue())


def start_pitboss(*words: object, **environment: str) -> subprocess.Popen[str]:
    """Start a command; in a new interpreter if variables of Python are set, else in a forked process."""
    variables = {**ENVIRONMENT, **environment}
    if not any(name.startswith("PYTHON") for name in environment):
        return ForkedProcess("-m", "pitboss", *words, env=variables)
    return subprocess.Popen(
        [sys.executable, "-m", "pitboss", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=variables,
    )


def wait_for_exit(process: subprocess.Popen[str]) -> CommandResult:
    """Wait until a command ends."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return CommandResult(process.returncode, out, err)


def run_pitboss(*words: object, **environment: str) -> CommandResult:
    """Run a command that must succeed."""
    result = wait_for_exit(start_pitboss(*words, **environment))
    assert result.code == 0, result.err
    return result


def wait_for_records(process: subprocess.Popen[str], home: Path, least: int) -> str:
    """Wait until a running run has committed this many records; returns its id."""
    pause = threading.Event()
    for _ in range(PATIENCE_S * 100):
        assert process.poll() is None, f"it ended before it could be stopped: {process.communicate()}"
        run_id = _committed(home, least)
        if run_id:
            return run_id
        pause.wait(0.01)
    raise AssertionError(f"no run has committed {least} records in time")


def _committed(home: Path, least: int) -> str | None:
    file = home / "pitboss.db"
    if not file.exists():
        return None
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    try:
        query = """SELECT runs.id FROM runs JOIN records ON records.run_id = runs.id
                   WHERE runs.status = 'running' GROUP BY runs.id HAVING count(*) >= ?"""
        row: Sequence[str] | None = connection.execute(query, (least,)).fetchone()
    except sqlite3.OperationalError:
        return None  # not made yet, or busy
    finally:
        connection.close()
    return row[0] if row else None
