"""`pitboss completion …`: complete commands and options in the shell by the tab key."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from pitboss.core.errors import UserError
from pitboss.terminal import screen
from pitboss.terminal.options import option

app = App(name="completion", help="Complete commands and options in the shell by the tab key.")

Shell = Literal["bash", "zsh", "fish", "powershell"]
ShellName = Annotated[Shell | None, Parameter(help="bash, zsh, fish or powershell. Default: the current one.")]


@app.command
def show(shell: ShellName = None, /) -> int:
    """Print the completion script of a shell.

    For example:

        pitboss completion show bash
    """
    sys.stdout.write(_tree().generate_completion(shell=_shell(shell)) + "\n")
    return 0


@app.command
def install(
    shell: ShellName = None,
    /,
    *,
    out: Annotated[
        Path | None, option("--out", "File to write instead; no start-up file of the shell is changed then.")
    ] = None,
) -> int:
    """Install the completion script, and load it in the start-up file of the shell. It works in new shells.

    For example:

        pitboss completion install
        pitboss completion install zsh --out ~/.zfunc/_pitboss
    """
    try:
        path = _tree().install_completion(shell=_shell(shell), output=out, add_to_startup=out is None)
    except OSError as error:
        raise UserError(f"cannot write {error.filename}: {error.strerror}", "name a file with --out") from None
    screen.put(str(path))
    screen.note("open a new shell to use it; after an update of pitboss, install it again")
    return 0


def _tree() -> App:
    """All commands, those of venues among them."""
    from pitboss.cli.commands import complete_app

    tree = complete_app()
    tree.resolved_commands()
    return tree


def _shell(name: Shell | None) -> Shell:
    from cyclopts.completion import ShellDetectionError, detect_shell

    try:
        return name or detect_shell()
    except ShellDetectionError:
        raise UserError("the current shell is not known", "name it: bash, zsh, fish or powershell") from None
