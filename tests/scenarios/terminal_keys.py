"""Runs a command at a pseudo-terminal and types keys into it."""

import os
import pty
import select

from forked_process import ForkedProcess
from scenarios.pitboss_process import ENVIRONMENT, PATIENCE_S


def run_at_terminal(keys: str, question: str, *words: object, **environment: str) -> tuple[int, str]:
    """Run a command and type the keys once `question` is shown; returns the exit code and the terminal's output."""
    ours, theirs = pty.openpty()
    variables = {**ENVIRONMENT, "NO_COLOR": "1", "COLUMNS": "200", **environment}
    process = ForkedProcess("-m", "pitboss", *words, env=variables, terminal=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := read_terminal(ours):
            shown += piece
            if keys and question.encode() in shown:
                os.write(ours, keys.encode())
                keys = ""
        return process.wait(PATIENCE_S), shown.decode("utf-8", "replace")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_terminal(terminal: int) -> bytes:
    """The next output of the terminal; empty once the program has closed it."""
    assert select.select([terminal], [], [], PATIENCE_S)[0], "the program neither writes nor ends"
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how Linux says that the other side is closed
        return b""
