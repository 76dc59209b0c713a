"""`pitboss`: the program. Reads the arguments, calls one command, turns what went wrong into a line and an exit code.

0 the work is done · 1 the work itself failed · 2 the person can fix it · 130 stopped by Ctrl-C, everything committed
is kept.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter, UnknownOptionError

from pitboss import __version__
from pitboss.bootstrap.logs import stop_logs
from pitboss.cli import backtest, bench, data, demo, models, report, runs, screen, secrets, settings, skill, tools
from pitboss.cli.place import Place
from pitboss.core.errors import BudgetExceeded, InvariantError, RunCancelled, TransientError, UserError

DONE, FAILED, MISTAKE, INTERRUPTED = 0, 1, 2, 130
EVERYWHERE = ("--home", "--db", "--help", "--version")


def _default(value: object) -> object:
    """A default as help shows it: nothing where leaving the option out means just that."""
    return None if value is False or value in ("", ()) else value


app = App(
    name="pitboss",
    help="""Runs agents that act in markets, and keeps them inside hard limits.

    An agent proposes, the engine decides, and every decision can be replayed. To see it at work:

        pitboss demo

    To start your own:

        pitboss init my-skills
    """,
    version=__version__,
    help_format="markdown",
    default_parameter=Parameter(negative=(), show_default=_default),
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
app.meta.suppress_keyboard_interrupt = False  # it does not inherit this, and would end the process without a word
for command in (demo.demo, skill.init, backtest.backtest, report.report, bench.bench, settings.settings):
    app.command(command)
for group in (data.app, skill.app, runs.app, models.app, secrets.app, tools.app):
    app.command(group)


@app.meta.default
def launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    home: Annotated[Path | None, Parameter(help="Workspace folder. Default: .pitboss here, or PITBOSS_HOME.")] = None,
    db: Annotated[str | None, Parameter(help="Database address. Default: pitboss.db in the workspace.")] = None,
) -> int | None:
    """Find the command and call it with the place it is to work in."""
    command, bound, ignored = app.parse_args(tokens, print_error=False, exit_on_error=False)
    place = {"place": Place(home, db)} if "place" in ignored else {}
    return command(*bound.args, **bound.kwargs, **place)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and give its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app.meta(words, print_error=False, exit_on_error=False, result_action="return_value")
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except CycloptsError as error:
        screen.complain(*_usage(error))
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


def _usage(error: CycloptsError) -> tuple[str, str]:
    """A mistake in what was typed, as a sentence and a hint."""
    if (error.command_chain or ())[:1] == ("secrets",):  # what was typed may be the secret: nothing of it is repeated
        return "that is not how it is typed", "`pitboss secrets --help` shows how; a value is never given there"
    error.verbose = False
    message, _, hint = str(error).strip().partition(" Did you mean ")
    hint = f"did you mean {hint}" if hint else ""
    if isinstance(error, UnknownOptionError) and not hint:
        asked = (error.token.keyword or error.token.value).partition("=")[0]
        known = [name for argument in error.argument_collection for name in argument.names if name.startswith("--")]
        near = get_close_matches(asked, [*known, *EVERYWHERE], 1)
        hint = f"did you mean {near[0]}?" if near else ""
    chain = " ".join(("pitboss", *(error.command_chain or ())))
    message = message[:1].lower() + message[1:]
    return message.rstrip("."), hint or f"`{chain} --help` shows what it takes"


def _forget_stdout() -> None:
    with suppress(OSError, ValueError):  # not a real file: there is nothing left to flush into
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run() -> None:
    """Entry point of the installed program."""
    if sys.stdout is None:  # closed by whoever started us, who does not want to hear anything
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  until the end
    elif isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # JSON is, and a terminal of another kind must not end the work
    code = main()
    # An interrupt that came while a library ran code from text makes the interpreter end itself by signal, although it
    # was caught; running any text makes it forget that.
    exec("")
    sys.exit(code)
