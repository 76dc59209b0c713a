"""Questions that a person answers at the terminal, on standard error and standard input."""

import signal
import sys
from getpass import getpass

from pitboss.core.errors import UserError
from pitboss.terminal import screen


def has_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def ask(question: str) -> str:
    """Ask and return the line that was typed, without spaces around it; empty if the input has ended.

    Ctrl-C raises `KeyboardInterrupt`.
    """
    screen.ERR.print(question, end=" ", markup=False)
    # Libraries in Rust install handlers after which the system resumes a read, and Ctrl-C would do nothing.
    signal.siginterrupt(signal.SIGINT, True)
    return sys.stdin.readline().strip()


def agrees(question: str) -> bool:
    """Ask a question that only `y` or `yes` agrees to."""
    return ask(f"{question} [y/N]").lower() in ("y", "yes")


def hidden_line(prompt: str, hint: str) -> str:
    """A secret, typed at a prompt that does not show it, or the only line of a pipe. Empty if there is no input."""
    try:
        if has_terminal():
            return getpass(prompt, stream=None).strip()
        lines = sys.stdin.read(20_000).strip().splitlines() if sys.stdin is not None else []
    except (EOFError, OSError, UnicodeDecodeError):
        lines = []
    if len(lines) > 1:
        raise UserError("the input has more than one line", hint)
    return lines[0] if lines else ""
