"""The command tree, and messages for mistyped commands. It is run by `main.py`."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter, UnknownOptionError
from cyclopts.exceptions import UnknownCommandError, UnusedCliTokensError

from pitboss import __version__
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
COMMANDS = {
    "demo": "demo:demo",
    "init": "skill:init",
    "backtest": "backtest:backtest",
    "submit": "backtest:submit",
    "worker": "worker:worker",
    "deploy": "deploy:deploy",
    "deployments": "deploy:app",
    "command": "deploy:command",
    "attribution": "attribution:attribution",
    "live": "live:app",
    "watchdog": "watchdog:watchdog",
    "report": "report:report",
    "sweep": "study:sweep",
    "arena": "study:arena",
    "serve": "serve:serve",
    "chat": "chat:chat",
    "users": "users:app",
    "tokens": "tokens:app",
    "settings": "settings:settings",
    "doctor": "doctor:doctor",
    "completion": "completion:app",
    "venues": "venue:venues_app",
    "data": "data:app",
    "skill": "skill:app",
    "runs": "runs:app",
    "jobs": "jobs:app",
    "models": "models:app",
    "secrets": "secrets:app",
    "signer": "signer:app",
    "tools": "tools:app",
    "mcp": "mcp:app",
    "study": "study:app",
    "audit": "audit:app",
    "redteam": "redteam:redteam",
}
"""The module and attribute of each command or group. A module is imported when its command is used."""
for name, target in COMMANDS.items():
    app.command(f"pitboss.cli.{target}", name=name)


@cache
def complete_app() -> App:
    """The complete command tree, with the commands that venues and other packages register as entry points.

    Reading the entry points takes as long as a short command, so `import_command` does it only if needed.
    """
    from importlib.metadata import entry_points

    from pitboss.runs.venues import installed

    for entry in entry_points(group="pitboss.commands"):
        if entry.name not in COMMANDS:  # no package replaces a command of pitboss itself
            app.command(entry.value, name=entry.name)
    if "bench" not in app:
        app.command("pitboss.cli.bench_missing:bench", name="bench")
    for name in installed():
        app.command(f"pitboss.cli.venue:{name}", name=name)
    return app


def import_command(arguments: Sequence[str]) -> None:
    """Import the module of the given command, or all modules if none is given, because the help lists all commands."""
    if _command(arguments) not in COMMANDS and "--version" not in arguments:
        complete_app()
    with suppress(CycloptsError):  # errors are reported when the command line is parsed for execution
        chain, *_ = app.parse_commands(arguments)
        if not chain or chain[0] in app.help_flags:
            app.resolved_commands()


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
