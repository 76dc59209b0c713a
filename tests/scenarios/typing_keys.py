"""Commands at a real terminal: a pseudo-terminal that controls the program, with a person's keys."""

import os
import pty
import select

from forked import Forked
from scenarios.program import ENVIRONMENT, PATIENCE_S


def answered(keys: str, question: str, *words: object, **environment: str) -> tuple[int, str]:
    """The exit code and what the terminal showed, after these keys were typed when the program asked."""
    ours, theirs = pty.openpty()
    variables = {**ENVIRONMENT, "NO_COLOR": "1", "COLUMNS": "200", **environment}
    process = Forked("-m", "pitboss", *words, env=variables, terminal=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := read(ours):
            shown += piece
            if keys and question.encode() in shown:
                os.write(ours, keys.encode())
                keys = ""
        return process.wait(PATIENCE_S), shown.decode("utf-8", "replace")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read(terminal: int) -> bytes:
    """What was written to the terminal since; empty once the program has closed it."""
    assert select.select([terminal], [], [], PATIENCE_S)[0], "the program neither writes nor ends"
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how Linux says that the other side is closed
        return b""
