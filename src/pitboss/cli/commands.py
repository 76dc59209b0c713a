"""The command tree, and messages for mistyped commands. It is run by `main.py`."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter, UnknownOptionError

from pitboss import __version__
from pitboss.terminal.workspace_options import WorkspaceOptions

EVERYWHERE = ("--home", "--db", "--help", "--version")


def _default(value: object) -> object:
    """A default as help shows it: empty if leaving the option out has no value to show."""
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
    version_format="plaintext",
    help_format="markdown",
    default_parameter=Parameter(negative=(), show_default=_default),
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
app.meta.suppress_keyboard_interrupt = (
    False  # the setting is not inherited; without it Ctrl-C would end the process silently
)
COMMANDS = {
    "demo": "demo:demo",
    "init": "skill:init",
    "backtest": "backtest:backtest",
    "submit": "backtest:submit",
    "worker": "worker:worker",
    "report": "report:report",
    "sweep": "study:sweep",
    "arena": "study:arena",
    "settings": "settings:settings",
    "venues": "venue:venues_app",
    "data": "data:app",
    "skill": "skill:app",
    "runs": "runs:app",
    "jobs": "jobs:app",
    "models": "models:app",
    "secrets": "secrets:app",
    "tools": "tools:app",
    "mcp": "mcp:app",
    "study": "study:app",
}
"""The module and attribute of each command or group. A module is imported when its command is used."""
for name, where in COMMANDS.items():
    app.command(f"pitboss.cli.{where}", name=name)


@cache
def complete() -> App:
    """The whole tree: with the commands of venues and of other packages, which are found by entry point.

    Looking for entry points takes as long as a short command, so it is done only where one of them may be meant.
    """

    from importlib.metadata import entry_points

    from pitboss.runs.venues import installed

    for entry in entry_points(group="pitboss.commands"):
        app.command(entry.value, name=entry.name)
    if "bench" not in app:
        app.command("pitboss.cli.bench_missing:bench", name="bench")
    for name in installed():
        app.command(f"pitboss.cli.venue:{name}", name=name)
    return app


def fetch(words: Sequence[str]) -> None:
    """Import the module of the given command, or all modules if none is given, because all are listed then."""
    if _command(words) not in COMMANDS and "--version" not in words:
        complete()
    with suppress(CycloptsError):  # errors are reported when the command line is parsed for execution
        chain, *_ = app.parse_commands(words)
        if not chain or chain[0] in app.help_flags:
            app.resolved_commands()


def _command(words: Sequence[str]) -> str:
    """The first word that is neither an option of every command nor its value."""
    rest = iter(words)
    for word in rest:
        if word in ("--home", "--db"):
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return ""


@app.meta.default
def launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    home: Annotated[Path | None, Parameter(help="Workspace folder. Default: .pitboss here, or PITBOSS_HOME.")] = None,
    db: Annotated[str | None, Parameter(help="Database address. Default: pitboss.db in the workspace.")] = None,
) -> int | None:
    """Find the command and call it with the selected workspace."""
    command, bound, ignored = app.parse_args(tokens, print_error=False, exit_on_error=False)
    place = {"place": WorkspaceOptions(home, db)} if "place" in ignored else {}
    return command(*bound.args, **bound.kwargs, **place)


def usage(error: CycloptsError) -> tuple[str, str]:
    """A message and a hint for a mistake in the command line."""
    if (error.command_chain or ())[:1] == ("secrets",):  # the input may be the secret, so none of it is repeated
        return "that is not how it is typed", "`pitboss secrets --help` shows how; a value is never given there"
    error.verbose = False
    message, _, hint = str(error).strip().partition(" Did you mean ")
    hint = f"did you mean {hint}" if hint else ""
    if isinstance(error, UnknownOptionError) and not hint:
        from difflib import get_close_matches

        asked = (error.token.keyword or error.token.value).partition("=")[0]
        known = [name for argument in error.argument_collection for name in argument.names if name.startswith("--")]
        near = get_close_matches(asked, [*known, *EVERYWHERE], 1)
        hint = f"did you mean {near[0]}?" if near else ""
    chain = " ".join(("pitboss", *(error.command_chain or ())))
    message = message[:1].lower() + message[1:]
    return message.rstrip("."), hint or f"`{chain} --help` shows what it takes"
