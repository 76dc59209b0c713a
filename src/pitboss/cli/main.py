"""`pitboss`: the program. Calls one command, turns what went wrong into a line and an exit code.

0 the work is done · 1 the work itself failed · 2 the person can fix it · 130 stopped by Ctrl-C, everything committed
is kept.

Everything is imported inside: the libraries take most of a short command's time, and Ctrl-C must find us listening.
"""

import atexit
import gc
import os
import signal
import sys
from io import TextIOWrapper

TYPE_CHECKING = False  # `typing` itself would take a good part of the time before we listen
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from pitboss.cli.commands import EVERYWHERE as EVERYWHERE
    from pitboss.cli.commands import app as app

DONE, FAILED, MISTAKE, INTERRUPTED = 0, 1, 2, 130
GARBAGE = 50_000
"""New objects after which to look for garbage. Importing makes many and drops none: at the usual 700 looking in vain takes
a tenth of a short command's time."""


def __getattr__(name: str) -> object:
    """The tree of commands, for whoever asks for it here."""
    if name not in ("app", "EVERYWHERE"):
        raise AttributeError(name)
    from pitboss.cli import commands

    return commands.complete() if name == "app" else getattr(commands, name)


def main(arguments: "Sequence[str] | None" = None) -> int:
    """Run one command line and give its exit code."""
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
        _forget_stdout()  # whoever read our output has seen enough: `pitboss runs export … | head`
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
        if isinstance(error, OSError) and error.strerror:  # a full disk, a file taken away: not our doing
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
    """Whether Ctrl-C is what really happened: a library that is interrupted while it loads may call it its own failure."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _forget_stdout() -> None:
    from contextlib import suppress

    with suppress(OSError, ValueError):  # not a real file: there is nothing left to flush into
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run() -> "NoReturn":
    """Entry point of the installed program."""
    # Whoever closed an output does not want to hear it. What is opened next would get its number, a database for one.
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  until the end
    elif isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # JSON is, and a terminal of another kind must not end the work
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  until the end
    gc.set_threshold(GARBAGE, 10, 10)
    _load()
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # the interpreter's own end would be "by signal"
    try:
        code = main()
        # An interrupt that came while a library ran code from text makes the interpreter end itself by signal, although
        # it was caught; running any text makes it forget that.
        exec("")
        _on_interrupt(code)  # all is said: from here on it only cuts the tidying up short
    except KeyboardInterrupt:  # once more, while the first was being answered
        exec("")
        code = INTERRUPTED
    sys.exit(code)


def _load() -> None:
    """Import what every command needs, and the one that is asked for. Nothing has begun yet, so Ctrl-C may end it at once."""
    before = _on_interrupt(INTERRUPTED, b"stopped\n")
    from pitboss.cli.commands import fetch

    fetch(sys.argv[1:])
    if before is not None:
        signal.signal(signal.SIGINT, before)


def _on_interrupt(code: int, word: bytes = b"") -> "Any":
    """Let Ctrl-C end the process here and now. An exception would do so too, but an import can lose it or garble it."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        return None  # somebody wants it otherwise: `nohup`, a shell's background

    def leave(number: int, frame: object) -> "NoReturn":
        del number, frame
        try:
            os.write(2, word)
        finally:
            os._exit(code)

    signal.signal(signal.SIGINT, leave)
    return before
