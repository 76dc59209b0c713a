"""`pitboss`: the entry point. Runs one command and turns its errors into a message and an exit code.

0 the work is done · 1 the work itself failed · 2 an error that the user can fix · 130 stopped by Ctrl-C, everything
committed is kept.

Everything is imported inside functions: imports take most of a short command's time, and the Ctrl-C handler must be
installed before them.
"""

import atexit
import gc
import os
import signal
import sys
from io import TextIOWrapper

TYPE_CHECKING = False  # importing `typing` would delay the installation of the Ctrl-C handler
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from pitboss.cli.commands import EVERYWHERE as EVERYWHERE
    from pitboss.cli.commands import app as app

DONE, FAILED, MISTAKE, INTERRUPTED = 0, 1, 2, 130
GARBAGE = 50_000
"""Allocations between two garbage collections.

Imports allocate much and free nothing: at the default of 700, useless collections take a tenth of a short command's
time.
"""


def __getattr__(name: str) -> object:
    """The command tree, imported on first access."""
    if name not in ("app", "EVERYWHERE"):
        raise AttributeError(name)
    from pitboss.cli import commands

    return commands.complete() if name == "app" else getattr(commands, name)


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run one command line and return its exit code."""
    from cyclopts import CycloptsError

    from pitboss.bootstrap.logs import stop_logs
    from pitboss.cli.commands import app, fetch, usage
    from pitboss.core.errors import BudgetExceeded, InvariantError, RunCancelled, TransientError, UserError
    from pitboss.terminal import screen

    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        fetch(words)
        code = app.meta(words, print_error=False, exit_on_error=False, result_action="return_value")
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except CycloptsError as error:
        screen.complain(*usage(error))
        return MISTAKE
    except UserError as error:
        screen.complain(error.message, error.hint)
        return MISTAKE
    except (InvariantError, TransientError, BudgetExceeded) as error:
        screen.complain(str(error))
        return FAILED
    except BrokenPipeError:
        _forget_stdout()  # the reader closed the pipe: `pitboss runs export … | head`
        return DONE
    except (KeyboardInterrupt, RunCancelled):
        screen.note("stopped")
        return INTERRUPTED
    except Exception as error:
        from pitboss.bootstrap.machine import environment

        if _by_interrupt(error):
            screen.note("stopped")
            return INTERRUPTED
        if environment("PITBOSS_TRACEBACK"):
            raise
        if isinstance(error, OSError) and error.strerror:  # a full disk or a removed file: not a fault of pitboss
            screen.complain(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
            return FAILED
        first = (str(error).splitlines() or [""])[0]
        screen.complain(
            f"pitboss itself failed: {type(error).__name__}: {first}",
            "this is a fault of the program; set PITBOSS_TRACEBACK=1 to see where",
        )
        return FAILED
    finally:
        stop_logs()


def _by_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is the cause: a library that is interrupted during its import may raise an error of its own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _forget_stdout() -> None:
    from contextlib import suppress

    with suppress(OSError, ValueError):  # not a real file, so there is nothing to flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run() -> "NoReturn":
    """Entry point of the installed program."""
    # A closed output is replaced: otherwise the next file opened, such as a database, would get its descriptor.
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  until the end
    elif isinstance(sys.stdout, TextIOWrapper):
        # JSON is UTF-8, and a terminal with another encoding must not cause a failure
        sys.stdout.reconfigure(encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  until the end
    gc.set_threshold(GARBAGE, 10, 10)
    _load()
    # otherwise the interpreter would end with "killed by signal"
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    try:
        code = main()
        # An interrupt during a library's `exec` makes the interpreter end by signal although the exception was caught;
        # another `exec` resets that state.
        exec("")
        _on_interrupt(code)  # all output is written: from here on an interrupt only shortens the cleanup
    except KeyboardInterrupt:  # a second interrupt while the first was being handled
        exec("")
        code = INTERRUPTED
    sys.exit(code)


def _load() -> None:
    """Import what every command needs and the module of the given command.

    Nothing has begun, so Ctrl-C may exit at once.
    """
    before = _on_interrupt(INTERRUPTED, b"stopped\n")
    from pitboss.cli.commands import fetch

    fetch(sys.argv[1:])
    if before is not None:
        signal.signal(signal.SIGINT, before)


def _on_interrupt(code: int, word: bytes = b"") -> "Any":
    """Make Ctrl-C end the process immediately.

    An exception would do so too, but an import can swallow or replace it.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        return None  # the signal is ignored on purpose: `nohup`, a background job of a shell

    def leave(number: int, frame: object) -> "NoReturn":
        del number, frame
        try:
            os.write(2, word)
        finally:
            os._exit(code)

    signal.signal(signal.SIGINT, leave)
    return before
