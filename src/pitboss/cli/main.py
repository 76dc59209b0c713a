"""`pitboss`: the entry point. Runs one command and turns its errors into a message and an exit code.

Exit codes: 0 success, 1 the work itself failed, 2 an error that the user can fix, 130 stopped by Ctrl-C (everything
committed is kept).

Everything is imported inside functions: imports take most of a short command's time, and the Ctrl-C handler must be
installed before them.
"""

import atexit
import gc
import os
import signal
import sys
from io import TextIOWrapper

from pitboss.terminal.exit_codes import FAILED, INTERRUPTED, OK, USER_ERROR

TYPE_CHECKING = False  # importing `typing` would delay the installation of the Ctrl-C handler
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from pitboss.cli.commands import GLOBAL_OPTIONS as GLOBAL_OPTIONS
    from pitboss.cli.commands import app as app

GC_THRESHOLD = 50_000
"""Allocations between two garbage collections.

Imports allocate much and free nothing: at the default of 700, useless collections take a tenth of a short command's
time.
"""


def __getattr__(name: str) -> object:
    """The command tree, imported on first access."""
    if name not in ("app", "GLOBAL_OPTIONS"):
        raise AttributeError(name)
    from pitboss.cli import commands

    return commands.complete_app() if name == "app" else getattr(commands, name)


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run one command line and return its exit code."""
    from cyclopts import CycloptsError

    from pitboss.cli.commands import app, import_command, usage
    from pitboss.core.errors import BudgetExceeded, InvariantError, RunCancelled, TransientError, UserError

    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if os.path.isfile(".env"):
            from pitboss.bootstrap.env_file import load_env_file

            if warning := load_env_file():
                _note(f"warning: {warning}")
        import_command(arguments)
        code = app.meta(arguments, print_error=False, exit_on_error=False, result_action="return_value")
        sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except CycloptsError as error:
        _complain(*usage(error))
        return USER_ERROR
    except UserError as error:
        _complain(error.message, error.hint)
        return USER_ERROR
    except (InvariantError, TransientError, BudgetExceeded) as error:
        _complain(str(error))
        return FAILED
    except BrokenPipeError:
        _discard_stdout()  # the reader closed the pipe: `pitboss runs export … | head`
        return OK
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # the library that prints the help exits by itself then
            return OK
        raise
    except (KeyboardInterrupt, RunCancelled):
        _note("stopped")
        return INTERRUPTED
    except Exception as error:
        from pitboss.bootstrap.machine import environment

        if _caused_by_interrupt(error):
            _note("stopped")
            return INTERRUPTED
        if environment("PITBOSS_TRACEBACK"):
            raise
        if isinstance(error, OSError) and error.strerror:  # a full disk or a removed file: not a bug in pitboss
            _complain(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
            _flush_or_discard_stdout()
            return FAILED
        first = (str(error).splitlines() or [""])[0]
        _complain(
            f"internal error: {type(error).__name__}: {first}",
            "this is a bug in pitboss; set PITBOSS_TRACEBACK=1 to see the traceback",
        )
        return FAILED
    finally:
        if "pitboss.bootstrap.logs" in sys.modules:  # otherwise no log was started
            from pitboss.bootstrap.logs import stop_logs

            stop_logs()


def _complain(message: str, hint: str = "") -> None:
    from pitboss.terminal import screen  # imported late: help and a version are printed without it

    screen.complain(message, hint)


def _note(text: str) -> None:
    from pitboss.terminal import screen

    screen.note(text)


def _caused_by_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is the cause: a library that is interrupted during its import may raise an error of its own."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _flush_or_discard_stdout() -> None:
    """Leave nothing for the interpreter to flush at its end, where a full disk would be reported a second time."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_stdout()


def _discard_stdout() -> None:
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
    gc.set_threshold(GC_THRESHOLD, 10, 10)
    _import_command()
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
    gc.freeze()  # the interpreter would look through all objects once more before it ends
    sys.exit(code)


def _import_command() -> None:
    """Import what every command needs and the module of the given command.

    No work has started yet, so Ctrl-C may exit at once.
    """
    previous = _on_interrupt(INTERRUPTED, b"stopped\n")
    from pitboss.cli.commands import import_command

    import_command(sys.argv[1:])
    if previous is not None:
        signal.signal(signal.SIGINT, previous)


def _on_interrupt(code: int, message: bytes = b"") -> "Any":
    """Make Ctrl-C end the process immediately.

    An exception would do so too, but an import can swallow or replace it.
    """
    previous = signal.getsignal(signal.SIGINT)
    if previous is not signal.default_int_handler:
        return None  # the signal is ignored on purpose: `nohup`, a background job of a shell

    def leave(number: int, frame: object) -> "NoReturn":
        del number, frame
        try:
            os.write(2, message)
        finally:
            os._exit(code)

    signal.signal(signal.SIGINT, leave)
    return previous
