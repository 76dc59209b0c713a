"""The command tree, and messages for mistyped commands. It is run by `main.py`."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter, UnknownOptionError
from cyclopts.exceptions import UnknownCommandError, UnusedCliTokensError

from pitboss import __version__
from pitboss.cli.command_table import COMMANDS
from pitboss.cli.lazy_command import LazyCommand, add_lazy_command
from pitboss.core.errors import UserError
from pitboss.core.suggestion import did_you_mean, nearest_spelling, suggestion
from pitboss.terminal.workspace_options import WorkspaceOptions

GLOBAL_OPTIONS = ("--home", "--db", "--help", "--version")


def _default(value: object) -> object:
    """A default as help shows it: empty if leaving the option out has no value to show."""
    return None if value is False or value in ("", ()) else value


app = App(
    name="pitboss",
    help="""Run LLM agents that act in markets and communities, inside hard limits.

    An agent proposes, the engine decides, and every decision can be replayed. To see an example run:

        pitboss demo

    To start with your own skills:

        pitboss init my-skills
    """,
    version=__version__,
    version_format="plaintext",
    help_format="markdown",
    default_parameter=Parameter(negative=(), show_default=_default),
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
app.meta.suppress_keyboard_interrupt = (
    False  # the setting is not inherited; without it Ctrl-C would end the process silently
)
for name, (target, help_line) in COMMANDS.items():
    add_lazy_command(app, f"pitboss.cli.{target}", name, help_line)
_venue_commands: dict[str, LazyCommand] = {}
"""The command groups of venues by name, once `complete_app` has added them."""


@cache
def complete_app() -> App:
    """The complete command tree, with the commands that venues and other packages register as entry points.

    Reading the entry points takes as long as a short command, so `import_command` does it only if needed.
    """
    from pitboss.bootstrap.entry_points import entry_points_of
    from pitboss.runs.venues import installed

    for entry in entry_points_of("pitboss.commands"):
        if entry.name not in COMMANDS:  # no package replaces a command of pitboss itself
            app.command(entry.value, name=entry.name)
    if "bench" not in app:
        app.command("pitboss.cli.bench_missing:bench", name="bench")
    for name in installed():
        _venue_commands[name] = add_lazy_command(app, f"pitboss.cli.venue:{name}", name)
    return app


def import_command(arguments: Sequence[str]) -> None:
    """Import the module of the given command: all modules for an unknown one, none for the help that lists all commands."""
    if _command(arguments) not in COMMANDS and "--version" not in arguments:
        complete_app()
    with suppress(CycloptsError):  # errors are reported when the command line is parsed for execution
        chain, *_ = app.parse_commands(arguments)
        if chain and chain[0] not in app.help_flags:
            return
        if _command(arguments):
            app.resolved_commands()  # the message about an unknown command needs all of them
        else:
            _find_help_lines()


def _find_help_lines() -> None:
    """Find the help lines that are not in `COMMANDS`. Venues are loaded without their commands.

    Commands of other packages are imported: their entry points hold no text.
    """
    from pitboss.runs.venues import venue_named

    for name, command in _venue_commands.items():
        try:
            command.help = venue_named(name).help_line()
        except UserError as error:
            command.help = f"Not available: {error.message}."
    for name in app:
        if name not in COMMANDS and name not in _venue_commands:
            app[name]


def _command(arguments: Sequence[str]) -> str:
    """The first argument that is neither a global option nor its value."""
    remaining = iter(arguments)
    for argument in remaining:
        if argument in ("--home", "--db"):
            next(remaining, None)
        elif not argument.startswith("-"):
            return argument
    return ""


@app.meta.default
def launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    home: Annotated[Path | None, Parameter(help="Workspace folder. Default: .pitboss here, or PITBOSS_HOME.")] = None,
    db: Annotated[str | None, Parameter(help="Database address. Default: pitboss.db in the workspace.")] = None,
) -> int | None:
    """Find the command and call it. Its unparsed parameters (`Location`) get the workspace options."""
    command, bound, ignored = app.parse_args(tokens, print_error=False, exit_on_error=False)
    return command(*bound.args, **bound.kwargs, **dict.fromkeys(ignored, WorkspaceOptions(home, db)))


def usage(error: CycloptsError) -> tuple[str, str]:
    """A message and a hint for a mistake in the command line."""
    group = (error.command_chain or ("",))[0]
    if group in ("secrets", "users"):  # the input may be the secret, so none of it is repeated
        return "invalid arguments", f"see `pitboss {group} --help`; a secret value is never given on the command line"
    error.verbose = False
    if isinstance(error, UnusedCliTokensError | UnknownCommandError) and error.unused_tokens:
        first = error.unused_tokens[0]
        if first.startswith("-"):
            return f"unknown option: {first}", suggestion(first.partition("=")[0], GLOBAL_OPTIONS)
        if isinstance(error, UnusedCliTokensError):
            return f"unexpected argument: {first}", _help_hint(error)
    message, _, hint = str(error).strip().partition(" Did you mean ")
    hint = did_you_mean(hint.partition("?")[0].replace('"', ""), "")
    if isinstance(error, UnknownOptionError):  # the hint of the parser does not know the global options
        option = (error.token.keyword or error.token.value).partition("=")[0]
        names = [name for argument in error.argument_collection for name in argument.names if name.startswith("--")]
        hint = did_you_mean(nearest_spelling(option, [*names, *GLOBAL_OPTIONS]), hint)
    message = message[:1].lower() + message[1:]
    return message.rstrip("."), hint or _help_hint(error)


def _help_hint(error: CycloptsError) -> str:
    chain = " ".join(("pitboss", *(error.command_chain or ())))
    return f"`{chain} --help` lists the arguments and options"
