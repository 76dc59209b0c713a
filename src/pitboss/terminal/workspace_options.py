"""The options that select the workspace folder and the database of a command."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from pitboss.bootstrap.settings import Settings
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.data.lake import Lake

LOCAL_USER = "local"
"""Who gives a command at the terminal."""


@dataclass(frozen=True, slots=True)
class WorkspaceOptions:
    """The two options that every command takes, before or after its name. None uses the settings."""

    home: Path | None = None
    db: str | None = None

    def settings(self) -> "Settings":
        """The settings of the workspace."""
        from pitboss.bootstrap.settings import load_settings

        return load_settings(self.home, self.db)

    def workspace(self) -> "Workspace":
        """The open workspace; close it, or use it in a `with`."""
        from pitboss.bootstrap.logs import start_logs
        from pitboss.bootstrap.workspace import open_workspace

        settings = self.settings()
        start_logs(settings.log_level, settings.log_file)
        return open_workspace(settings)

    def existing_workspace(self) -> "Workspace":
        """The same to look at what is stored: a workspace that does not exist is empty and is not created."""
        from pitboss.bootstrap.logs import start_logs
        from pitboss.bootstrap.workspace import open_existing

        settings = self.settings()
        start_logs(settings.log_level, settings.log_file)
        return open_existing(settings)

    def lake(self, writing: bool = False) -> "Lake":
        """The lake alone; for `writing` it must be a folder of this machine."""
        from pitboss.bootstrap.workspace import open_lake

        return open_lake(self.settings(), writing)

    def command_line(self, command: str) -> str:
        """The command line of a command in the same workspace, for suggestions."""
        from pitboss.bootstrap.machine import program_name

        parts = [program_name(), command]
        if self.home is not None:
            parts += ["--home", shlex.quote(str(self.home))]
        if self.db is not None:
            parts += ["--db", shlex.quote(_without_password(self.db))]
        return " ".join(parts)


def _without_password(address: str) -> str:
    """A database address without its password, for display."""
    return re.sub(r"(?<=://)([^/@:]*):[^@]*@", r"\1:…@", address)


Location = Annotated[WorkspaceOptions, Parameter(parse=False)]
"""A parameter of a command that is not parsed: `launch` in `cli/commands.py` passes the workspace options."""
